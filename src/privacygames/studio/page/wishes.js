// 2 What you want: knobs in people's units, and the bounds that they mean.
import { $, asCost, asError, choose, chosen, digits, element, emit, inUnit, on, percent, perUnit, say, state } from "./shared.js";

const STEPS = 1000;
const FULL = 0.998;

export function setUpWishes() {
  for (const id of ["error", "price", "epsilon"]) {
    $(id).addEventListener("input", describe);
    $(id).addEventListener("change", () => emit("turned"));
  }
  for (const id of ["with-epsilon", "share", "cap"]) $(id).addEventListener("change", () => { describe(); emit("turned"); });
  document.querySelectorAll('input[name="goal"], input[name="case"]').forEach((each) => each.addEventListener("change", () => { describe(); emit("turned"); }));
  on("problem", offer);
}

const part = (id) => Number($(id).value) / STEPS;
const rounded = (value) => Number(value.toPrecision(4)); // what is shown is what is asked
export const errorAsked = () => rounded(part("error") * FULL * state.problem.most_distortion);
export const priceAsked = () => rounded(part("price") * state.problem.blind_cost);
export const epsilonAsked = () => { const { low, high } = state.problem.epsilon; return rounded(low * (high / low) ** part("epsilon")); };

export function bounds() {
  const found = {};
  if (chosen("goal") === "use") found.cost_at_most = priceAsked();
  else if (part("error") > 0) found.distortion = errorAsked();
  if ($("with-epsilon").checked) found.epsilon = epsilonAsked();
  if (chosen("case") === "worst") found.worst_case = true;
  if (chosen("case") === "cap") found.worst_cost_at_most = Number($("cap").value);
  return found;
}

export function adversaries() {
  const ticked = [...document.querySelectorAll("#offers input:checked")];
  return Object.fromEntries(ticked.map((each) => [each.value, Number($("share").value)]));
}

export function take(limit, what) {
  // Set a knob to the nearest value for which there is a mechanism.
  if (what === "cost") $("price").value = Math.ceil((STEPS * limit * 1.005) / state.problem.blind_cost);
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
  $("share-label").hidden = !document.querySelector("#offers input:checked");
  emit("wishes");
}

function describeError(p) {
  const at = part("error");
  const name = p.measures.distance === "hamming";
  $("error-out").textContent = at ? asError(errorAsked()) : "nothing";
  $("error-most").textContent = `${asError(p.most_distortion)}: answers tell nothing`;
  const blind = name ? `Without any answer she is wrong in ${percent(p.most_distortion)} of cases.` : `Without any answer her best guess is ${asError(p.most_distortion)} off.`;
  const means = at === 0 ? "Nothing is promised about the attacker's error." : at < 0.07 ? "She finds you almost as well as if you told the truth." : at > 0.93 ? "She learns next to nothing, and neither does the service." : `On average, with the best guess there is. ${blind}`;
  $("error-means").textContent = means;
  document.querySelector('label[for="error"]').lastChild.textContent = name ? " wrong" : " off";
}

function describePrice(p) {
  const at = part("price");
  const hamming = p.measures.cost === "hamming";
  $("price-out").textContent = asCost(priceAsked());
  $("price-rest").textContent = hamming ? "of answers changed" : "from the truth on average";
  $("price-most").textContent = `${asCost(p.blind_cost)}: always the same answer`;
  $("price-means").textContent = at < 0.07 ? "Nearly every answer is the truth: little privacy." : at > 0.93 ? "Answers may say nothing at all." : "As much privacy as there is for that.";
}

function describeEpsilon(p) {
  const asked = $("with-epsilon").checked;
  $("epsilon").disabled = !asked;
  const epsilon = epsilonAsked();
  $("epsilon-out").textContent = asked ? `${digits(epsilon)}${perUnit(p)}` : "any";
  const factor = (apart) => { const f = Math.exp(epsilon * apart); return f > 1e4 ? `10^${Math.round(Math.log10(f))}` : digits(f); };
  const unit = p.units.distance;
  const { near, far } = p.epsilon;
  const distances = unit ? `secrets ${inUnit(near, unit)} apart by more than ${factor(near)}×, or ${inUnit(far, unit)} apart by more than ${factor(far)}×` : `any two secrets by more than ${factor(near)}×`;
  const at = part("epsilon");
  const end = at < 0.07 ? " So tight that answers say next to nothing." : at > 0.93 ? " So loose that it hardly protects." : "";
  $("epsilon-means").textContent = asked ? `Whatever an attacker knows: no answer shifts her odds between ${distances}.${end}` : "An attacker who knows more than your habits may learn more.";
}

function offer(problem) {
  $("offers").replaceChildren(...problem.adversaries.map((each) => element("label", { class: "tick" },
    element("input", { type: "checkbox", value: each.key, onchange: () => { describe(); emit("turned"); } }), element("span", {}, `${each.name} `, element("small", { class: "soft" }, `– ${each.about}`)))));
  $("adversaries").hidden = !problem.adversaries.length;
  if (problem.measures.cost !== "hamming") $("cap").value = digits(2 * problem.blind_cost);
  else $("cap").value = 0.9;
  fromFile(problem);
  describe();
}

function fromFile(problem) {
  // A problem file may say itself what is asked.
  const { epsilon, distortion, cost_at_most: cost } = problem.asked;
  const clip = (value) => Math.max(0, Math.min(STEPS, Math.round(value)));
  if (epsilon) { $("with-epsilon").checked = true; $("epsilon").value = clip((STEPS * Math.log(epsilon / problem.epsilon.low)) / Math.log(problem.epsilon.high / problem.epsilon.low)); }
  if (distortion) { choose("goal", "privacy"); $("error").value = clip((STEPS * distortion) / (FULL * problem.most_distortion)); }
  if (cost) { choose("goal", "use"); $("price").value = clip((STEPS * cost) / problem.blind_cost); }
}

export function failed(error) {
  const limited = error.limit !== undefined && chosen("goal") === "use";
  say("design-error", limited ? `No mechanism does that: with everything else as asked, the least possible cost is ${asCost(error.limit)}, and that is proved.` : error.message);
  $("use-limit").hidden = !limited;
  if (limited) {
    $("use-limit").textContent = `Use ${asCost(error.limit * 1.005)}`;
    $("use-limit").onclick = () => { $("use-limit").hidden = true; take(error.limit, "cost"); emit("turned"); emit("design"); };
  }
}
