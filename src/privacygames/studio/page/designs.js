// Designs in the background: progress, cancelling, outdated results, and the list of results.
import { missing, restore, settings, showFailure } from "./controls.js";
import { ask, finished, get, startJob } from "./api.js";
import { follow, words } from "./timing.js";
import { $, asCost, asEpsilon, asError, element, emit, forget, on, percent, say, state, wrongOr } from "./shared.js";

const MOST_RESULTS = 12;
const PATIENCE_SECONDS = 3; // seconds after which an outdated design is stopped in favour of the next one
let job = null;
let began = 0;
let running = null; // problem and settings of the job, so that the same ones are not designed twice
let again = false;

export function setUpDesigns() {
  $("design").addEventListener("click", run);
  $("cancel").addEventListener("click", cancel);
  on("design", run);
  on("settings", markOutdated);
  on("settled", () => { if ($("auto").checked) run(); });
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
    markOutdated();
    if (problem.id && $("auto").checked) run();
  });
  on("cleared", () => {
    say("design-error", "");
    $("use-limit").hidden = true;
    drawHistory();
    markOutdated();
  });
  on("opened", (view) => add(view, "from a file"));
}

export function markOutdated() {
  // Picture and explanation belong to the settings of the result, which may differ from those of the controls.
  const outdated = Boolean(state.result && state.problem) && canonical(state.result.settings) !== canonical(settings());
  $("outdated").hidden = !outdated;
  $("stage").classList.toggle("is-outdated", outdated);
}

const canonical = ({ bounds, adversaries }) => JSON.stringify([bounds, adversaries].map((each) => Object.entries(each).sort()));

async function run() {
  if (!state.problem?.id || !state.loaded) return;
  if (job) { // the latest settings come next, once the running job is done or stopped
    again = running.problem !== state.problem || canonical(running.wanted) !== canonical(settings());
    if (again && performance.now() - began > 1000 * PATIENCE_SECONDS) stop();
    return;
  }
  const problem = state.problem;
  const wanted = settings();
  $("use-limit").hidden = true;
  say("design-error", missing());
  if (missing()) return;
  showBusy(true);
  try {
    job = "starting";
    running = { problem, wanted };
    began = performance.now();
    const started = await startJob({ problem: problem.id, ...wanted });
    job = started.id;
    state.names.add(job);
    follow();
    const done = await finished(job, (now) => showProgress(now, wanted), () => state.problem !== problem);
    if (!done || done.state === "cancelled") $("progress-text").textContent = "Cancelled.";
    else if (state.problem === problem) {
      add(await get(`mechanisms/${done.result.mechanism}`), titleOf(wanted), wanted);
      announce(state.result);
    }
    else forget([done.result.mechanism]);
  } catch (error) {
    if (state.problem !== problem) $("progress-text").textContent = "Cancelled."; // forgotten with its problem
    else if (error.status === "NOT_FOUND") emit("expired");
    else showFailure(error);
  } finally {
    if (job && job !== "starting") forget([job]);
    job = null;
    showBusy(false);
    if (again) { again = false; run(); }
  }
}

export function add(view, title, wanted = settings()) {
  state.names.add(view.id);
  const known = state.results.find((each) => each.id === view.id);
  if (!known) view.at = new Date();
  if (!known) state.results.unshift(Object.assign(view, { title, settings: wanted }));
  const dropped = state.results.splice(MOST_RESULTS).map((each) => each.id);
  if (dropped.length) forget(dropped);
  state.result = known ?? view;
  markOutdated();
  drawHistory();
  emit("result", state.result);
}

export function select(view, title, wanted) {
  // Go back to a result, or take a point of the frontier: the controls show its settings again.
  add(view, title, wanted);
  restore(state.result.settings);
}

async function cancel() {
  again = false;
  await stop();
}

async function stop() {
  if (job && job !== "starting") await ask("DELETE", `jobs/${job}`).catch(() => {});
}

function showBusy(busy) {
  $("cancel").hidden = !busy;
  $("progress").hidden = !busy && $("progress-text").textContent !== "Cancelled.";
  document.querySelector("#progress .bar").hidden = !busy;
  if (!busy) return;
  $("progress-text").textContent = "Starting …";
  $("progress-said").textContent = "Designing.";
  showShare(0);
}

function showShare(share) {
  const bar = document.querySelector("#progress .bar");
  bar.classList.toggle("known", share > 0);
  bar.style.setProperty("--done", `${Math.round(100 * share)}%`);
  if (share > 0) bar.setAttribute("aria-valuenow", Math.round(100 * share));
  else bar.removeAttribute("aria-valuenow"); // not known yet
}

function showProgress(now, wanted) {
  const { gap, share = 0 } = now.progress;
  const open = wanted.bounds.cost_at_most === undefined ? "above the least cost" : "below the most privacy";
  const parts = now.state === "queued" ? [now.ahead ? `waiting behind ${now.ahead}` : "waiting"] : words(share, now.seconds);
  if (gap !== null && gap !== undefined && gap < 1) parts.push(gap > 1e-6 ? `at most ${percent(gap)} ${open}` : "proved optimal");
  $("progress-text").textContent = parts.join(" · ");
  showShare(share);
}

function announce({ cost, distortion, findings }) {
  // For whoever does not see the page change; what a progress bar says all the time would drown it.
  const red = findings.filter((finding) => finding.severity === "danger").length;
  const warnings = red ? ` ${red} ${red === 1 ? "warning" : "warnings"} in red.` : "";
  $("progress-said").textContent = `Designed. Cost: ${asCost(cost)}. The adversary is ${asError(distortion)} ${wrongOr("off")}.${warnings}`;
}

export function titleOf({ bounds, adversaries }) {
  const parts = [];
  if (bounds.distortion !== undefined) parts.push(`≥\u00a0${asError(bounds.distortion)} ${wrongOr("off")}`);
  if (bounds.cost_at_most !== undefined) parts.push(`cost ≤\u00a0${asCost(bounds.cost_at_most)}`);
  if (bounds.epsilon !== undefined) parts.push(`ε\u00a0${asEpsilon(bounds.epsilon, { within: bounds.within })}`);
  if (bounds.worst_case) parts.push("worst case");
  if (bounds.worst_cost_at_most !== undefined) parts.push(`each ≤\u00a0${asCost(bounds.worst_cost_at_most)}`);
  const names = Object.keys(adversaries).map((key) => state.problem.adversaries.find((each) => each.key === key)?.name ?? key).map((name, at) => (Object.values(adversaries)[at] === null ? name : `${name} (${percent(Object.values(adversaries)[at])})`));
  if (names.length) parts.push(names.join(", "));
  return parts.join(", ");
}

export function drawHistory() {
  $("history").hidden = !state.results.length;
  $("history-none").hidden = Boolean(state.results.length);
  const rows = state.results.map((each) => [each.title || each.label, asCost(each.cost), asError(each.distortion), each.epsilon === null ? "none" : asEpsilon(each.epsilon, { anyPair: each.any_pair })]);
  $("history").tBodies[0].replaceChildren(...state.results.map((each, at) => {
    const current = each === state.result;
    const [title, ...texts] = rows[at];
    const back = element("button", { type: "button", onclick: () => select(each, each.title) }, title);
    if (current) back.setAttribute("aria-current", "true");
    const twin = rows.findIndex((row, other) => other > at && row.slice(1).join() === texts.join()); // an earlier one that looks the same
    const name = element("td", {}, back);
    if (twin >= 0) name.append(element("span", { class: "differs" }, difference(each, state.results[twin], rows[at][0] === rows[twin][0])));
    const row = element("tr", { class: current ? "current" : "" }, name);
    for (const text of texts) row.append(element("td", {}, text));
    return row;
  }));
}

const FIGURES = { cost: "cost", distortion: "error", epsilon: "ε", any_pair: "ε between any two", worst_cost: "cost of the worst secret" };

function difference(one, earlier, sameTitle) {
  // What tells two rows apart whose numbers look the same: other settings, further digits, or only the time.
  const number = `the one of ${clock(earlier)}`;
  if (!sameTitle) return `${clock(one)}: the same numbers as ${number}, from other settings`;
  const finer = Object.entries(FIGURES).filter(([key]) => Number.isFinite(one[key]) && Number.isFinite(earlier[key]) && Math.abs(one[key] - earlier[key]) > 1e-6 * Math.abs(one[key]));
  const [first] = finer;
  if (first) return `${clock(one)}: ${first[1]} ${one[first[0]].toPrecision(6)}, and ${earlier[first[0]].toPrecision(6)} for ${number}`;
  return `${clock(one)}: designed again, the same settings and numbers as ${number}`;
}

const clock = ({ at }) => (at ?? new Date()).toLocaleTimeString("en-GB");
