/**
 * Planar Laplace noise for points anywhere on the Earth, discretised exactly: the built-in default mechanism.
 *
 * 1. A *reference point* is drawn near the secret with 1/32 of epsilon: the secret as a point of space is rounded at
 *    random to a coarse lattice, and two-sided geometric noise is added along each of the three axes.
 * 2. The Earth is projected orthogonally onto the plane that touches it at the reference point. That never makes a
 *    distance longer, wherever the point is, so there are no poles, date lines or borders between maps. In this plane
 *    the point is rounded at random to one of the four lattice points around it, and noise (i, j) is added whose
 *    probability is proportional to an integer w(i, j), nearly e^(−a √(i² + j² + 2)).
 *
 * The reference point is not released, but nothing changes if it were: epsilon is the sum of both steps'. `verify`
 * checks it on the integers: with c the value of the noise at a corner of a cell of side h and (g, g') its differences
 * to the two corners beside it, √(g² + g'²) ≤ ε h c bounds the slope between all points (docs/theory/points.md).
 */

import { InvalidOption } from "./errors.js";
import { list } from "./list.js";
import { atMost, type Dyadic, dyadic, exponentialBelow, PRECISION, times } from "./exact.js";
import { ACCURACY_SHARE } from "./finite.js";
import { geometric, Pacer, roundAtRandom, systemBytes, uniformBelow } from "./sampling.js";
import { coordinatesOf, EARTH_RADIUS_KM, type Rectangle } from "./spaces.js";
import type { Mechanism, Output, Position, Progress, RandomBytes, Secret, Verdict } from "./types.js";

/** The parameters of planar Laplace noise. */
export interface PlanarLaplaceOptions {
  /** The guarantee: epsilon per kilometre, between any two points of the Earth; from 0.1 to 1000. */
  readonly epsilonPerKm: number;
  /** The step of the lattice that outputs lie on, in metres; from 1/50 to 1/2 of 1/epsilon, best about 1/20. */
  readonly latticeMetres: number;
  /** Up to this distance the noise follows the planar Laplace distribution; beyond, a geometric one. */
  readonly radiusKm: number;
}

/** One part of epsilon in this many is for the reference point. */
const REFERENCE_PARTS = 32;
/** The geometric noise of the reference point stops at each step with a probability of one in this many. */
const REFERENCE_STOP = 8n;
/** The step of the reference point's lattice times epsilon: 3 ≤ (ε/32 · step · 7)² = (7/4)² is what is needed. */
const REFERENCE_STEP = 8;
/** Bits of the largest weight. */
const WEIGHT_BITS = 160n;
/** Largest number of lattice steps of the table along each axis. */
const MOST_STEPS = 128;
/** Largest exponent within the table, beyond which the noise is geometric at the latest. */
const MOST_EXPONENT = 35;
/** Added to i² + j², so that the noise has no peak, where the differences between lattice points exceed the slope. */
const ROUNDNESS = 2;
/** Relative margin of the noise's parameter for the rounding of its weights. */
const MARGIN = 2 ** -20;
/** Steps of the bisection for the noise's parameter. */
const BISECTIONS = 14;
/** Random bytes that are asked for at a time. */
const BLOCK = 256;
/** Slope of the geometric noise along each axis, as a share of what epsilon allows: below √½. */
const TAIL_SLOPE = 0.7;
/** All positions: its lengths are not used. */
const EARTH: Rectangle = { lengths: [0, 0], box: { west: -180, south: -90, east: 180, north: 90 } };
/** Outputs are rounded to this many decimals of a degree, 11 cm. */
const DECIMALS = 6;

/**
 * Discretised planar Laplace noise for points anywhere on the Earth; `kind` is "points" and `box` is null.
 *
 * @throws InvalidOption
 */
export function planarLaplace(options: PlanarLaplaceOptions): Mechanism {
  return new PlanarLaplace(options);
}

class PlanarLaplace implements Mechanism {
  readonly kind = "points";
  readonly box = null;
  readonly disclosure = "shareable: nothing in it depends on anybody's places";
  readonly id: string;
  readonly epsilon: number;
  /** The rounding at random moves a point by up to a cell's diagonal. */
  readonly accuracyKm: number;
  /** The lattice's step, in kilometres. */
  private readonly _step: number;
  private readonly _kernel: Kernel;

  constructor({ epsilonPerKm, latticeMetres, radiusKm }: PlanarLaplaceOptions) {
    if (!(epsilonPerKm >= 0.1 && epsilonPerKm <= 1000)) {
      throw new InvalidOption("epsilonPerKm must be a number from 0.1 to 1000");
    }
    const product = (epsilonPerKm * latticeMetres) / 1000;
    if (!(product >= 0.02 && product <= 0.5)) {
      throw new InvalidOption("latticeMetres must be from 20 to 500, divided by epsilonPerKm");
    }
    if (!(radiusKm * epsilonPerKm >= 1 && radiusKm <= 20_000)) {
      throw new InvalidOption("radiusKm must be at least 1, divided by epsilonPerKm, and at most 20000");
    }
    this.epsilon = epsilonPerKm;
    this._step = latticeMetres / 1000;
    this._kernel = new Kernel(epsilonPerKm, this._step, Math.ceil(radiusKm / this._step));
    this.accuracyKm = this._step * (this._kernel.radius(ACCURACY_SHARE) + Math.SQRT2);
    this.id = `planar-laplace-1 ${epsilonPerKm} ${latticeMetres} ${radiusKm}`;
  }

  get guarantee(): string {
    return `ε = ${this.epsilon} per km between any two points of the Earth`;
  }


  async verify(onProgress?: Progress): Promise<Verdict> {
    return this._kernel.verify(onProgress);
  }

  sample(secret: Secret, source: RandomBytes = systemBytes): Output {
    const point = toSpace(secret);
    const random = inBlocks(source);
    const centre = this._reference(point, random);
    const axes = tangentAxes(centre);
    const place = axes.map((axis) => roundAtRandom((dot(point, axis) * EARTH_RADIUS_KM) / this._step, random));
    const noise = this._kernel.draw(random);
    const [x, y] = place.map((at, axis) => (at + noise[axis]!) * this._step) as [number, number];
    return { index: null, label: null, position: toPosition(lift(x, y, axes, centre)), place: null };
  }

  /** The direction of a point near the secret, drawn with a small part of epsilon. */
  private _reference(point: Vector, random: RandomBytes): Vector {
    const step = REFERENCE_STEP / this.epsilon / EARTH_RADIUS_KM;
    const noisy = point.map((x) => {
      const rounded = roundAtRandom(x / step, random);
      return (rounded + geometric(REFERENCE_STOP, random) - geometric(REFERENCE_STOP, random)) * step;
    }) as unknown as Vector;
    return normalised(noisy) ?? [1, 0, 0];
  }
}

/** The noise on the lattice of the plane: weights on a square around 0, and geometric noise beyond its edges. */
class Kernel {
  /** w(i, j) for 0 ≤ i, j ≤ size, the larger of both first. */
  private readonly _quadrant: bigint[][];
  /** Cumulative weights over the square, of which the edges stand for all that lies beyond them. */
  private readonly _cumulative: bigint[] = [];
  private readonly _size: number;
  /** Beyond the square the noise goes on with probability (stop − 1)/stop at each step. */
  private readonly _stop: bigint;

  constructor(
    private readonly _epsilon: number,
    private readonly _step: number,
    steps: number,
  ) {
    const allowed = ((_epsilon * (REFERENCE_PARTS - 1)) / REFERENCE_PARTS) * _step;
    this._size = Math.min(steps, MOST_STEPS, Math.floor(MOST_EXPONENT / allowed));
    const parameter = largestParameter(allowed, this._size);
    this._stop = 1n + BigInt(Math.ceil(1 / (TAIL_SLOPE * allowed)));
    this._quadrant = list(this._size + 1, (i) =>
      list(i + 1, (j) => {
        const exponential = exponentialBelow(dyadic(parameter * radiusOf(i, j)));
        return (1n << (WEIGHT_BITS + PRECISION)) / exponential;
      }),
    );
    let total = 0n;
    for (let j = -this._size; j <= this._size; j++) {
      for (let i = -this._size; i <= this._size; i++) {
        total += this._weight(i, j) * this._beyond(i) * this._beyond(j);
        this._cumulative.push(total);
      }
    }
  }

  private _weight(i: number, j: number): bigint {
    const [a, b] = [Math.abs(i), Math.abs(j)];
    return this._quadrant[Math.max(a, b)]![Math.min(a, b)]!;
  }

  /** What an edge of the square counts for: the sum of a geometric series. */
  private _beyond(i: number): bigint {
    return Math.abs(i) === this._size ? this._stop : 1n;
  }

  draw(random: RandomBytes): [number, number] {
    const uniform = uniformBelow(this._cumulative[this._cumulative.length - 1]!, random);
    let low = 0;
    let high = this._cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this._cumulative[middle]! > uniform) high = middle;
      else low = middle + 1;
    }
    const width = 2 * this._size + 1;
    const place = [(low % width) - this._size, Math.floor(low / width) - this._size];
    return place.map((at) => {
      if (Math.abs(at) < this._size) return at;
      return at + Math.sign(at) * geometric(this._stop, random);
    }) as [number, number];
  }

  /** The smallest distance, in steps, within which this share of the noise lies. */
  radius(share: number): number {
    const rings = new Map<number, bigint>();
    const width = 2 * this._size + 1;
    this._cumulative.forEach((total, at) => {
      const [i, j] = [(at % width) - this._size, Math.floor(at / width) - this._size];
      const edge = Math.max(Math.abs(i), Math.abs(j)) === this._size;
      const distance = edge ? Infinity : Math.ceil(Math.hypot(i, j));
      rings.set(distance, (rings.get(distance) ?? 0n) + total - (this._cumulative[at - 1] ?? 0n));
    });
    const all = this._cumulative[this._cumulative.length - 1]!;
    let reached = 0n;
    for (const distance of [...rings.keys()].sort((a, b) => a - b)) {
      reached += rings.get(distance)!;
      if (Number((reached << 53n) / all) / 2 ** 53 >= share) {
        return distance === Infinity ? this._size + 6 * Number(this._stop) : distance;
      }
    }
    return Infinity;
  }

  /** Every slope of the noise, on its integers, against epsilon without the reference point's part. */
  async verify(onProgress?: Progress): Promise<Verdict> {
    const pacer = new Pacer();
    const reason = "the noise changes faster between points than epsilon allows";
    let checked = 0;
    // With four equal probabilities beside each other, all of which are multiplied by the same factor at each step
    // beyond an edge, slopes there are those at the edge and 1/(stop − 1).
    const limit = times(times(dyadic(this._epsilon), dyadic(this._step)), whole(BigInt(REFERENCE_PARTS - 1)));
    const fits = (dx: bigint, dy: bigint, value: bigint): boolean => {
      checked += 1;
      const allowed = times(limit, whole(value));
      return atMost(whole((dx * dx + dy * dy) * BigInt(REFERENCE_PARTS) ** 2n), times(allowed, allowed));
    };
    for (let i = 0; i < this._size; i++) {
      for (let j = 0; j < this._size; j++) {
        for (const [a, b] of [[i, j], [i + 1, j], [i, j + 1], [i + 1, j + 1]] as const) {
          const value = this._weight(a, b);
          const dx = this._weight(2 * i + 1 - a, b) - value;
          const dy = this._weight(a, 2 * j + 1 - b) - value;
          if (!fits(dx, dy, value)) return { holds: false, reason, checked };
        }
      }
      const [near, far] = [this._weight(this._size, i), this._weight(this._size, i + 1)];
      const steps = this._stop - 1n;
      for (const [value, other] of [[near, far], [far, near]] as const) {
        if (!fits(value, (other - value) * steps, value * steps)) return { holds: false, reason, checked };
      }
      await pacer.pause(i / this._size, onProgress);
    }
    const corner = fits(1n, 1n, this._stop - 1n);
    // The reference point: three axes, of slope 1/(stop − 1) per step each, with one part of epsilon.
    const slope = BigInt(REFERENCE_STEP) * (REFERENCE_STOP - 1n);
    const reference = 3n * BigInt(REFERENCE_PARTS) ** 2n <= slope ** 2n;
    checked += 1;
    onProgress?.(1);
    if (!corner || !reference) return { holds: false, reason, checked };
    return { holds: true, reason: `all ${checked} slopes are at most what epsilon allows`, checked };
  }
}

function radiusOf(i: number, j: number): number {
  return Math.sqrt(i * i + j * j + ROUNDNESS);
}

/** The largest parameter of the noise whose slopes are at most what is allowed; `verify` checks it exactly. */
function largestParameter(allowed: number, size: number): number {
  let [low, high] = [0.5 * allowed, Math.log1p(allowed)];
  if (largestSlope(high, size) <= allowed) return high * (1 - MARGIN);
  for (let at = 0; at < BISECTIONS; at++) {
    const middle = (low + high) / 2;
    if (largestSlope(middle, size) <= allowed) low = middle;
    else high = middle;
  }
  return low * (1 - MARGIN);
}

/** The largest slope of the noise between lattice points beside each other, in floating point. */
function largestSlope(parameter: number, size: number): number {
  let largest = 0;
  const fall = (from: number, i: number, j: number): number => Math.expm1(parameter * (from - radiusOf(i, j)));
  for (let i = 0; i <= size; i++) {
    for (let j = 0; j <= i; j++) {
      const from = radiusOf(i, j);
      const along = [fall(from, i - 1, j), fall(from, i + 1, j)];
      const across = [fall(from, i, j - 1), fall(from, i, j + 1)];
      for (const a of along) for (const b of across) largest = Math.max(largest, a * a + b * b);
    }
  }
  return Math.sqrt(largest);
}

/** Random bytes that are asked for in blocks. */
function inBlocks(source: RandomBytes): RandomBytes {
  let block = new Uint8Array(0);
  return (count) => {
    if (block.length < count) block = Uint8Array.from([...block, ...source(Math.max(BLOCK, count))]);
    const bytes = block.subarray(0, count);
    block = block.subarray(count);
    return bytes;
  };
}

function whole(integer: bigint): Dyadic {
  return { integer, exponent: 0 };
}

type Vector = readonly [number, number, number];

/** A position as a point of the unit sphere. */
function toSpace(secret: Secret): Vector {
  const [longitude, latitude] = coordinatesOf(secret, EARTH);
  const [phi, lambda] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180];
  return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
}

function toPosition([x, y, z]: Vector): Position {
  const rounded = (radians: number): number => Number(((radians * 180) / Math.PI).toFixed(DECIMALS)) + 0;
  return { latitude: rounded(Math.atan2(z, Math.hypot(x, y))), longitude: rounded(Math.atan2(y, x)) };
}

/** The point of the sphere above a point of the plane, in kilometres; on its rim where there is none. */
function lift(x: number, y: number, axes: readonly [Vector, Vector], centre: Vector): Vector {
  const beyond = Math.max(1, Math.hypot(x, y) / EARTH_RADIUS_KM);
  const [a, b] = [x / EARTH_RADIUS_KM / beyond, y / EARTH_RADIUS_KM / beyond];
  const height = Math.sqrt(Math.max(0, 1 - a * a - b * b));
  return [0, 1, 2].map((k) => a * axes[0][k]! + b * axes[1][k]! + height * centre[k]!) as unknown as Vector;
}

/** Two directions orthogonal to a third and to each other. */
function tangentAxes(centre: Vector): [Vector, Vector] {
  const sizes = centre.map(Math.abs);
  const least = sizes.indexOf(Math.min(...sizes));
  const first = normalised(cross(centre, [0, 1, 2].map((k) => (k === least ? 1 : 0)) as unknown as Vector))!;
  return [first, cross(centre, first)];
}

function dot(a: Vector, b: Vector): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function cross(a: Vector, b: Vector): Vector {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

function normalised(a: Vector): Vector | null {
  const length = Math.hypot(...a);
  return length > 0 ? [a[0] / length, a[1] / length, a[2] / length] : null;
}
