// What privacy costs: the least cost at each error of the attacker, what others use, and where we are.
import { ask, finished, get, startJob } from "./api.js";
import { adopt, settingOf, takeUp } from "./designs.js";
import { $, asCost, asEpsilon, asError, digits, element, emit, forget, on, palette, state, svg, wide, wrongOr } from "./shared.js";
import { wishes } from "./wishes.js";

const [TALL, LEFT, FOOT] = [330, 70, 46];
const NAMES = { optimal: "the best possible as asked", free: "the best without ε", "planar-laplace": "planar Laplace", exponential: "exponential", geometric: "geometric", "randomised-response": "randomised response", uniform: "uniform noise" };
let points = [];
let job = null;
let asked = null;

export function setUpFrontier() {
  $("draw").addEventListener("click", run);
  $("draw-cancel").addEventListener("click", () => { if (job) ask("DELETE", `jobs/${job}`).catch(() => {}); });
  on("problem", () => { drop(); $("draw-says").textContent = ""; drawFrontier(); });
  on("unloaded", () => { $("draw").disabled = true; });
  on("cleared", () => { drop(); $("draw-says").textContent = ""; drawFrontier(); });
  on("wishes", () => { if (!job && points.length) $("draw-says").textContent = fits() ? `${points.length} points.` : "Of another setting: draw it again for this one."; });
  on("problem", (problem) => { if (!job) $("draw").disabled = !problem.id; });
  on("result", drawFrontier);
}

function drop() {
  if (job) ask("DELETE", `jobs/${job}`).catch(() => {});
  forget(points.map((each) => each.mechanism).filter((id) => !state.results.some((result) => result.id === id)));
  points = [];
}

function fits() {
  // The curve is about everything that is asked but for what it is drawn along.
  const others = ({ bounds: { distortion, cost_at_most: cost, ...rest }, adversaries }) => JSON.stringify([rest, adversaries]);
  return others(asked) === others(wishes());
}

async function run() {
  const { problem } = state;
  if (!problem?.id || !state.loaded) return;
  drop();
  asked = wishes();
  $("draw").disabled = true;
  $("draw-cancel").hidden = false;
  try {
    job = (await startJob({ kind: "frontier", problem: problem.id, ...asked })).id;
    state.names.add(job);
    const done = await finished(job, (now) => {
      if (problem !== state.problem) return;
      points = now.parts;
      points.forEach((each) => state.names.add(each.mechanism));
      $("draw-says").textContent = now.state === "queued" ? "waiting …" : `${points.length} points, ${now.seconds.toFixed(0)} s`;
      drawFrontier();
    }, () => problem !== state.problem);
    if (problem === state.problem) $("draw-says").textContent = done.state === "cancelled" ? "Cancelled." : `${points.length} points${done.result.left_out ? `; ${done.result.left_out} more cannot be had with everything else as asked` : ""}.`;
  } catch (error) {
    if (problem !== state.problem) return;
    $("draw-says").textContent = error.message;
    if (error.status === "NOT_FOUND") emit("lost");
  } finally {
    if (job) forget([job]);
    job = null;
    $("draw").disabled = !state.problem?.id || !state.loaded;
    $("draw-cancel").hidden = true;
  }
}

export function drawFrontier() {
  const { problem, result } = state;
  if (!problem || !points.length) { $("frontier").replaceChildren(); return; }
  const colours = palette();
  const all = [...points, ...(result ? [result] : [])];
  const [mostX, mostY] = [Math.max(...all.map((p) => p.distortion), problem.most_distortion) * 1.05, Math.max(...all.map((p) => p.cost), 1e-9) * 1.12];
  const x = (value) => LEFT + ((wide() - LEFT - 30) * value) / mostX;
  const y = (value) => TALL - ((TALL - 12) * value) / mostY;
  const root = svg("svg", { viewBox: `0 0 ${wide()} ${TALL + FOOT}`, xmlns: "http://www.w3.org/2000/svg", role: "group", "aria-label": "Cost against the attacker's error" });
  axes(root, problem, mostX, mostY, x, y, colours);
  curve(root, "free", x, y, { stroke: colours.soft, "stroke-dasharray": "5 4" });
  const best = curve(root, "optimal", x, y, { stroke: colours.accent });
  if (best.length > 1) root.prepend(svg("polygon", { points: `${x(best[0].distortion)},${TALL} ${best.map((p) => `${x(p.distortion)},${y(p.cost)}`).join(" ")} ${x(best.at(-1).distortion)},${TALL}`, fill: colours.accent, opacity: 0.08 }));
  for (const each of [...points].sort((a, b) => rank(a) - rank(b))) root.append(point(each, x(each.distortion), y(each.cost), colours));
  if (result) root.append(svg("circle", { cx: x(result.distortion), cy: y(result.cost), r: 10, fill: "none", stroke: colours.mark, "stroke-width": 3.5, "pointer-events": "none" }));
  $("frontier").replaceChildren(root, legend(colours));
}

const rank = (each) => ["free", "optimal"].indexOf(each.name); // what was asked lies on top, where it can be chosen

function curve(root, name, x, y, style) {
  const found = points.filter((p) => p.name === name).sort((a, b) => a.distortion - b.distortion || a.cost - b.cost);
  if (found.length > 1) root.append(svg("polyline", { points: found.map((p) => `${x(p.distortion)},${y(p.cost)}`).join(" "), fill: "none", "stroke-width": 2, ...style }));
  return found;
}

function legend(colours) {
  const names = [...new Set(points.map((each) => each.name))];
  const entry = (drawn, words) => element("span", {}, svgIn(drawn), ` ${words}`);
  return element("p", { class: "legend" }, ...names.map((name) => entry(sign(name, 8, 8, colours), NAMES[name] ?? name)),
    entry(svg("circle", { cx: 8, cy: 8, r: 6, fill: "none", stroke: colours.mark, "stroke-width": 3 }), "here"));
}

const svgIn = (drawn) => svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, drawn);

function sign(name, x, y, colours) {
  if (name === "optimal") return svg("circle", { cx: x, cy: y, r: 6, fill: colours.accent, stroke: colours.card, "stroke-width": 1.5 });
  const style = { fill: colours.card, stroke: name === "free" ? colours.soft : colours.ink, "stroke-width": 2, "stroke-linejoin": "round" };
  if (name === "free") return svg("circle", { cx: x, cy: y, r: 4.5, ...style });
  const shapes = { "planar-laplace": [[-6, 5], [6, 5], [0, -6]], exponential: [[-6, -5], [6, -5], [0, 6]], geometric: [[-5, -5], [5, -5], [5, 5], [-5, 5]], "randomised-response": [[0, -7], [7, 0], [0, 7], [-7, 0]], uniform: [[-6, -2], [-2, -2], [-2, -6], [2, -6], [2, -2], [6, -2], [6, 2], [2, 2], [2, 6], [-2, 6], [-2, 2], [-6, 2]] };
  return svg("polygon", { points: (shapes[name] ?? shapes.geometric).map(([dx, dy]) => `${x + dx},${y + dy}`).join(" "), ...style });
}

function axes(root, problem, mostX, mostY, x, y, colours) {
  root.append(svg("path", { d: `M${LEFT} 8V${TALL}H${wide() - 8}`, fill: "none", stroke: colours.soft }));
  for (const value of ticks(mostX)) root.append(text(x(value), TALL + 18, value ? asError(value) : "0", colours.soft));
  for (const value of ticks(mostY)) root.append(text(LEFT - 8, y(value) + 5, value ? asCost(value) : "0", colours.soft, "end"));
  root.append(text((wide() + LEFT) / 2, TALL + 40, problem.measures.distance === "hamming" ? "how often the best attack is wrong →" : "how far off the best attack is →", colours.soft));
  root.append(text(LEFT + 6, 16, problem.measures.cost === "hamming" ? "↑ answers changed" : "↑ answers off", colours.soft, "start"));
}

function ticks(most) {
  const size = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 5, 10].map((k) => k * size).find((each) => most / each <= 5.5);
  return [...Array(Math.floor(most / step) + 1).keys()].map((k) => k * step);
}

function point(each, x, y, colours) {
  const optimal = each.asked !== null;
  const name = `${NAMES[each.name] ?? each.name}: cost ${asCost(each.cost)}, attack ${asError(each.distortion)} ${wrongOr("off")}${each.epsilon ? `, ε ${asEpsilon(each.epsilon, { anyPair: each.any_pair })}` : ""}. Choose to take it.`;
  const made = sign(each.name, x, y, colours);
  made.setAttribute("class", "point");
  made.setAttribute("tabindex", "0");
  made.setAttribute("role", "button");
  made.setAttribute("aria-label", name);
  const title = svg("title");
  title.textContent = name;
  made.append(title);
  const take = async () => {
    try {
      const view = await get(`mechanisms/${each.mechanism}`);
      const taken = optimal ? { bounds: each.bounds, adversaries: asked.adversaries } : null;
      if (taken) takeUp(view, settingOf(taken), taken);
      else adopt(view, NAMES[each.name]); // no knob makes what others use
    } catch (error) { $("draw-says").textContent = error.message; }
  };
  made.addEventListener("click", take);
  made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(); } });
  return made;
}

function text(x, y, words, fill, anchor = "middle") {
  const made = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": 13.5, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  made.textContent = words;
  return made;
}
