// The words of the field, explained where they stand: a button in the text opens the explanation below its paragraph.
import { element, on } from "./shared.js";

const MEANINGS = {
  secret: "What you do not want to tell as it is: a place, an age, a diagnosis. Each value it can have is one secret.",
  output: "What is given away in place of the secret. It is drawn at random; how likely each output is depends on the secret.",
  prior: "How common each secret is: what somebody who knows your habits, or the statistics, believes before any output.",
  epsilon: "ε limits how far an output can change anybody's mind: at most by a factor of e to the power of ε between two secrets, counted per kilometre or year between them where there is a distance. A smaller ε is more privacy, and it holds whatever somebody knows already.",
  adversary: "Somebody who sees outputs, knows how common each secret is and how outputs are drawn, and makes the best guess there is. Also called an attacker.",
  distortion: "The adversary's error: how far off their best guess is on average, or how often it is wrong. A larger error is more privacy. Papers call it distortion, or distortion privacy.",
  mechanism: "The table by which outputs are drawn: for each secret, how likely each output is.",
  odds: "How much likelier one secret is than another, for somebody who guesses. Odds of 3 to 1 that become 6 to 1 have shifted by a factor of 2.",
};
const WORDS = { secret: "secret", secrets: "secret", output: "output", outputs: "output", prior: "prior", ε: "epsilon", adversary: "adversary", adversaries: "adversary", attacker: "adversary", attack: "adversary", distortion: "distortion", error: "distortion", mechanism: "mechanism", mechanisms: "mechanism", odds: "odds" };
const FINDER = new RegExp(`(?<![\\p{L}\\d])(${Object.keys(WORDS).join("|")})(?![\\p{L}\\d])`, "iu");
const CARDS = ["h-source", "h-controls", "h-picture", "h-explanation", "h-frontier", "h-policies"];
let count = 0;

export function setUpTerms() {
  for (const heading of CARDS) {
    const seen = new Set();
    document.querySelectorAll(`[aria-labelledby="${heading}"] > p.muted:not([id]), [aria-labelledby="${heading}"] > .control > p.muted:not([id])`).forEach((paragraph) => explainWords(paragraph, seen));
  }
  on("result", () => { const seen = new Set(); document.querySelectorAll("#explanation .lead, #explanation li").forEach((each) => explainWords(each, seen)); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const open = event.target.closest?.(".definition")?.id ?? event.target.getAttribute?.("aria-controls");
    const button = open && document.querySelector(`.term[aria-controls="${open}"][aria-expanded="true"]`);
    if (button) { button.click(); button.focus(); }
  });
}

export function explainWords(block, seen = new Set()) {
  // Turn the first occurrence of each word into a button, once for everything that shares `seen`.
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("button, label, code, .definition")) texts.push(walker.currentNode);
  for (let text of texts) {
    for (let rest = text; rest;) {
      const match = FINDER.exec(rest.data);
      if (!match) break;
      const word = rest.splitText(match.index);
      rest = word.splitText(match[0].length);
      const key = WORDS[match[0].toLowerCase()];
      if (seen.has(key)) continue;
      seen.add(key);
      word.replaceWith(termButton(match[0], key, block));
    }
  }
}

function termButton(text, key, block) {
  const id = `definition-${(count += 1)}`;
  const button = element("button", { type: "button", class: "term", "aria-expanded": "false", "aria-controls": id }, text);
  const place = element("span", { id });
  place.hidden = true;
  block.append(place); // there before it is opened, so that the button's control exists
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    place.hidden = !open;
    place.className = open ? "definition" : "";
    place.setAttribute("role", "note");
    const close = element("button", { type: "button", "aria-label": `Close the explanation of ${text}`, onclick: () => { button.click(); button.focus(); } }, "✕");
    place.replaceChildren(...(open ? [close, MEANINGS[key]] : []));
  });
  return button;
}
