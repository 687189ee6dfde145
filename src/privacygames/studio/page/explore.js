// The picture one can ask: a secret, an answer, samples, and sending again and again.
import { get, post } from "./api.js";
import { matrix, picture, rowAt, SIGNS, trace } from "./drawing.js";
import { $, asEpsilon, asError, choose, chosen, digits, element, heat, on, percent, shown, state } from "./shared.js";

const DROPPED = 50;
let attackers = [];
let answers = null;
let table = null;
let cursor = 0;
let turn = 0;

export function setUpPicture() {
  document.querySelectorAll('input[name="view"]').forEach((each) => each.addEventListener("change", refresh));
  $("attacker").addEventListener("change", draw);
  $("drop").addEventListener("click", drop);
  $("send-1").addEventListener("click", () => send(1));
  $("send-2").addEventListener("click", () => send(2));
  $("send-day").addEventListener("click", () => send(0));
  $("step").addEventListener("input", draw);
  $("picture").addEventListener("keydown", keys);
  $("matrix").addEventListener("click", (event) => {
    state.secret = rowAt($("matrix"), event, state.problem.labels.length);
    show("answers");
  });
  on("problem", (problem) => {
    state.secret = problem.prior.indexOf(Math.max(...problem.prior));
    state.answer = null;
    state.sent = null;
    state.samples = [];
    cursor = state.secret;
    choose("view", "prior");
    refresh();
  });
  on("cleared", () => {
    choose("view", "prior");
    refresh();
    for (const id of ["picture", "trace", "marks", "attacker"]) $(id).replaceChildren();
    for (const id of ["trace", "matrix-box", "attacker-label", "step-label", "send-day"]) $(id).hidden = true;
    for (const id of ["drop", "send-1", "send-2"]) $(id).disabled = true;
    for (const each of document.querySelectorAll('input[name="view"]')) each.disabled = each.value !== "prior";
    $("matrix").width = 0; // a canvas of another width is empty
    $("ramp-most").textContent = "";
    $("picture-says").textContent = "Nothing is loaded.";
  });
  on("result", () => { state.sent = null; state.samples = []; if (chosen("view") === "sent") choose("view", "answers"); refresh(); });
}

function show(view) { choose("view", view); refresh(); }

export async function refresh() {
  const mine = (turn += 1);
  const { problem, result } = state;
  if (!problem) return;
  for (const each of document.querySelectorAll('input[name="view"]')) each.disabled = each.value !== "prior" && (!result || (each.value === "sent" && !state.sent));
  for (const id of ["drop", "send-1", "send-2"]) $(id).disabled = !result;
  $("send-day").disabled = !result;
  $("send-day").hidden = !problem.has_day;
  answers = null;
  attackers = [];
  table = null;
  try {
    if (result) answers = (await post(`mechanisms/${result.id}/answers`, { secret: problem.labels[state.secret] })).probabilities;
    if (mine !== turn) return;
    if (answers && state.answer === null) state.answer = answers.indexOf(Math.max(...answers));
    if (result && chosen("view") === "beliefs") attackers = (await post(`mechanisms/${result.id}/attack`, { observable: problem.answers[state.answer] })).attackers;
    if (result && !problem.grid && problem.labels.length <= 160) table = (await get(`mechanisms/${result.id}/table`)).probabilities;
  } catch (error) {
    $("picture-says").textContent = error.message;
    return;
  }
  if (mine !== turn) return;
  const before = $("attacker").value;
  $("attacker").replaceChildren(...attackers.map((each) => element("option", { value: each.name }, each.name)));
  if (attackers.some((each) => each.name === before)) $("attacker").value = before;
  draw();
}

export function draw() {
  const { problem } = state;
  if (!problem) return;
  const view = state.result ? chosen("view") : "prior";
  const [axis, values, marks, says] = views[view]?.(problem) ?? views.prior(problem);
  $("picture").dataset.axis = axis;
  $("picture").replaceChildren(picture(problem, axis, values, marks, (i) => pick(i), { samples: view === "answers" ? state.samples : [], cursor }));
  $("picture").setAttribute("aria-activedescendant", `cell-at-${cursor}`);
  $("picture-says").textContent = says;
  $("ramp-most").textContent = percent(Math.max(...values));
  $("ramp").style.background = `linear-gradient(90deg, ${[0, 0.1, 0.25, 0.5, 0.75, 1].map((share) => `${heat(share)} ${100 * share}%`).join(", ")})`;
  const signs = Object.entries(marks).filter(([, i]) => i !== null).map(([kind]) => SIGNS[kind]);
  if (view === "answers" && state.samples.length) signs.push(["•", "an answer drawn"]);
  $("marks").replaceChildren(...signs.flatMap(([sign, meaning]) => [element("b", {}, sign), ` ${meaning}  `]));
  $("attacker-label").hidden = view !== "beliefs";
  $("step-label").hidden = view !== "sent" || state.sent.length < 2;
  $("trace").hidden = view !== "sent" || state.sent.length < 2;
  if (!$("trace").hidden) $("trace").replaceChildren(trace(state.sent.map((each) => each.error), Number($("step").value) - 1, (value) => asError(value)));
  $("matrix-box").hidden = !table;
  if (table) matrix($("matrix"), table, problem.labels, problem.answers);
}

const views = {
  prior: (p) => ["labels", p.prior, { secret: state.result ? state.secret : null }, "What an attacker believes before any answer: how often each secret occurs. Choose one to see its answers."],
  answers: (p) => {
    const likely = p.answers[answers.indexOf(Math.max(...answers))];
    const same = p.same_answers ? ` ${percent(answers[state.secret])} of them are the truth.` : "";
    return ["answers", answers, p.same_answers ? { secret: state.secret } : {}, `Where the answers to ${shown(p.labels[state.secret])} go; most often to ${shown(likely)} (${percent(Math.max(...answers))}).${same}`];
  },
  beliefs: (p) => {
    const found = attackers.find((each) => each.name === $("attacker").value) ?? attackers[0];
    if (!found) return views.prior(p);
    if (!found.belief) return ["labels", p.prior, { answer: p.same_answers ? state.answer : null }, `The answer ${shown(p.answers[state.answer])} is never given, so nobody has anything to conclude from it: this is what is believed before any answer. Choose another answer.`];
    const guess = found.guesses_secret ? p.labels.findIndex((label) => shown(label) === shown(found.guess)) : null;
    const marks = { answer: p.same_answers ? state.answer : null, guess };
    return ["labels", found.belief, marks, `After the answer ${shown(p.answers[state.answer])}: what the attacker who ${found.name} believes. Her best guess is ${shown(found.guess)}.${p.same_answers ? " Choose another answer in the picture." : ""}`];
  },
  sent: (p) => {
    const at = Math.min(Number($("step").value), state.sent.length) - 1;
    const step = state.sent[at];
    $("step-out").textContent = `${at + 1} of ${state.sent.length}`;
    const marks = { secret: step.secret, answer: p.same_answers ? step.answer : null };
    const spent = step.epsilon === null ? "" : ` ε spent so far: ${asEpsilon(step.epsilon, { anyPair: step.any_pair })}.`;
    return ["labels", step.belief, marks, `After ${at + 1} ${at ? "answers" : "answer"} (the last: ${shown(p.answers[step.answer])}) an attacker is ${asError(step.error)} off on average.${spent}`];
  },
};

function pick(i) {
  const { problem } = state;
  cursor = i;
  if (!state.result) return;
  if (chosen("view") === "beliefs") {
    state.answer = problem.same_answers ? i : state.answer;
  } else if (chosen("view") === "answers" && !problem.same_answers) {
    state.answer = i;
    choose("view", "beliefs");
  } else {
    state.secret = i;
    state.samples = [];
    choose("view", "answers");
  }
  refresh();
}

function keys(event) {
  const { problem } = state;
  if (!problem) return;
  const wide = problem.grid && problem[$("picture").dataset.axis].length === problem.labels.length ? problem.grid.columns : 1;
  const count = problem[$("picture").dataset.axis].length;
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: wide, ArrowDown: -wide, Home: -cursor, End: count - 1 - cursor };
  if (event.key in moves) {
    cursor = Math.max(0, Math.min(count - 1, cursor + moves[event.key]));
    draw();
  } else if (event.key === "Enter" || event.key === " ") pick(cursor);
  else return;
  event.preventDefault();
}

async function drop() {
  const { problem, result } = state;
  try {
    const drawn = await post(`mechanisms/${result.id}/sample`, { secret: problem.labels[state.secret], count: DROPPED });
    const names = problem.answers.map(shown);
    state.samples = drawn.answers.map((answer) => names.indexOf(shown(answer)));
    choose("view", "answers");
    await refresh();
  } catch (error) { $("picture-says").textContent = error.message; }
}

async function send(times) {
  const { problem, result } = state;
  const body = times ? { secret: problem.labels[state.secret], times } : {};
  try {
    state.sent = (await post(`mechanisms/${result.id}/send`, body)).steps;
    $("step").max = state.sent.length;
    $("step").value = state.sent.length;
    choose("view", "sent");
    await refresh();
  } catch (error) { $("picture-says").textContent = error.message; }
}
