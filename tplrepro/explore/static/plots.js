// Draws the panels: each when its numbers change, with the latest of them, as many in a frame as there is time for.

const FRAME = 12; // milliseconds of drawing after which the browser shows what there is
const CONFIG = { displayModeBar: false, responsive: false };
const MARKERS = 14; // of a curve: one for each point would take most of the time of an update
const GREY = "#8c8c8c";
// Margins are fixed and labels may touch: fitting them would take half the time of an update.
const AXIS = {
  automargin: false,
  ticklabeloverflow: "allow",
  gridcolor: "rgba(128,128,128,0.25)",
  linecolor: GREY,
  zerolinecolor: "rgba(128,128,128,0.4)",
  showline: true,
  nticks: 8,
};
const TICKS = [...Array(15).keys()].flatMap((place) => [1, 2, 5].map((digit) => Number(`${digit}e${place - 6}`)));
const LOGARITHMIC = { type: "log", tickvals: TICKS, ticktext: TICKS.map(String) };

function layoutOf({ title, x, y, logarithmic }) {
  const scale = logarithmic ? LOGARITHMIC : { rangemode: "tozero" };
  return {
    height: 345,
    title: { text: title, font: { size: 13 }, x: 0.5, y: 0.97 },
    margin: { l: 55, r: 14, t: 34, b: 104, autoexpand: false },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: GREY, size: 12 },
    showlegend: true,
    legend: { orientation: "h", x: 0, y: -0.19, yanchor: "top", font: { size: 11 } },
    xaxis: { ...AXIS, title: { text: x, standoff: 4, font: { size: 12 } } },
    yaxis: { ...AXIS, ...scale, title: { text: y, font: { size: 12 } } },
    hoverdistance: 30,
  };
}

function traceOf({ name, label, colour, dash, marker, mode }, [x, y]) {
  return {
    type: "scatter",
    name: label,
    meta: name,
    mode,
    line: { color: colour, dash, width: 2 },
    marker: { color: colour, symbol: marker, size: mode === "markers" ? 9 : 6, maxdisplayed: MARKERS },
    hovertemplate: "%{x:.4g}, %{y:.5g}",
    x,
    y,
    visible: x.length > 0,
  };
}

function render({ model, el }) {
  const panels = structuredClone(model.get("panels"));
  // The numbers of a curve are in an attribute named by its place among all curves.
  panels.flatMap((panel) => panel.curves).forEach((curve, place) => (curve.key = `curve_${place}`));
  const places = panels.map(() => document.createElement("div"));
  const waiting = new Set();
  let frame = 0;
  let revision = 0;
  el.classList.add("tplr-panels");
  el.setAttribute("role", "img");
  el.setAttribute("aria-label", "Leakage over time, loss functions, budgets and errors; the tables hold the numbers");
  panels.forEach(({ order }, k) => (places[k].style.order = order));
  el.append(...places);

  const draw = (k) => {
    const data = panels[k].curves.map((curve) => traceOf(curve, model.get(curve.key)));
    places[k].hidden = !data.some(({ visible }) => visible);
    const width = places[k].clientWidth;
    if (width === 0) return; // the size changes when it is shown, and it is drawn then
    Plotly.react(places[k], data, { ...layoutOf(panels[k]), width, datarevision: (revision += 1) }, CONFIG);
  };
  const next = () => {
    frame = 0;
    const start = performance.now();
    for (const k of [...waiting].sort((a, b) => panels[a].order - panels[b].order || a - b)) {
      waiting.delete(k);
      draw(k);
      if (performance.now() - start > FRAME) break;
    }
    if (waiting.size) frame = requestAnimationFrame(next);
  };
  const soon = (k) => {
    waiting.add(k);
    if (!frame) frame = requestAnimationFrame(next);
  };
  const listeners = panels.flatMap((panel, k) => panel.curves.map(({ key }) => [`change:${key}`, () => soon(k)]));
  for (const [event, listener] of listeners) model.on(event, listener);
  let width = 0;
  const resized = new ResizeObserver(() => {
    if (places[0].clientWidth === width) return;
    width = places[0].clientWidth;
    panels.forEach((_, k) => soon(k));
  });
  resized.observe(places[0]);
  return () => {
    resized.disconnect();
    cancelAnimationFrame(frame);
    for (const [event, listener] of listeners) model.off(event, listener);
    places.forEach((place) => Plotly.purge(place));
  };
}

export default { render };
