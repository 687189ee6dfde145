// Pictures: the map of a grid, bars for numbers and categories, the matrix, the trace of errors. Plain SVG.
import { heat, labelsAlong, palette, percent, pictureWidth, shown, svg } from "./shared.js";

const MAX_HEIGHT = 560; // of a map, so that it fits on the screen
const [ROW_NAMES, COLUMN_NAMES, MATRIX] = [96, 26, 460]; // widths of the table's parts

export function picture(problem, axis, values, marks, pick, { samples = [], cursor = null } = {}) {
  // `axis` says what the cells of the picture are: "secrets" or "outputs".
  const labels = labelsAlong(problem, axis);
  const draw = problem.grid && labels.length === problem.labels.length ? map : bars;
  return draw(problem, labels, values, marks, pick, samples, cursor);
}

function cell(attributes, name, chosen, pick) {
  const node = svg("rect", { class: "cell", role: "option", "aria-label": name, "aria-selected": chosen, ...attributes });
  const title = svg("title");
  title.textContent = name;
  node.append(title);
  node.addEventListener("click", pick);
  return node;
}

function map(problem, labels, values, marks, pick, samples, cursor) {
  const { columns, rows, width, height } = problem.grid;
  const across = Math.round(Math.min(pictureWidth(), (MAX_HEIGHT * width) / height)); // so that a tall map fits on the screen, too
  const colours = palette();
  const tall = Math.round((across * height) / width);
  const [w, h] = [across / columns, tall / rows];
  const most = Math.max(...values, 1e-12);
  const at = (i) => [(i % columns) * w, tall - (Math.floor(i / columns) + 1) * h];
  const root = svg("svg", { viewBox: `-2 -2 ${across + 4} ${tall + 34}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
  root.style.maxWidth = `${across < pictureWidth() ? across + 4 : 4 * across}px`;
  values.forEach((value, i) => {
    const [x, y] = at(i);
    const name = `${shown(labels[i])}, column ${(i % columns) + 1}, row ${Math.floor(i / columns) + 1}: ${percent(value)}`;
    root.append(cell({ x, y, width: w, height: h, fill: heat(value / most), stroke: colours.line, "stroke-width": 0.7, id: `cell-at-${i}`, ...(i === cursor ? { class: "cell cursor" } : {}) }, name, Object.values(marks).includes(i), () => pick(i)));
  });
  for (const i of samples) {
    const [x, y] = at(i);
    root.append(svg("circle", { cx: x + w * (0.12 + 0.76 * Math.random()), cy: y + h * (0.12 + 0.76 * Math.random()), r: 3, fill: colours.mark, stroke: colours.card, "stroke-width": 0.8, "pointer-events": "none" }));
  }
  const placed = Object.entries(marks).filter(([, i]) => i !== null);
  for (const [kind, i] of placed) {
    const here = placed.filter(([, other]) => other === i); // side by side if several are in one cell
    const aside = ((here.findIndex(([other]) => other === kind) + 0.5) / here.length) * w;
    root.append(mark(kind, at(i)[0] + aside, at(i)[1] + h / 2, Math.min(18, Math.min(w, h) * 0.3) / Math.sqrt(here.length), colours));
  }
  scale(root, tall, across, across / width, colours);
  return root;
}

export function pointMap(problem, axis, values, marks, pick, { samples = [], cursor = null } = {}) {
  // A map of points: places or outputs as dots whose area and darkness is their probability. Any point can be chosen.
  const { width, height } = problem.map;
  const across = Math.round(Math.min(pictureWidth(), (MAX_HEIGHT * width) / height));
  const tall = Math.round((across * height) / width);
  const colours = palette();
  const dots = axis === "outputs" ? problem.outputs : problem.places;
  const at = ([x, y]) => [(x / width) * across, tall - (y / height) * tall];
  const most = Math.max(...values, 1e-12);
  const largest = Math.max(5, Math.min(16, 0.45 * Math.sqrt((across * tall) / dots.length)));
  const root = svg("svg", { viewBox: `-2 -2 ${across + 4} ${tall + 34}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
  root.style.maxWidth = `${across < pictureWidth() ? across + 4 : 4 * across}px`;
  const ground = svg("rect", { class: "ground", x: 0, y: 0, width: across, height: tall, fill: heat(0), stroke: colours.line });
  root.append(ground);
  values.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]).forEach(([value, i]) => { // small ones on top of large ones
    const [cx, cy] = at(dots[i]);
    const name = `${shown((axis === "outputs" ? problem.answers : problem.labels)[i])}: ${percent(value)}`;
    const dot = svg("circle", { class: "dot", role: "option", "aria-label": name, cx, cy, r: Math.max(2, largest * Math.sqrt(value / most)), fill: heat(value / most), stroke: colours.soft, "stroke-width": 0.8 });
    const title = svg("title");
    title.textContent = name;
    dot.append(title);
    root.append(dot);
  });
  for (const i of samples) {
    const [x, y] = at(dots[i]);
    const [far, angle] = [largest * Math.sqrt(Math.random()), 2 * Math.PI * Math.random()];
    root.append(svg("circle", { class: "sample", cx: x + far * Math.cos(angle), cy: y + far * Math.sin(angle), r: 3, fill: colours.mark, stroke: colours.card, "stroke-width": 0.8, "pointer-events": "none" }));
  }
  for (const [kind, place] of Object.entries(marks)) if (place !== null) root.append(mark(kind, ...at(place), 9, colours));
  const [x, y] = at(cursor);
  root.append(svg("circle", { id: "cursor", class: "cursor", role: "option", "aria-label": "the point that Enter chooses", cx: x, cy: y, r: 12, fill: "none", "pointer-events": "none" }));
  root.addEventListener("click", (event) => {
    const box = ground.getBoundingClientRect();
    const share = (value) => Math.max(0, Math.min(1, value));
    pick([width * share((event.clientX - box.left) / box.width), height * share((box.bottom - event.clientY) / box.height)]);
  });
  scale(root, tall, across, across / width, colours);
  return root;
}

function scale(root, tall, across, perKm, colours) {
  const long = [5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02].find((km) => km * perKm <= across / 4) ?? 0.01;
  const text = svg("text", { x: long * perKm + 8, y: tall + 24, fill: colours.soft, "font-size": 15, "font-family": "system-ui, sans-serif" });
  text.textContent = long < 1 ? `${1000 * long} m` : `${long} km`;
  root.append(svg("path", { d: `M0 ${tall + 14}v8h${long * perKm}v-8`, fill: "none", stroke: colours.soft, "stroke-width": 1.5 }), text);
}

export const SIGNS = { secret: ["●", "the secret"], output: ["✕", "the output"], guess: ["★", "the guess"] };

function mark(kind, x, y, r, colours) {
  const style = { fill: "none", stroke: colours.card, "stroke-width": 2, "pointer-events": "none" };
  if (kind === "secret") return svg("circle", { cx: x, cy: y, r, ...style, fill: colours.mark });
  if (kind === "output") {
    const path = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
    return svg("g", { "pointer-events": "none" }, svg("path", { d: path, ...style, "stroke-width": 8 }), svg("path", { d: path, ...style, stroke: colours.mark, "stroke-width": 4.5 }));
  }
  const points = [...Array(10).keys()].map((k) => { const a = (Math.PI * k) / 5 - Math.PI / 2; const far = k % 2 ? r * 0.45 : r * 1.15; return `${x + far * Math.cos(a)},${y + far * Math.sin(a)}`; });
  return svg("polygon", { points: points.join(" "), ...style, fill: colours.mark });
}

function bars(problem, labels, values, marks, pick, samples, cursor) {
  const across = pictureWidth();
  const colours = palette();
  const [tall, foot] = [230, problem.kind === "numbers" ? 40 : 34];
  const count = labels.length;
  const w = across / count;
  const most = Math.max(...values, 1e-12);
  const root = svg("svg", { viewBox: `-9 -26 ${across + 18} ${tall + foot + 30}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
  const every = Math.max(1, Math.ceil(count / (across / 46)));
  values.forEach((value, i) => {
    const high = ((tall - 24) * value) / most; // space for the number above
    const name = `${shown(labels[i])}: ${percent(value)}`;
    const chosen = Object.values(marks).includes(i);
    root.append(svg("rect", { x: i * w + w * 0.08, y: tall - high, width: w * 0.84, height: high, fill: heat(0.25 + (0.75 * value) / most) }));
    root.append(cell({ x: i * w, y: -2, width: w, height: tall + 2, fill: "transparent", id: `cell-at-${i}`, class: i === cursor ? "cell cursor" : "cell" }, name, chosen, () => pick(i)));
    if (count <= 16 || i % every === 0) root.append(textAt(i * w + w / 2, tall + 18, clipped(shown(labels[i]), Math.max(3, Math.floor((every * w) / 7.2))), colours.soft));
    if (count <= 16) root.append(textAt(i * w + w / 2, tall - high - 6, percent(value), colours.ink));
  });
  const seen = {};
  for (const i of samples) {
    seen[i] = (seen[i] ?? 0) + 1;
    root.append(svg("circle", { cx: i * w + w / 2 + (Math.random() - 0.5) * w * 0.5, cy: tall - 4 - ((tall - 40) / 50) * seen[i], r: 3, fill: colours.mark, stroke: colours.card, "stroke-width": 0.8, "pointer-events": "none" }));
  }
  root.append(svg("path", { d: `M0 ${tall}h${across}`, stroke: colours.soft, "stroke-width": 1 }));
  const kinds = Object.entries(marks).filter(([, i]) => i !== null);
  kinds.forEach(([kind, i], n) => root.append(mark(kind, i * w + w / 2 + (n - (kinds.length - 1) / 2) * 18, -14, kind === "guess" ? 9 : 7, colours)));
  return root;
}

const clipped = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

function textAt(x, y, text, fill, anchor = "middle", size = 13) {
  const node = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": size, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  node.textContent = text;
  return node;
}

export function matrix(canvas, table, secrets, outputs) {
  // Drawn at the resolution of the screen, so that labels are sharp.
  const [n, m] = [table.length, table[0].length];
  const fits = Math.max(120, Math.min(MATRIX, pictureWidth() - ROW_NAMES));
  const side = Math.min(40, fits / Math.max(n, m));
  const [across, down, dense] = [ROW_NAMES + m * side + 14, COLUMN_NAMES + n * side, window.devicePixelRatio || 1];
  [canvas.width, canvas.height] = [Math.round(across * dense), Math.round(down * dense)];
  [canvas.style.width, canvas.style.height] = [`${across}px`, `${down}px`];
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  table.forEach((row, s) => row.forEach((value, o) => {
    context.fillStyle = heat(value);
    context.fillRect(ROW_NAMES + o * side, COLUMN_NAMES + s * side, side + 0.5, side + 0.5);
  }));
  context.fillStyle = palette().soft;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const rows = Math.ceil(15 / side);
  secrets.forEach((label, s) => { if (s % rows === 0) context.fillText(clipped(shown(label), 14), ROW_NAMES - 6, COLUMN_NAMES + (s + 0.5) * side); });
  context.textAlign = "center";
  const columns = Math.ceil(34 / side);
  outputs.forEach((label, o) => { if (o % columns === 0) context.fillText(clipped(shown(label), Math.max(3, Math.floor((columns * side) / 8.5))), ROW_NAMES + (o + 0.5) * side, COLUMN_NAMES / 2); });
}

export function rowAt(canvas, event, n) {
  const box = canvas.getBoundingClientRect();
  const head = (box.height * COLUMN_NAMES) / Number.parseFloat(canvas.style.height);
  return Math.max(0, Math.min(n - 1, Math.floor(((event.clientY - box.top - head) / (box.height - head)) * n)));
}

export function trace(errors, now, asText) {
  const across = pictureWidth();
  const colours = palette();
  const [tall, left] = [110, 92];
  const most = Math.max(...errors, 1e-9);
  const x = (i) => left + ((across - left - 10) * i) / Math.max(1, errors.length - 1);
  const y = (value) => tall - (tall - 14) * (value / most);
  const root = svg("svg", { viewBox: `0 0 ${across} ${tall + 26}`, xmlns: "http://www.w3.org/2000/svg" });
  root.append(svg("path", { d: `M${left} ${tall}H${across - 10}`, stroke: colours.soft }));
  root.append(textAt(left - 8, y(most) + 5, asText(most), colours.soft, "end"), textAt(left - 8, tall + 4, "0", colours.soft, "end"));
  root.append(textAt(across / 2, tall + 20, "outputs sent: how far off the adversary is after each", colours.soft));
  root.append(svg("polyline", { points: errors.map((value, i) => `${x(i)},${y(value)}`).join(" "), fill: "none", stroke: colours.accent, "stroke-width": 2 }));
  errors.forEach((value, i) => root.append(svg("circle", { cx: x(i), cy: y(value), r: i === now ? 6 : 3, fill: i === now ? colours.mark : colours.accent })));
  return root;
}
