/** What secrets and outputs are, as a file describes them. */

import { requireValid, UnknownSecret } from "./errors.js";
import { list } from "./list.js";
import { LARGEST, MOST_MEMBERS, MOST_OUTPUTS, MOST_SECRETS, type Reader, SMALLEST } from "./reader.js";
import type { Box, Label, Output, Secret } from "./types.js";

export const EARTH_RADIUS_KM = 6371.0088;
/** Labels that are numbers are smaller than this in size. */
const MOST_NUMBER = 2 ** 53 - 1;

/** A rectangle: lengths in kilometres, and where it lies in degrees, if it is over degrees. */
export interface Rectangle {
  readonly lengths: readonly [number, number];
  readonly box: Box | null;
}

export function readRectangle(reader: Reader): Rectangle {
  const lengths = [reader.number(SMALLEST, LARGEST), reader.number(SMALLEST, LARGEST)] as const;
  if (reader.choice(2) === 0) return { lengths, box: null };
  const [west, south, east, north] = [
    readFinite(reader, 180),
    readFinite(reader, 90),
    readFinite(reader, 180),
    readFinite(reader, 90),
  ];
  requireValid(west < east && south < north, "the box is none");
  return { lengths, box: { west, south, east, north } };
}

export function readFinite(reader: Reader, limit: number): number {
  const value = reader.f64();
  requireValid(Math.abs(value) <= limit && !Object.is(value, -0), "a number is out of range");
  return value;
}

/** A position or place as (x, y) in the coordinates of a rectangle: degrees, or kilometres. */
export function coordinatesOf(secret: Secret, rectangle: Rectangle): [number, number] {
  if (typeof secret === "object" && rectangle.box !== null && "latitude" in secret) {
    const { latitude, longitude } = secret;
    if (Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180) return [longitude, latitude];
  }
  if (typeof secret === "object" && rectangle.box === null && "x" in secret) {
    if (Number.isFinite(secret.x) && Number.isFinite(secret.y)) return [secret.x, secret.y];
  }
  throw new UnknownSecret(
    rectangle.box === null
      ? "the secret must be a place with x and y in kilometres"
      : "the secret must be a position with a latitude and a longitude in degrees",
  );
}

/** The lower ends and the lengths of the axes, in the coordinates of a rectangle. */
export function axesOf({ lengths, box }: Rectangle): [[number, number], [number, number]] {
  if (box === null) return [[0, 0], [...lengths]];
  return [
    [box.west, box.south],
    [box.east - box.west, box.north - box.south],
  ];
}

/** A grid of cells, numbered along each row from west to east, rows from south to north. */
export class Cells {
  constructor(
    readonly columns: number,
    readonly rows: number,
    readonly rectangle: Rectangle,
  ) {}

  static read(reader: Reader): Cells {
    const columns = reader.count(MOST_SECRETS);
    const rows = reader.count(MOST_SECRETS);
    requireValid(columns * rows <= MOST_SECRETS, "there are too many cells");
    return new Cells(columns, rows, readRectangle(reader));
  }

  get size(): number {
    return this.columns * this.rows;
  }

  /** The number of the cell of a secret; the nearest one, where it lies outside. */
  index(secret: Secret): number {
    const point = coordinatesOf(secret, this.rectangle);
    const [low, length] = axesOf(this.rectangle);
    const [column, row] = [this.columns, this.rows].map((count, axis) => {
      const share = Math.min(Math.max((point[axis]! - low[axis]!) / length[axis]!, 0), 1);
      return Math.min(Math.floor(share * count), count - 1);
    }) as [number, number];
    return row * this.columns + column;
  }

  /** The centre of a cell in kilometres. */
  centre(index: number): [number, number] {
    const [width, height] = this.rectangle.lengths;
    const column = index % this.columns;
    const row = Math.floor(index / this.columns);
    return [((column + 0.5) * width) / this.columns, ((row + 0.5) * height) / this.rows];
  }
}

/** Labels in order, all of one type. */
export class Labels {
  private readonly _positions: Map<string | number, number>;

  constructor(readonly labels: readonly Label[]) {
    this._positions = new Map(labels.map((label, position) => [keyOf(label), position]));
    requireValid(this._positions.size === labels.length, "two labels are the same");
  }

  static readNumbers(reader: Reader, most: number): Labels {
    return new Labels(readMany(reader, most, () => readFinite(reader, MOST_NUMBER)));
  }

  static readTexts(reader: Reader, most: number): Labels {
    return new Labels(readMany(reader, most, () => reader.text()));
  }

  static readSets(reader: Reader, most: number): Labels {
    return new Labels(
      readMany(reader, most, () => {
        const count = reader.u16();
        requireValid(count <= MOST_MEMBERS, "a set is too large");
        const members = list(count, () => reader.text());
        const inOrder = members.every((member, at) => at === 0 || members[at - 1]! < member);
        requireValid(inOrder, "the members of a set are not in order");
        return members;
      }),
    );
  }

  get size(): number {
    return this.labels.length;
  }

  index(secret: Secret): number {
    const isLabel = typeof secret === "string" || typeof secret === "number" || Array.isArray(secret);
    const position = isLabel ? this._positions.get(keyOf(secret as Label)) : undefined;
    if (position === undefined) throw new UnknownSecret("the secret is not one of the mechanism's labels");
    return position;
  }
}

function readMany<Item>(reader: Reader, most: number, read: () => Item): Item[] {
  const count = reader.count(most);
  const items: Item[] = [];
  for (let at = 0; at < count; at++) items.push(read());
  return items;
}

/** A key that is equal for equal labels; of sets, the members with their lengths, in the order of code units. */
function keyOf(label: Label): string | number {
  if (typeof label === "string") return `s${label}`;
  if (typeof label === "number") return label;
  return `e${[...new Set(label)].sort().map((member) => `${member.length}:${member}`).join("")}`;
}

/** The outputs of a mechanism: labels, or places in the coordinates of a rectangle. */
export class Outputs {
  private constructor(
    readonly size: number,
    private readonly _labels: readonly Label[] | null,
    /** (outputs, 2), in degrees or kilometres; null where outputs are no places. */
    readonly coordinates: readonly (readonly [number, number])[] | null,
    private readonly _degrees: boolean,
  ) {}

  static ofLabels(labels: Labels): Outputs {
    return new Outputs(labels.size, labels.labels, null, false);
  }

  static ofCells(cells: Cells): Outputs {
    const [low, length] = axesOf(cells.rectangle);
    const counts = [cells.columns, cells.rows];
    const coordinates = list(cells.size, (cell) => {
      const place = [cell % cells.columns, Math.floor(cell / cells.columns)];
      return [0, 1].map((axis) => low[axis]! + (length[axis]! * (place[axis]! + 0.5)) / counts[axis]!) as [
        number,
        number,
      ];
    });
    const labels = coordinates.map((_, cell) => `cell-${cell}`);
    return new Outputs(cells.size, labels, coordinates, cells.rectangle.box !== null);
  }

  static readPlaces(reader: Reader, degrees: boolean): Outputs {
    const coordinates = readMany(
      reader,
      MOST_OUTPUTS,
      () => [readFinite(reader, degrees ? 180 : LARGEST), readFinite(reader, degrees ? 90 : LARGEST)] as const,
    );
    return new Outputs(coordinates.length, null, coordinates, degrees);
  }

  output(index: number): Output {
    const [x, y] = this.coordinates?.[index] ?? [0, 0];
    const isPlace = this.coordinates !== null;
    return {
      index,
      label: this._labels?.[index] ?? null,
      position: isPlace && this._degrees ? { latitude: y, longitude: x } : null,
      place: isPlace && !this._degrees ? { x, y } : null,
    };
  }

  /** The outputs in kilometres, given the rectangle whose coordinates they are in; null where they are no places. */
  kilometres(rectangle: Rectangle): [number, number][] | null {
    if (this.coordinates === null) return null;
    const [low, length] = axesOf(rectangle);
    return this.coordinates.map(
      (point) => [0, 1].map((axis) => ((point[axis]! - low[axis]!) / length[axis]!) * rectangle.lengths[axis]!) as [
        number,
        number,
      ],
    );
  }
}
