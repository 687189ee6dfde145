// Puts the parts together; keeps settings (never data) in the address; forgets everything when the page is closed.
import { ask, onTokenNeeded, useToken } from "./api.js";
import { setUpDesigns } from "./designs.js";
import { draw, setUpPicture } from "./explore.js";
import { drawFrontier, setUpFrontier } from "./frontier.js";
import { setUpMeaning } from "./meaning.js";
import { $, choose, chosen, isDark, on, state } from "./shared.js";
import { load, setUpSources, showPanel } from "./sources.js";
import { describe, recallAdversaries, setUpWishes, ticked } from "./wishes.js";

const VALUES = ["person", "seed", "columns", "rows", "cost", "age-from", "age-to", "age-shape", "error", "price", "epsilon", "share", "cap", "within"];
const TICKS = ["with-epsilon", "with-within", "auto"];
const CHOICES = ["what", "goal", "case"];

function remember() {
  // Settings only: no label, no name, no file ever gets into the address.
  const found = new URLSearchParams();
  for (const name of CHOICES) found.set(name, chosen(name));
  for (const id of VALUES) found.set(id, $(id).value);
  for (const id of TICKS) found.set(id, $(id).checked ? "1" : "0");
  if (state.problem) found.set("against", ticked().join(" ")); // "home", "side": kinds of adversaries, not their names
  if (document.documentElement.dataset.chosen) found.set("theme", document.documentElement.dataset.theme);
  history.replaceState(null, "", `#${found}`);
}

function recall() {
  const found = new URLSearchParams(location.hash.slice(1));
  for (const name of CHOICES) if (found.has(name)) choose(name, found.get(name));
  for (const id of VALUES) if (found.has(id)) { const before = $(id).value; $(id).value = found.get(id); if (!$(id).value) $(id).value = before; }
  for (const id of TICKS) if (found.has(id)) $(id).checked = found.get(id) === "1";
  recallAdversaries((found.get("against") ?? "").split(" "));
  const theme = found.get("theme");
  if (theme === "dark" || theme === "light") { document.documentElement.dataset.chosen = "1"; return theme; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function wear(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
  drawFrontier();
}

const before = [setUpWishes, setUpDesigns, setUpPicture, setUpFrontier, setUpMeaning, setUpSources];
on("problem", (problem) => { state.problem = problem; });
before.forEach((setUp) => setUp());
wear(recall());
$("cases").open = chosen("case") !== "average";
showPanel();
on("wishes", remember);
document.addEventListener("change", remember);
$("theme").addEventListener("click", () => { document.documentElement.dataset.chosen = "1"; wear(isDark() ? "light" : "dark"); remember(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => { if (!document.documentElement.dataset.chosen) wear(event.matches ? "dark" : "light"); });
onTokenNeeded(() => { $("token-form").hidden = false; $("token").focus(); });
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken($("token").value);
  $("token").value = "";
  $("token-form").hidden = true;
  load();
});
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { draw(); drawFrontier(); }, 150); });
addEventListener("pagehide", () => { if (state.names.size) ask("POST", "forget", { ids: [...state.names].slice(-1000) }, { keepalive: true }).catch(() => {}); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
describe();
load();
