// What privacy costs: the least cost at each error of the adversary, known mechanisms, and the current result.
import { ask, finished, get, startJob } from "./api.js";
import { settings } from "./controls.js";
import { add, select, titleOf } from "./designs.js";
import { follow, words } from "./timing.js";
import { exportPicture } from "./figures.js";
import { $, asCost, asEpsilon, asError, digits, element, emit, forget, on, palette, pictureWidth, state, svg, wrongOr } from "./shared.js";

const [HEIGHT, LEFT, BOTTOM] = [330, 70, 46]; // of the plot, and its margins
const NAMES = { optimal: "the best possible with your settings", free: "the best without ε", "planar-laplace": "planar Laplace", exponential: "exponential", geometric: "geometric", "randomised-response": "randomised response", uniform: "uniform noise" };
let points = [];
let job = null;
let wanted = null; // the settings that the curve was drawn for

export function setUpFrontier() {
  $("draw-frontier").addEventListener("click", run);
  $("cancel-frontier").addEventListener("click", () => { if (job) ask("DELETE", `jobs/${job}`).catch(() => {}); });
  on("problem", () => { clearPoints(); $("frontier-status").textContent = ""; drawFrontier(); });
  on("unloaded", () => { $("draw-frontier").disabled = true; });
  on("cleared", () => { $("frontier-card").hidden = false; clearPoints(); $("frontier-status").textContent = ""; drawFrontier(); });
  on("settings", () => { if (!job && points.length) $("frontier-status").textContent = isCurrent() ? `${points.length} points.` : "Drawn for other settings: draw it again for these."; });
  on("problem", (problem) => {
    if (!job) $("draw-frontier").disabled = !problem.id;
    $("frontier-card").hidden = problem.kind === "points"; // every point of it would take a design of many seconds
  });
  on("result", drawFrontier);
  $("save-frontier").addEventListener("click", () => exportPicture(document.querySelector("#frontier > svg"), "private-trade-off.svg", {
    title: `What privacy costs, with ${titleOf({ ...wanted, bounds: Object.fromEntries(Object.entries(wanted.bounds).filter(([key]) => !["distortion", "cost_at_most"].includes(key))) }) || "no further guarantee"}`,
    legend: legendEntries(palette()),
    note: "private: computed from the prior",
  }));
}

function clearPoints() {
  if (job) ask("DELETE", `jobs/${job}`).catch(() => {});
  forget(points.map((each) => each.mechanism).filter((id) => !state.results.some((result) => result.id === id)));
  points = [];
}

function isCurrent() {
  // Compares all settings except the error and the cost, which vary along the curve.
  const others = ({ bounds: { distortion, cost_at_most: cost, ...rest }, adversaries }) => JSON.stringify([rest, adversaries]);
  return others(wanted) === others(settings());
}

async function run() {
  const { problem } = state;
  if (!problem?.id || !state.loaded) return;
  clearPoints();
  wanted = settings();
  $("draw-frontier").disabled = true;
  $("cancel-frontier").hidden = false;
  try {
    follow();
    job = (await startJob({ kind: "frontier", problem: problem.id, ...wanted })).id;
    state.names.add(job);
    const done = await finished(job, (now) => {
      if (problem !== state.problem) return;
      points = now.parts;
      points.forEach((each) => state.names.add(each.mechanism));
      $("frontier-status").textContent = now.state === "queued" ? "waiting …" : [`${points.length} points`, ...words(now.progress.share ?? 0, now.seconds)].join(" · ");
      drawFrontier();
    }, () => problem !== state.problem);
    if (problem === state.problem) $("frontier-status").textContent = done.state === "cancelled" ? "Cancelled." : `${points.length} points${done.result.left_out ? `; ${done.result.left_out} more are not possible with your other settings` : ""}.`;
  } catch (error) {
    if (problem !== state.problem) return;
    $("frontier-status").textContent = error.message;
    if (error.status === "NOT_FOUND") emit("expired");
  } finally {
    if (job) forget([job]);
    job = null;
    $("draw-frontier").disabled = !state.problem?.id || !state.loaded;
    $("cancel-frontier").hidden = true;
  }
}

export function drawFrontier() {
  const { problem, result } = state;
  $("save-frontier").hidden = !problem || !points.length;
  if (!problem || !points.length) { $("frontier").replaceChildren(); return; }
  const colours = palette();
  const shownPoints = [...points, ...(result ? [result] : [])];
  const [mostX, mostY] = [Math.max(...shownPoints.map((p) => p.distortion), problem.most_distortion) * 1.05, Math.max(...shownPoints.map((p) => p.cost), 1e-9) * 1.12];
  const x = (value) => LEFT + ((pictureWidth() - LEFT - 30) * value) / mostX;
  const y = (value) => HEIGHT - ((HEIGHT - 12) * value) / mostY;
  const root = svg("svg", { viewBox: `0 0 ${pictureWidth()} ${HEIGHT + BOTTOM}`, xmlns: "http://www.w3.org/2000/svg", role: "group", "aria-label": "Cost against the adversary's error" });
  axes(root, problem, mostX, mostY, x, y, colours);
  curve(root, "free", x, y, { stroke: colours.soft, "stroke-dasharray": "5 4" });
  const best = curve(root, "optimal", x, y, { stroke: colours.accent });
  if (best.length > 1) root.prepend(svg("polygon", { points: `${x(best[0].distortion)},${HEIGHT} ${best.map((p) => `${x(p.distortion)},${y(p.cost)}`).join(" ")} ${x(best.at(-1).distortion)},${HEIGHT}`, fill: colours.accent, opacity: 0.08 }));
  for (const each of [...points].sort((a, b) => rank(a) - rank(b))) root.append(pointButton(each, x(each.distortion), y(each.cost), colours));
  if (result) root.append(svg("circle", { cx: x(result.distortion), cy: y(result.cost), r: 10, fill: "none", stroke: colours.mark, "stroke-width": 3.5, "pointer-events": "none" }));
  $("frontier").replaceChildren(root, legend(colours));
}

const rank = (each) => ["free", "optimal"].indexOf(each.name); // the curve for the settings lies on top, where its points can be chosen

function curve(root, name, x, y, style) {
  const sorted = points.filter((p) => p.name === name).sort((a, b) => a.distortion - b.distortion || a.cost - b.cost);
  if (sorted.length > 1) root.append(svg("polyline", { points: sorted.map((p) => `${x(p.distortion)},${y(p.cost)}`).join(" "), fill: "none", "stroke-width": 2, ...style }));
  return sorted;
}

function legendEntries(colours) {
  const names = [...new Set(points.map((each) => each.name))];
  const entries = names.map((name) => [marker(name, 8, 8, colours), NAMES[name] ?? name]);
  return state.result ? [...entries, [svg("circle", { cx: 8, cy: 8, r: 6, fill: "none", stroke: colours.mark, "stroke-width": 3 }), "this result"]] : entries;
}

const legend = (colours) => element("p", { class: "legend" }, ...legendEntries(colours).map(([shape, name]) => element("span", {}, icon(shape), ` ${name}`)));

const icon = (shape) => svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, shape);

function marker(name, x, y, colours) {
  if (name === "optimal") return svg("circle", { cx: x, cy: y, r: 6, fill: colours.accent, stroke: colours.card, "stroke-width": 1.5 });
  const style = { fill: colours.card, stroke: name === "free" ? colours.soft : colours.ink, "stroke-width": 2, "stroke-linejoin": "round" };
  if (name === "free") return svg("circle", { cx: x, cy: y, r: 4.5, ...style });
  const shapes = { "planar-laplace": [[-6, 5], [6, 5], [0, -6]], exponential: [[-6, -5], [6, -5], [0, 6]], geometric: [[-5, -5], [5, -5], [5, 5], [-5, 5]], "randomised-response": [[0, -7], [7, 0], [0, 7], [-7, 0]], uniform: [[-6, -2], [-2, -2], [-2, -6], [2, -6], [2, -2], [6, -2], [6, 2], [2, 2], [2, 6], [-2, 6], [-2, 2], [-6, 2]] };
  return svg("polygon", { points: (shapes[name] ?? shapes.geometric).map(([dx, dy]) => `${x + dx},${y + dy}`).join(" "), ...style });
}

function axes(root, problem, mostX, mostY, x, y, colours) {
  root.append(svg("path", { d: `M${LEFT} 8V${HEIGHT}H${pictureWidth() - 8}`, fill: "none", stroke: colours.soft }));
  for (const value of ticks(mostX)) root.append(text(x(value), HEIGHT + 18, value ? asError(value) : "0", colours.soft));
  for (const value of ticks(mostY)) root.append(text(LEFT - 8, y(value) + 5, value ? asCost(value) : "0", colours.soft, "end"));
  root.append(text((pictureWidth() + LEFT) / 2, HEIGHT + 40, problem.measures.distance === "hamming" ? "how often the best attack is wrong →" : "how far off the best attack is →", colours.soft));
  root.append(text(LEFT + 6, 16, problem.measures.cost === "hamming" ? "↑ outputs changed" : "↑ outputs off", colours.soft, "start"));
}

function ticks(most) {
  const size = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 5, 10].map((k) => k * size).find((each) => most / each <= 5.5);
  return [...Array(Math.floor(most / step) + 1).keys()].map((k) => k * step);
}

function pointButton(each, x, y, colours) {
  const optimal = each.asked !== null; // otherwise a known mechanism
  const name = `${NAMES[each.name] ?? each.name}: cost ${asCost(each.cost)}, attack ${asError(each.distortion)} ${wrongOr("off")}${each.epsilon ? `, ε ${asEpsilon(each.epsilon, { anyPair: each.any_pair })}` : ""}. Choose to take it.`;
  const button = marker(each.name, x, y, colours);
  button.setAttribute("class", "point");
  button.setAttribute("tabindex", "0");
  button.setAttribute("role", "button");
  button.setAttribute("aria-label", name);
  const title = svg("title");
  title.textContent = name;
  button.append(title);
  const choose = async () => {
    try {
      const view = await get(`mechanisms/${each.mechanism}`);
      const chosen = optimal ? { bounds: each.bounds, adversaries: wanted.adversaries } : null;
      if (chosen) select(view, titleOf(chosen), chosen);
      else add(view, NAMES[each.name]); // no settings of the controls give a known mechanism
    } catch (error) { $("frontier-status").textContent = error.message; }
  };
  button.addEventListener("click", choose);
  button.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } });
  return button;
}

function text(x, y, content, fill, anchor = "middle") {
  const node = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": 13.5, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  node.textContent = content;
  return node;
}
