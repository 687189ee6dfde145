// "Show me around": a minute's walk through the page. It is no dialog: the page stays usable, and Escape closes it.
import { $ } from "./shared.js";

const STEPS = [
  ["h-personas", "Start here", "If one of these jobs is like yours, choose it: it sets everything below for you and says what to do next. Or go through the page yourself."],
  ["h-source", "What is secret", "Say what must not be told as it is: places, ages, categories. Try it with the invented data first. Files stay on this machine."],
  ["h-controls", "What you want", "Say how far off somebody who guesses should be, or how much change you can live with. Red parts of a control mean: privacy is gone, or nothing is told. Then press Design."],
  ["h-picture", "What it does", "Choose a place, an age or a category in the picture to see what would be given away in its place. “After an output” shows what somebody can conclude."],
  ["h-explanation", "What it means", "The result in sentences: what is proved, and what it does not mean. Read what is in red first. Words with dots below them explain themselves when you press them."],
  ["h-use", "Use it", "Give one true value and take away what may be told instead of it; or release day after day, with a budget that is counted."],
  ["h-protect", "Protect a file", "Replace a column of a whole table, and see what can still be read from it. Below are files to keep and to share: each says whether something about your data is in it."],
];
let step = 0;

export function setUpTour() {
  $("show-around").addEventListener("click", () => show(0));
  $("tour-next").addEventListener("click", () => (step + 1 < steps().length ? show(step + 1) : close()));
  $("tour-back").addEventListener("click", () => show(step - 1));
  $("tour-close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("tour").hidden && !event.defaultPrevented && !event.target.closest(".definition")) close(); });
}

const card = (id) => $(id)?.closest("section");
const steps = () => STEPS.filter(([id]) => card(id) && !card(id).hidden); // some cards are hidden for some data

function show(at) {
  const all = steps();
  step = Math.max(0, Math.min(all.length - 1, at));
  const [id, title, text] = all[step];
  document.querySelectorAll(".toured").forEach((each) => each.classList.remove("toured"));
  card(id).classList.add("toured");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  card(id).scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  $("tour").hidden = false;
  $("tour-title").textContent = `${title} (${step + 1} of ${all.length})`;
  $("tour-text").textContent = text;
  $("tour-back").disabled = step === 0;
  $("tour-next").textContent = step + 1 === all.length ? "Done" : "Next";
  $("tour-title").focus({ preventScroll: true });
}

function close() {
  document.querySelectorAll(".toured").forEach((each) => each.classList.remove("toured"));
  $("tour").hidden = true;
  $("show-around").focus();
}
