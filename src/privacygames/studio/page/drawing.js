// Pictures that are no maps: bars for numbers and categories, the matrix, the trace of errors. Plain SVG.
import { mark } from "./cartography.js";
import { heat, labelsAlong, palette, percent, pictureWidth, shown, svg } from "./shared.js";

const [ROW_NAMES, COLUMN_NAMES, MATRIX] = [96, 26, 460]; // widths of the table's parts

function cell(attributes, name, chosen, pick) {
  const node = svg("rect", { class: "cell", role: "option", "aria-label": name, "aria-selected": chosen, ...attributes });
  const title = svg("title");
  title.textContent = name;
  node.append(title);
  node.addEventListener("click", pick);
  return node;
}

export function bars(problem, axis, values, marks, pick, { samples = [], cursor = null } = {}) {
  const labels = labelsAlong(problem, axis);
  const across = pictureWidth();
  const colours = palette();
  const [tall, foot] = [230, problem.kind === "numbers" ? 46 : 34];
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
    root.append(svg("circle", { class: "sample", cx: i * w + w / 2 + (Math.random() - 0.5) * w * 0.5, cy: tall - 4 - ((tall - 40) / 50) * seen[i], r: 3, fill: colours.mark, stroke: colours.card, "stroke-width": 0.8, "pointer-events": "none" }));
  }
  root.append(svg("path", { d: `M0 ${tall}h${across}`, stroke: colours.soft, "stroke-width": 1 }));
  const named = problem.kind === "numbers" && problem.units.distance ? problem.units.distance : "";
  if (named) root.append(textAt(across / 2, tall + 36, named, colours.soft));
  if (count > 16) for (const share of [0.5, 1]) { // few bars have their own numbers
    const up = tall - share * (tall - 24);
    root.append(svg("path", { d: `M0 ${up}h${across}`, stroke: colours.line, "stroke-width": 0.7, "stroke-dasharray": "3 4", "pointer-events": "none" }), textAt(0, up - 4, percent(share * most), colours.soft, "start", 12));
  }
  const kinds = Object.entries(marks).filter(([, i]) => i !== null);
  kinds.forEach(([kind, i], n) => root.append(mark(kind, i * w + w / 2 + (n - (kinds.length - 1) / 2) * 18, -14, kind === "guess" ? 9 : 7, colours)));
  return root;
}

const clipped = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

export function textAt(x, y, text, fill, anchor = "middle", size = 13) {
  const node = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": size, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  node.textContent = text;
  return node;
}

const [HEAD, FOOT] = [22, 44]; // of the table's picture: the names of rows and columns, and the legend

export function matrix(canvas, table, secrets, outputs, { note = "" } = {}) {
  // Drawn at the resolution of the screen, so that labels are sharp; with the names of both sides and a legend.
  const [n, m] = [table.length, table[0].length];
  const fits = Math.max(120, Math.min(MATRIX, pictureWidth() - ROW_NAMES));
  const side = Math.min(40, fits / Math.max(n, m));
  const [top, bottom] = [HEAD + COLUMN_NAMES, HEAD + COLUMN_NAMES + n * side];
  const [across, down, dense] = [Math.max(330, ROW_NAMES + m * side + 14), bottom + FOOT + (note ? 18 : 0), Math.max(note ? 2 : 1, window.devicePixelRatio || 1)];
  [canvas.width, canvas.height] = [Math.round(across * dense), Math.round(down * dense)];
  [canvas.style.width, canvas.style.height] = [`${across}px`, `${down}px`];
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  context.fillStyle = palette().card;
  context.fillRect(0, 0, across, down);
  table.forEach((row, s) => row.forEach((value, o) => {
    context.fillStyle = heat(value);
    context.fillRect(ROW_NAMES + o * side, top + s * side, side + 0.5, side + 0.5);
  }));
  context.fillStyle = palette().soft;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const rows = Math.ceil(15 / side);
  secrets.forEach((label, s) => { if (s % rows === 0) context.fillText(clipped(shown(label), 14), ROW_NAMES - 6, top + (s + 0.5) * side); });
  context.textAlign = "center";
  const columns = Math.ceil(34 / side);
  outputs.forEach((label, o) => { if (o % columns === 0) context.fillText(clipped(shown(label), Math.max(3, Math.floor((columns * side) / 8.5))), ROW_NAMES + (o + 0.5) * side, HEAD + COLUMN_NAMES / 2); });
  context.fillStyle = palette().ink;
  context.textAlign = "left";
  context.fillText("output →", ROW_NAMES, HEAD / 2);
  context.textAlign = "right";
  context.fillText("secret ↓", ROW_NAMES - 6, HEAD / 2);
  context.textAlign = "left";
  context.fillText("0 %", ROW_NAMES, bottom + 24);
  for (let step = 0; step < 100; step += 1) {
    context.fillStyle = heat(step / 100);
    context.fillRect(ROW_NAMES + 28 + step, bottom + 18, 1.5, 12);
  }
  context.fillStyle = palette().ink;
  context.fillText("100 % of a row", ROW_NAMES + 134, bottom + 24);
  context.fillStyle = palette().soft;
  if (note) context.fillText(note, 8, down - 10);
}

export function rowAt(canvas, event, n) {
  const box = canvas.getBoundingClientRect();
  const scale = box.height / Number.parseFloat(canvas.style.height);
  const [head, foot] = [scale * (HEAD + COLUMN_NAMES), scale * FOOT];
  return Math.max(0, Math.min(n - 1, Math.floor(((event.clientY - box.top - head) / (box.height - head - foot)) * n)));
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
  root.append(textAt(across / 2, tall + 20, "outputs sent in this draw: how far off the adversary is after each", colours.soft));
  root.append(svg("polyline", { points: errors.map((value, i) => `${x(i)},${y(value)}`).join(" "), fill: "none", stroke: colours.accent, "stroke-width": 2 }));
  errors.forEach((value, i) => root.append(svg("circle", { cx: x(i), cy: y(value), r: i === now ? 6 : 3, fill: i === now ? colours.mark : colours.accent })));
  return root;
}
