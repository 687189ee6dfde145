// Sets up the parts; keeps settings (never data) in the address; forgets everything when the page is closed.
import { ask, onTokenNeeded, useToken } from "./api.js";
import { describe, recallAdversaries, setUpControls, ticked } from "./controls.js";
import { setUpDesigns } from "./designs.js";
import { setUpExplanation } from "./explanation.js";
import { drawFrontier, setUpFrontier } from "./frontier.js";
import { setUpMap } from "./map.js";
import { setUpMapLayers } from "./map_layers.js";
import { draw, setUpPicture } from "./picture.js";
import { setUpPolicies } from "./policies.js";
import { drawStatistics, setUpProtect } from "./protect.js";
import { $, choose, chosen, isDark, on, state } from "./shared.js";
import { setUpUse } from "./use.js";
import { load, setUpSources, showPanel } from "./sources.js";

const VALUES = ["person", "seed", "columns", "rows", "cost", "age-from", "age-to", "age-shape", "error", "cost-limit", "epsilon", "share", "worst-cost", "within", "policy-budget", "matters"];
const TICKS = ["with-epsilon", "with-within", "auto"];
const CHOICES = ["source", "secrets", "goal", "cost-case"];

function remember() {
  // Settings only: no label, no name, no file ever gets into the address.
  const address = new URLSearchParams();
  for (const name of CHOICES) address.set(name, chosen(name));
  for (const id of VALUES) address.set(id, $(id).value);
  for (const id of TICKS) address.set(id, $(id).checked ? "1" : "0");
  if (state.problem) address.set("against", ticked().join(" ")); // "home", "side": kinds of adversaries, not their names
  if (document.documentElement.dataset.chosen) address.set("theme", document.documentElement.dataset.theme);
  history.replaceState(null, "", `#${address}`);
}

function recall() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const name of CHOICES) if (address.has(name)) choose(name, address.get(name));
  for (const id of VALUES) if (address.has(id)) { const before = $(id).value; $(id).value = address.get(id); if (!$(id).value) $(id).value = before; }
  for (const id of TICKS) if (address.has(id)) $(id).checked = address.get(id) === "1";
  recallAdversaries((address.get("against") ?? "").split(" "));
  const theme = address.get("theme");
  if (theme === "dark" || theme === "light") { document.documentElement.dataset.chosen = "1"; return theme; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
  drawFrontier();
  drawStatistics();
}

const parts = [
  setUpControls,
  setUpDesigns,
  setUpMap,
  setUpMapLayers,
  setUpPicture,
  setUpFrontier,
  setUpPolicies,
  setUpExplanation,
  setUpProtect,
  setUpUse,
  setUpSources,
];
on("problem", (problem) => { state.problem = problem; });
parts.forEach((setUp) => setUp());
applyTheme(recall());
$("cost-cases").open = chosen("cost-case") !== "average";
showPanel();
on("settings", remember);
document.addEventListener("change", remember);
$("theme").addEventListener("click", () => { document.documentElement.dataset.chosen = "1"; applyTheme(isDark() ? "light" : "dark"); remember(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => { if (!document.documentElement.dataset.chosen) applyTheme(event.matches ? "dark" : "light"); });
onTokenNeeded(() => { $("token-form").hidden = false; $("token").focus(); });
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken($("token").value);
  $("token").value = "";
  $("token-form").hidden = true;
  load();
});
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { draw(); drawFrontier(); drawStatistics(); }, 150); });
addEventListener("pagehide", () => { if (state.names.size) ask("POST", "forget", { ids: [...state.names].slice(-1000) }, { keepalive: true }).catch(() => {}); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
describe();
load();
