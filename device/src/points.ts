/** Mechanisms for the points of an area or an interval: an exact distribution at every point, continuous in it. */

import { requireValid, UnknownSecret } from "./errors.js";
import { list } from "./list.js";
import { atMost, type Dyadic, dyadic, plus, times } from "./exact.js";
import { ACCURACY_SHARE, type Heading } from "./finite.js";
import { Mesh } from "./mesh.js";
import { LARGEST, MOST_OUTPUTS, type Reader } from "./reader.js";
import { drawFromRow, Pacer, quantile, systemBytes, wordAt } from "./sampling.js";
import { axesOf, coordinatesOf, EARTH_RADIUS_KM, Labels, Outputs, readFinite, readRectangle, type Rectangle } from "./spaces.js";
import type { Box, Mechanism, Output, Progress, RandomBytes, Secret, Verdict } from "./types.js";
import { Weights } from "./weights.js";

/** The largest number of inequalities that are decided by exact integers; only a hostile file needs more. */
const MOST_EXACT = 2_000_000;
/** Relative difference up to which another machine's sines and cosines are taken for ours. */
const SAME_LENGTH = 1e-12;
const ULP = 2 ** -52;

/** An interval of numbers. */
interface Interval {
  readonly low: number;
  readonly lengths: readonly [number];
}

export class PointMechanism implements Mechanism {
  readonly kind = "points";
  private _accuracy: number | null | undefined;

  private constructor(
    private readonly _heading: Heading,
    private readonly _region: Rectangle | Interval,
    private readonly _mesh: Mesh,
    private readonly _outputs: Outputs,
    private readonly _weights: Weights,
  ) {}

  static read(reader: Reader, heading: Heading): PointMechanism {
    const region = readRegion(reader, heading.unit);
    const mesh = new Mesh(reader, region.lengths);
    const outputs = readOutputs(reader, region);
    const weights = Weights.read(reader, mesh.controls, outputs.size, heading.bits);
    return new PointMechanism(heading, region, mesh, outputs, weights);
  }

  get id(): string {
    return this._heading.id;
  }

  get epsilon(): number {
    return this._heading.epsilon;
  }

  get disclosure(): string {
    return this._heading.disclosure;
  }

  get box(): Box | null {
    return isInterval(this._region) ? null : this._region.box;
  }

  get guarantee(): string {
    const what = isInterval(this._region) ? "numbers" : "points";
    return `ε = ${this._heading.epsilon} per ${this._heading.unit || "unit of distance"} between any two ${what}`;
  }

  get accuracyKm(): number | null {
    if (this._accuracy === undefined) this._accuracy = this._computeAccuracy();
    return this._accuracy;
  }

  /** Every distribution at a point of a cell is a mean of its control points', so the worst of these is no better. */
  private _computeAccuracy(): number | null {
    if (isInterval(this._region)) return null;
    const places = this._outputs.kilometres(this._region);
    if (places === null) return null;
    let worst = 0;
    for (let cell = 0; cell < this._mesh.size; cell++) {
      const [width, height] = [this._mesh.side(cell, 0), this._mesh.side(cell, 1)];
      const [x, y] = [this._mesh.low(cell, 0) + width / 2, this._mesh.low(cell, 1) + height / 2];
      const distances = Float64Array.from(places, (place) => Math.hypot(place[0] - x, place[1] - y));
      const used = this._mesh.combinations.slice(cell * this._mesh.each, (cell + 1) * this._mesh.each);
      for (const control of new Set(used.flatMap((combination) => combination.controls))) {
        const within = quantile(distances, this._weights.approximateRow(control), ACCURACY_SHARE);
        worst = Math.max(worst, within + Math.hypot(width, height) / 2);
      }
    }
    return worst;
  }

  /**
   * Every coefficient of the gradient of every output's probability against epsilon times its value: if that holds at
   * all control values, it does at all points, and p(o|x) ≤ e^(ε‖x−x'‖) p(o|x').
   */
  async verify(onProgress?: Progress): Promise<Verdict> {
    const { _mesh: mesh, _weights: weights } = this;
    const slopes = list(mesh.axes, (axis) => slopeTable(mesh.degree, mesh.axes, axis));
    const pacer = new Pacer();
    const local = new Float64Array(mesh.each);
    let checked = 0;
    let exact = 0;
    for (let cell = 0; cell < mesh.size; cell++) {
      const sides = list(mesh.axes, (axis) => mesh.side(cell, axis));
      for (let output = 0; output < weights.columns; output++) {
        this._fillValues(local, cell, output);
        for (let place = 0; place < mesh.each; place++) {
          checked += 1;
          if (this._surelyHolds(local, slopes, sides, place)) continue;
          exact += 1;
          if (exact > MOST_EXACT || !this._holdsExactly(slopes, sides, cell, place, output)) {
            const reason =
              exact > MOST_EXACT
                ? "so many slopes are near their bounds that they cannot be decided"
                : "an output's probability changes faster between points than epsilon allows";
            return { holds: false, reason, checked };
          }
        }
      }
      await pacer.pause(cell / mesh.size, onProgress);
    }
    onProgress?.(1);
    return { holds: true, reason: `all ${checked} slopes are at most what epsilon allows`, checked };
  }

  /** The control values of a cell, in units of 2^-24, each within a few units in the last place. */
  private _fillValues(local: Float64Array, cell: number, output: number): void {
    const { approximate, columns } = this._weights;
    for (let place = 0; place < local.length; place++) {
      const { controls, shares } = this._mesh.combinations[cell * local.length + place]!;
      let value = 0;
      for (let term = 0; term < controls.length; term++) {
        value += shares[term]! * approximate[controls[term]! * columns + output]!;
      }
      local[place] = value;
    }
  }

  /** Whether floating-point numbers show that the slope is small enough, with room for all of their rounding. */
  private _surelyHolds(local: Float64Array, slopes: Int32Array[], sides: number[], place: number): boolean {
    let squares = 0;
    let rounding = 0;
    const relative = 64 * ULP;
    for (let axis = 0; axis < slopes.length; axis++) {
      let slope = 0;
      let size = 0;
      for (let at = 0; at < local.length; at++) {
        const term = slopes[axis]![place * local.length + at]! * local[at]!;
        slope += term;
        size += Math.abs(term);
      }
      squares += (slope / sides[axis]!) ** 2;
      rounding += (relative * size) / sides[axis]!;
    }
    return Math.sqrt(squares) * (1 + relative) + rounding <= this.epsilon * local[place]! * (1 - relative);
  }

  /** ‖g‖² ≤ ε² c² in integers: both sides are multiplied by the cell's sides. */
  private _holdsExactly(slopes: Int32Array[], sides: number[], cell: number, place: number, output: number): boolean {
    const each = this._mesh.each;
    const values = list(each, (at) => this._exactValue(cell * each + at, output));
    const exactSides = sides.map(dyadic);
    const product = (list: Dyadic[]): Dyadic => list.reduce(times, { integer: 1n, exponent: 0 });
    let total: Dyadic = { integer: 0n, exponent: 0 };
    for (let axis = 0; axis < slopes.length; axis++) {
      let slope = 0n;
      for (let at = 0; at < each; at++) slope += BigInt(slopes[axis]![place * each + at]!) * values[at]!;
      const others = exactSides.filter((_, other) => other !== axis);
      const term = product([{ integer: slope < 0n ? -slope : slope, exponent: 0 }, ...others]);
      total = plus(total, times(term, term));
    }
    const limit = product([dyadic(this.epsilon), { integer: values[place]!, exponent: 0 }, ...exactSides]);
    return atMost(total, times(limit, limit));
  }

  /** A control value of a cell in units of 2^-24, exactly. */
  private _exactValue(index: number, output: number): bigint {
    const { controls, shares } = this._mesh.combinations[index]!;
    return controls.reduce((sum, control, term) => sum + BigInt(shares[term]!) * this._weights.at(control, output), 0n);
  }

  /**
   * Random integers of 24 bits choose a control point, by how many of them lie below where in its cell the secret is;
   * a word of 64 bits then chooses an output from its weights.
   */
  sample(secret: Secret, random: RandomBytes = systemBytes): Output {
    const { _mesh: mesh, _weights: weights } = this;
    const { cell, inside } = mesh.locate(this._project(secret));
    const comparisons = mesh.axes * mesh.degree + (mesh.depth > 0 ? 1 : 0);
    const bytes = random(8 * (1 + Math.ceil(comparisons / 2)));
    const uniform = list(comparisons, (number) => {
      const at = 8 + 4 * number;
      return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    });
    let place = cell;
    for (let axis = mesh.axes - 1; axis >= 0; axis--) {
      let steps = 0;
      for (let at = axis * mesh.degree; at < (axis + 1) * mesh.degree; at++) steps += uniform[at]! < inside[axis]! ? 1 : 0;
      place = place * (mesh.degree + 1) + steps;
    }
    const { controls, shares } = mesh.combinations[place]!;
    let control = 0;
    let threshold = shares[0]!;
    while (control < controls.length - 1 && uniform[comparisons - 1]! >= threshold) threshold += shares[++control]!;
    return this._outputs.output(drawFromRow(weights.row(controls[control]!), weights.bits, wordAt(bytes, 0)));
  }

  /** The nearest point of the region, counted from its lower ends in the unit of distances. */
  private _project(secret: Secret): number[] {
    const region = this._region;
    if (isInterval(region)) {
      if (typeof secret !== "number" || !Number.isFinite(secret)) throw new UnknownSecret("the secret must be a number");
      return [Math.min(Math.max(secret - region.low, 0), region.lengths[0])];
    }
    const [low, length] = axesOf(region);
    return coordinatesOf(secret, region).map((coordinate, axis) => {
      const scale = region.box === null ? 1 : region.lengths[axis]! / length[axis]!;
      return Math.min(Math.max((coordinate - low[axis]!) * scale, 0), region.lengths[axis]!);
    });
  }
}

function isInterval(region: Rectangle | Interval): region is Interval {
  return "low" in region;
}

function readRegion(reader: Reader, unit: string): Rectangle | Interval {
  if (reader.choice(2) === 1) {
    const low = readFinite(reader, LARGEST);
    const high = readFinite(reader, LARGEST);
    requireValid(low < high, "the interval is none");
    return { low, lengths: [high - low] };
  }
  const rectangle = readRectangle(reader);
  requireValid(unit === "km", "the points of an area have distances in km");
  if (rectangle.box !== null) requireTrueLengths(rectangle.lengths, rectangle.box);
  return rectangle;
}

/**
 * Refuse lengths that are not those of the box. Longitudes are measured at the highest latitude that a great circle
 * between two points of the box reaches, so distances are never longer than the true ones.
 */
function requireTrueLengths([width, height]: readonly [number, number], box: Box): void {
  const radians = Math.PI / 180;
  const highest = Math.max(Math.abs(box.south), Math.abs(box.north));
  const span = box.east - box.west;
  requireValid(highest < 90 && span < 180, "the box is too large");
  const beyond = Math.atan(Math.tan(highest * radians) / Math.cos((span * radians) / 2));
  const wide = EARTH_RADIUS_KM * span * radians * Math.cos(beyond);
  const high = EARTH_RADIUS_KM * (box.north - box.south) * radians;
  requireValid(Math.abs(width - wide) <= SAME_LENGTH * wide && Math.abs(height - high) <= SAME_LENGTH * high, "the lengths are not those of the box");
}

function readOutputs(reader: Reader, region: Rectangle | Interval): Outputs {
  if (isInterval(region)) return Outputs.ofLabels(Labels.readNumbers(reader, MOST_OUTPUTS));
  return Outputs.readPlaces(reader, region.box !== null);
}

/**
 * The slope along an axis at each control value of a cell of side 1, as whole multiples of its control values: the
 * derivative of a Bernstein polynomial, raised to its degree, has the coefficients −i c[i−1] + (2i−d) c[i] + (d−i) c[i+1].
 */
function slopeTable(degree: number, axes: number, axis: number): Int32Array {
  const count = degree + 1;
  const each = count ** axes;
  const table = new Int32Array(each * each);
  const stride = axis === 0 ? 1 : count;
  for (let place = 0; place < each; place++) {
    const i = Math.floor(place / stride) % count;
    table[place * each + place] = 2 * i - degree;
    if (i > 0) table[place * each + place - stride] = -i;
    if (i < degree) table[place * each + place + stride] = degree - i;
  }
  return table;
}
