// The explanation of a result, warnings first, and its exports.
import { ask, get } from "./api.js";
import { exportedPicture } from "./picture.js";
import { $, element, on, save, say, state } from "./shared.js";

const PIXEL_RATIO = 2; // of exported pictures, so that they are sharp on any screen
const SHAREABLE = ["shareable-toml", "shareable-report"]; // exports that there are only for cells and labels
const OF_DESIGNS = ["toml", "python", ...SHAREABLE]; // exports that need the problem file

export function setUpExplanation() {
  on("result", (view) => { explain(view); showRecipe(view); });
  on("problem", clear);
  on("cleared", clear);
  on("loading", () => enable(false)); // the result may be about somebody else's data
  document.querySelectorAll("[data-export]").forEach((button) => button.addEventListener("click", () => exportFile(button.dataset.export)));
}

function clear() {
  // Remove the earlier mechanism, so that nothing of it can be exported any more.
  $("explanation").replaceChildren(element("p", { class: "muted" }, "Design something first."));
  $("recipe").hidden = $("recipe-none").hidden = true;
  $("command").textContent = $("python").textContent = "";
  say("export-error", "");
  enable(false);
}

function explain(view) {
  const sentences = (severity) => view.findings.filter((finding) => finding.severity === severity).map((finding) => finding.text);
  const [first, ...others] = sentences("information");
  const certificate = element("dl");
  for (const [name, value] of view.certificate_rows) certificate.append(element("dt", {}, name), element("dd", {}, value));
  $("explanation").replaceChildren(
    ...sentences("danger").map((text) => element("p", { class: "danger" }, element("strong", {}, "Warning: "), text)),
    ...sentences("warning").map((text) => element("p", { class: "note" }, text)),
    element("p", { class: "lead" }, first),
    element("ul", {}, ...others.map((text) => element("li", {}, text))),
    element("h3", {}, "What it does not mean"),
    element("ul", {}, ...sentences("limitation").map((text) => element("li", {}, text))),
    element("details", {}, element("summary", {}, "The certificate"), certificate),
  );
}

function enable(any, ofDesigns = any) {
  document.querySelectorAll("[data-export]").forEach((button) => { button.disabled = !any || (OF_DESIGNS.includes(button.dataset.export) && !ofDesigns); });
}

async function showRecipe(view) {
  say("export-error", "");
  enable(true, view.reproducible);
  if (view.kind === "points") for (const key of SHAREABLE) document.querySelector(`[data-export="${key}"]`).disabled = true;
  document.querySelector('[data-export="device"]').disabled = view.epsilon === null; // a device verifies ε
  document.querySelectorAll("[data-export]").forEach((button) => { button.title = view.exports[button.dataset.export].disclosure; });
  $("recipe").hidden = !view.reproducible;
  $("recipe-none").hidden = view.reproducible;
  if (!view.reproducible) return;
  try {
    const recipe = await get(`mechanisms/${view.id}/recipe`);
    if (state.result !== view) return;
    $("command").textContent = recipe.command;
    $("python").textContent = recipe.python;
  } catch (error) { say("export-error", error.message); }
}

async function exportFile(key) {
  const { result } = state;
  if (!result) return;
  say("export-error", "");
  const text = (content, type) => new Blob([content], { type });
  const { disclosure } = result.exports[key];
  try {
    let content;
    if (key in ROUTES) content = await ask("GET", `mechanisms/${result.id}/${ROUTES[key]()}`, undefined, { bytes: true });
    else if (key === "certificate") content = text(JSON.stringify({ disclosure, ...result.certificate }, null, 2), "application/json");
    else if (key === "svg") content = text(currentPicture(disclosure).text, "image/svg+xml");
    else if (key === "png") content = await currentPixels();
    else content = text((await get(`mechanisms/${result.id}/recipe`))[key], "text/plain");
    if (state.result === result) save(content, result.exports[key].name); // unless another result was chosen meanwhile
  } catch (error) { say("export-error", error.message); }
}

const ROUTES = {
  file: () => "file",
  device: () => "device",
  report: () => `report?counts=${$("with-counts").checked}`,
  "shareable-toml": () => "shareable/problem",
  "shareable-report": () => "shareable/report",
};

function currentPicture(disclosure = "") {
  const copy = exportedPicture();
  const [x, y, width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, fill: getComputedStyle(document.querySelector(".card")).backgroundColor })) background.setAttribute(name, value);
  const metadata = document.createElementNS("http://www.w3.org/2000/svg", "metadata");
  metadata.textContent = disclosure;
  copy.prepend(metadata, background);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function currentPixels() {
  const { text, width, height } = currentPicture();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = PIXEL_RATIO * width;
    canvas.height = PIXEL_RATIO * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  } finally { URL.revokeObjectURL(address); }
}
