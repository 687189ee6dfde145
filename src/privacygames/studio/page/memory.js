// What survives a reload and a shared link: settings, in the address. Data never do; what a file was called stays in this tab.
import { recallAdversaries, recallControls, typedValues, wantedAdversaries } from "./controls.js";
import { $, choose, chosen, on, say, state } from "./shared.js";

const VALUES = ["person", "seed", "columns", "rows", "cost", "age-from", "age-to", "age-shape", "error", "cost-limit", "epsilon", "share", "worst-cost", "within", "policy-budget", "matters"];
const TICKS = ["with-epsilon", "with-within", "auto"];
const CHOICES = ["source", "secrets", "goal", "cost-case"];
const FILES = { own: "traces", file: "document" }; // sources whose data are chosen files, and their fields
let view = null; // of the picture, until there is a result to show it for

export function setUpMemory() {
  on("settings", remember);
  document.addEventListener("change", remember);
  on("result", () => {
    if (!view) return;
    const input = document.querySelector(`input[name="view"][value="${CSS.escape(view)}"]`);
    view = null;
    if (input && input.value !== "releases" && !input.checked) { input.disabled = false; input.click(); }
  });
  on("files", (names) => keepName("traces", names));
  $("document").addEventListener("change", () => keepName("document", [...$("document").files].map((file) => file.name)));
  $("labels").addEventListener("change", () => { sessionStorage.setItem("labels", "typed"); say("restored", ""); });
  document.querySelectorAll('input[name="source"]').forEach((input) => input.addEventListener("change", () => say("restored", "")));
}

function keepName(field, names) {
  if (names.length) sessionStorage.setItem(field, names.join(", ")); // for as long as this tab is open, and nowhere else
  say("restored", "");
}

export function remember() {
  // Settings only: no label, no name, no file ever gets into the address.
  const address = new URLSearchParams();
  for (const name of CHOICES) address.set(name, chosen(name));
  for (const id of VALUES) if ($(id).value !== "") address.set(id, $(id).value);
  for (const id of TICKS) address.set(id, $(id).checked ? "1" : "0");
  address.set("against", wantedAdversaries().join(" ")); // "home", "side": kinds of adversaries, not their names
  if (state.result) address.set("view", chosen("view"));
  if (chosen("source") !== "file") for (const [id, value] of Object.entries(typedValues())) address.set(`${id}-typed`, value); // a file has its own
  if (document.documentElement.dataset.chosen) address.set("theme", document.documentElement.dataset.theme);
  history.replaceState(null, "", `#${address}`);
}

export function recall() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const name of CHOICES) if (address.has(name)) choose(name, address.get(name));
  for (const id of VALUES) if (address.has(id)) { const before = $(id).value; $(id).value = address.get(id); if (!$(id).value) $(id).value = before; }
  for (const id of TICKS) if (address.has(id)) $(id).checked = address.get(id) === "1";
  recallAdversaries((address.get("against") ?? "").split(" "));
  recallControls(address);
  view = address.get("view");
  if (address.has("source")) sayWhatIsMissing();
  const theme = address.get("theme");
  if (theme === "dark" || theme === "light") { document.documentElement.dataset.chosen = "1"; return theme; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function sayWhatIsMissing() {
  // Settings came back without their data: say so, and what to choose again.
  const source = chosen("source");
  const field = FILES[source];
  const name = field && sessionStorage.getItem(field);
  if (field) say("restored", `Your settings are back; the data are not, because they are never stored. Choose the file again${name ? `: it was called “${name}”` : ""}.`);
  else if (source === "categories" && sessionStorage.getItem("labels")) say("restored", "Your settings are back; the categories you typed are not, because data are never stored. Type or paste them again.");
}
