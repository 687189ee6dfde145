// Shared by the parts of the page: the state, numbers with their units, and small helpers.
import { post } from "./api.js";

export const $ = (id) => document.getElementById(id);
export const state = { problem: null, loaded: false, result: null, results: [], secret: null, place: null, output: null, names: new Set(), held: new Set(), releases: null, samples: [] };

// "answers" and "same_answers" are the keys of the HTTP API for outputs.
export const outputLabels = (problem) => problem.answers;
export const outputsAreSecrets = (problem) => problem.same_answers;
export const labelsAlong = (problem, axis) => (axis === "outputs" ? outputLabels(problem) : problem.labels);

// `names` are those of everything on the server; those in `held` outlive the problem that was made from them.
export function forget(ids) {
  ids.forEach((id) => state.names.delete(id));
  if (ids.length) post("forget", { ids }).catch(() => {});
}

const listeners = {};
export const on = (event, act) => { (listeners[event] ??= []).push(act); };
export const emit = (event, value) => { for (const act of listeners[event] ?? []) act(value); };

export const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;
export function choose(name, value) {
  const input = document.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`);
  if (input) input.checked = true;
}

export function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value === "inf" || !Number.isFinite(Number(value))) return "∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  return String(size < 0.01 ? Number(value.toPrecision(2)) : Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)));
}
export function twoDigits(value, round) {
  // Round to two significant digits: with Math.floor at most the value, with Math.ceil at least the value.
  if (!(value > 0)) return 0;
  const places = 1 - Math.floor(Math.log10(value));
  const whole = round(Number((value * 10 ** places).toPrecision(12)));
  return Number((whole / 10 ** places).toPrecision(2));
}
export const percent = (share) => (share === 0 ? "0\u00a0%" : share > 0 && share < 0.001 ? "<0.1\u00a0%" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}\u00a0%`);
const RAISED = { 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
export const power = (value) => (value > 1e4 ? (Number.isFinite(value) ? `10${[...String(Math.round(Math.log10(value)))].map((each) => RAISED[each]).join("")}` : "10³⁰⁸") : digits(value));
export function inUnit(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "km") return value < 0.995 ? `${Math.round(1000 * value)}\u00a0m` : `${digits(value)}\u00a0km`;
  if (unit && Number(digits(value)) === 1) return `1\u00a0${unit.replace(/s$/, "")}`;
  return unit ? `${digits(value)}\u00a0${unit}` : digits(value);
}
const measured = (value, name, unit) => (value === null ? "–" : name === "hamming" ? percent(value) : inUnit(value, unit));
export const asError = (value, p = state.problem) => measured(value, p.measures.distance, p.units.distance);
export const wrongOr = (off, p = state.problem) => (p.measures.distance === "hamming" ? "wrong" : off);
export const asCost = (value, p = state.problem) => measured(value, p.measures.cost, p.units.cost);
export function asEpsilon(value, { within, anyPair, p = state.problem } = {}) {
  // ε with its unit, followed by the largest log-ratio between any two secrets.
  if (within === undefined && !p.units.distinguishability && p.epsilon.near === p.epsilon.farthest) return `${digits(value)} between any two secrets`; // all equally far apart
  const per = within === undefined ? ` ${p.units.epsilon}` : ` between secrets at most ${inUnit(within, p.units.distinguishability)} apart`;
  const farthest = anyPair === undefined ? "" : `; ${digits(anyPair ?? "inf")} ${p.kind === "points" ? "however far apart" : "between any two secrets"}`;
  return `${digits(value)}${per}${farthest}`;
}
export const shown = (label) => (Array.isArray(label) ? `{${label.join(", ")}}` : String(label));

export function say(id, message) {
  $(id).textContent = message ?? "";
  $(id).hidden = !message;
}
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
export const isDark = () => document.documentElement.dataset.theme === "dark";
export function palette() {
  return isDark()
    ? { low: [29, 37, 46], high: [142, 197, 255], ink: "#e7ebef", soft: "#a4aeb8", line: "#374049", card: "#1b2127", mark: "#ffb000", accent: "#8ec5ff" }
    : { low: [243, 246, 250], high: [8, 60, 122], ink: "#1b1f24", soft: "#545d67", line: "#d5dae0", card: "#ffffff", mark: "#d94f00", accent: "#0b4f8a" };
}
export function heat(share) {
  // Values are shown by lightness alone, for colour-blind readers; the square root makes small values visible.
  const { low, high } = palette();
  const at = Math.sqrt(Math.max(0, Math.min(1, share)));
  return `rgb(${low.map((from, i) => Math.round(from + at * (high[i] - from))).join(",")})`;
}
export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
export const pictureWidth = () => Math.max(340, Math.min(760, Math.round($("picture").clientWidth) || 720));
