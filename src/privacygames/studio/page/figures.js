// Pictures to take away: with a title, a legend and a note in them, so that they can be read without the page.
import { palette, save, svg } from "./shared.js";

const [TITLE, LINE, MARGIN] = [16, 20, 16]; // font size of titles, height of a line, and the margin around everything
const FONT = "system-ui, sans-serif";

export function framed(picture, { title, legend = [], note = "" }) {
  // A copy of a picture with a title above it and a legend below it, as one SVG; gives its text and its size.
  const [x, y, width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const colours = palette();
  const lines = wrapped(title, width / (0.54 * TITLE));
  const rows = placed(legend, width);
  const [above, below] = [lines.length * (LINE + 4) + 8, (rows.at(-1)?.row ?? -1) * LINE + LINE + (note ? LINE + 6 : 0) + 8];
  const copy = picture.cloneNode(true);
  const box = [x - MARGIN, y - above - MARGIN, width + 2 * MARGIN, height + above + below + 2 * MARGIN];
  for (const [name, value] of Object.entries({ viewBox: box.join(" "), width: box[2], height: box[3] })) copy.setAttribute(name, value);
  copy.removeAttribute("style");
  const words = (at, down, text, size, fill) => {
    const node = svg("text", { x: at, y: down, fill, "font-size": size, "font-family": FONT });
    node.textContent = text;
    return node;
  };
  copy.append(...lines.map((line, i) => words(x, y - above + 14 + i * (LINE + 4), line, TITLE, colours.ink)));
  for (const { at, row, shape, text } of rows) {
    const down = y + height + 6 + row * LINE;
    copy.append(svg("g", { transform: `translate(${x + at} ${down})` }, shape.cloneNode(true)), words(x + at + 22, down + 13, text, 13.5, colours.soft));
  }
  if (note) copy.append(words(x, y + height + below - 4, note, 12, colours.soft));
  const metadata = svg("metadata");
  metadata.textContent = note;
  copy.prepend(metadata, svg("rect", { x: box[0], y: box[1], width: box[2], height: box[3], fill: colours.card }));
  return { text: new XMLSerializer().serializeToString(copy), width: box[2], height: box[3] };
}

export function exportPicture(picture, name, labels) {
  save(new Blob([framed(picture, labels).text], { type: "image/svg+xml" }), name);
}

function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if ((lines.at(-1) + word).length > most && lines.at(-1)) lines.push("");
    lines[lines.length - 1] += `${lines.at(-1) ? " " : ""}${word}`;
  }
  return lines;
}

function placed(legend, width) {
  // Entries side by side, in as many rows as they need.
  const rows = [];
  let [at, row] = [0, 0];
  for (const [shape, text] of legend) {
    const wide = 22 + 7.4 * text.length + 18;
    if (at && at + wide > width) [at, row] = [0, row + 1];
    rows.push({ at, row, shape, text });
    at += wide;
  }
  return rows;
}
