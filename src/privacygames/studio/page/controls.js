// Step 2, "What you want": controls in everyday units, and the bounds that they set.
import { $, asCost, asEpsilon, asError, choose, chosen, digits, element, emit, inUnit, on, percent, power, say, state, twoDigits } from "./shared.js";

const STEPS = 1000; // positions of a range control
const LARGEST_SHARE = 0.998; // of the largest error: at the maximum only constant outputs are possible
const [TIGHT, LOOSE] = [0.07, 0.93]; // shares of a range below and above which outputs reveal almost nothing, or almost everything
const RANGES = ["error", "cost-limit", "epsilon"];
let exact = {}; // full-precision values from a file or an earlier result, used until their control is moved
let recalled = []; // adversaries to tick, from the address of the page, once they are listed

export function setUpControls() {
  for (const id of RANGES) {
    $(id).addEventListener("input", () => { delete exact[id]; describe(); });
    $(id).addEventListener("change", () => emit("settled"));
  }
  for (const id of ["with-epsilon", "share", "worst-cost", "with-within", "within"]) $(id).addEventListener("change", changed);
  document.querySelectorAll('input[name="goal"], input[name="cost-case"]').forEach((input) => input.addEventListener("change", changed));
  on("problem", listPresets);
  on("cleared", () => {
    recalled = ticked().filter((key) => !key.startsWith("file-"));
    exact = {};
    $("presets").replaceChildren();
    $("adversaries").hidden = true;
    for (const id of RANGES) { $(id).removeAttribute("aria-valuetext"); for (const part of ["out", "most", "means"]) if ($(`${id}-${part}`)) $(`${id}-${part}`).textContent = ""; }
    $("worst-cost").value = 0.9;
    $("within").value = "";
    $("with-within").checked = false;
  });
}

function changed() { describe(); emit("settled"); }

export const recallAdversaries = (keys) => { recalled = keys; };
export const ticked = () => [...document.querySelectorAll("#presets input:checked")].map((input) => input.value);

const position = (id) => Number($(id).value) / STEPS;
const rounded = (value) => Number(value.toPrecision(4)); // the bound is the number that is shown
// Errors and costs have two digits: their ranges are computed from the prior, which more digits would reveal.
const errorBound = () => exact.error ?? twoDigits(position("error") * LARGEST_SHARE * state.problem.most_distortion, Math.floor);
const costBound = () => exact["cost-limit"] ?? twoDigits(position("cost-limit") * state.problem.blind_cost, Math.ceil);
const epsilonBound = () => { const { low, high } = state.problem.epsilon; return exact.epsilon ?? rounded(low * (high / low) ** position("epsilon")); };
const boundsError = () => exact.error !== undefined || position("error") > 0;

function bounds() {
  const result = {};
  if (chosen("goal") === "use") result.cost_at_most = costBound();
  else if (boundsError()) result.distortion = errorBound();
  if ($("with-epsilon").checked) {
    result.epsilon = epsilonBound();
    if ($("with-within").checked && !$("within-label").hidden) result.within = Number($("within").value);
  }
  if (chosen("cost-case") === "worst") result.worst_case = true;
  if (chosen("cost-case") === "cap") result.worst_cost_at_most = Number($("worst-cost").value);
  return result;
}

function adversaries() {
  const guarantee = (key) => (hasOwnGuarantee(key) ? null : Number($("share").value));
  return Object.fromEntries(ticked().map((key) => [key, guarantee(key)]));
}

const preset = (key) => state.problem.adversaries.find((each) => each.key === key);
const hasOwnGuarantee = (key) => Object.keys(preset(key)?.asked ?? {}).length > 0; // the file sets a guarantee for this adversary
export const settings = () => ({ bounds: bounds(), adversaries: adversaries() });

export function missing() {
  // What is still missing before a mechanism can be designed, as a sentence; empty if nothing is.
  const wanted = bounds();
  const limits = [["worst-cost", wanted.worst_cost_at_most, "The limit for each secret's cost"], ["within", wanted.within, "The distance within which ε counts"]];
  for (const [id, value, name] of limits) if (value !== undefined && ($(id).value === "" || !(value >= 0))) return `${name} must be a number, 0 or more.`;
  if (wanted.distortion === undefined && wanted.cost_at_most === undefined && wanted.epsilon === undefined && !ticked().length) return "There is no guarantee yet: say how far off an adversary should be, or tick ε.";
  return "";
}

export function restore(saved) {
  // Set every control to the settings of a file or an earlier result.
  const { epsilon, within, distortion, cost_at_most: cost, worst_case: worst, worst_cost_at_most: worstCost } = saved.bounds;
  const { low, high } = state.problem.epsilon;
  const move = (id, value, share) => { exact[id] = value; $(id).value = Math.max(0, Math.min(STEPS, Math.round(STEPS * share))); };
  exact = {};
  $("with-epsilon").checked = epsilon !== undefined;
  if (epsilon !== undefined) move("epsilon", epsilon, Math.log(epsilon / low) / Math.log(high / low));
  $("with-within").checked = within !== undefined;
  if (within !== undefined) $("within").value = within;
  choose("goal", cost === undefined ? "privacy" : "use");
  if (cost !== undefined) move("cost-limit", cost, cost / (state.problem.blind_cost || 1));
  else if (distortion) move("error", distortion, distortion / (LARGEST_SHARE * state.problem.most_distortion || 1));
  else $("error").value = 0;
  choose("cost-case", worst ? "worst" : worstCost === undefined ? "average" : "cap");
  if (worstCost !== undefined) $("worst-cost").value = worstCost;
  $("cost-cases").open ||= chosen("cost-case") !== "average";
  for (const input of document.querySelectorAll("#presets input")) input.checked = input.value in saved.adversaries;
  const share = Object.values(saved.adversaries).find((each) => each !== null);
  if (share !== undefined) $("share").value = share;
  describe();
}

function loosenCost(limit) {
  delete exact["cost-limit"];
  $("cost-limit").value = Math.ceil((STEPS * limit * 1.005) / state.problem.blind_cost); // costBound rounds up, too
  describe();
}

export function describe() {
  const p = state.problem;
  if (!p) return;
  const use = chosen("goal") === "use";
  $("control-error").hidden = use;
  $("control-cost").hidden = !use;
  describeError(p);
  describeCost(p);
  describeEpsilon(p);
  $("share-label").hidden = !ticked().some((key) => !hasOwnGuarantee(key));
  emit("settings");
}

const speak = (id) => $(id).setAttribute("aria-valuetext", `${$(`${id}-out`).textContent}. ${$(`${id}-means`).textContent}`);

function describeError(p) {
  const share = boundsError() ? Math.max(position("error"), 1e-9) : 0;
  const wrong = p.measures.distance === "hamming";
  $("error-out").textContent = share ? asError(errorBound()) : "nothing";
  $("error-most").textContent = `${asError(p.most_distortion)}: outputs tell nothing`;
  const blind = wrong ? `Without any output they are wrong in ${percent(p.most_distortion)} of cases.` : `Without any output their best guess is ${asError(p.most_distortion)} off.`;
  const means = p.most_distortion === 0 ? "Only one secret occurs: whoever knows your habits knows it without an output." : share === 0 ? "Nothing is guaranteed about the adversary's error." : share < TIGHT ? "They find you almost as well as if you told the truth." : share > LOOSE ? "They learn next to nothing, and neither does the service." : `On average, with the best guess there is. ${blind}`;
  $("error-means").textContent = means;
  document.querySelector('label[for="error"]').lastChild.textContent = wrong ? " wrong" : " off";
  speak("error");
}

function describeCost(p) {
  const share = position("cost-limit");
  const hamming = p.measures.cost === "hamming";
  $("cost-limit-out").textContent = asCost(costBound());
  $("cost-limit-rest").textContent = hamming ? "of outputs changed" : "from the truth on average";
  $("cost-limit-most").textContent = `${asCost(p.blind_cost)}: always the same output`;
  $("cost-limit-means").textContent = share < TIGHT ? "Nearly every output is the truth: little privacy." : share > LOOSE ? "Outputs may say nothing at all." : "As much privacy as there is for that.";
  speak("cost-limit");
}

function describeEpsilon(p) {
  const on = $("with-epsilon").checked;
  $("epsilon").disabled = !on;
  const epsilon = epsilonBound();
  const unit = p.units.distinguishability;
  $("within-label").hidden = !on || !unit || p.kind === "points"; // between points ε holds at every distance
  $("within").disabled = !$("with-within").checked;
  $("within-unit").textContent = unit;
  const near = on && unit && $("with-within").checked;
  $("epsilon-out").textContent = on ? asEpsilon(epsilon, near ? { within: Number($("within").value) } : { anyPair: p.epsilon.farthest === null ? null : epsilon * p.epsilon.farthest }) : "any";
  $("epsilon-means").textContent = on ? `Whatever an adversary knows: no output shifts their odds between ${near ? nearby(epsilon, unit) : apart(p, epsilon)}.${extreme()}` : "An adversary who knows more than your habits may learn more.";
  speak("epsilon");
}

const nearby = (epsilon, unit) => `secrets at most ${inUnit(Number($("within").value), unit)} apart by more than ${power(Math.exp(epsilon))}×; between others less is guaranteed`;

function apart(p, epsilon) {
  const { near, far, farthest } = p.epsilon;
  const unit = p.units.distinguishability;
  const factor = (distance) => `${power(Math.exp(epsilon * distance))}×`;
  return unit || near !== farthest ? `${p.kind === "points" ? "points" : "secrets"} ${inUnit(near, unit)} apart by more than ${factor(near)}, or ${inUnit(far, unit)} apart by more than ${factor(far)}` : `any two secrets by more than ${factor(near)}`;
}

function extreme() {
  const share = position("epsilon");
  return share < TIGHT ? " So tight that outputs say next to nothing." : share > LOOSE ? " So loose that it hardly protects." : "";
}

function listPresets(problem) {
  const before = new Set([...ticked(), ...recalled]);
  recalled = [];
  exact = {};
  $("presets").replaceChildren(...problem.adversaries.map((each) => checkbox(each, before)));
  $("adversaries").hidden = !problem.adversaries.length;
  if (problem.measures.cost !== "hamming") $("worst-cost").value = digits(2 * problem.blind_cost);
  else if (!(Number($("worst-cost").value) > 0 && Number($("worst-cost").value) <= 1)) $("worst-cost").value = 0.9;
  if (!$("with-within").checked) $("within").value = digits(problem.epsilon.far);
  if (Object.keys(problem.asked).length) restore({ bounds: problem.asked, adversaries: adversaries() }); // a file may have bounds of its own
  describe();
}

function checkbox(each, before) {
  const { distortion, share } = each.asked; // the guarantee that the file sets, if any
  const own = distortion ?? share;
  const guarantee = own === undefined ? "" : own === "most" ? ": as much as possible" : share === undefined ? `: at least ${digits(own)} of ${digits(each.possible)}` : `: ${percent(own)} of what is possible`;
  const input = element("input", { type: "checkbox", value: each.key, onchange: changed });
  input.checked = each.key.startsWith("file-") ? own !== undefined : before.has(each.key);
  return element("label", { class: "check" }, input, element("span", {}, `${each.name} `, element("small", { class: "muted" }, `– ${each.about}${guarantee}`)));
}

export function showFailure(error) {
  const limits = { cost_at_most: "the least possible cost", worst_cost_at_most: "the least possible cost of the worst secret" };
  const limit = error.limit === undefined ? undefined : limits[error.bound];
  say("design-error", limit ? `No mechanism does that: with everything else as you want it, ${limit} is ${asCost(error.limit)}, and that is proved.` : error.message);
  $("use-limit").hidden = !limit;
  if (!limit) return;
  const possible = twoDigits(error.limit * 1.005, Math.ceil);
  $("use-limit").textContent = `Use ${asCost(possible)}`;
  $("use-limit").onclick = () => {
    $("use-limit").hidden = true;
    if (error.bound === "cost_at_most") loosenCost(error.limit);
    else { $("worst-cost").value = possible; describe(); }
    emit("design");
  };
}
