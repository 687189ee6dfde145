// Every day: outputs charged to a ledger of this machine. The secret is sent to it, and kept nowhere.
import { get, post } from "./api.js";
import { $, asEpsilon, chosen, digits, element, inUnit, on, say, state } from "./shared.js";
import { askFor, exampleOn, mapOf, outputText, positionOnMap, truth } from "./truth.js";

const NEW = "+"; // no name may begin with it
const USUAL_OUTPUTS = 8; // outputs a day that a new budget has room for: a waking day, every two hours
const SOURCES = {
  drawn: "new", memoised: "of this place", away: "on the way: the last one again", repeated: "budget used up: the last one again", belief: "from the prior alone",
};
const POLICIES = {
  fresh: "A new draw each time",
  same: "The same place, the same output",
  places: "One output for each place you return to",
};

let ledger = null; // the view of the chosen one
let press = null; // the name of the release that was asked for last, to ask again without another charge
let tell = () => {};
let busy = false;

export function setUpDaily(showOutput) {
  tell = showOutput;
  $("ledger").addEventListener("change", open);
  $("new-ledger").addEventListener("submit", (event) => { event.preventDefault(); create(); });
  $("release").addEventListener("click", release);
  $("pause").addEventListener("click", pause);
  for (const id of ["ledger-epsilon", "ledger-policy", "ledger-delta"]) $(id).addEventListener("input", describeNew);
  on("truth", () => { press = null; });
  on("result", () => { if (!$("new-ledger").hidden) fillNew(); });
  on("cleared", () => { if (!$("new-ledger").hidden) fillNew(); });
}

export async function showDaily() {
  say("use-error", "");
  try {
    const { folder, ledgers } = await get("ledgers");
    if (chosen("use") !== "daily") return;
    const before = ledgers.includes($("ledger").value) ? $("ledger").value : "";
    $("ledger").replaceChildren(element("option", { value: "" }, ledgers.length ? "choose …" : "none yet"), ...ledgers.map((name) => element("option", { value: name }, name)), element("option", { value: NEW }, "New ledger …"));
    $("ledger").value = before || (ledgers.length === 1 ? ledgers[0] : ledgers.length ? "" : NEW);
    $("ledger-folder").textContent = folder;
    await open();
  } catch (error) { say("use-error", error.message); }
}

async function open() {
  const name = $("ledger").value;
  say("use-error", "");
  $("answer").hidden = true;
  press = null;
  ledger = null;
  $("new-ledger").hidden = name !== NEW;
  if (name === NEW) fillNew();
  if (name === NEW || !name) { draw(); return; }
  try {
    const view = await get(`ledgers/${encodeURIComponent(name)}`);
    if ($("ledger").value === name) ledger = view;
  } catch (error) { say("use-error", error.message); }
  draw();
}

const draws = () => state.result && state.result.epsilon !== null;

function fillNew() {
  const { problem, result } = state;
  const possible = draws();
  $("create-ledger").disabled = !possible;
  for (const id of ["ledger-terms", "create-ledger"]) $(id).hidden = !possible;
  $("ledger-none").textContent = possible ? "" : result ? "What is used every day must limit how far each output shifts the odds: tick “and no output shifts the odds much” above, and design." : "Design something above first: a new ledger takes its outputs from the result that is shown.";
  $("ledger-none").hidden = possible;
  if (!possible) return;
  const points = problem.kind === "points";
  if (points) $("ledger-places").placeholder = exampleOn(mapOf(problem));
  $("ledger-mechanism").textContent = `Outputs are drawn from the result above (${result.title || result.label}), which is kept with the ledger.`;
  for (const option of $("ledger-policy").options) option.hidden = option.disabled = option.value === "places" && !points;
  if (!points && $("ledger-policy").value === "places") $("ledger-policy").value = "same";
  $("ledger-epsilon").value = Number((Math.ceil(USUAL_OUTPUTS * result.epsilon * 100) / 100).toPrecision(3));
  $("ledger-unit").textContent = `${problem.units.epsilon.replace(" between any two points", "")} in any 24 hours`;
  $("ledger-within-unit").textContent = problem.units.distinguishability;
  describeNew();
}

function describeNew() {
  if (!draws()) return;
  const { problem, result } = state;
  const points = problem.kind === "points";
  const policy = $("ledger-policy").value;
  const budget = Number($("ledger-epsilon").value);
  $("ledger-place-label").hidden = !(points && policy === "same");
  $("ledger-places-label").hidden = policy !== "places";
  $("ledger-delta-fields").hidden = !$("ledger-delta").checked;
  const each = asEpsilon(result.epsilon).replace(" between any two points", "");
  const room = Math.floor(budget / result.epsilon + 1e-9);
  const what = policy === "fresh" ? ["output", "outputs"] : ["place", "different places"];
  $("ledger-room").textContent = !(budget > 0)
    ? "The budget is a number above 0."
    : $("ledger-delta").checked
      ? `One output costs ε = ${each}; how many there is room for is said once the ledger is made.`
      : room < 1 ? `One output costs ε = ${each}: the budget must be at least that.` : `One output costs ε = ${each}: there is room for ${room} ${room === 1 ? what[0] : what[1]} in any 24 hours.`;
  $("ledger-policy-means").textContent = {
    fresh: "Every output is drawn anew and charged.",
    same: points ? "All points of a small square get one output, which is charged once in 24 hours: repeating it reveals nothing more, but shows that you are there again." : "The same secret gives the same output, which is charged once in 24 hours: repeating it reveals nothing more, but shows that it is the same.",
    places: "Home gets one output, work another, charged once in 24 hours; anywhere else the last output is repeated, so that nobody sees you on the way.",
  }[policy];
}

async function create() {
  say("use-error", "");
  const number = (id) => { const value = $(id).value.trim(); return value === "" ? undefined : Number(value.replace(",", ".")); };
  const policy = $("ledger-policy").value;
  const points = state.problem.kind === "points";
  try {
    const name = $("ledger-name").value.trim();
    if (!/^[\p{L}\p{N}_]([\p{L}\p{N}_ .-]{0,58}[\p{L}\p{N}_])?$/u.test(name)) throw new Error("Give the ledger a name of letters, digits, blanks and hyphens, such as “my phone”.");
    if (!(number("ledger-epsilon") > 0)) throw new Error("The budget is a number above 0.");
    const body = { name, mechanism: state.result.id, epsilon: number("ledger-epsilon"), policy, when_spent: $("ledger-when-spent").value };
    if ($("ledger-delta").checked) {
      body.delta = number("ledger-delta-chance");
      if (!(body.delta > 0 && body.delta < 1)) throw new Error("The chance that the budget fails is a small number above 0, such as 0.000001.");
      const within = number("ledger-within");
      if (within !== undefined) body.within = within;
    }
    if (policy === "same" && points) {
      body.place = number("ledger-place") / 1000;
      if (!(body.place > 0)) throw new Error("The size of a place is a number of metres above 0.");
    }
    if (policy === "places") Object.assign(body, frequentPlaces(number("ledger-radius")));
    ledger = await post("ledgers", body);
    for (const id of ["ledger-name", "ledger-places"]) $(id).value = "";
    const option = element("option", { value: ledger.name }, ledger.name);
    $("ledger").querySelector(`option[value="${NEW}"]`).before(option);
    $("ledger").value = ledger.name;
    $("new-ledger").hidden = true;
    draw();
    $("ledger").focus();
  } catch (error) { say("use-error", error.message); }
}

function frequentPlaces(metres) {
  if (!(metres > 0)) throw new Error("How near counts as being there is a number of metres above 0.");
  const lines = $("ledger-places").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!lines.length) throw new Error("Give at least one place that you return to, one a line.");
  const places = lines.map((line, i) => {
    try { return positionOnMap(line, mapOf(state.problem)); } catch (error) { throw new Error(`Line ${i + 1}: ${error.message}`); }
  });
  return { places, radius: metres / 1000 };
}

const clock = (seconds) => new Date(1000 * seconds).toLocaleString(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });

function draw() {
  $("ledger-state").hidden = $("release-part").hidden = $("ledger-history-part").hidden = !ledger;
  askFor(ledger ? (ledger.secrets.kind === "number" ? null : ledger.secrets) : null);
  if (!ledger) return;
  const { share_left: share, releases_left: left, policy } = ledger;
  $("ledger-left").value = share;
  $("ledger-left").textContent = `${Math.floor(100 * share)} %`;
  const what = policy === "fresh" ? ["more output", "more outputs"] : ["more new place", "more new places"];
  const room = left === null ? "These outputs reveal nothing, and cost nothing." : ledger.next !== null ? `Used up. There is room again at ${clock(ledger.next)}${policy === "fresh" ? "" : "; places of these 24 hours cost nothing"}.` : `Room for ${left} ${left === 1 ? what[0] : what[1]} in these 24 hours.`;
  $("ledger-left-text").textContent = `${Math.floor(100 * share)}\u00a0% left. ${room}`;
  const budget = ledger.delta === null ? `Budget: ε = ${digits(ledger.epsilon)} ${ledger.unit} in any 24 hours.` : `Budget: (ε, δ) = (${digits(ledger.epsilon)}, ${ledger.delta}) in any 24 hours.`;
  const place = ledger.place ? `, in squares of ${inUnit(ledger.place, "km")}` : ledger.places ? ` (${ledger.places}, within ${inUnit(ledger.radius, "km")})` : "";
  $("ledger-terms-text").textContent = `${POLICIES[policy]}${place}. ${budget}`;
  $("ledger-guarantee").textContent = ledger.guarantee;
  $("ledger-paused").hidden = !ledger.paused;
  $("release").disabled = ledger.paused || busy;
  $("pause").textContent = ledger.paused ? "Resume" : "Pause";
  $("ledger-place-of").textContent = ledger.folder;
  $("ledger-history-none").hidden = Boolean(ledger.history.length);
  $("ledger-history-scroll").hidden = !ledger.history.length;
  $("ledger-history-more").textContent = ledger.total > ledger.history.length ? `The latest ${ledger.history.length} of ${ledger.total}.` : "";
  $("ledger-history").tBodies[0].replaceChildren(...ledger.history.map((each) => element("tr", {}, ...[String(each.number), clock(each.time), outputText(each.output), SOURCES[each.source] ?? each.source, each.charged ? "yes" : "no"].map((text) => element("td", {}, text)))));
}

const freshName = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function release() {
  if (!ledger || busy) return;
  const { name } = ledger;
  say("use-error", "");
  $("answer").hidden = true;
  try {
    const secret = truth();
    press ??= freshName();
    busy = true;
    $("release").disabled = true;
    const view = await post(`ledgers/${encodeURIComponent(name)}/release`, { ...secret, key: press });
    press = null;
    if ($("ledger").value !== name) return;
    ledger = view;
    const again = view.released.charged ? "It is charged and in the history." : `${POLICIES[view.policy]}: nothing was charged.`;
    tell(view.released.output, `${view.guarantee} ${again}`);
  } catch (error) {
    if (error.code) press = null; // the server has answered: the next press is another release
    say("use-error", error.status === "SPENT" ? `The budget of these 24 hours is used up, and nothing was released.${ledger.next ? ` There is room again at ${clock(ledger.next)}.` : ""}` : error.message);
    if (error.status === "SPENT" || error.status === "PAUSED") ledger = await get(`ledgers/${encodeURIComponent(name)}`).catch(() => ledger);
  } finally {
    busy = false;
    if ($("ledger").value === name) draw();
  }
}

async function pause() {
  say("use-error", "");
  try {
    ledger = await post(`ledgers/${encodeURIComponent(ledger.name)}/pause`, { paused: !ledger.paused });
    draw();
  } catch (error) { say("use-error", error.message); }
}
