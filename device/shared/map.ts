/** A sketch of where positions lie: no map is loaded from anywhere. */

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 320;
const HEIGHT = 170;
const MARGIN = 14;
const KM_PER_DEGREE = 111.2;

interface Point {
  readonly latitude: number;
  readonly longitude: number;
}

function shape(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}

/** The largest of 1, 2, 5, 10, … that is at most `limit`. */
function roundLength(limit: number): number {
  const power = 10 ** Math.floor(Math.log10(limit));
  return (limit >= 5 * power ? 5 : limit >= 2 * power ? 2 : 1) * power;
}

/** Positions, the latest first, with the circle that the true one lies in with probability 0.95 or more. */
export function sketch(points: readonly Point[], accuracyKm: number): SVGElement {
  const [latest] = points;
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Sketch of the positions told" });
  if (latest === undefined) return picture;
  const shrink = Math.max(0.01, Math.cos((latest.latitude * Math.PI) / 180));
  const east = (point: Point): number => (((point.longitude - latest.longitude + 540) % 360) - 180) * KM_PER_DEGREE * shrink;
  const north = (point: Point): number => (point.latitude - latest.latitude) * KM_PER_DEGREE;
  const extent = Math.max(accuracyKm, ...points.flatMap((point) => [Math.abs(east(point)) * (HEIGHT / WIDTH), Math.abs(north(point))]));
  const scale = (HEIGHT / 2 - MARGIN) / extent;
  const x = (point: Point): number => WIDTH / 2 + east(point) * scale;
  const y = (point: Point): number => HEIGHT / 2 - north(point) * scale;
  const step = roundLength(90 / scale);
  for (let line = -Math.ceil(WIDTH / (step * scale)); line * step * scale < WIDTH; line += 1) {
    const [column, row] = [WIDTH / 2 + line * step * scale, HEIGHT / 2 + line * step * scale];
    picture.append(shape("path", { class: "grid", d: `M${column} 0V${HEIGHT}M0 ${row}H${WIDTH}` }));
  }
  picture.append(shape("circle", { class: "near", cx: x(latest), cy: y(latest), r: accuracyKm * scale }));
  for (const point of [...points].reverse()) {
    picture.append(shape("circle", { class: point === latest ? "dot" : "dot older", cx: x(point), cy: y(point), r: point === latest ? 6 : 4 }));
  }
  picture.append(
    shape("path", { class: "scale", d: `M8 ${HEIGHT - 12}v4h${step * scale}v-4` }),
    shape("text", { x: 8, y: HEIGHT - 16 }, step < 1 ? `${step * 1000} m` : `${step} km`),
    shape("text", { x: WIDTH - 16, y: 16 }, "N"),
  );
  return picture;
}
