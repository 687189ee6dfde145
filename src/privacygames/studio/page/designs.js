// Designing in the background: progress, cancel, what is old, and the results so far.
import { ask, finished, get, post } from "./api.js";
import { $, asCost, asError, digits, element, emit, on, say, state } from "./shared.js";
import { adversaries, bounds, failed } from "./wishes.js";

const MOST_RESULTS = 12;
let job = null;
let again = false;

export function setUpDesigns() {
  $("design").addEventListener("click", run);
  $("cancel").addEventListener("click", cancel);
  on("design", run);
  on("turned", () => { markOld(); if ($("auto").checked) run(); });
  on("problem", (problem) => {
    state.problem = problem;
    state.results = [];
    state.result = null;
    drawHistory();
    $("design").disabled = !problem.id;
    markOld(false);
    if (job) cancel(); // it is about something else by now
    if (problem.id && $("auto").checked) run();
  });
  on("opened", (view) => adopt(view, "from a file"));
}

export function markOld(old = true) {
  $("old").hidden = !(old && state.result);
  $("stage").classList.toggle("is-old", Boolean(old && state.result));
}

async function run() {
  if (!state.problem?.id) return;
  if (job) { again = true; return; } // the last wish is served as soon as the one under way is done
  const problem = state.problem;
  const asked = bounds();
  say("design-error", "");
  $("use-limit").hidden = true;
  markOld();
  busy(true);
  try {
    job = "starting";
    const started = await post("jobs", { problem: problem.id, bounds: asked, adversaries: adversaries() });
    job = started.id;
    state.names.add(job);
    const done = await finished(job, progress);
    if (done.state === "cancelled") $("progress-text").textContent = "Cancelled.";
    else if (state.problem === problem) await finish(done, asked);
  } catch (error) {
    if (state.problem === problem) failed(error);
  } finally {
    if (job && job !== "starting") forget([job]);
    job = null;
    busy(false);
    if (again) { again = false; run(); }
  }
}

async function finish(done, asked) {
  const view = await get(`mechanisms/${done.result.mechanism}`);
  adopt(view, settingOf(asked));
}

export function adopt(view, title) {
  state.names.add(view.id);
  const known = state.results.find((each) => each.id === view.id);
  if (!known) state.results.unshift(Object.assign(view, { title }));
  const dropped = state.results.splice(MOST_RESULTS).map((each) => each.id);
  if (dropped.length) forget(dropped);
  state.result = known ?? view;
  markOld(false);
  drawHistory();
  emit("result", state.result);
}

function forget(ids) {
  ids.forEach((id) => state.names.delete(id));
  post("forget", { ids }).catch(() => {});
}

async function cancel() {
  again = false;
  if (job && job !== "starting") await ask("DELETE", `jobs/${job}`).catch(() => {});
}

function busy(now) {
  $("cancel").hidden = !now;
  $("progress").hidden = !now && $("progress-text").textContent !== "Cancelled.";
  document.querySelector("#progress .bar").hidden = !now;
  if (now) $("progress-text").textContent = "Starting …";
}

function progress(now) {
  const gap = now.progress.gap;
  const parts = [`${now.seconds.toFixed(1)} s`];
  if (now.state === "queued") parts.unshift(now.ahead ? `waiting behind ${now.ahead}` : "waiting");
  if (gap !== null && gap !== undefined) parts.push(gap > 1e-6 ? `at most ${digits(100 * gap)} % above the least cost` : "proved optimal");
  if (now.progress.message) parts.push(now.progress.message);
  $("progress-text").textContent = parts.join(" · ");
}

function settingOf(asked) {
  const parts = [];
  if (asked.distortion !== undefined) parts.push(`≥ ${asError(asked.distortion)} ${state.problem.measures.distance === "hamming" ? "wrong" : "off"}`);
  if (asked.cost_at_most !== undefined) parts.push(`cost ≤ ${asCost(asked.cost_at_most)}`);
  if (asked.epsilon !== undefined) parts.push(`ε ${digits(asked.epsilon)}`);
  if (asked.worst_case) parts.push("worst case");
  if (asked.worst_cost_at_most !== undefined) parts.push(`each ≤ ${asCost(asked.worst_cost_at_most)}`);
  const many = Object.keys(adversaries()).length;
  if (many) parts.push(`+ ${many} more`);
  return parts.join(", ");
}

export function drawHistory() {
  $("history").hidden = !state.results.length;
  $("history-none").hidden = Boolean(state.results.length);
  $("history").tBodies[0].replaceChildren(...state.results.map((each) => {
    const now = each === state.result;
    const back = element("button", { type: "button", onclick: () => adopt(each, each.title) }, each.title || each.label);
    if (now) back.setAttribute("aria-current", "true");
    const row = element("tr", { class: now ? "now" : "" }, element("td", {}, back));
    for (const text of [asCost(each.cost), asError(each.distortion), each.epsilon === null ? "none" : digits(each.epsilon)]) row.append(element("td", {}, text));
    return row;
  }));
}

