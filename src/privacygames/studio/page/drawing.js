// Pictures: the map of a grid, bars for numbers and categories, the matrix, the trace of errors. Plain SVG.
import { heat, palette, percent, shown, svg, wide } from "./shared.js";

export function picture(problem, axis, values, marks, pick, { samples = [], cursor = null } = {}) {
  // `axis` says what a place in the picture is: "labels" (secrets) or "answers".
  const labels = problem[axis];
  const draw = problem.grid && labels.length === problem.labels.length ? map : bars;
  return draw(problem, labels, values, marks, pick, samples, cursor);
}

function cell(attributes, name, chosen, pick) {
  const made = svg("rect", { class: "cell", role: "option", "aria-label": name, "aria-selected": chosen, ...attributes });
  const title = svg("title");
  title.textContent = name;
  made.append(title);
  made.addEventListener("click", pick);
  return made;
}

function map(problem, labels, values, marks, pick, samples, cursor) {
  const across = wide();
  const { columns, rows, width, height } = problem.grid;
  const colours = palette();
  const tall = Math.round((across * height) / width);
  const [w, h] = [across / columns, tall / rows];
  const most = Math.max(...values, 1e-12);
  const at = (i) => [(i % columns) * w, tall - (Math.floor(i / columns) + 1) * h];
  const root = svg("svg", { viewBox: `-2 -2 ${across + 4} ${tall + 34}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
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
    const here = placed.filter(([, other]) => other === i); // side by side where several are in one cell
    const aside = ((here.findIndex(([other]) => other === kind) + 0.5) / here.length) * w;
    root.append(mark(kind, at(i)[0] + aside, at(i)[1] + h / 2, (Math.min(w, h) * 0.3) / Math.sqrt(here.length), colours));
  }
  scale(root, tall, across / width, colours);
  return root;
}

function scale(root, tall, perKm, colours) {
  const across = wide();
  const long = [10, 5, 2, 1, 0.5, 0.2, 0.1].find((km) => km * perKm <= across / 4) ?? 0.1;
  const text = svg("text", { x: long * perKm + 8, y: tall + 24, fill: colours.soft, "font-size": 15, "font-family": "system-ui, sans-serif" });
  text.textContent = long < 1 ? `${1000 * long} m` : `${long} km`;
  root.append(svg("path", { d: `M0 ${tall + 14}v8h${long * perKm}v-8`, fill: "none", stroke: colours.soft, "stroke-width": 1.5 }), text);
}

export const SIGNS = { secret: "● the secret", answer: "✕ the answer", guess: "★ the guess" };

function mark(kind, x, y, r, colours) {
  const style = { fill: "none", stroke: colours.card, "stroke-width": 2, "pointer-events": "none" };
  if (kind === "secret") return svg("circle", { cx: x, cy: y, r, ...style, fill: colours.mark });
  if (kind === "answer") {
    const path = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
    return svg("g", { "pointer-events": "none" }, svg("path", { d: path, ...style, "stroke-width": 8 }), svg("path", { d: path, ...style, stroke: colours.mark, "stroke-width": 4.5 }));
  }
  const points = [...Array(10).keys()].map((k) => { const a = (Math.PI * k) / 5 - Math.PI / 2; const far = k % 2 ? r * 0.45 : r * 1.15; return `${x + far * Math.cos(a)},${y + far * Math.sin(a)}`; });
  return svg("polygon", { points: points.join(" "), ...style, fill: colours.mark });
}

function bars(problem, labels, values, marks, pick, samples, cursor) {
  const across = wide();
  const colours = palette();
  const [tall, foot] = [230, problem.kind === "numbers" ? 40 : 34];
  const count = labels.length;
  const w = across / count;
  const most = Math.max(...values, 1e-12);
  const root = svg("svg", { viewBox: `-9 -26 ${across + 18} ${tall + foot + 30}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
  const every = Math.max(1, Math.ceil(count / (across / 46)));
  values.forEach((value, i) => {
    const high = ((tall - 24) * value) / most; // room for the number above
    const name = `${shown(labels[i])}: ${percent(value)}`;
    const chosen = Object.values(marks).includes(i);
    root.append(svg("rect", { x: i * w + w * 0.08, y: tall - high, width: w * 0.84, height: high, fill: heat(0.25 + (0.75 * value) / most) }));
    root.append(cell({ x: i * w, y: -2, width: w, height: tall + 2, fill: "transparent", id: `cell-at-${i}`, class: i === cursor ? "cell cursor" : "cell" }, name, chosen, () => pick(i)));
    if (count <= 16 || i % every === 0) root.append(words(i * w + w / 2, tall + 18, String(shown(labels[i])).slice(0, Math.max(3, Math.floor(w / 7.5))), colours.soft));
    if (count <= 16) root.append(words(i * w + w / 2, tall - high - 6, percent(value), colours.ink));
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

function words(x, y, text, fill, anchor = "middle", size = 13) {
  const made = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": size, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
  made.textContent = text;
  return made;
}

export function matrix(canvas, table) {
  const [n, m] = [table.length, table[0].length];
  const scale = Math.max(1, Math.floor(600 / Math.max(n, m)));
  canvas.width = m * scale;
  canvas.height = n * scale;
  canvas.style.maxWidth = `${Math.min(540, 40 * m)}px`;
  const context = canvas.getContext("2d");
  table.forEach((row, s) => row.forEach((value, o) => {
    context.fillStyle = heat(value);
    context.fillRect(o * scale, s * scale, scale, scale);
  }));
}

export function trace(errors, now, label) {
  const across = wide();
  const colours = palette();
  const [tall, left] = [110, 92];
  const most = Math.max(...errors, 1e-9);
  const x = (i) => left + ((across - left - 10) * i) / Math.max(1, errors.length - 1);
  const y = (value) => tall - (tall - 14) * (value / most);
  const root = svg("svg", { viewBox: `0 0 ${across} ${tall + 26}`, xmlns: "http://www.w3.org/2000/svg" });
  root.append(svg("path", { d: `M${left} ${tall}H${across - 10}`, stroke: colours.soft }));
  root.append(words(left - 8, y(most) + 5, label(most), colours.soft, "end"), words(left - 8, tall + 4, "0", colours.soft, "end"));
  root.append(words(across / 2, tall + 20, "answers sent: how far off the attacker is after each", colours.soft));
  root.append(svg("polyline", { points: errors.map((value, i) => `${x(i)},${y(value)}`).join(" "), fill: "none", stroke: colours.accent, "stroke-width": 2 }));
  errors.forEach((value, i) => root.append(svg("circle", { cx: x(i), cy: y(value), r: i === now ? 6 : 3, fill: i === now ? colours.mark : colours.accent })));
  return root;
}
