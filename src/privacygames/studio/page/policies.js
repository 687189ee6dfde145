// Sharing for weeks: what each policy costs and leaves on the days that are loaded, and which one to choose.
import { ask, finished, startJob } from "./api.js";
import { $, element, emit, forget, on, percent, state } from "./shared.js";

let job = null;
let compared = null;

export function setUpPolicies() {
  $("compare-policies").addEventListener("click", run);
  $("cancel-policies").addEventListener("click", () => { if (job) ask("DELETE", `jobs/${job}`).catch(() => {}); });
  $("matters").addEventListener("change", show);
  on("problem", (problem) => { clear(); $("policies-card").hidden = !problem.has_visits; });
  on("cleared", () => { clear(); $("policies-card").hidden = true; });
}

function clear() {
  if (job) ask("DELETE", `jobs/${job}`).catch(() => {});
  compared = null;
  $("policies-status").textContent = "";
  show();
}

async function run() {
  const { problem } = state;
  const budget = Number($("policy-budget").value);
  if (!problem?.id) return;
  if (!(budget > 0)) { $("policies-status").textContent = "The budget is a number above 0."; return; }
  clear();
  $("compare-policies").disabled = true;
  $("cancel-policies").hidden = false;
  const stale = () => problem !== state.problem;
  try {
    job = (await startJob({ kind: "policies", problem: problem.id, budget })).id;
    state.names.add(job);
    const done = await finished(job, (now) => {
      if (!stale()) $("policies-status").textContent = now.state === "queued" ? "waiting …" : now.progress.message ?? "…";
    }, stale);
    if (stale()) return;
    compared = done.state === "done" ? done.result : null;
    $("policies-status").textContent = compared ? "" : "Cancelled.";
    show();
  } catch (error) {
    if (stale()) return;
    $("policies-status").textContent = error.message;
    if (error.status === "NOT_FOUND") emit("expired");
  } finally {
    if (job) forget([job]);
    job = null;
    $("compare-policies").disabled = false;
    $("cancel-policies").hidden = true;
  }
}

function showFigure() {
  // An image cannot run anything, whatever is in it.
  if ($("policies-figure").src) URL.revokeObjectURL($("policies-figure").src);
  $("policies-figure").removeAttribute("src");
  $("policies-figure-box").hidden = !compared;
  if (compared) $("policies-figure").src = URL.createObjectURL(new Blob([compared.figure], { type: "image/svg+xml" }));
}

function show() {
  for (const id of ["policies", "policies-reason", "policies-note"]) $(id).hidden = !compared;
  showFigure();
  if (!compared) { $("policies").tBodies[0].replaceChildren(); return; }
  const { policy, reason } = compared.recommendations[$("matters").value];
  $("policies-reason").textContent = reason;
  $("policies").tBodies[0].replaceChildren(...compared.rows.map((row) => element("tr", row.policy === policy ? { class: "current" } : {},
    element("th", { scope: "row" }, row.policy),
    ...[`${Math.round(row.cost)}\u00a0m`, row.home_200_m === null ? "–" : `${percent(row.home_200_m)} (≤\u00a0${percent(row.home_bound)})`, percent(row.presence_known), row.stays_recalled === null ? "–" : percent(row.stays_recalled), percent(row.refused), `${row.keeps.join(", ") || "nothing"}${row.undecided.length ? `; ${row.undecided.join(", ")} undecided` : ""}`].map((text) => element("td", {}, text)))));
  $("policies-note").textContent = `Home found: within 200\u00a0m by the best of several attacks, in ${compared.repeats} tries; in brackets, at most, by its guarantee. Place now: how often the best attack names the true cell. Stays: recalled within 250\u00a0m. Refused: no budget was left, and the last output stayed. ${compared.days} days, ${compared.requests} releases. From habits alone, without any output: ${Math.round(compared.habits_error)}\u00a0m off, ${percent(compared.habits_known)} of places named. ${compared.replayed}`;
}
