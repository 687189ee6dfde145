// Designing in the background: progress, cancel, what is old, and the results so far.
import { ask, finished, get, startJob } from "./api.js";
import { $, asCost, asEpsilon, asError, digits, element, emit, forget, on, say, state, wrongOr } from "./shared.js";
import { failed, missing, restore, wishes } from "./wishes.js";

const MOST_RESULTS = 12;
const PATIENCE = 3; // seconds after which a design that nobody wants any more is stopped for the next one
let job = null;
let began = 0;
let underway = null; // what the job is about: the same wish is not designed twice
let again = false;

export function setUpDesigns() {
  $("design").addEventListener("click", run);
  $("cancel").addEventListener("click", cancel);
  on("design", run);
  on("wishes", markOld);
  on("turned", () => { if ($("auto").checked) run(); });
  on("unloaded", () => { state.loaded = false; again = false; $("design").disabled = true; stop(); });
  on("problem", (problem) => {
    state.problem = problem;
    state.loaded = true;
    state.results = [];
    state.result = null;
    say("design-error", "");
    $("use-limit").hidden = true;
    drawHistory();
    $("design").disabled = !problem.id;
    markOld();
    if (problem.id && $("auto").checked) run();
  });
  on("cleared", () => {
    say("design-error", "");
    $("use-limit").hidden = true;
    drawHistory();
    markOld();
  });
  on("opened", (view) => adopt(view, "from a file"));
}

export function markOld() {
  // The picture and the words are of what was asked then, which need not be what the knobs say now.
  const old = Boolean(state.result && state.problem) && sorted(state.result.wishes) !== sorted(wishes());
  $("old").hidden = !old;
  $("stage").classList.toggle("is-old", old);
}

const sorted = (wished) => JSON.stringify([wished.bounds, wished.adversaries].map((each) => Object.entries(each).sort()));

async function run() {
  if (!state.problem?.id || !state.loaded) return;
  if (job) { // the last wish is served as soon as the one under way is done, or given up
    again = underway.problem !== state.problem || sorted(underway.asked) !== sorted(wishes());
    if (again && performance.now() - began > 1000 * PATIENCE) stop();
    return;
  }
  const problem = state.problem;
  const asked = wishes();
  $("use-limit").hidden = true;
  say("design-error", missing());
  if (missing()) return;
  busy(true);
  try {
    job = "starting";
    underway = { problem, asked };
    began = performance.now();
    const started = await startJob({ problem: problem.id, ...asked });
    job = started.id;
    state.names.add(job);
    const done = await finished(job, (now) => progress(now, asked), () => state.problem !== problem);
    if (!done || done.state === "cancelled") $("progress-text").textContent = "Cancelled.";
    else if (state.problem === problem) adopt(await get(`mechanisms/${done.result.mechanism}`), settingOf(asked), asked);
    else forget([done.result.mechanism]);
  } catch (error) {
    if (state.problem !== problem) $("progress-text").textContent = "Cancelled."; // forgotten with what it was about
    else if (error.status === "NOT_FOUND") emit("lost");
    else failed(error);
  } finally {
    if (job && job !== "starting") forget([job]);
    job = null;
    busy(false);
    if (again) { again = false; run(); }
  }
}

export function adopt(view, title, asked = wishes()) {
  state.names.add(view.id);
  const known = state.results.find((each) => each.id === view.id);
  if (!known) state.results.unshift(Object.assign(view, { title, wishes: asked }));
  const dropped = state.results.splice(MOST_RESULTS).map((each) => each.id);
  if (dropped.length) forget(dropped);
  state.result = known ?? view;
  markOld();
  drawHistory();
  emit("result", state.result);
}

export function takeUp(view, title, asked) {
  // Go back to a result, or take a point: the knobs show again what it was asked.
  adopt(view, title, asked);
  restore(state.result.wishes);
}

async function cancel() {
  again = false;
  await stop();
}

async function stop() {
  if (job && job !== "starting") await ask("DELETE", `jobs/${job}`).catch(() => {});
}

function busy(now) {
  $("cancel").hidden = !now;
  $("progress").hidden = !now && $("progress-text").textContent !== "Cancelled.";
  document.querySelector("#progress .bar").hidden = !now;
  if (now) $("progress-text").textContent = "Starting …";
}

function progress(now, asked) {
  const gap = now.progress.gap;
  const parts = [`${now.seconds.toFixed(1)} s`];
  const open = asked.bounds.cost_at_most === undefined ? "above the least cost" : "below the most privacy";
  if (now.state === "queued") parts.unshift(now.ahead ? `waiting behind ${now.ahead}` : "waiting");
  if (gap !== null && gap !== undefined) parts.push(gap > 1e-6 ? `at most ${digits(100 * gap)} % ${open}` : "proved optimal");
  if (now.progress.message) parts.push(now.progress.message);
  $("progress-text").textContent = parts.join(" · ");
}

export function settingOf({ bounds: asked, adversaries }) {
  const parts = [];
  if (asked.distortion !== undefined) parts.push(`≥\u00a0${asError(asked.distortion)} ${wrongOr("off")}`);
  if (asked.cost_at_most !== undefined) parts.push(`cost ≤\u00a0${asCost(asked.cost_at_most)}`);
  if (asked.epsilon !== undefined) parts.push(`ε\u00a0${asEpsilon(asked.epsilon, { within: asked.within })}`);
  if (asked.worst_case) parts.push("worst case");
  if (asked.worst_cost_at_most !== undefined) parts.push(`each ≤\u00a0${asCost(asked.worst_cost_at_most)}`);
  const names = Object.keys(adversaries).map((key) => state.problem.adversaries.find((each) => each.key === key)?.name ?? key);
  if (names.length) parts.push(names.join(", "));
  return parts.join(", ");
}

export function drawHistory() {
  $("history").hidden = !state.results.length;
  $("history-none").hidden = Boolean(state.results.length);
  $("history").tBodies[0].replaceChildren(...state.results.map((each) => {
    const now = each === state.result;
    const back = element("button", { type: "button", onclick: () => takeUp(each, each.title) }, each.title || each.label);
    if (now) back.setAttribute("aria-current", "true");
    const row = element("tr", { class: now ? "now" : "" }, element("td", {}, back));
    for (const text of [asCost(each.cost), asError(each.distortion), each.epsilon === null ? "none" : asEpsilon(each.epsilon, { anyPair: each.any_pair })]) row.append(element("td", {}, text));
    return row;
  }));
}
