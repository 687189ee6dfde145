// Step 2, "What you want": controls in everyday units, and the bounds that they set.
import { $, asCost, asEpsilon, asError, choose, chosen, digits, element, emit, inUnit, on, percent, power, say, state, twoDigits, wrongOr } from "./shared.js";

const STEPS = 1000; // positions of a range control
const LARGEST_SHARE = 0.998; // of the largest error: at the maximum only constant outputs are possible
const [TIGHT, LOOSE] = [0.07, 0.93]; // shares of a range below and above which outputs reveal almost nothing, or almost everything
const RANGES = ["error", "cost-limit", "epsilon"];
const LAWS = [ // distances in kilometres that laws call precise
  [0.5334, "1,750 ft (533\u00a0m)", "1,750 ft: “precise geolocation” in the laws of Virginia (Code § 59.1-575), Connecticut (General Statutes § 42-515) and other states."],
  [0.56388, "1,850 ft (564\u00a0m)", "1,850 ft: “precise geolocation” in California (Civil Code § 1798.140(w))."],
  [1, "1,000 m", "1,000 m: “precise geolocation data” in the rule of the US Department of Justice on bulk data (28 CFR § 202.242)."],
];
const LAWS_DISCLAIMER = "These say how precisely data may locate somebody. The error here is an average over habits, so meeting one of them does not by itself meet the law.";
let exact = {}; // full-precision values that were typed, or are from a file or an earlier result, used until their control is moved
let recalled = []; // adversaries to tick, from the address of the page, once they are listed
let kept = new Set(); // controls that the user, or the address of the page, has set: the others start anew with each problem
let recalledExact = {};
let measured = ""; // measures and units of the problem that the controls were set for

export function setUpControls() {
  for (const id of RANGES) {
    $(id).addEventListener("input", () => { delete exact[id]; kept.add(id); describe(); });
    $(id).addEventListener("change", () => emit("settled"));
    $(`${id}-typed`).addEventListener("change", () => type(id));
  }
  $("worst-cost").addEventListener("change", () => kept.add("worst-cost"));
  $("legal-list").append(...LAWS.map(([km, name]) => element("button", { type: "button", "data-km": km, onclick: () => { $("error-typed").value = inField(km, "distance"); type("error", km); } }, name)));
  $("legal-about").append(...[...LAWS.map(([, , about]) => about), LAWS_DISCLAIMER].map((text) => element("li", {}, text)));
  for (const id of ["with-epsilon", "share", "worst-cost", "with-within", "within"]) $(id).addEventListener("change", changed);
  document.querySelectorAll('input[name="goal"], input[name="cost-case"]').forEach((input) => input.addEventListener("change", () => { startCosts(); changed(); }));
  on("problem", listPresets);
  on("cleared", () => {
    if (measured) {
      recalled = ticked().filter((key) => !key.startsWith("file-"));
      exact = {};
    }
    $("presets").replaceChildren();
    $("legal").hidden = true;
    for (const id of RANGES) if ($(`${id}-means`)) means(id, "", false);
    $("adversaries").hidden = true;
    for (const id of RANGES) { $(id).removeAttribute("aria-valuetext"); if (measured) $(`${id}-typed`).value = ""; $(`${id}-unit`).textContent = ""; for (const part of ["out", "most", "means"]) if ($(`${id}-${part}`)) $(`${id}-${part}`).textContent = ""; }
    kept.delete("worst-cost");
    if (!measured) return; // what the address of the page says waits for the data
    $("worst-cost").value = "";
    $("within").value = "";
    $("with-within").checked = false;
  });
}

// Number fields have one unit for each problem: metres where distances are kilometres, per cent where they are shares.
const scaleOf = (what) => {
  const { measures, units } = state.problem;
  if (measures[what] === "hamming") return ["%", 100];
  return units[what] === "km" ? ["m", 1000] : [units[what], 1];
};
const plain = (value) => Number(value.toPrecision(12));
const inField = (value, what) => plain(value * scaleOf(what)[1]);
const fromField = (id, what) => plain(Number($(id).value) / scaleOf(what)[1]);
const withinScale = () => (state.problem.units.distinguishability === "km" ? 1000 : 1);
const MEASURED = { error: "distance", "cost-limit": "cost" };

function type(id, value) {
  // Take a typed value to the last digit; the control moves to the nearest of its positions.
  const field = $(`${id}-typed`);
  const number = value ?? (field.value === "" ? NaN : id === "epsilon" ? Number(field.value) : fromField(`${id}-typed`, MEASURED[id]));
  if (!(number >= 0) || (id === "epsilon" && !(number > 0))) { describe(); return; } // the field shows the value again
  kept.add(id);
  if (id === "epsilon") $("with-epsilon").checked = true;
  if (id === "error") choose("goal", "privacy");
  place(id, number);
  describe();
  emit("settled");
}

function place(id, value) {
  // Move a control to a value, which is kept with all of its digits.
  const p = state.problem;
  const { low, high } = p.epsilon;
  const share = id === "epsilon" ? Math.log(value / low) / Math.log(high / low) : id === "error" ? value / (LARGEST_SHARE * p.most_distortion || 1) : value / (p.blind_cost || 1);
  if (value > 0) exact[id] = value; // 0 is the end of the control: no guarantee
  else delete exact[id];
  $(id).value = Math.max(0, Math.min(STEPS, Math.round(STEPS * share)));
}

export function resetControls() {
  // As if nothing had been set by hand: the next problem chooses where the controls start.
  kept = new Set();
  measured = "none";
  exact = {};
  recalled = [];
  $("with-epsilon").checked = true;
  $("with-within").checked = false;
  choose("cost-case", "average");
  document.querySelectorAll("#presets input").forEach((input) => { input.checked = false; });
}

export function recallControls(address) {
  // Controls that the address of the page sets, and their typed values.
  kept = new Set([...RANGES, "worst-cost", "within"].filter((id) => address.has(id)));
  for (const id of RANGES) if (Number(address.get(`${id}-typed`)) > 0) recalledExact[id] = Number(address.get(`${id}-typed`));
}

export const typedValues = () => (state.problem ? exact : recalledExact);

function startControls(problem) {
  // Each control starts where a mechanism is known to exist, unless somebody has set it for data in the same units.
  const now = JSON.stringify([problem.kind, problem.measures, problem.units]);
  const first = measured === "";
  const before = exact;
  exact = {};
  if (!first && now !== measured) kept.clear();
  measured = now;
  for (const [id, value] of Object.entries(first ? recalledExact : before)) if (kept.has(id)) place(id, value);
  recalledExact = {};
  const { start } = problem;
  if (!kept.has("error")) $("error").value = Math.round((STEPS * start.error) / (LARGEST_SHARE * problem.most_distortion || 1));
  if (!kept.has("epsilon")) place("epsilon", Math.max(problem.epsilon.low, twoDigits(start.epsilon, Math.floor)));
}

function startCosts() {
  if (!state.problem) return;
  if (!kept.has("cost-limit")) $("cost-limit").value = Math.min(STEPS, Math.ceil((STEPS * knownCosts().cost) / (state.problem.blind_cost || 1)));
  if (!kept.has("worst-cost")) $("worst-cost").value = inField(Math.min(state.problem.measures.cost === "hamming" ? 1 : Infinity, twoDigits(knownCosts().worstCost, Math.ceil)), "cost");
}

function knownCosts() {
  // Costs that a mechanism with the other settings is known to have: the mixture that studio/starts.py describes.
  const p = state.problem;
  const epsilon = $("with-epsilon").checked ? epsilonBound() / ($("with-within").checked && !$("within-label").hidden ? withinBound() || 1 : 1) : Infinity;
  const blind = { cost: p.blind_cost, worst_cost: p.blind_worst_cost };
  const without = epsilon === Infinity ? { cost: 0, worst_cost: 0 } : p.known.filter((each) => each.epsilon <= epsilon * (1 + 1e-9)).sort((a, b) => a.cost - b.cost)[0] ?? blind;
  const use = chosen("goal") === "use";
  const asked = Object.values(adversaries()).map((share) => share ?? 1);
  const share = Math.max(0, ...asked, use ? 0 : position("error"));
  const mixed = (key) => share * blind[key] + (1 - share) * Math.min(without[key], key === "cost" ? blind.cost : Infinity);
  const { result } = state;
  const others = ({ bounds: { distortion, cost_at_most: cost, ...rest }, adversaries: against }) => JSON.stringify([rest, against]);
  const reached = result?.settings && chosen("cost-case") === "average" && others(result.settings) === others(settings()) ? result.cost * 1.001 : Infinity;
  return { cost: Math.min(p.blind_cost, reached, Math.max(mixed("cost"), use ? p.blind_cost / 2 : 0)), worstCost: mixed("worst_cost") * 1.001 };
}

function changed() { describe(); emit("settled"); }

export const recallAdversaries = (keys) => { recalled = keys; };
export const wantedAdversaries = () => (state.problem ? ticked() : recalled); // also while there are no data
export const ticked = () => [...document.querySelectorAll("#presets input:checked")].map((input) => input.value);

const position = (id) => Number($(id).value) / STEPS;
const rounded = (value) => Number(value.toPrecision(4)); // the bound is the number that is shown
// Errors and costs have two digits: their ranges are computed from the prior, which more digits would reveal.
const errorBound = () => exact.error ?? twoDigits(position("error") * LARGEST_SHARE * state.problem.most_distortion, Math.floor);
const costBound = () => exact["cost-limit"] ?? twoDigits(position("cost-limit") * state.problem.blind_cost, Math.ceil);
const epsilonBound = () => { const { low, high } = state.problem.epsilon; return exact.epsilon ?? rounded(low * (high / low) ** position("epsilon")); };
const withinBound = () => plain(Number($("within").value) / withinScale());
const boundsError = () => exact.error !== undefined || position("error") > 0;

function bounds() {
  const result = {};
  if (chosen("goal") === "use") result.cost_at_most = costBound();
  else if (boundsError()) result.distortion = errorBound();
  if ($("with-epsilon").checked) {
    result.epsilon = epsilonBound();
    if ($("with-within").checked && !$("within-label").hidden) result.within = withinBound();
  }
  if (chosen("cost-case") === "worst") result.worst_case = true;
  if (chosen("cost-case") === "cap") result.worst_cost_at_most = fromField("worst-cost", "cost");
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
  const p = state.problem;
  if (wanted.distortion > p.most_distortion) return `Nobody can be made to err by ${asError(wanted.distortion)} on average: without any output their best guess is ${asError(p.most_distortion)} ${wrongOr("off")}.`;
  if (wanted.distortion === undefined && wanted.cost_at_most === undefined && wanted.epsilon === undefined && !ticked().length) return "There is no guarantee yet: say how far off an adversary should be, or tick ε.";
  return "";
}

export function restore(saved) {
  // Set every control to the settings of a file or an earlier result.
  const { epsilon, within, distortion, cost_at_most: cost, worst_case: worst, worst_cost_at_most: worstCost } = saved.bounds;
  exact = {};
  for (const id of [...RANGES, "worst-cost"]) kept.add(id);
  $("with-epsilon").checked = epsilon !== undefined;
  if (epsilon !== undefined) place("epsilon", epsilon);
  $("with-within").checked = within !== undefined;
  if (within !== undefined) $("within").value = plain(within * withinScale());
  choose("goal", cost === undefined ? "privacy" : "use");
  if (cost !== undefined) place("cost-limit", cost);
  else if (distortion) place("error", distortion);
  else $("error").value = 0;
  choose("cost-case", worst ? "worst" : worstCost === undefined ? "average" : "cap");
  if (worstCost !== undefined) $("worst-cost").value = inField(worstCost, "cost");
  $("cost-cases").open ||= chosen("cost-case") !== "average";
  for (const input of document.querySelectorAll("#presets input")) input.checked = input.value in saved.adversaries;
  const share = Object.values(saved.adversaries).find((each) => each !== null);
  if (share !== undefined) $("share").value = share;
  describe();
}

function loosenCost(limit) {
  delete exact["cost-limit"];
  kept.add("cost-limit");
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
  describeFields(p);
  $("share-label").hidden = !ticked().some((key) => !hasOwnGuarantee(key));
  emit("settings");
}

function describeFields(p) {
  for (const id of RANGES) {
    const [unit] = id === "epsilon" ? [p.units.distinguishability ? p.units.epsilon : ""] : scaleOf(MEASURED[id]);
    const value = id === "epsilon" ? epsilonBound() : id === "error" ? (boundsError() ? errorBound() : 0) : costBound();
    $(`${id}-unit`).textContent = unit;
    $(`${id}-typed`).value = id === "epsilon" ? plain(value) : inField(value, MEASURED[id]);
    $(`${id}-typed`).setAttribute("aria-label", `${{ error: "The adversary's error", "cost-limit": "The cost", epsilon: "epsilon" }[id]}, as a number${unit ? `, in ${unit}`.replace("in per", "per") : ""}`);
  }
  $("epsilon-typed").disabled = !$("with-epsilon").checked;
  $("worst-cost-unit").textContent = scaleOf("cost")[0];
  $("legal").hidden = p.units.distance !== "km" || p.measures.distance === "hamming";
  for (const button of $("legal-list").children) {
    const km = Number(button.dataset.km);
    button.disabled = km > p.most_distortion;
    button.setAttribute("aria-pressed", String(exact.error === km));
  }
}

function means(id, text, alarm) {
  // What a control's value means; in red, with a word for whoever sees no colours, where it makes no sense.
  $(`${id}-means`).textContent = alarm ? `⚠\u00a0${text}` : text;
  $(`${id}-means`).classList.toggle("alarm", Boolean(alarm));
}

const speak = (id) => $(id).setAttribute("aria-valuetext", `${$(`${id}-out`).textContent}. ${$(`${id}-means`).textContent}`);

function describeError(p) {
  const share = boundsError() ? Math.max(position("error"), 1e-9) : 0;
  const wrong = p.measures.distance === "hamming";
  $("error-out").textContent = share ? asError(errorBound()) : "nothing";
  $("error-most").textContent = `${asError(p.most_distortion)}: outputs tell nothing`;
  const blind = wrong ? `Without any output they are wrong in ${percent(p.most_distortion)} of cases.` : `Without any output their best guess is ${asError(p.most_distortion)} off.`;
  const text = p.most_distortion === 0 ? "Only one secret occurs: whoever knows your habits knows it without an output." : share === 0 ? "Nothing is guaranteed about the adversary's error." : errorBound() > p.most_distortion ? `Not possible. ${blind}` : share < TIGHT ? "They find you almost as well as if you told the truth." : share > LOOSE ? "They learn next to nothing, and neither does the service." : `On average, with the best guess there is. ${blind}`;
  means("error", text, p.most_distortion === 0 || (share > 0 && share < TIGHT) || share > LOOSE);
  document.querySelector('label[for="error"]').lastChild.textContent = wrong ? " wrong" : " off";
  speak("error");
}

function describeCost(p) {
  const share = position("cost-limit");
  const hamming = p.measures.cost === "hamming";
  $("cost-limit-out").textContent = asCost(costBound());
  $("cost-limit-rest").textContent = hamming ? "of outputs changed" : "from the truth on average";
  $("cost-limit-most").textContent = `${asCost(p.blind_cost)}: always the same output`;
  means("cost-limit", share < TIGHT ? "Nearly every output is the truth: hardly any privacy." : share > LOOSE ? "Outputs may say nothing at all." : "As much privacy as there is for that.", share < TIGHT || share > LOOSE);
  speak("cost-limit");
}

function describeEpsilon(p) {
  const on = $("with-epsilon").checked;
  $("epsilon").disabled = !on;
  const epsilon = epsilonBound();
  const unit = p.units.distinguishability;
  $("within-label").hidden = !on || !unit || p.kind === "points"; // between points ε holds at every distance
  $("within").disabled = !$("with-within").checked;
  $("within-unit").textContent = unit === "km" ? "m" : unit;
  const near = on && unit && $("with-within").checked;
  $("epsilon-out").textContent = on ? asEpsilon(epsilon, near ? { within: withinBound() } : { anyPair: p.epsilon.farthest === null ? null : epsilon * p.epsilon.farthest }) : "any";
  const [alarm, sentence] = extreme(p, epsilon, near);
  means("epsilon", on ? `Whatever an adversary knows: no output shifts their odds between ${near ? nearby(epsilon, unit) : apart(p, epsilon)}.${sentence}` : "An adversary who knows more than your habits may learn more.", on && alarm);
  const gone = Math.log(p.epsilon.gone / p.epsilon.low) / Math.log(p.epsilon.high / p.epsilon.low);
  $("epsilon").style.setProperty("--high", `${Math.round(100 * Math.max(0.1, Math.min(1, gone)))}%`);
  speak("epsilon");
}

const nearby = (epsilon, unit) => `secrets at most ${inUnit(withinBound(), unit)} apart by more than ${power(Math.exp(epsilon))}×; between others less is guaranteed`;

function apart(p, epsilon) {
  const { near, far, farthest } = p.epsilon;
  const unit = p.units.distinguishability;
  const factor = (distance) => `${power(Math.exp(epsilon * distance))}×`;
  return unit || near !== farthest ? `${p.kind === "points" ? "points" : "secrets"} ${inUnit(near, unit)} apart by more than ${factor(near)}, or ${inUnit(far, unit)} apart by more than ${factor(far)}` : `any two secrets by more than ${factor(near)}`;
}

function extreme(p, epsilon, near) {
  if (position("epsilon") < TIGHT) return [true, " So tight that outputs say next to nothing."];
  if (near || epsilon < p.epsilon.gone) return [false, ""];
  const { farthest, near: nearest } = p.epsilon;
  return [true, farthest && farthest !== nearest ? ` Privacy is gone between the farthest: ${inUnit(farthest, p.units.distinguishability)} apart, one output may settle which of the two it is.` : " Privacy is gone: one output may settle which secret it is."];
}

function listPresets(problem) {
  const before = new Set([...ticked(), ...recalled]);
  recalled = [];
  startControls(problem);
  $("presets").replaceChildren(...problem.adversaries.map((each) => checkbox(each, before)));
  $("adversaries").hidden = !problem.adversaries.length;
  if (!$("with-within").checked) $("within").value = plain(Number(digits(problem.epsilon.far)) * withinScale());
  startCosts();
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
    else { $("worst-cost").value = inField(possible, "cost"); describe(); }
    emit("design");
  };
}
