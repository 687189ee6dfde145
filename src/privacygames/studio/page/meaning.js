// In words, warnings first; and what one takes away.
import { ask, get } from "./api.js";
import { $, element, on, save, say, state } from "./shared.js";

const PIXELS = 2;
const AGAIN = ["toml", "python", "shareable-toml", "shareable-report"]; // of what was designed here

export function setUpMeaning() {
  on("result", (view) => { words(view); recipe(view); });
  on("problem", empty);
  on("cleared", empty);
  on("loading", () => enable(false)); // what is there may be somebody else's
  document.querySelectorAll("[data-take]").forEach((each) => each.addEventListener("click", () => take(each.dataset.take)));
}

function empty() {
  // Nothing of the mechanism before is left to be taken away.
  $("words").replaceChildren(element("p", { class: "soft" }, "Design something first."));
  $("recipe").hidden = $("recipe-none").hidden = true;
  $("command").textContent = $("python").textContent = "";
  say("away-error", "");
  enable(false);
}

function words(view) {
  const certificate = element("dl");
  for (const [name, value] of view.certificate_rows) certificate.append(element("dt", {}, name), element("dd", {}, value));
  $("words").replaceChildren(
    ...view.warnings.map((text) => element("p", { class: "note" }, text)),
    element("p", { class: "lead" }, view.words[0]),
    element("ul", {}, ...view.words.slice(1).map((text) => element("li", {}, text))),
    element("h3", {}, "What it does not mean"),
    element("ul", {}, ...view.not_promised.map((text) => element("li", {}, text))),
    element("details", {}, element("summary", {}, "The certificate"), certificate),
  );
}

function enable(yes, again = yes) {
  document.querySelectorAll("[data-take]").forEach((each) => { each.disabled = !yes || (AGAIN.includes(each.dataset.take) && !again); });
}

async function recipe(view) {
  say("away-error", "");
  enable(true, view.reproducible);
  document.querySelectorAll("[data-take]").forEach((each) => { each.title = view.exports[each.dataset.take].disclosure; });
  $("recipe").hidden = !view.reproducible;
  $("recipe-none").hidden = view.reproducible;
  if (!view.reproducible) return;
  try {
    const found = await get(`mechanisms/${view.id}/recipe`);
    if (state.result !== view) return;
    $("command").textContent = found.command;
    $("python").textContent = found.python;
  } catch (error) { say("away-error", error.message); }
}

async function take(what) {
  const { result } = state;
  if (!result) return;
  say("away-error", "");
  const text = (content, kind) => new Blob([content], { type: kind });
  const { disclosure } = result.exports[what];
  try {
    let content;
    if (what in ROUTES) content = await ask("GET", `mechanisms/${result.id}/${ROUTES[what]()}`, undefined, { bytes: true });
    else if (what === "certificate") content = text(JSON.stringify({ disclosure, ...result.certificate }, null, 2), "application/json");
    else if (what === "svg") content = text(drawn(disclosure).text, "image/svg+xml");
    else if (what === "png") content = await png();
    else content = text((await get(`mechanisms/${result.id}/recipe`))[what], "text/plain");
    if (state.result === result) save(content, result.exports[what].name); // not of what was there before
  } catch (error) { say("away-error", error.message); }
}

const ROUTES = {
  file: () => "file",
  report: () => `report?counts=${$("with-counts").checked}`,
  "shareable-toml": () => "shareable/problem",
  "shareable-report": () => "shareable/report",
};

function drawn(disclosure = "") {
  const copy = document.querySelector("#picture svg").cloneNode(true);
  const [x, y, width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, fill: getComputedStyle(document.querySelector(".card")).backgroundColor })) paper.setAttribute(name, value);
  const told = document.createElementNS("http://www.w3.org/2000/svg", "metadata");
  told.textContent = disclosure;
  copy.prepend(told, paper);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function png() {
  const { text, width, height } = drawn();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = PIXELS * width;
    canvas.height = PIXELS * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => { canvas.toBlob(done, "image/png"); });
  } finally { URL.revokeObjectURL(address); }
}
