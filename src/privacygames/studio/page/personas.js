// Four jobs to start from: each sets the source, the cost and the bounds, and says what to do next.
import { resetControls } from "./controls.js";
import { $, choose, element } from "./shared.js";
import { load, showPanel } from "./sources.js";

const PERSONAS = [
  {
    name: "Diagnoses in a hospital", choices: { source: "categories", goal: "privacy" }, values: {},
    next: ["These diagnoses are invented: type yours in step 1, with how many patients have each, or choose “My data” there and your table.", "Read what is in red: an output may claim an illness that somebody does not have. Use outputs for statistics only.", "Under “Protect a file”, replace the diagnoses of a whole table, and see what can still be counted."],
  },
  {
    name: "A journalist's GPS track", choices: { source: "own", secrets: "points", goal: "privacy" }, values: { columns: 12, rows: 8 },
    next: ["Choose your track in step 1: GPX, KML, GeoJSON and others. It stays on this machine.", "Say how far off a reader should be at least; under the control are distances that laws call precise.", "Choose any point of the map to see what would be published in its place, then protect the file."],
  },
  {
    name: "A teacher with ages", choices: { source: "ages", goal: "privacy" }, values: { "age-from": 10, "age-to": 19, "age-shape": "even", cost: "apart" },
    next: ["Set the youngest and the oldest age in step 1, or choose “My data” there and your table of pupils.", "Choose an age in the picture: the bars are the ages that may be given in its place, near ones most often.", "Too far off, or too near? Move the first control, or choose “Usefulness first”. Then protect the file."],
  },
  {
    name: "Visits to shops", choices: { source: "own", secrets: "cells", goal: "use" }, values: { columns: 12, rows: 8, cost: "apart" },
    next: ["Choose your table of visits in step 1; without one at hand, choose “Synthetic city”.", "Say how far an output may be from the shop on average: you get as much privacy as there is for that.", "Draw the trade-off to see what more privacy would cost."],
  },
];

export function setUpPersonas() {
  $("persona-list").append(...PERSONAS.map((persona) => element("button", { type: "button", "aria-pressed": "false", onclick: (event) => start(persona, event.currentTarget) }, persona.name)));
}

function start({ name, choices, values, next }, button) {
  for (const [group, value] of Object.entries(choices)) choose(group, value);
  for (const [id, value] of Object.entries(values)) $(id).value = value;
  for (const each of $("persona-list").children) each.setAttribute("aria-pressed", String(each === button));
  resetControls();
  $("persona-next").hidden = false;
  $("persona-next").replaceChildren(element("p", {}, `${name}: everything below is set. What to do next:`), element("ol", {}, ...next.map((sentence) => element("li", {}, sentence))));
  showPanel();
  load();
  document.dispatchEvent(new Event("change")); // the address remembers the new settings
}
