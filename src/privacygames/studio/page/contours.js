// A smooth density of weighted points, and the lines of equal density, by marching squares.
const NODES = 72; // of the longer side
const BANDS = 9;
const WIDEST = 3; // standard deviations of a kernel beyond which it is not counted
const latest = { dots: null, values: null, result: null };

export function contours(dots, values, { width, height }) {
  // Bands of density: `share` of the largest one, and rings in kilometres within which the density is at least that.
  if (latest.dots === dots && latest.values === values) return latest.result;
  const smoothing = 0.6 * Math.sqrt((width * height) / dots.length);
  const deviation = Math.max(smoothing, Math.max(width, height) / 60);
  const cell = Math.max(width, height) / NODES;
  const [columns, rows] = [Math.max(2, Math.ceil(width / cell)), Math.max(2, Math.ceil(height / cell))];
  const [dx, dy] = [width / columns, height / rows];
  const field = density(dots, values, deviation, { columns, rows, dx, dy });
  const most = Math.max(...field, 1e-300);
  const bands = [];
  for (let n = 1; n <= BANDS; n += 1) {
    const level = ((n - 0.5) / BANDS) ** 2; // equal steps of colour, which shows the square root
    bands.push({ share: Math.min(1, ((n + 0) / BANDS) ** 2), rings: rings(field, level * most, { columns, rows, dx, dy }) });
  }
  const perSquareKilometre = most / (2 * Math.PI * deviation ** 2);
  Object.assign(latest, { dots, values, result: { bands, perSquareKilometre, deviation } });
  return latest.result;
}

function density(dots, values, deviation, { columns, rows, dx, dy }) {
  // Kernel sums at the nodes, in units of one kernel's peak.
  const field = new Float64Array((columns + 1) * (rows + 1));
  const [reachX, reachY] = [Math.ceil((WIDEST * deviation) / dx), Math.ceil((WIDEST * deviation) / dy)];
  dots.forEach(([x, y], i) => {
    if (values[i] === 0) return;
    const [column, row] = [Math.round(x / dx), Math.round(y / dy)];
    for (let r = Math.max(0, row - reachY); r <= Math.min(rows, row + reachY); r += 1) {
      const down = values[i] * Math.exp(-(((r * dy - y) / deviation) ** 2) / 2);
      for (let c = Math.max(0, column - reachX); c <= Math.min(columns, column + reachX); c += 1) field[r * (columns + 1) + c] += down * Math.exp(-(((c * dx - x) / deviation) ** 2) / 2);
    }
  });
  return field;
}

function rings(field, level, { columns, rows, dx, dy }) {
  // The border of the nodes at or above a level; around the area lie nodes below it, so that every ring is closed.
  const inside = (c, r) => c >= 0 && r >= 0 && c <= columns && r <= rows;
  const value = (c, r) => (inside(c, r) ? field[r * (columns + 1) + c] : -1);
  const clamp = (n, most) => Math.max(0, Math.min(most, n));
  const crossing = ([c, r], [d, s]) => {
    const [a, b] = [value(c, r), value(d, s)];
    const share = !inside(c, r) ? 1 : !inside(d, s) ? 0 : (level - a) / (b - a);
    const [x, y] = [clamp(c, columns), clamp(r, rows)];
    return [(x + share * (clamp(d, columns) - x)) * dx, (y + share * (clamp(s, rows) - y)) * dy];
  };
  const onwards = new Map(); // from the edge where a line enters a square to the edge where it leaves
  for (let r = -1; r <= rows; r += 1) {
    for (let c = -1; c <= columns; c += 1) {
      const corners = [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]];
      const high = corners.map(([x, y]) => value(x, y) >= level);
      if (high.every(Boolean) || !high.some(Boolean)) continue;
      const sides = corners.map((corner, i) => [corner, corners[(i + 1) % 4]]);
      const enters = sides.filter((_, i) => !high[i] && high[(i + 1) % 4]);
      const leaves = sides.map((side, i) => [side, i]).filter(([, i]) => high[i] && !high[(i + 1) % 4]);
      for (const side of enters) { // the next side on which the line can leave, the high nodes on its left
        const at = sides.indexOf(side);
        const [[exit]] = leaves.sort((a, b) => ((a[1] - at + 4) % 4) - ((b[1] - at + 4) % 4));
        onwards.set(key(exit), { point: crossing(...exit), next: key(side), start: crossing(...side) });
      }
    }
  }
  const loops = [];
  while (onwards.size) {
    const loop = [];
    let [name] = onwards.keys();
    while (onwards.has(name)) {
      const { point, next } = onwards.get(name);
      onwards.delete(name);
      loop.push(point);
      name = next;
    }
    if (loop.length > 2) loops.push(loop);
  }
  return loops;
}

const key = ([[a, b], [c, d]]) => (a < c || (a === c && b < d) ? `${a},${b},${c},${d}` : `${c},${d},${a},${b}`);
