// The card "Use it": one answer for what is true now, or one after the other on a ledger of this machine.
import { get, post } from "./api.js";
import { setUpDaily, showDaily } from "./daily.js";
import { $, asError, chosen, element, emit, inUnit, on, outputLabels, say, shown, state, wrongOr } from "./shared.js";
import { askFor, mapOf, middle, outputText, setUpTruth, truth } from "./truth.js";

const HOPELESS = 1e4; // odds that may shift by more than this are not limited in any useful way
const roundedUp = (factor) => String(factor < 100 ? Math.ceil(100 * factor) / 100 : Math.ceil(factor)); // never less than it is

export function setUpUse() {
  setUpTruth(() => { say("use-error", ""); hideAnswer(); emit("truth"); });
  document.querySelectorAll('input[name="use"]').forEach((each) => each.addEventListener("change", show));
  $("use-answer").addEventListener("click", answer);
  $("copy-answer").addEventListener("click", copy);
  on("result", () => { hideAnswer(); show(); });
  on("problem", () => { tellVersion(); hideAnswer(); show(); });
  on("cleared", () => { hideAnswer(); askFor(null); show(); });
  setUpDaily(showOutput);
  tellVersion();
}

function tellVersion() {
  if ($("version").textContent) return; // asked again once the token was given
  get("about").then(({ version, ledgers }) => {
    $("version").textContent = version;
    $("use-modes").hidden = !ledgers;
  }).catch(() => {});
}

function show() {
  const daily = chosen("use") === "daily";
  say("use-error", "");
  hideAnswer();
  $("daily").hidden = !daily;
  $("use-once").hidden = daily;
  $("use-about").textContent = daily
    ? "Outputs day after day, each charged to a budget before you see it, so that they never reveal more together than you allow."
    : "Give what is true, and take away what may be told instead of it. Nothing of it is kept.";
  if (daily) { showDaily(); return; }
  askFor(state.result && state.problem ? mapOf(state.problem) : null);
  $("use-answer").disabled = !state.result;
  $("use-none").hidden = Boolean(state.result);
}

async function answer() {
  const { problem, result } = state;
  say("use-error", "");
  hideAnswer();
  try {
    const drawn = (await post(`mechanisms/${result.id}/sample`, truth())).answers[0];
    if (state.result !== result) return;
    showOutput(outputOf(problem, drawn), meaning(problem, result));
    $("answer").scrollIntoView({ block: "nearest" });
  } catch (error) {
    if (error.status === "NOT_FOUND") emit("expired");
    say("use-error", error.message);
  }
}

function outputOf(problem, drawn) {
  // An output with its coordinates: the middle of its cell, or one of the fixed points.
  if (problem.kind === "points") return { ...drawn, text: drawn.label };
  const cell = outputLabels(problem).findIndex((label) => shown(label) === shown(drawn));
  if (!problem.grid || !problem.same_answers) return { text: shown(drawn) };
  const { box, columns, rows, width, height } = problem.grid;
  const [x, y] = middle(problem.grid, cell);
  const size = { text: shown(drawn), width: width / columns, height: height / rows };
  if (!box) return { ...size, x, y };
  const [west, south, east, north] = box;
  return { ...size, latitude: south + (y / height) * (north - south), longitude: west + (x / width) * (east - west) };
}

function meaning(problem, result) {
  const what = problem.kind === "points" ? "points" : problem.grid ? "cells" : "secrets";
  const { farthest } = problem.epsilon;
  const unit = problem.units.distinguishability;
  const near = problem.kind === "points" ? 1 : problem.epsilon.near; // 1 km, or whatever the unit is
  const within = result.settings?.bounds?.within;
  const apart = within !== undefined ? `two ${what} at most ${inUnit(within, unit)} apart` : unit || near !== farthest ? `two ${what} ${inUnit(near, unit)} apart` : `any two ${what}`;
  const factor = Math.exp(result.epsilon * (within !== undefined ? 1 : near));
  const odds = result.epsilon === null ? "" : factor > HOPELESS
    ? "this answer hardly limits how far somebody's odds shift"
    : `whatever somebody knows, this answer shifts their odds between ${apart} by at most ${roundedUp(factor)}×`;
  const error = `with their best guess, somebody who knows your habits is still ${asError(result.distortion, problem)} ${wrongOr("off", problem)} on average`;
  const sentence = [odds, error].filter(Boolean).join("; ");
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}. A second answer would tell more: share this one, or change to “Every day”.`;
}

function hideAnswer() {
  $("answer").hidden = true;
  $("answer-text").value = $("answer-about").textContent = $("answer-means").textContent = $("answer-copied").textContent = "";
  $("answer-geo").removeAttribute("href");
}

function showOutput(output, means) {
  const onEarth = output.latitude !== undefined;
  const plane = output.x !== undefined && !onEarth;
  $("answer").hidden = false;
  $("answer-text").value = outputText(output);
  const where = plane ? "Kilometres east and north. " : "";
  const cell = output.width === undefined ? (onEarth || plane ? "One of the fixed points that outputs are." : "") : `The middle of a cell of ${inUnit(output.width, "km")} × ${inUnit(output.height, "km")}.`;
  $("answer-about").textContent = `${where}${cell}`;
  $("answer-means").textContent = means;
  $("answer-geo").hidden = !onEarth;
  if (onEarth) $("answer-geo").href = `geo:${output.latitude.toFixed(5)},${output.longitude.toFixed(5)}`;
}

async function copy() {
  const text = $("answer-text").value;
  let copied = false;
  try {
    await navigator.clipboard.writeText(text); // only where the page is secure and allowed to
    copied = true;
  } catch {
    const field = element("textarea", { readonly: "", "aria-hidden": "true", class: "off" });
    field.value = text;
    document.body.append(field);
    field.select();
    copied = document.execCommand("copy"); // older, and allowed after a press everywhere
    field.remove();
  }
  $("copy-answer").focus();
  $("answer-copied").textContent = copied ? "Copied." : "Your browser does not allow it: mark the answer and copy it by hand.";
}
