// Draws the panels as SVG: at most once per frame, each panel whose numbers changed.

const HEIGHT = 235;
const EDGE = { left: 52, right: 12, top: 8, bottom: 36 };
const NEAR = 30; // pixels within which the tip shows a point

const short = (number, digits) => String(Number(number.toPrecision(digits)));

function ticksOf(low, high, logarithmic, whole) {
  if (logarithmic) {
    const powers = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) powers.push(power);
    const inside = (digits) =>
      powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((t) => t >= low && t <= high);
    for (const digits of [[1, 2, 5], [1]]) {
      const ticks = inside(digits);
      if (ticks.length > 1 && ticks.length < 10) return ticks;
    }
  }
  const size = 10 ** Math.floor(Math.log10((high - low) / 6));
  const step = Math.max([1, 2, 5, 10].find((digit) => 6 * digit * size >= high - low) * size, whole ? 1 : 0);
  const ticks = [];
  for (let k = Math.max(Math.ceil(low / step), whole ? 1 : 0); k * step <= high; k += 1) ticks.push(k * step);
  return ticks;
}

/** Lowest and highest number of an axis. */
function rangeOf(numbers, { fromZero = false, logarithmic = false }) {
  let [low, high] = [fromZero ? 0 : Infinity, fromZero ? 0 : -Infinity];
  for (const number of numbers) [low, high] = [Math.min(low, number), Math.max(high, number)];
  if (logarithmic) return [low / 1.15, high * 1.15];
  const room = 0.03 * (high - low) || 0.5;
  return [low && low - room, high + room];
}

// The dashes of a curve without a line are null, and so is the shape of one without markers (see plots.py).
const lineOf = ({ colour, broad, dashes }, path) =>
  dashes !== null &&
  `<path d="${path}" fill="none" stroke="${colour}" stroke-width="${broad ? 7 : 2}" stroke-dasharray="${dashes}"` +
    ` opacity="${broad ? 0.55 : 1}"/>`;
const markersOf = ({ colour, shape }, places) =>
  shape !== null && `<path d="${places.map((at) => `M${at}${shape}`).join("")}" fill="${colour}"/>`;

/** The SVG of a panel, and the places of all its points. */
function picture(panel, curves, width) {
  const xs = rangeOf(curves.flatMap(({ numbers }) => numbers[0]), {});
  const ys = rangeOf(curves.flatMap(({ numbers }) => numbers[1]), { ...panel, fromZero: !panel.logarithmic });
  const scale = panel.logarithmic ? Math.log : Number;
  const [right, bottom] = [width - EDGE.right, HEIGHT - EDGE.bottom];
  const toX = (x) => EDGE.left + ((x - xs[0]) / (xs[1] - xs[0])) * (right - EDGE.left);
  const toY = (y) => bottom - ((scale(y) - scale(ys[0])) / (scale(ys[1]) - scale(ys[0]))) * (bottom - EDGE.top);
  const points = [];
  const parts = curves.map((curve) => {
    const [x, y] = curve.numbers;
    const places = x.map((_, k) => [toX(x[k]), toY(y[k])]);
    places.forEach((at, k) => points.push({ at, text: `${curve.label}: ${short(x[k], 4)}, ${short(y[k], 5)}` }));
    const written = places.map((at) => `${at[0].toFixed(1)},${at[1].toFixed(1)}`);
    const step = Math.max(1, Math.floor(x.length / panel.markers));
    const marked = written.filter((_, k) => k % step === 0);
    return [lineOf(curve, `M${written.join("L")}`), markersOf(curve, marked)].filter(Boolean).join("");
  });
  const grid = [`M${EDGE.left},${EDGE.top}V${bottom}H${right}`];
  const texts = [];
  for (const tick of ticksOf(...xs, false, panel.x.startsWith("release"))) {
    grid.push(`M${toX(tick).toFixed(1)},${EDGE.top}V${bottom + 4}`);
    texts.push(`<text x="${toX(tick)}" y="${bottom + 16}" text-anchor="middle">${short(tick, 6)}</text>`);
  }
  for (const tick of ticksOf(...ys, panel.logarithmic)) {
    grid.push(`M${EDGE.left - 4},${toY(tick).toFixed(1)}H${right}`);
    texts.push(`<text x="${EDGE.left - 7}" y="${toY(tick) + 4}" text-anchor="end">${short(tick, 6)}</text>`);
  }
  texts.push(`<text x="${(EDGE.left + right) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${panel.x}</text>`);
  const middle = (EDGE.top + bottom) / 2;
  texts.push(`<text transform="translate(11,${middle}) rotate(-90)" text-anchor="middle">${panel.y}</text>`);
  return [`<path d="${grid.join("")}" class="tplr-grid"/>${texts.join("")}${parts.join("")}`, points];
}

/** A panel: title, picture, a legend whose entries hide and show their curves, and a tip for the point near the mouse. */
function makePanel(panel, model, place) {
  place.className = "tplr-panel";
  place.innerHTML = `<div class="tplr-panel-title">${panel.title}</div><svg role="img" height="${HEIGHT}"></svg>
    <div class="tplr-legend"></div><div class="tplr-tip" hidden></div>`;
  const [, svg, legend, tip] = place.children;
  svg.setAttribute("aria-label", `${panel.title}; the tables hold the numbers`);
  const hidden = new Set();
  let [points, width] = [[], 0];
  const keys = panel.curves.map((curve) => {
    const key = document.createElement("button");
    key.className = "tplr-key";
    key.title = curve.about;
    const sample = [lineOf(curve, "M1,8H33"), markersOf(curve, ["17,8"])].filter(Boolean).join("");
    key.innerHTML = `<svg width="34" height="16" aria-hidden="true">${sample}</svg>${curve.label}`;
    key.addEventListener("click", () => {
      hidden.delete(curve.key) || hidden.add(curve.key);
      draw();
    });
    legend.append(key);
    return key;
  });
  const draw = (newWidth = width) => {
    width = newWidth;
    const drawn = panel.curves.map((curve) => ({ ...curve, numbers: model.get(curve.key) }));
    place.numbers = Object.fromEntries(drawn.map(({ name, numbers }) => [name, numbers]));
    drawn.forEach((curve, k) => {
      keys[k].hidden = curve.numbers[0].length === 0;
      keys[k].setAttribute("aria-pressed", String(!hidden.has(curve.key)));
    });
    place.hidden = keys.every((key) => key.hidden);
    const shown = drawn.filter((curve, k) => !keys[k].hidden && !hidden.has(curve.key));
    tip.hidden = true;
    [svg.innerHTML, points] = width && shown.length ? picture(panel, shown, width) : ["", []];
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const distance = ({ at }) => Math.hypot(at[0] - event.clientX + box.left, at[1] - event.clientY + box.top);
    const nearest = points.reduce((best, point) => (distance(point) < distance(best) ? point : best), points[0]);
    tip.hidden = !nearest || distance(nearest) > NEAR;
    if (tip.hidden) return;
    tip.textContent = nearest.text;
    tip.style.left = `${Math.min(nearest.at[0] + 8, width - tip.offsetWidth)}px`;
    tip.style.top = `${svg.offsetTop + nearest.at[1] - 28}px`;
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  return draw;
}

function render({ model, el }) {
  const panels = structuredClone(model.get("panels"));
  // The numbers of a curve are in the attribute curve_k, where k is its place among all curves.
  panels.flatMap((panel) => panel.curves).forEach((curve, place) => (curve.key = `curve_${place}`));
  const places = panels.map(() => document.createElement("div"));
  const draws = panels.map((panel, k) => makePanel(panel, model, places[k]));
  el.classList.add("tplr-panels");
  el.append(...places);

  const waiting = new Set();
  let frame = 0;
  let width = 0;
  const soon = (k) => {
    waiting.add(k);
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      for (const panel of waiting) draws[panel](width);
      waiting.clear();
    });
  };
  const listeners = panels.flatMap((panel, k) => panel.curves.map(({ key }) => [`change:${key}`, () => soon(k)]));
  for (const [event, listener] of listeners) model.on(event, listener);
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
  };
}

export default { render };
