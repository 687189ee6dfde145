// The interactive picture: the outputs of a secret, beliefs after an output, samples, and repeated releases.
import { get, post } from "./api.js";
import { centreOf, kilometresOf, mark, positionOf, SIGNS } from "./cartography.js";
import { contours } from "./contours.js";
import { bars, matrix, rowAt, textAt, trace } from "./drawing.js";
import { exportedMap, hasMap, hideMap, mapOpacity, mapReady, nearest, showMap } from "./map.js";
import { $, asEpsilon, asError, choose, chosen, digits, element, heat, inUnit, labelsAlong, on, outputLabels, outputsAreSecrets, palette, percent, pictureWidth, save, shown, state, svg, wrongOr } from "./shared.js";

const SAMPLES = 50;
const RAMP = [0, 0.05, 0.1, 0.25, 0.5, 0.75, 1]; // shares of the largest value at which the legend has its colours
const DOTS = { sample: 3, dot: 2 }; // radii in the legend
const MOST_ROWS = 400; // of the table of numbers
const STEPS_ACROSS = 40; // of the cursor, from one side of a map of points to the other
let adversaries = [];
let outputs = null; // probability of each output, given the secret
let table = null;
let drawn = null; // what the picture shows: its problem, axis, values, marks, labels, samples and text
let cursor = 0;
let settled = true; // false while a refresh waits for the server: what it draws is then incomplete
let latest = 0; // number of the latest refresh: earlier ones that finish later are ignored

export function setUpPicture() {
  document.querySelectorAll('input[name="view"]').forEach((each) => each.addEventListener("change", refresh));
  $("adversary").addEventListener("change", draw);
  $("sample").addEventListener("click", sample);
  $("send-1").addEventListener("click", () => release(1));
  $("send-2").addEventListener("click", () => release(2));
  $("send-day").addEventListener("click", () => release(0));
  $("step").addEventListener("input", draw);
  $("picture").addEventListener("keydown", moveCursor);
  $("values-box").addEventListener("toggle", () => { if (drawn) listValues(); });
  $("matrix").addEventListener("click", (event) => {
    state.secret = rowAt($("matrix"), event, state.problem.labels.length);
    show("outputs");
  });
  $("save-matrix").addEventListener("click", () => {
    const canvas = element("canvas");
    matrix(canvas, table, state.problem.labels, outputLabels(state.problem), { note: "private: computed from the prior" });
    canvas.toBlob((blob) => save(blob, "private-table.png"), "image/png");
  });
  on("problem", (problem) => {
    state.secret = problem.prior.indexOf(Math.max(...problem.prior));
    state.place = isAboutPoints(problem) ? problem.places[state.secret] : null;
    state.output = null;
    state.releases = null;
    state.samples = [];
    cursor = state.place ?? state.secret;
    choose("view", "prior");
    refresh();
  });
  on("cleared", () => {
    choose("view", "prior");
    refresh();
    for (const id of ["picture", "trace", "marks", "adversary"]) $(id).replaceChildren();
    for (const id of ["trace", "matrix-box", "values-box", "adversary-label", "step-label", "send-day"]) $(id).hidden = true;
    $("values").tBodies[0].replaceChildren();
    drawn = null;
    for (const id of ["sample", "send-1", "send-2"]) $(id).disabled = true;
    for (const each of document.querySelectorAll('input[name="view"]')) each.disabled = each.value !== "prior";
    $("picture").removeAttribute("aria-activedescendant");
    $("matrix").width = 0; // a canvas of another width is empty
    $("ramp-most").textContent = "";
    $("picture-text").textContent = "Nothing is loaded.";
  });
  on("map-redrawn", () => { if (drawn) draw(); });
  on("surroundings", () => { if (drawn) draw(); }); // sentences name the nearest place
  on("result", () => { state.releases = null; state.samples = []; if (chosen("view") === "releases") choose("view", "outputs"); refresh(); });
}

function show(view) { choose("view", view); refresh(); }

export async function refresh() {
  const mine = (latest += 1);
  const { problem, result } = state;
  if (!problem) return;
  for (const each of document.querySelectorAll('input[name="view"]')) each.disabled = each.value !== "prior" && (!result || (each.value === "releases" && !state.releases));
  for (const id of ["sample", "send-1", "send-2"]) $(id).disabled = !result;
  for (const id of ["send-1", "send-2"]) $(id).hidden = isAboutPoints(problem);
  $("send-day").disabled = !result;
  $("send-day").hidden = !problem.has_day;
  settled = false;
  outputs = null;
  adversaries = [];
  table = null;
  try {
    if (result) outputs = (await post(`mechanisms/${result.id}/answers`, secret(problem))).probabilities;
    if (mine !== latest) return;
    if (outputs && state.output === null) state.output = outputs.indexOf(Math.max(...outputs));
    if (result && chosen("view") === "beliefs") adversaries = (await post(`mechanisms/${result.id}/attack`, { observable: outputLabels(problem)[state.output] })).attackers;
    if (result && !problem.grid && !isAboutPoints(problem) && problem.labels.length <= 160) table = (await get(`mechanisms/${result.id}/table`)).probabilities;
  } catch (error) {
    $("picture-text").textContent = error.message;
    return;
  }
  await mapReady();
  if (mine !== latest) return;
  const before = $("adversary").value;
  $("adversary").replaceChildren(...adversaries.map((each) => element("option", { value: each.name }, each.name)));
  if (adversaries.some((each) => each.name === before)) $("adversary").value = before;
  settled = true;
  draw();
}

export function draw() {
  const { problem } = state;
  if (!problem || !settled) return;
  const view = state.result ? chosen("view") : "prior";
  const kinds = isAboutPoints(problem) ? pointViews : views;
  const [axis, values, marks, text] = kinds[view]?.(problem) ?? kinds.prior(problem);
  $("picture").dataset.axis = axis;
  const samples = view === "outputs" ? state.samples : [];
  drawn = { problem, axis, values, marks, labels: labelsAlong(problem, axis === "places" ? "secrets" : axis), samples, cursor, text };
  if (hasMap(problem, axis)) {
    const dots = axis === "outputs" ? problem.outputs : problem.places;
    showMap({ ...drawn, dots, cursorName: isAboutPoints(problem) ? `the point that Enter chooses: ${described(cursor)}` : near(problem, cursor), pick });
  } else {
    hideMap();
    $("picture").replaceChildren(bars(problem, axis, values, marks, (i) => pick(i), { samples, cursor }));
  }
  $("picture").setAttribute("aria-activedescendant", isAboutPoints(problem) ? "cursor" : `cell-at-${cursor}`);
  $("picture-text").textContent = text;
  const [least, most] = rampEnds();
  $("ramp-least").textContent = least;
  $("ramp-most").textContent = most;
  $("ramp").style.background = `linear-gradient(90deg, ${RAMP.map((share) => `${heat(share)} ${100 * share}%`).join(", ")})`;
  $("ramp").style.opacity = hasMap(problem, axis) ? mapOpacity() : 1;
  $("marks").replaceChildren(...signs().flatMap(([kind, sign, meaning]) => [element("b", { class: kind }, sign), ` ${meaning}  `]));
  listValues();
  $("adversary-label").hidden = view !== "beliefs";
  $("step-label").hidden = view !== "releases" || state.releases.length < 2;
  $("trace").hidden = view !== "releases" || state.releases.length < 2;
  if (!$("trace").hidden) $("trace").replaceChildren(trace(state.releases.map((each) => each.error), Number($("step").value) - 1, (value) => asError(value)));
  $("matrix-box").hidden = !table;
  if (table) matrix($("matrix"), table, problem.labels, outputLabels(problem));
}

function rampEnds() {
  // Of the colours: a probability for a cell, a density where points are smoothed.
  const { problem, values } = drawn;
  if (!isAboutPoints(problem)) return ["0", percent(Math.max(...values))];
  const { perSquareKilometre, deviation } = contours(drawn.axis === "outputs" ? problem.outputs : problem.places, values, problem.map);
  return ["0", `${digits(100 * perSquareKilometre)}\u00a0% per km², smoothed over ${inUnit(deviation, "km")}`];
}

function signs() {
  const given = Object.entries(drawn.marks).filter(([, place]) => place !== null && place !== undefined).map(([kind]) => [kind, ...SIGNS[kind]]);
  if (drawn.samples.length) given.push(["sample", "•", "an output drawn"]);
  if (isAboutPoints(drawn.problem)) given.push(["dot", "·", drawn.axis === "outputs" ? "a possible output" : "a visited place"]);
  return given;
}

function listValues() {
  // The exact numbers of the picture, the largest first.
  const { problem, axis, values, labels } = drawn;
  const points = isAboutPoints(problem);
  $("values-box").hidden = false;
  if (!$("values-box").open) return;
  const far = points && axis === "outputs";
  const titles = [axis === "outputs" ? "Output" : points ? "Place" : "Secret", "Probability", ...(far ? ["From the secret"] : [])];
  $("values").tHead.replaceChildren(element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title))));
  const rows = [...values.keys()].filter((i) => values[i] > 0).sort((a, b) => values[b] - values[a]).slice(0, MOST_ROWS);
  $("values").tBodies[0].replaceChildren(...rows.map((i) => element("tr", {}, ...[points ? described((axis === "outputs" ? problem.outputs : problem.places)[i], false) : shown(labels[i]), percent(values[i]), ...(far ? [inUnit(apart(problem.outputs[i], state.place), "km")] : [])].map((text) => element("td", {}, text)))));
}

export function exportedPicture() {
  // The picture with its sentence above it and its legend below, so that it explains itself.
  const inner = hasMap(drawn.problem, drawn.axis) ? exportedMap() : bars(drawn.problem, drawn.axis, drawn.values, drawn.marks, () => {}, drawn);
  const [, , width, height] = inner.getAttribute("viewBox").split(" ").map(Number);
  const colours = palette();
  const across = Math.max(width, 340);
  const lines = wrapped(drawn.text, Math.floor((across - 20) / 7));
  const top = 14 + 18 * lines.length;
  const root = svg("svg", { viewBox: `0 0 ${across + 20} ${top + height + 62}`, xmlns: "http://www.w3.org/2000/svg" });
  lines.forEach((line, n) => root.append(textAt(10, 22 + 18 * n, line, colours.ink, "start", 14)));
  for (const [name, value] of Object.entries({ x: 10, y: top, width, height })) inner.setAttribute(name, value);
  const foot = top + height + 16;
  const [least, most] = rampEnds();
  const legend = svg("g", { class: "legend" }, textAt(10, foot + 11, least, colours.soft, "start"));
  const stops = RAMP.map((share) => svg("stop", { offset: share, "stop-color": heat(share) }));
  const opacity = hasMap(drawn.problem, drawn.axis) ? mapOpacity(true) : 1;
  legend.append(svg("linearGradient", { id: "colours" }, ...stops), svg("rect", { x: 24, y: foot, width: 96, height: 12, fill: "url(#colours)", "fill-opacity": opacity, stroke: colours.line }));
  legend.append(textAt(126, foot + 11, most, colours.soft, "start"));
  let x = 10;
  for (const [kind, , meaning] of signs()) {
    if (kind in DOTS) legend.append(svg("circle", { cx: x + 7, cy: foot + 30, r: DOTS[kind], fill: kind === "dot" ? colours.soft : colours.mark }));
    else legend.append(mark(kind, x + 7, foot + 30, 6, colours));
    legend.append(textAt(x + 18, foot + 34, meaning, colours.soft, "start"));
    x += 34 + 7 * meaning.length;
  }
  const credits = $("map-about").hidden ? "" : $("map-credits").textContent;
  root.append(inner, legend, textAt(across + 10, foot + (x > across / 2 || credits.length * 6 > across - x ? 11 : 34), "", colours.soft, "end", 10));
  root.lastChild.textContent = credits;
  return root;
}

function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1).length + word.length + 1 > most && lines.at(-1)) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

const near = (p, i) => (p.grid?.box ? nearest(positionOf(p.grid, centreOf(p.grid, i))) : "");

function where(p, ...cells) {
  // Where cells lie, as a sentence; empty where no names are known.
  const known = [...new Set(cells)].map((i) => [shown(p.labels[i]), near(p, i)]).filter(([, place]) => place);
  return known.length ? ` ${known.map(([label, place]) => `${label} is ${place}`).join(", ")}.` : "";
}

const views = {
  prior: (p) => ["secrets", p.prior, { secret: state.result ? state.secret : null }, "What an adversary believes before any output: how often each secret occurs. Choose one to see its outputs."],
  outputs: (p) => {
    const likeliest = outputLabels(p)[outputs.indexOf(Math.max(...outputs))];
    const same = outputsAreSecrets(p) ? ` ${percent(outputs[state.secret])} of them are the truth.` : "";
    return ["outputs", outputs, outputsAreSecrets(p) ? { secret: state.secret } : {}, `The outputs for ${shown(p.labels[state.secret])}; most often ${shown(likeliest)} (${percent(Math.max(...outputs))}).${same}${outputsAreSecrets(p) ? where(p, state.secret, outputs.indexOf(Math.max(...outputs))) : ""}`];
  },
  beliefs: (p) => {
    const adversary = adversaries.find((each) => each.name === $("adversary").value) ?? adversaries[0];
    if (!adversary) return views.prior(p);
    if (!adversary.belief) return ["secrets", p.prior, { output: outputsAreSecrets(p) ? state.output : null }, `The output ${shown(outputLabels(p)[state.output])} never occurs, so nobody can conclude anything from it: this is the belief before any output. Choose another output.`];
    const guess = adversary.guesses_secret ? p.labels.findIndex((label) => shown(label) === shown(adversary.guess)) : null;
    const marks = { output: outputsAreSecrets(p) ? state.output : null, guess };
    return ["secrets", adversary.belief, marks, `After the output ${shown(outputLabels(p)[state.output])}: what the adversary who ${adversary.name} believes. Their best guess is ${shown(adversary.guess)}.${guess === null || guess < 0 ? "" : where(p, guess)}${outputsAreSecrets(p) ? " Choose another output in the picture." : ""}`];
  },
  releases: (p) => {
    const at = Math.min(Number($("step").value), state.releases.length) - 1;
    const step = state.releases[at];
    $("step-out").textContent = `${at + 1} of ${state.releases.length}`;
    const marks = { secret: step.secret, output: outputsAreSecrets(p) ? step.answer : null };
    const spent = step.epsilon === null ? "" : ` ε spent so far: ${asEpsilon(step.epsilon, { anyPair: step.any_pair })}.`;
    return ["secrets", step.belief, marks, `After ${at + 1} ${at ? "outputs" : "output"} (the last: ${shown(outputLabels(p)[step.answer])}) an adversary expects to be ${asError(step.error)} ${wrongOr("off")}. This is one random draw: press again, and the number varies. The guarantee is about one output, averaged over all draws: ${asError(state.result.distortion)} ${wrongOr("off")}.${spent}`];
  },
};

const isAboutPoints = (problem) => problem.kind === "points";
const secret = (problem) => (isAboutPoints(problem) ? { at: position(problem, state.place) } : { secret: problem.labels[state.secret] });

function position({ map }, place) {
  // A point of the map as the HTTP API takes it.
  const [x, y] = positionOf(map, place);
  return map.box ? { longitude: x, latitude: y } : { x, y };
}

const onMap = ({ map }, point) => kilometresOf(map, map.box ? [point.longitude, point.latitude] : [point.x, point.y]);

const apart = ([x, y], [u, v]) => Math.hypot(x - u, y - v);
const closest = (places, at) => places.reduce((best, place, i) => (apart(place, at) < apart(places[best], at) ? i : best), 0);

function described([x, y], named = true) {
  const { map } = state.problem;
  if (!map.box) return `${inUnit(x, "km")} east, ${inUnit(y, "km")} north`;
  const [longitude, latitude] = positionOf(map, [x, y]);
  const near = named ? nearest([longitude, latitude]) : "";
  return `${Math.abs(latitude).toFixed(4)}°\u00a0${latitude < 0 ? "S" : "N"}, ${Math.abs(longitude).toFixed(4)}°\u00a0${longitude < 0 ? "W" : "E"}${near ? ` (${near})` : ""}`;
}

const pointViews = {
  prior: (p) => ["places", p.prior, { secret: state.result ? state.place : null }, "What an adversary believes before any output: how often the user was where. Choose any point to see its outputs."],
  outputs: (p) => {
    const likeliest = outputs.indexOf(Math.max(...outputs));
    const far = inUnit(apart(p.outputs[likeliest], state.place), "km");
    return ["outputs", outputs, { secret: state.place }, `The outputs for the point ${described(state.place)}; most often the one ${far} away (${percent(outputs[likeliest])}). Choose another point: close ones have nearly the same outputs.`];
  },
  beliefs: (p) => {
    const at = described(p.outputs[state.output]);
    if (!adversaries[0]?.belief) return ["places", p.prior, {}, `The output ${at} is never given: this is the belief before any output. Choose another output.`];
    const guess = onMap(p, adversaries[0].guess);
    return ["places", adversaries[0].belief, { output: p.outputs[state.output], guess }, `After the output ${at}: what the adversary who ${adversaries[0].name} believes. Their best guess is ${described(guess)}. Choose another output.`];
  },
};

function pick(i) {
  const { problem } = state;
  cursor = i;
  if (!state.result) { draw(); return; }
  if (isAboutPoints(problem)) {
    if (chosen("view") === "beliefs") state.output = closest(problem.outputs, i);
    else {
      Object.assign(state, { place: i, samples: [], output: null });
      choose("view", "outputs");
    }
  } else if (chosen("view") === "beliefs") {
    state.output = outputsAreSecrets(problem) ? i : state.output;
  } else if (chosen("view") === "outputs" && !outputsAreSecrets(problem)) {
    state.output = i;
    choose("view", "beliefs");
  } else {
    state.secret = i;
    state.samples = [];
    choose("view", "outputs");
  }
  refresh();
}

function moveCursor(event) {
  const { problem } = state;
  if (!problem) return;
  if (isAboutPoints(problem)) { moveOnMap(problem, event); return; }
  const columns = problem.grid && labelsAlong(problem, $("picture").dataset.axis).length === problem.labels.length ? problem.grid.columns : 1;
  const count = labelsAlong(problem, $("picture").dataset.axis).length;
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: columns, ArrowDown: -columns, Home: -cursor, End: count - 1 - cursor };
  if (event.key in moves) {
    cursor = Math.max(0, Math.min(count - 1, cursor + moves[event.key]));
    draw();
  } else if (event.key === "Enter" || event.key === " ") pick(cursor);
  else return;
  event.preventDefault();
}

function moveOnMap(problem, event) {
  const { width, height } = problem.map;
  const step = width / STEPS_ACROSS;
  const moves = { ArrowRight: [step, 0], ArrowLeft: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  if (event.key in moves) {
    const [east, north] = moves[event.key];
    cursor = [Math.max(0, Math.min(width, cursor[0] + east)), Math.max(0, Math.min(height, cursor[1] + north))];
    draw();
  } else if (event.key === "Enter" || event.key === " ") pick(cursor);
  else return;
  event.preventDefault();
}

async function sample() {
  const { problem, result } = state;
  try {
    const drawn = await post(`mechanisms/${result.id}/sample`, { ...secret(problem), count: SAMPLES });
    const names = outputLabels(problem).map(shown);
    state.samples = drawn.answers.map((output) => names.indexOf(shown(output.label ?? output)));
    choose("view", "outputs");
    await refresh();
  } catch (error) { $("picture-text").textContent = error.message; }
}

async function release(times) {
  const { problem, result } = state;
  const body = times ? { secret: problem.labels[state.secret], times } : {};
  try {
    state.releases = (await post(`mechanisms/${result.id}/send`, body)).steps;
    $("step").max = state.releases.length;
    $("step").value = state.releases.length;
    choose("view", "releases");
    await refresh();
  } catch (error) { $("picture-text").textContent = error.message; }
}
