// Sets up the parts; keeps settings (never data) in the address; forgets everything when the page is closed.
import { ask, onTokenNeeded, useToken } from "./api.js";
import { describe, setUpControls } from "./controls.js";
import { setUpDesigns } from "./designs.js";
import { setUpExplanation } from "./explanation.js";
import { drawFrontier, setUpFrontier } from "./frontier.js";
import { setUpMap } from "./map.js";
import { setUpMapLayers } from "./map_layers.js";
import { recall, remember, setUpMemory } from "./memory.js";
import { setUpPersonas } from "./personas.js";
import { draw, setUpPicture } from "./picture.js";
import { setUpPolicies } from "./policies.js";
import { drawStatistics, setUpProtect } from "./protect.js";
import { $, chosen, isDark, on, state } from "./shared.js";
import { setUpUse } from "./use.js";
import { load, setUpSources, showPanel } from "./sources.js";
import { setUpTerms } from "./terms.js";
import { setUpTour } from "./tour.js";

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
  setUpTerms,
  setUpTour,
  setUpPersonas,
  setUpMemory,
  setUpSources,
];
on("problem", (problem) => { state.problem = problem; });
parts.forEach((setUp) => setUp());
applyTheme(recall());
$("cost-cases").open = chosen("cost-case") !== "average";
showPanel();
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
