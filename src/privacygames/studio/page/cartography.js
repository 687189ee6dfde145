// Draws maps as SVG: cells or densities with names, outlines, coordinates, north and scale. A `view` says where on the
// picture a position lies; the same drawing is moved by Leaflet, stands alone without it, and is exported.
import { contours } from "./contours.js";
import { heat, inUnit, palette, percent, shown, svg } from "./shared.js";

const EARTH_RADIUS = 6371; // km, as in the library
const [LEFT, FOOT] = [22, 52]; // pixels for latitudes, and for longitudes with the scale below them
const MARGIN = 12; // pixels between the area and the edge of its map
const LABEL_GAP = 4; // pixels between the names of places
const MARK = 18; // pixels around a mark without names
const NAMES = 14; // most names of populated places on a map
const FONT = { "font-family": "system-ui, sans-serif" };
const radians = (degrees) => (degrees * Math.PI) / 180;
const mercator = (latitude) => (180 / Math.PI) * Math.log(Math.tan(Math.PI / 4 + radians(latitude) / 2));
const inverseMercator = (y) => (360 / Math.PI) * Math.atan(Math.exp(radians(y))) - 90;

export const frame = { left: LEFT, foot: FOOT };

export function regionOf(problem) {
  // The area of a problem about places: its size in km and, over degrees, its box; null where there is none.
  return problem.kind === "points" ? problem.map : problem.grid;
}

export function positionOf({ width, height, box }, [x, y]) {
  // Kilometres from the south-west corner as longitude and latitude, which are linear in them; as they are without a box.
  if (!box) return [x, y];
  const [west, south, east, north] = box;
  return [west + (x / width) * (east - west), south + (y / height) * (north - south)];
}

export function kilometresOf({ width, height, box }, [longitude, latitude]) {
  if (!box) return [longitude, latitude];
  const [west, south, east, north] = box;
  return [((longitude - west) / (east - west)) * width, ((latitude - south) / (north - south)) * height];
}

export const centreOf = ({ width, height, columns, rows }, i) => [(((i % columns) + 0.5) / columns) * width, ((Math.floor(i / columns) + 0.5) / rows) * height];

export const boxOf = ({ width, height, box }) => box ?? [0, 0, width, height];

export function fixedView(region, across, mostHeight) {
  // A view of a whole area in a picture of some width; it cannot be moved.
  const [west, south, east, north] = boxOf(region);
  const [vertical, back] = region.box ? [mercator, inverseMercator] : [(y) => y, (y) => y];
  const [low, high] = [vertical(south), vertical(north)];
  const scale = Math.min((across - LEFT - 2 * MARGIN) / (east - west), (mostHeight - FOOT - 2 * MARGIN) / (high - low));
  const width = Math.round(Math.max((east - west) * scale + 2 * MARGIN, 220));
  const height = Math.round((high - low) * scale + 2 * MARGIN);
  const start = (width - (east - west) * scale) / 2;
  return {
    width,
    height,
    geographic: Boolean(region.box),
    at: ([x, y]) => [start + (x - west) * scale, height - MARGIN - (vertical(y) - low) * scale],
    from: ([x, y]) => [west + (x - start) / scale, back(low + (height - MARGIN - y) / scale)],
  };
}

export function kilometresPerPixel(view, y) {
  const [[a, latitude], [b]] = [view.from([0, y]), view.from([1, y])];
  return view.geographic ? EARTH_RADIUS * radians(b - a) * Math.cos(radians(latitude)) : b - a;
}

export const distance = (a, b, geographic) => {
  if (!geographic) return Math.hypot(a[0] - b[0], a[1] - b[1]);
  const half = Math.sin(radians(b[1] - a[1]) / 2) ** 2 + Math.cos(radians(a[1])) * Math.cos(radians(b[1])) * Math.sin(radians(b[0] - a[0]) / 2) ** 2;
  return 2 * EARTH_RADIUS * Math.asin(Math.sqrt(half));
};

function path(points, view, close) {
  const parts = points.map((point) => view.at(point).map((value) => value.toFixed(1)).join(" "));
  return `M${parts.join("L")}${close ? "Z" : ""}`;
}

export function drawGround(view, around, colours, bare) {
  // Sea, land, and what is drawn of both; nothing where there are no outlines, or tiles lie below.
  const group = svg("g", { class: "ground-map", "aria-hidden": "true", "pointer-events": "none" });
  if (bare || !around?.land?.length) return group;
  group.append(svg("rect", { x: -view.width, y: -view.height, width: 3 * view.width, height: 3 * view.height, fill: colours.sea }));
  group.append(svg("path", { d: around.land.map((ring) => path(ring, view, true)).join(""), fill: colours.land, "fill-rule": "evenodd" }));
  return group;
}

export function drawOutlines(view, around, own, colours) {
  const group = svg("g", { class: "outlines", "aria-hidden": "true", "pointer-events": "none", fill: "none" });
  if (around?.coasts?.length) {
    const d = around.coasts.map((line) => path(line, view, false)).join("");
    group.append(svg("path", { d, stroke: colours.card, "stroke-width": 4, "stroke-opacity": 0.6 }), svg("path", { class: "coast", d, stroke: colours.coast, "stroke-width": 1.6 }));
  }
  if (around?.borders?.length) group.append(svg("path", { class: "border", d: around.borders.map((line) => path(line, view, false)).join(""), stroke: colours.soft, "stroke-width": 1.2, "stroke-dasharray": "6 3" }));
  const lines = own.filter((each) => each.points.length > 1);
  if (lines.length) {
    const d = lines.map((each) => path(each.points, view, each.closed)).join("");
    group.append(svg("path", { d, stroke: colours.card, "stroke-width": 4.5, "stroke-opacity": 0.7 }), svg("path", { class: "own", d, stroke: colours.own, "stroke-width": 2 }));
  }
  for (const each of own) if (each.points.length === 1) { const [cx, cy] = view.at(each.points[0]); group.append(svg("circle", { class: "own", cx, cy, r: 3, fill: colours.own })); }
  return group;
}

export function mapColours() {
  const dark = palette().low[0] < 128;
  return { ...palette(), ...(dark ? { sea: "#16303f", land: "#242b30", coast: "#7fa6bd", own: "#d7a6ff" } : { sea: "#d9e8f2", land: "#f4f3ee", coast: "#5b7f96", own: "#7a2fa8" }) };
}

function option(tag, attributes, name, chosen) {
  const node = svg(tag, { role: "option", "aria-label": name, "aria-selected": chosen, ...attributes });
  const title = svg("title");
  title.textContent = name;
  node.append(title);
  return node;
}

export function drawCells(view, { region, labels, values, marks, cursor, cursorName, samples }, colours, opacity) {
  const { columns, rows } = region;
  const group = svg("g", { role: "presentation" });
  const [west, south, east, north] = boxOf(region);
  const corner = (column, row) => view.at([west + (column / columns) * (east - west), south + (row / rows) * (north - south)]);
  const most = Math.max(...values, 1e-12);
  const square = (i) => {
    const [x, bottom] = corner(i % columns, Math.floor(i / columns));
    const [right, y] = corner((i % columns) + 1, Math.floor(i / columns) + 1);
    return { x, y, width: right - x, height: bottom - y };
  };
  values.forEach((value, i) => {
    const name = `${shown(labels[i])}, column ${(i % columns) + 1}, row ${Math.floor(i / columns) + 1}: ${percent(value)}${i === cursor && cursorName ? `, ${cursorName}` : ""}`;
    const place = { class: i === cursor ? "cell cursor" : "cell", id: `cell-at-${i}`, ...square(i) };
    group.append(option("rect", { ...place, fill: heat(value / most), "fill-opacity": opacity, stroke: colours.line, "stroke-width": 0.7 }, name, Object.values(marks).includes(i)));
  });
  const above = svg("g", { "aria-hidden": "true", "pointer-events": "none" });
  const drawn = {};
  for (const i of samples) {
    const { x, y, width, height } = square(i);
    drawn[i] = (drawn[i] ?? 0) + 1;
    const [across, down] = [spread(drawn[i], 0.754878), spread(drawn[i], 0.56984)];
    above.append(sampleAt(x + width * (0.12 + 0.76 * across), y + height * (0.12 + 0.76 * down), colours));
  }
  const placed = Object.entries(marks).filter(([, i]) => i !== null && i !== undefined);
  for (const [kind, i] of placed) {
    const here = placed.filter(([, other]) => other === i); // side by side if several are in one cell
    const aside = (here.findIndex(([other]) => other === kind) + 0.5) / here.length;
    const { x, y, width, height } = square(i);
    above.append(mark(kind, x + aside * width, y + height / 2, Math.max(4, Math.min(18, Math.min(width, height) * 0.3) / Math.sqrt(here.length)), colours));
  }
  return [group, above];
}

const spread = (n, share) => (0.5 + n * share) % 1; // successive values are far apart, and the same on every drawing
const sampleAt = (cx, cy, colours) => svg("circle", { class: "sample", cx, cy, r: 3, fill: colours.mark, stroke: colours.card, "stroke-width": 0.8 });

export function drawDensity(view, { region, labels, values, dots, marks, cursor, cursorName, samples }, colours, opacity) {
  // The probabilities of points as a smooth density, with the points themselves as small dots.
  const group = svg("g", { role: "presentation" });
  const [west, south, east, north] = boxOf(region);
  const [[x, bottom], [right, y]] = [view.at([west, south]), view.at([east, north])];
  group.append(svg("rect", { class: "ground", x, y, width: right - x, height: bottom - y, fill: heat(0), "fill-opacity": opacity }));
  for (const { share, rings } of contours(dots, values, region).bands) {
    const d = rings.map((ring) => path(ring.map((point) => positionOf(region, point)), view, true)).join("");
    group.append(svg("path", { class: "band", d, fill: heat(share), "fill-opacity": opacity, "fill-rule": "evenodd", "pointer-events": "none" }));
  }
  group.append(svg("rect", { x, y, width: right - x, height: bottom - y, fill: "none", stroke: colours.soft, "pointer-events": "none" }));
  const points = dots.map((dot) => view.at(positionOf(region, dot)));
  const r = Math.max(1.2, Math.min(2.4, 0.12 * Math.sqrt(((right - x) * (bottom - y)) / dots.length)));
  points.forEach(([cx, cy], i) => {
    group.append(option("circle", { class: "dot", cx, cy, r, fill: colours.soft, "fill-opacity": 0.6, stroke: "transparent", "stroke-width": 8 }, `${shown(labels[i])}: ${percent(values[i])}`, false));
  });
  if (cursor) {
    const [cx, cy] = view.at(positionOf(region, cursor));
    group.append(svg("circle", { id: "cursor", class: "cursor", role: "option", "aria-selected": false, "aria-label": cursorName, cx, cy, r: 12, fill: "none", "pointer-events": "none" }));
  }
  const above = svg("g", { "aria-hidden": "true", "pointer-events": "none" });
  const apart = 0.4 * Math.sqrt(((right - x) * (bottom - y)) / dots.length);
  const drawn = {};
  samples.forEach((i) => { // a spiral around its output
    drawn[i] = (drawn[i] ?? -1) + 1;
    const [far, angle] = [Math.min(apart, 4 * Math.sqrt(drawn[i])), 2.399963 * drawn[i]];
    above.append(sampleAt(points[i][0] + far * Math.cos(angle), points[i][1] + far * Math.sin(angle), colours));
  });
  for (const [kind, place] of Object.entries(marks)) if (place) above.append(mark(kind, ...view.at(positionOf(region, place)), 9, colours));
  return [group, above];
}

export function drawNames(view, places, own, taken, colours) {
  // The names given by the user, then those of the most populous places, none over another or over a mark.
  const group = svg("g", { class: "names", "aria-hidden": "true", "pointer-events": "none" });
  const boxes = taken.map(([x, y]) => [x - MARK, y - MARK, x + MARK, y + MARK]);
  const free = ([left, top, right, bottom]) => left >= 2 && top >= 2 && right <= view.width - 2 && bottom <= view.height - 2
    && !boxes.some(([l, t, r, b]) => left < r + LABEL_GAP && right > l - LABEL_GAP && top < b + LABEL_GAP && bottom > t - LABEL_GAP);
  let left = NAMES;
  const all = [...own.map((each) => ({ ...each, mine: true })), ...places];
  for (const { name, longitude, latitude, population, mine } of all) {
    if (!mine && left === 0) break;
    const [x, y] = view.at([longitude, latitude]);
    if (x < 0 || y < 0 || x > view.width || y > view.height) continue;
    const size = mine ? 14 : population > 100_000 ? 15 : population > 15_000 ? 13 : 12;
    const wide = name.length * size * 0.56 + 4;
    const aside = taken.some(([u, v]) => Math.hypot(u - x, v - y) < MARK) ? MARK + 2 : 6;
    const sides = [[x + aside, "start"], [x - aside, "end"]].map(([at, anchor]) => [at, anchor, anchor === "start" ? [at, y - size * 0.7, at + wide, y + size * 0.5] : [at - wide, y - size * 0.7, at, y + size * 0.5]]);
    const fitting = sides.find(([, , box]) => free(box)) ?? (mine ? sides[0] : null);
    if (!fitting) continue;
    boxes.push(fitting[2], [x - 3, y - 3, x + 3, y + 3]);
    if (!mine) left -= 1;
    group.append(svg("circle", { cx: x, cy: y, r: mine ? 4 : 2.2, fill: mine ? colours.own : colours.ink, stroke: colours.card, "stroke-width": 1 }));
    group.append(label(fitting[0], y + size * 0.35, name, mine ? colours.own : colours.ink, fitting[1], size, colours.card, mine || population > 100_000 ? 600 : 400));
  }
  return group;
}

function label(x, y, text, fill, anchor, size, halo, weight = 400) {
  const node = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": size, "font-weight": weight, stroke: halo, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke", ...FONT });
  node.textContent = text;
  return node;
}

function plain(x, y, text, fill, anchor = "middle", size = 12, more = {}) {
  const node = svg("text", { x, y, fill, "text-anchor": anchor, "font-size": size, ...FONT, ...more });
  node.textContent = text;
  return node;
}

function ticks(from, to, least) {
  // Round values between two ends, at least some distance apart.
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const values = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + 1e-9; n += 1) values.push(n * step);
  return [values, digits];
}

const sided = (value, digits, [positive, negative]) => `${Math.abs(value).toFixed(digits)}°\u00a0${value < 0 ? negative : positive}`;

export function drawFrame(view, colours, about) {
  // Coordinates at the edges, the scale, the size of a cell, and north; its origin is the map's upper left corner.
  const group = svg("g", { class: "frame", "aria-hidden": "true", "pointer-events": "none" });
  const { width, height, geographic } = view;
  group.append(svg("rect", { x: 0.5, y: 0.5, width: Math.max(0, width - 1), height: Math.max(0, height - 1), fill: "none", stroke: colours.soft, "stroke-opacity": 0.6 }));
  const [[west, south], [east, north]] = [view.from([0, height]), view.from([width, 0])];
  const [across, digitsAcross] = ticks(west, east, ((east - west) * 84) / width);
  const [up, digitsUp] = ticks(south, north, ((north - south) * 84) / height);
  for (const value of across) {
    const [x] = view.at([value, south]);
    if (x < 0 || x > width) continue;
    group.append(svg("path", { class: "tick", d: `M${x.toFixed(1)} ${height - 5}v10`, stroke: colours.soft }));
    if (x > 24 && x < width - 24) group.append(plain(x, height + 18, geographic ? sided(value, digitsAcross, "EW") : `${value.toFixed(digitsAcross)}\u00a0km`, colours.soft));
  }
  for (const value of up) {
    const [, y] = view.at([west, value]);
    if (y < 0 || y > height) continue;
    group.append(svg("path", { class: "tick", d: `M-5 ${y.toFixed(1)}h10`, stroke: colours.soft }));
    if (y > 24 && y < height - 24) group.append(plain(0, 0, geographic ? sided(value, digitsUp, "NS") : `${value.toFixed(digitsUp)}\u00a0km`, colours.soft, "middle", 12, { transform: `translate(-9 ${y.toFixed(1)}) rotate(-90)` }));
  }
  const perPixel = kilometresPerPixel(view, height);
  const long = [5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02].find((km) => km / perPixel <= Math.max(36, Math.min(160, width / 3, width - 110 - 7 * about.length))) ?? 0.01;
  const bar = long / perPixel;
  const base = height + FOOT - 8;
  group.append(svg("path", { class: "scale", d: `M1 ${base - 7}v7h${bar.toFixed(2)}v-7`, fill: "none", stroke: colours.soft, "stroke-width": 1.5, "data-km": long }));
  group.append(plain(bar + 8, base, `${inRound(long)}${about ? ` · ${about}` : ""}`, colours.soft, "start", 13));
  group.append(svg("path", { class: "north", d: `M${width - 9} ${base + 3}v-20l-5 8h10l-5 -8`, fill: colours.soft, stroke: colours.soft, "stroke-width": 1.5, "stroke-linejoin": "round" }), plain(width - 24, base, "N", colours.soft, "middle", 13, { "font-weight": 600 }));
  return group;
}

const inRound = (km) => (km < 1 ? `${1000 * km}\u00a0m` : `${km}\u00a0km`);
export function cellSize({ width, height, columns, rows }) {
  const sides = [inUnit(width / columns, "km"), inUnit(height / rows, "km")];
  const [wide, unit] = sides[0].split("\u00a0");
  return sides[1].endsWith(`\u00a0${unit}`) ? `cells ${wide} × ${sides[1]}` : `cells ${sides.join(" × ")}`;
}

export const SIGNS = { secret: ["●", "the secret"], output: ["✕", "the output"], guess: ["★", "the guess"] };

export function mark(kind, x, y, r, colours) {
  const style = { class: `mark ${kind}`, fill: "none", stroke: colours.card, "stroke-width": 2, "pointer-events": "none" };
  if (kind === "secret") return svg("circle", { cx: x, cy: y, r, ...style, fill: colours.mark });
  if (kind === "output") {
    const cross = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
    return svg("g", { "pointer-events": "none" }, svg("path", { d: cross, ...style, "stroke-width": 8 }), svg("path", { d: cross, ...style, stroke: colours.mark, "stroke-width": 4.5 }));
  }
  const points = [...Array(10).keys()].map((k) => { const a = (Math.PI * k) / 5 - Math.PI / 2; const far = k % 2 ? r * 0.45 : r * 1.15; return `${x + far * Math.cos(a)},${y + far * Math.sin(a)}`; });
  return svg("polygon", { points: points.join(" "), ...style, fill: colours.mark });
}
