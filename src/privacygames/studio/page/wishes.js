// 2 What you want: knobs in people's units, and the bounds that they mean.
import { $, asCost, asEpsilon, asError, choose, chosen, digits, element, emit, inUnit, on, percent, power, say, state, twoDigits } from "./shared.js";

const STEPS = 1000;
const FULL = 0.998;
const KNOBS = ["error", "price", "epsilon"];
let exact = {}; // what a file or an earlier result asked, to the last digit, until its knob is turned
let recalled = []; // adversaries that the address ticks, once they are known

export function setUpWishes() {
  for (const id of KNOBS) {
    $(id).addEventListener("input", () => { delete exact[id]; describe(); });
    $(id).addEventListener("change", () => emit("turned"));
  }
  for (const id of ["with-epsilon", "share", "cap", "with-within", "within"]) $(id).addEventListener("change", () => { describe(); emit("turned"); });
  document.querySelectorAll('input[name="goal"], input[name="case"]').forEach((each) => each.addEventListener("change", () => { describe(); emit("turned"); }));
  on("problem", offer);
  on("cleared", () => {
    recalled = ticked().filter((key) => !key.startsWith("file-"));
    exact = {};
    $("offers").replaceChildren();
    $("adversaries").hidden = true;
    for (const id of KNOBS) { $(id).removeAttribute("aria-valuetext"); for (const part of ["out", "most", "means"]) if ($(`${id}-${part}`)) $(`${id}-${part}`).textContent = ""; }
    $("cap").value = 0.9;
    $("within").value = "";
    $("with-within").checked = false;
  });
}

export const recallAdversaries = (keys) => { recalled = keys; };
export const ticked = () => [...document.querySelectorAll("#offers input:checked")].map((each) => each.value);

const part = (id) => Number($(id).value) / STEPS;
const rounded = (value) => Number(value.toPrecision(4)); // what is shown is what is asked
// Errors and costs have two digits: their ranges are computed from the prior, which more digits would tell.
export const errorAsked = () => exact.error ?? twoDigits(part("error") * FULL * state.problem.most_distortion, Math.floor);
export const priceAsked = () => exact.price ?? twoDigits(part("price") * state.problem.blind_cost, Math.ceil);
export const epsilonAsked = () => { const { low, high } = state.problem.epsilon; return exact.epsilon ?? rounded(low * (high / low) ** part("epsilon")); };
const promisesError = () => exact.error !== undefined || part("error") > 0;

export function bounds() {
  const found = {};
  if (chosen("goal") === "use") found.cost_at_most = priceAsked();
  else if (promisesError()) found.distortion = errorAsked();
  if ($("with-epsilon").checked) {
    found.epsilon = epsilonAsked();
    if ($("with-within").checked && !$("within-label").hidden) found.within = Number($("within").value);
  }
  if (chosen("case") === "worst") found.worst_case = true;
  if (chosen("case") === "cap") found.worst_cost_at_most = Number($("cap").value);
  return found;
}

export function adversaries() {
  const asked = (key) => (hasOwn(key) ? null : Number($("share").value));
  return Object.fromEntries(ticked().map((key) => [key, asked(key)]));
}

const offered = (key) => state.problem.adversaries.find((each) => each.key === key);
const hasOwn = (key) => Object.keys(offered(key)?.asked ?? {}).length > 0; // the file says itself what is promised
export const wishes = () => ({ bounds: bounds(), adversaries: adversaries() });

export function missing() {
  // What is still to be said before anything can be designed, in a sentence.
  const asked = bounds();
  const limits = [["cap", asked.worst_cost_at_most, "The cap for each secret"], ["within", asked.within, "The distance within which ε counts"]];
  for (const [id, value, what] of limits) if (value !== undefined && ($(id).value === "" || !(value >= 0))) return `${what} must be a number, 0 or more.`;
  if (asked.distortion === undefined && asked.cost_at_most === undefined && asked.epsilon === undefined && !ticked().length) return "Nothing is asked yet: say how far off an attacker should be, or tick ε.";
  return "";
}

export function restore(wished) {
  // Turn every knob to where a file or an earlier result has it.
  const { epsilon, within, distortion, cost_at_most: cost, worst_case: worst, worst_cost_at_most: cap } = wished.bounds;
  const { low, high } = state.problem.epsilon;
  const turn = (id, value, at) => { exact[id] = value; $(id).value = Math.max(0, Math.min(STEPS, Math.round(STEPS * at))); };
  exact = {};
  $("with-epsilon").checked = epsilon !== undefined;
  if (epsilon !== undefined) turn("epsilon", epsilon, Math.log(epsilon / low) / Math.log(high / low));
  $("with-within").checked = within !== undefined;
  if (within !== undefined) $("within").value = within;
  choose("goal", cost === undefined ? "privacy" : "use");
  if (cost !== undefined) turn("price", cost, cost / (state.problem.blind_cost || 1));
  else if (distortion) turn("error", distortion, distortion / (FULL * state.problem.most_distortion || 1));
  else $("error").value = 0;
  choose("case", worst ? "worst" : cap === undefined ? "average" : "cap");
  if (cap !== undefined) $("cap").value = cap;
  $("cases").open ||= chosen("case") !== "average";
  for (const each of document.querySelectorAll("#offers input")) each.checked = each.value in wished.adversaries;
  const share = Object.values(wished.adversaries).find((each) => each !== null);
  if (share !== undefined) $("share").value = share;
  describe();
}

function take(limit) {
  delete exact.price;
  $("price").value = Math.ceil((STEPS * limit * 1.005) / state.problem.blind_cost); // priceAsked rounds up, too
  describe();
}

export function describe() {
  const p = state.problem;
  if (!p) return;
  const use = chosen("goal") === "use";
  $("knob-error").hidden = use;
  $("knob-cost").hidden = !use;
  describeError(p);
  describePrice(p);
  describeEpsilon(p);
  $("share-label").hidden = !ticked().some((key) => !hasOwn(key));
  emit("wishes");
}

const spoken = (id) => $(id).setAttribute("aria-valuetext", `${$(`${id}-out`).textContent}. ${$(`${id}-means`).textContent}`);

function describeError(p) {
  const at = promisesError() ? Math.max(part("error"), 1e-9) : 0;
  const name = p.measures.distance === "hamming";
  $("error-out").textContent = at ? asError(errorAsked()) : "nothing";
  $("error-most").textContent = `${asError(p.most_distortion)}: answers tell nothing`;
  const blind = name ? `Without any answer she is wrong in ${percent(p.most_distortion)} of cases.` : `Without any answer her best guess is ${asError(p.most_distortion)} off.`;
  const means = p.most_distortion === 0 ? "Only one secret occurs: whoever knows your habits knows it without an answer." : at === 0 ? "Nothing is promised about the attacker's error." : at < 0.07 ? "She finds you almost as well as if you told the truth." : at > 0.93 ? "She learns next to nothing, and neither does the service." : `On average, with the best guess there is. ${blind}`;
  $("error-means").textContent = means;
  document.querySelector('label[for="error"]').lastChild.textContent = name ? " wrong" : " off";
  spoken("error");
}

function describePrice(p) {
  const at = part("price");
  const hamming = p.measures.cost === "hamming";
  $("price-out").textContent = asCost(priceAsked());
  $("price-rest").textContent = hamming ? "of answers changed" : "from the truth on average";
  $("price-most").textContent = `${asCost(p.blind_cost)}: always the same answer`;
  $("price-means").textContent = at < 0.07 ? "Nearly every answer is the truth: little privacy." : at > 0.93 ? "Answers may say nothing at all." : "As much privacy as there is for that.";
  spoken("price");
}

function describeEpsilon(p) {
  const asked = $("with-epsilon").checked;
  $("epsilon").disabled = !asked;
  const epsilon = epsilonAsked();
  const unit = p.units.distinguishability;
  $("within-label").hidden = !asked || !unit;
  $("within").disabled = !$("with-within").checked;
  $("within-unit").textContent = unit;
  const near = asked && unit && $("with-within").checked;
  $("epsilon-out").textContent = asked ? asEpsilon(epsilon, near ? { within: Number($("within").value) } : { anyPair: p.epsilon.farthest === null ? null : epsilon * p.epsilon.farthest }) : "any";
  $("epsilon-means").textContent = asked ? `Whatever an attacker knows: no answer shifts her odds between ${near ? nearby(epsilon, unit) : apart(p, epsilon)}.${end()}` : "An attacker who knows more than your habits may learn more.";
  spoken("epsilon");
}

const nearby = (epsilon, unit) => `secrets at most ${inUnit(Number($("within").value), unit)} apart by more than ${power(Math.exp(epsilon))}×; between others it promises less`;

function apart(p, epsilon) {
  const { near, far, farthest } = p.epsilon;
  const unit = p.units.distinguishability;
  const factor = (distance) => `${power(Math.exp(epsilon * distance))}×`;
  return unit || near !== farthest ? `secrets ${inUnit(near, unit)} apart by more than ${factor(near)}, or ${inUnit(far, unit)} apart by more than ${factor(far)}` : `any two secrets by more than ${factor(near)}`;
}

function end() {
  const at = part("epsilon");
  return at < 0.07 ? " So tight that answers say next to nothing." : at > 0.93 ? " So loose that it hardly protects." : "";
}

function offer(problem) {
  const before = new Set([...ticked(), ...recalled]);
  recalled = [];
  exact = {};
  $("offers").replaceChildren(...problem.adversaries.map((each) => tickFor(each, before)));
  $("adversaries").hidden = !problem.adversaries.length;
  if (problem.measures.cost !== "hamming") $("cap").value = digits(2 * problem.blind_cost);
  else if (!(Number($("cap").value) > 0 && Number($("cap").value) <= 1)) $("cap").value = 0.9;
  if (!$("with-within").checked) $("within").value = digits(problem.epsilon.far);
  if (Object.keys(problem.asked).length) restore({ bounds: problem.asked, adversaries: adversaries() }); // a file may say itself what is asked
  describe();
}

function tickFor(each, before) {
  const own = each.asked.distortion ?? each.asked.share;
  const promised = own === undefined ? "" : own === "most" ? ": as much as possible" : each.asked.share === undefined ? `: at least ${digits(own)} of ${digits(each.possible)}` : `: ${percent(own)} of what is possible`;
  const box = element("input", { type: "checkbox", value: each.key, onchange: () => { describe(); emit("turned"); } });
  box.checked = each.key.startsWith("file-") ? own !== undefined : before.has(each.key);
  return element("label", { class: "tick" }, box, element("span", {}, `${each.name} `, element("small", { class: "soft" }, `– ${each.about}${promised}`)));
}

export function failed(error) {
  const sentences = { cost_at_most: "the least possible cost", worst_cost_at_most: "the least possible cost of the worst secret" };
  const what = error.limit === undefined ? undefined : sentences[error.bound];
  say("design-error", what ? `No mechanism does that: with everything else as asked, ${what} is ${asCost(error.limit)}, and that is proved.` : error.message);
  $("use-limit").hidden = !what;
  if (!what) return;
  const room = twoDigits(error.limit * 1.005, Math.ceil);
  $("use-limit").textContent = `Use ${asCost(room)}`;
  $("use-limit").onclick = () => {
    $("use-limit").hidden = true;
    if (error.bound === "cost_at_most") take(error.limit);
    else { $("cap").value = room; describe(); }
    emit("design");
  };
}
