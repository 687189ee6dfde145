/** Mechanisms with finitely many secrets: cells of a grid, numbers, categories or sets. */

import { requireValid } from "./errors.js";
import { type Dyadic, dyadic, exponentialBelow, LARGEST_EXPONENT, PRECISION, roughExponentialBelow, times } from "./exact.js";
import { LARGEST, MOST_OUTPUTS, MOST_SECRETS, type Reader, SMALLEST } from "./reader.js";
import { drawFromRow, Pacer, quantile, systemBytes, wordAt } from "./sampling.js";
import { Cells, EARTH_RADIUS_KM, Labels, Outputs } from "./spaces.js";
import type { Box, Kind, Mechanism, Output, Progress, RandomBytes, Secret, Verdict } from "./types.js";
import { Weights } from "./weights.js";

/** The largest number of ratios that are decided by exact integers; only a hostile file needs more. */
const MOST_EXACT = 2_000_000;
/** Relative difference up to which a distance is taken for that of the space. */
const SAME_DISTANCE = 1e-9;
/** Probability with which the output lies within the stated accuracy. */
export const ACCURACY_SHARE = 0.95;

/** What stands before the content of every file. */
export interface Heading {
  readonly kind: Kind;
  readonly id: string;
  readonly disclosure: string;
  readonly bits: number;
  readonly epsilon: number;
  readonly unit: string;
}

/** Distances between secrets: each is one of a list of numbers in ascending order. */
class Distances {
  private constructor(
    readonly values: Float64Array,
    private readonly _positions: Uint8Array | Uint16Array | Uint32Array,
    private readonly _size: number,
    /** Whether they are those of the space, or others, which were given. */
    readonly ofSpace: boolean,
    /** Secrets at most this far apart are protected from each other by epsilon, whatever their distance. */
    readonly within: number | null,
  ) {}

  static read(reader: Reader, size: number): Distances {
    const within = reader.choice(2) === 1 ? reader.number(0, LARGEST) : null;
    const ofSpace = reader.choice(2) === 1;
    const count = reader.count(size * size);
    const values = new Float64Array(count);
    for (let at = 0; at < count; at++) {
      const value = reader.f64();
      const valid = Object.is(value, 0) || (value >= SMALLEST && value <= LARGEST) || value === Infinity;
      requireValid(valid && (at === 0 || value > values[at - 1]!), "the distances are not in order");
      values[at] = value;
    }
    const width = count <= 2 ** 8 ? 1 : count <= 2 ** 16 ? 2 : 4;
    const bytes = reader.take(width * size * size).buffer as ArrayBuffer;
    const Table = width === 1 ? Uint8Array : width === 2 ? Uint16Array : Uint32Array;
    const positions = new Table(bytes);
    requireValid(positions.every((position: number) => position < count), "a distance is none of those listed");
    for (let secret = 0; secret < size; secret++) {
      requireValid(values[positions[secret * size + secret]!] === 0, "a secret is not at distance 0 of itself");
    }
    return new Distances(values, positions, size, ofSpace, within);
  }

  position(secret: number, other: number): number {
    return this._positions[secret * this._size + other]!;
  }

  between(secret: number, other: number): number {
    return this.values[this.position(secret, other)]!;
  }
}

/** Lower bounds on e^(epsilon·d) for each of the distances: a float at once, and an integer where it is needed. */
class Bounds {
  readonly rough: Float64Array;
  private readonly _exact: (bigint | undefined)[] = [];
  private readonly _exponents: (number | null)[];

  constructor(
    private readonly _epsilon: number,
    { values, within }: Distances,
  ) {
    this._exponents = Array.from(values, (distance) => {
      if (within !== null) return distance <= within ? 1 : null;
      return distance === Infinity ? null : distance;
    });
    this.rough = Float64Array.from(this._exponents, (distance) =>
      distance === null ? Infinity : roughExponentialBelow(_epsilon, distance!),
    );
  }

  /** 2^256·e^(epsilon·d), rounded down. */
  integer(position: number): bigint {
    const known = this._exact[position];
    if (known !== undefined) return known;
    const product = times(dyadic(this._epsilon), dyadic(this._exponents[position]!));
    const most: Dyadic = dyadic(LARGEST_EXPONENT);
    const capped = this._epsilon * this._exponents[position]! >= LARGEST_EXPONENT ? most : product;
    const bound = exponentialBelow(capped);
    this._exact[position] = bound;
    return bound;
  }
}

export class FiniteMechanism implements Mechanism {
  private _accuracy: number | null | undefined;

  private constructor(
    private readonly _heading: Heading,
    private readonly _secrets: Cells | Labels,
    private readonly _outputs: Outputs,
    private readonly _distances: Distances,
    private readonly _weights: Weights,
  ) {}

  static read(reader: Reader, heading: Heading): FiniteMechanism {
    const secrets = readSecrets(reader, heading.kind);
    const outputs = readOutputs(reader, secrets);
    const distances = Distances.read(reader, secrets.size);
    const weights = Weights.read(reader, secrets.size, outputs.size, heading.bits);
    requireDistancesOfSpace(secrets, distances, heading.unit);
    return new FiniteMechanism(heading, secrets, outputs, distances, weights);
  }

  get kind(): Kind {
    return this._heading.kind;
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
    return this._secrets instanceof Cells ? this._secrets.rectangle.box : null;
  }

  get guarantee(): string {
    const { epsilon, unit } = this._heading;
    const cells = this._secrets instanceof Cells;
    const what = cells ? "cells" : "secrets";
    const { within, ofSpace } = this._distances;
    const per =
      within !== null
        ? `between ${what} at most ${within} ${unit} apart`.replace("  ", " ")
        : `per ${unit || "unit of distance"} between any two ${what}`;
    const given = ofSpace ? "" : ", counted in the distances that the file gives";
    const points = cells ? "; not between coordinates: close points on two sides of a border differ like their cells" : "";
    return `ε = ${epsilon} ${per}${given}${points}`;
  }

  get accuracyKm(): number | null {
    if (this._accuracy === undefined) this._accuracy = this._computeAccuracy();
    return this._accuracy;
  }

  private _computeAccuracy(): number | null {
    if (!(this._secrets instanceof Cells)) return null;
    const { rectangle, columns, rows } = this._secrets;
    const places = this._outputs.kilometres(rectangle);
    if (places === null) return null;
    let worst = 0;
    for (let secret = 0; secret < this._secrets.size; secret++) {
      const [x, y] = this._secrets.centre(secret);
      const distances = Float64Array.from(places, (place) => Math.hypot(place[0] - x, place[1] - y));
      worst = Math.max(worst, quantile(distances, this._weights.approximateRow(secret), ACCURACY_SHARE));
    }
    return worst + Math.hypot(rectangle.lengths[0] / columns, rectangle.lengths[1] / rows) / 2;
  }

  /** Every weight against that of every other secret: p(o|s) ≤ e^(εd) p(o|s'), exactly. */
  async verify(onProgress?: Progress): Promise<Verdict> {
    const size = this._secrets.size;
    const bounds = new Bounds(this._heading.epsilon, this._distances);
    const pacer = new Pacer();
    let checked = 0;
    let exact = 0;
    for (let secret = 0; secret < size; secret++) {
      for (let other = 0; other < size; other++) {
        const position = this._distances.position(secret, other);
        const bound = bounds.rough[position]!;
        if (other === secret || bound === Infinity) continue;
        checked += this._outputs.size;
        for (const output of this._suspects(secret, other, bound)) {
          if (this._weights.inOrder(secret, other, output)) continue;
          exact += 1;
          const left = this._weights.at(secret, output) << PRECISION;
          if (exact > MOST_EXACT || left > bounds.integer(position) * this._weights.at(other, output)) {
            const reason =
              exact > MOST_EXACT
                ? "so many ratios are near their bounds that they cannot be decided"
                : "a ratio of two probabilities exceeds what epsilon allows";
            return { holds: false, reason, checked };
          }
        }
      }
      await pacer.pause(secret / size, onProgress);
    }
    onProgress?.(1);
    return { holds: true, reason: `all ${checked} ratios are at most what epsilon allows`, checked };
  }

  /** The outputs whose ratio floating-point numbers cannot decide. */
  private _suspects(secret: number, other: number, bound: number): number[] {
    const larger = this._weights.approximateRow(secret);
    const smaller = this._weights.approximateRow(other);
    const suspects: number[] = [];
    for (let output = 0; output < larger.length; output++) {
      if (!(larger[output]! <= bound * smaller[output]!)) suspects.push(output);
    }
    return suspects;
  }

  sample(secret: Secret, random: RandomBytes = systemBytes): Output {
    const row = this._weights.row(this._secrets.index(secret));
    return this._outputs.output(drawFromRow(row, this._heading.bits, wordAt(random(8), 0)));
  }
}

function readSecrets(reader: Reader, kind: Kind): Cells | Labels {
  if (kind === "grid") return Cells.read(reader);
  if (kind === "numbers") return Labels.readNumbers(reader, MOST_SECRETS);
  return kind === "categories" ? Labels.readTexts(reader, MOST_SECRETS) : Labels.readSets(reader, MOST_SECRETS);
}

function readOutputs(reader: Reader, secrets: Cells | Labels): Outputs {
  const form = reader.choice(5);
  if (form === 0) return secrets instanceof Cells ? Outputs.ofCells(secrets) : Outputs.ofLabels(secrets);
  if (form === 1) {
    requireValid(secrets instanceof Cells, "only secrets that are places have outputs that are places");
    return Outputs.readPlaces(reader, secrets.rectangle.box !== null);
  }
  const read = [Labels.readNumbers, Labels.readTexts, Labels.readSets][form - 2]!;
  return Outputs.ofLabels(read(reader, MOST_OUTPUTS));
}

/** Refuse distances that are said to be those of the space and are longer, or a grid that is narrower than its box. */
function requireDistancesOfSpace(secrets: Cells | Labels, distances: Distances, unit: string): void {
  if (!distances.ofSpace) return;
  const message = "the distances are not those of the secrets";
  if (secrets instanceof Cells) {
    const { box, lengths } = secrets.rectangle;
    requireValid(unit === "km", message);
    if (box !== null) {
      const middle = ((box.south + box.north) / 2) * (Math.PI / 180);
      const wide = EARTH_RADIUS_KM * (box.east - box.west) * (Math.PI / 180) * Math.cos(middle);
      const high = EARTH_RADIUS_KM * (box.north - box.south) * (Math.PI / 180);
      const most = [wide, high].map((length) => length * (1 + SAME_DISTANCE));
      requireValid(lengths[0] <= most[0]! && lengths[1] <= most[1]!, message);
    }
  } else {
    requireValid(typeof secrets.labels[0] === "number", message);
  }
  for (let secret = 0; secret < secrets.size; secret++) {
    for (let other = 0; other < secrets.size; other++) {
      const distance = secrets instanceof Cells
        ? Math.hypot(...[0, 1].map((axis) => secrets.centre(secret)[axis]! - secrets.centre(other)[axis]!))
        : Math.abs((secrets.labels[secret] as number) - (secrets.labels[other] as number));
      requireValid(distances.between(secret, other) <= distance * (1 + SAME_DISTANCE), message);
    }
  }
}
