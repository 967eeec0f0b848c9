// Draws the panels: each when its numbers change, with the latest of them, as many in a frame as there is time for.

const FRAME = 12; // milliseconds of drawing after which the browser shows what there is
const CONFIG = { displayModeBar: false, responsive: false };

function render({ model, el }) {
  const panels = structuredClone(model.get("panels"));
  // The numbers of a curve are in an attribute named by its place among all curves.
  panels.flatMap((panel) => panel.traces).forEach((style, place) => (style.key = `curve_${place}`));
  const places = panels.map(() => document.createElement("div"));
  const waiting = new Set();
  let frame = 0;
  let revision = 0;
  el.classList.add("tplr-panels");
  el.setAttribute("role", "img");
  el.setAttribute("aria-label", "Leakage over time, loss functions, budgets and errors; the tables hold the numbers");
  el.append(...places);

  const draw = (k) => {
    const data = panels[k].traces.map(({ key, ...style }) => {
      const [x, y] = model.get(key);
      return { ...style, x, y, visible: x.length > 0 };
    });
    const width = places[k].clientWidth;
    Plotly.react(places[k], data, { ...structuredClone(panels[k].layout), width, datarevision: (revision += 1) }, CONFIG);
  };
  const next = () => {
    frame = 0;
    const start = performance.now();
    for (const k of [...waiting].sort()) {
      waiting.delete(k);
      if (places[k].clientWidth > 0) draw(k); // else the size changes when it is shown, and it is drawn then
      if (performance.now() - start > FRAME) break;
    }
    if (waiting.size) frame = requestAnimationFrame(next);
  };
  const soon = (k) => {
    waiting.add(k);
    if (!frame) frame = requestAnimationFrame(next);
  };
  const listeners = panels.flatMap((panel, k) =>
    panel.traces.map((style) => [`change:${style.key}`, () => soon(k)]),
  );
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
