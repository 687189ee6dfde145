// The interactive picture: the outputs of a secret, beliefs after an output, samples, and repeated releases.
import { get, post } from "./api.js";
import { matrix, picture, pointMap, rowAt, SIGNS, trace } from "./drawing.js";
import { $, asEpsilon, asError, choose, chosen, digits, element, heat, inUnit, labelsAlong, on, outputLabels, outputsAreSecrets, percent, shown, state, wrongOr } from "./shared.js";

const SAMPLES = 50;
const STEPS_ACROSS = 40; // of the cursor, from one side of a map of points to the other
let adversaries = [];
let outputs = null; // probability of each output, given the secret
let table = null;
let cursor = 0;
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
  $("matrix").addEventListener("click", (event) => {
    state.secret = rowAt($("matrix"), event, state.problem.labels.length);
    show("outputs");
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
    for (const id of ["trace", "matrix-box", "adversary-label", "step-label", "send-day"]) $(id).hidden = true;
    for (const id of ["sample", "send-1", "send-2"]) $(id).disabled = true;
    for (const each of document.querySelectorAll('input[name="view"]')) each.disabled = each.value !== "prior";
    $("matrix").width = 0; // a canvas of another width is empty
    $("ramp-most").textContent = "";
    $("picture-text").textContent = "Nothing is loaded.";
  });
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
  if (mine !== latest) return;
  const before = $("adversary").value;
  $("adversary").replaceChildren(...adversaries.map((each) => element("option", { value: each.name }, each.name)));
  if (adversaries.some((each) => each.name === before)) $("adversary").value = before;
  draw();
}

export function draw() {
  const { problem } = state;
  if (!problem) return;
  const view = state.result ? chosen("view") : "prior";
  const kinds = isAboutPoints(problem) ? pointViews : views;
  const [axis, values, marks, text] = kinds[view]?.(problem) ?? kinds.prior(problem);
  $("picture").dataset.axis = axis;
  const shape = isAboutPoints(problem) ? pointMap : picture;
  $("picture").replaceChildren(shape(problem, axis, values, marks, (i) => pick(i), { samples: view === "outputs" ? state.samples : [], cursor }));
  $("picture").setAttribute("aria-activedescendant", isAboutPoints(problem) ? "cursor" : `cell-at-${cursor}`);
  $("picture-text").textContent = text;
  $("ramp-most").textContent = percent(Math.max(...values));
  $("ramp").style.background = `linear-gradient(90deg, ${[0, 0.1, 0.25, 0.5, 0.75, 1].map((share) => `${heat(share)} ${100 * share}%`).join(", ")})`;
  const signs = Object.entries(marks).filter(([, i]) => i !== null).map(([kind]) => SIGNS[kind]);
  if (view === "outputs" && state.samples.length) signs.push(["•", "an output drawn"]);
  $("marks").replaceChildren(...signs.flatMap(([sign, meaning]) => [element("b", {}, sign), ` ${meaning}  `]));
  $("adversary-label").hidden = view !== "beliefs";
  $("step-label").hidden = view !== "releases" || state.releases.length < 2;
  $("trace").hidden = view !== "releases" || state.releases.length < 2;
  if (!$("trace").hidden) $("trace").replaceChildren(trace(state.releases.map((each) => each.error), Number($("step").value) - 1, (value) => asError(value)));
  $("matrix-box").hidden = !table;
  if (table) matrix($("matrix"), table, problem.labels, outputLabels(problem));
}

const views = {
  prior: (p) => ["secrets", p.prior, { secret: state.result ? state.secret : null }, "What an adversary believes before any output: how often each secret occurs. Choose one to see its outputs."],
  outputs: (p) => {
    const likeliest = outputLabels(p)[outputs.indexOf(Math.max(...outputs))];
    const same = outputsAreSecrets(p) ? ` ${percent(outputs[state.secret])} of them are the truth.` : "";
    return ["outputs", outputs, outputsAreSecrets(p) ? { secret: state.secret } : {}, `The outputs for ${shown(p.labels[state.secret])}; most often ${shown(likeliest)} (${percent(Math.max(...outputs))}).${same}`];
  },
  beliefs: (p) => {
    const adversary = adversaries.find((each) => each.name === $("adversary").value) ?? adversaries[0];
    if (!adversary) return views.prior(p);
    if (!adversary.belief) return ["secrets", p.prior, { output: outputsAreSecrets(p) ? state.output : null }, `The output ${shown(outputLabels(p)[state.output])} never occurs, so nobody can conclude anything from it: this is the belief before any output. Choose another output.`];
    const guess = adversary.guesses_secret ? p.labels.findIndex((label) => shown(label) === shown(adversary.guess)) : null;
    const marks = { output: outputsAreSecrets(p) ? state.output : null, guess };
    return ["secrets", adversary.belief, marks, `After the output ${shown(outputLabels(p)[state.output])}: what the adversary who ${adversary.name} believes. Their best guess is ${shown(adversary.guess)}.${outputsAreSecrets(p) ? " Choose another output in the picture." : ""}`];
  },
  releases: (p) => {
    const at = Math.min(Number($("step").value), state.releases.length) - 1;
    const step = state.releases[at];
    $("step-out").textContent = `${at + 1} of ${state.releases.length}`;
    const marks = { secret: step.secret, output: outputsAreSecrets(p) ? step.answer : null };
    const spent = step.epsilon === null ? "" : ` ε spent so far: ${asEpsilon(step.epsilon, { anyPair: step.any_pair })}.`;
    return ["secrets", step.belief, marks, `After ${at + 1} ${at ? "outputs" : "output"} (the last: ${shown(outputLabels(p)[step.answer])}) an adversary is ${asError(step.error)} ${wrongOr("off")} on average.${spent}`];
  },
};

const isAboutPoints = (problem) => problem.kind === "points";
const secret = (problem) => (isAboutPoints(problem) ? { at: position(problem, state.place) } : { secret: problem.labels[state.secret] });

function position({ map: { width, height, box } }, [x, y]) {
  // A point of the map as the HTTP API takes it: kilometres, or degrees, which are linear in them.
  if (!box) return { x, y };
  const [west, south, east, north] = box;
  return { longitude: west + (x / width) * (east - west), latitude: south + (y / height) * (north - south) };
}

function onMap({ map: { width, height, box } }, point) {
  if (!box) return [point.x, point.y];
  const [west, south, east, north] = box;
  return [((point.longitude - west) / (east - west)) * width, ((point.latitude - south) / (north - south)) * height];
}

const apart = ([x, y], [u, v]) => Math.hypot(x - u, y - v);
const nearest = (places, at) => places.reduce((best, place, i) => (apart(place, at) < apart(places[best], at) ? i : best), 0);
const described = ([x, y]) => `${inUnit(x, "km")} east, ${inUnit(y, "km")} north`;

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
  if (!state.result) return;
  if (isAboutPoints(problem)) {
    if (chosen("view") === "beliefs") state.output = nearest(problem.outputs, i);
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
