// What privacy costs: the least cost at each error of the attacker, what others use, and where we are.
import { ask, finished, get, post } from "./api.js";
import { $, asCost, asError, digits, on, palette, state, svg } from "./shared.js";
import { adopt } from "./designs.js";
import { bounds } from "./wishes.js";

const [WIDTH, TALL, LEFT, FOOT] = [720, 330, 70, 46];
const NAMES = { optimal: "the best possible", "planar-laplace": "planar Laplace", exponential: "exponential", geometric: "geometric", "randomised-response": "randomised response", uniform: "uniform noise" };
let points = [];
let job = null;

export function setUpFrontier() {
  $("draw").addEventListener("click", run);
  $("draw-cancel").addEventListener("click", () => { if (job) ask("DELETE", `jobs/${job}`).catch(() => {}); });
  on("problem", () => { drop(); drawFrontier(); });
  on("result", drawFrontier);
}

function drop() {
  if (job) ask("DELETE", `jobs/${job}`).catch(() => {});
  const ids = points.map((each) => each.mechanism).filter((id) => !state.results.some((result) => result.id === id));
  if (ids.length) post("forget", { ids }).catch(() => {});
  points = [];
}

async function run() {
  const { problem } = state;
  if (!problem?.id) return;
  drop();
  $("draw").disabled = true;
  $("draw-cancel").hidden = false;
  try {
    job = (await post("jobs", { kind: "frontier", problem: problem.id, bounds: bounds() })).id;
    state.names.add(job);
    const done = await finished(job, (now) => {
      if (problem !== state.problem) return;
      points = now.parts;
      points.forEach((each) => state.names.add(each.mechanism));
      $("draw-says").textContent = now.state === "queued" ? "waiting …" : `${points.length} points, ${now.seconds.toFixed(0)} s`;
      drawFrontier();
    });
    $("draw-says").textContent = done.state === "cancelled" ? "Cancelled." : `${points.length} points.`;
  } catch (error) {
    $("draw-says").textContent = error.message;
  } finally {
    job = null;
    $("draw").disabled = false;
    $("draw-cancel").hidden = true;
  }
}

export function drawFrontier() {
  const { problem, result } = state;
  if (!problem || (!points.length && !result)) { $("frontier").replaceChildren(); return; }
  const colours = palette();
  const all = [...points, ...(result ? [result] : [])];
  const [mostX, mostY] = [Math.max(...all.map((p) => p.distortion), problem.most_distortion) * 1.05, Math.max(...all.map((p) => p.cost), 1e-9) * 1.12];
  const x = (value) => LEFT + ((WIDTH - LEFT - 12) * value) / mostX;
  const y = (value) => TALL - ((TALL - 12) * value) / mostY;
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${TALL + FOOT}`, xmlns: "http://www.w3.org/2000/svg", role: "group", "aria-label": "Cost against the attacker's error" });
  axes(root, problem, mostX, mostY, x, y, colours);
  const best = points.filter((p) => p.name === "optimal").sort((a, b) => a.distortion - b.distortion || a.cost - b.cost);
  if (best.length > 1) {
    const line = best.map((p) => `${x(p.distortion)},${y(p.cost)}`).join(" ");
    root.append(svg("polygon", { points: `${x(best[0].distortion)},${TALL} ${line} ${x(best.at(-1).distortion)},${TALL}`, fill: colours.accent, opacity: 0.08 }));
    root.append(svg("polyline", { points: line, fill: "none", stroke: colours.accent, "stroke-width": 2 }));
  }
  for (const each of points) root.append(point(each, x(each.distortion), y(each.cost), colours));
  labels(root, points.filter((p) => p.name !== "optimal"), x, y, colours);
  if (result) root.append(svg("circle", { cx: x(result.distortion), cy: y(result.cost), r: 10, fill: "none", stroke: colours.mark, "stroke-width": 3.5, "pointer-events": "none" }), text(x(result.distortion), y(result.cost) + 28, "here", colours.ink));
  $("frontier").replaceChildren(root);
}

function axes(root, problem, mostX, mostY, x, y, colours) {
  root.append(svg("path", { d: `M${LEFT} 8V${TALL}H${WIDTH - 8}`, fill: "none", stroke: colours.soft }));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(text(x((share * mostX) / 1.05), TALL + 18, share ? asError((share * mostX) / 1.05) : "0", colours.soft));
    root.append(text(LEFT - 8, y((share * mostY) / 1.12) + 5, share ? asCost((share * mostY) / 1.12) : "0", colours.soft, "end"));
  }
  root.append(text((WIDTH + LEFT) / 2, TALL + 40, problem.measures.distance === "hamming" ? "how often the best attack is wrong →" : "how far off the best attack is →", colours.soft));
  root.append(text(LEFT + 6, 16, problem.measures.cost === "hamming" ? "↑ answers changed" : "↑ answers off", colours.soft, "start"));
}

function point(each, x, y, colours) {
  const optimal = each.name === "optimal";
  const name = `${NAMES[each.name] ?? each.name}: cost ${asCost(each.cost)}, attack ${asError(each.distortion)} off${each.epsilon ? `, ε ${digits(each.epsilon)}` : ""}. Choose to take it.`;
  const made = optimal
    ? svg("circle", { cx: x, cy: y, r: 6, fill: colours.accent, stroke: colours.card, "stroke-width": 1.5 })
    : svg("rect", { x: x - 6, y: y - 6, width: 12, height: 12, transform: `rotate(45 ${x} ${y})`, fill: colours.card, stroke: colours.ink, "stroke-width": 2 });
  made.setAttribute("class", "point");
  made.setAttribute("tabindex", "0");
  made.setAttribute("role", "button");
  made.setAttribute("aria-label", name);
  const title = svg("title");
  title.textContent = name;
  made.append(title);
  const take = async () => {
    try { adopt(await get(`mechanisms/${each.mechanism}`), optimal ? `≥ ${asError(each.asked)} off (curve)` : NAMES[each.name]); } catch (error) { $("draw-says").textContent = error.message; }
  };
  made.addEventListener("click", take);
  made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(); } });
  return made;
}

function labels(root, others, x, y, colours) {
  // Beside the mark, on the side with more room; moved down where two would stand on each other.
  const taken = [];
  for (const each of [...others].sort((a, b) => b.cost - a.cost)) {
    const [px, right] = [x(each.distortion), x(each.distortion) < WIDTH * 0.7];
    let py = y(each.cost) + 5;
    while (taken.some((other) => Math.abs(other - py) < 16)) py += 16;
    taken.push(py);
    root.append(text(px + (right ? 14 : -14), py, NAMES[each.name] ?? each.name, colours.ink, right ? "start" : "end"));
  }
}

function text(x, y, words, fill, anchor = "middle") {
  const made = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": 13.5, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  made.textContent = words;
  return made;
}
