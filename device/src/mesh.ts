/**
 * Meshes: cells over a region, some of them halved, and which control values neighbouring cells share.
 *
 * The order of cells, of control points and of the terms of combinations is that of `points/mesh.py`,
 * `points/cell_tree.py` and `points/shared_controls.py`, since rows of weights and random integers refer to it.
 */

import { requireValid } from "./errors.js";
import { list } from "./list.js";
import type { Reader } from "./reader.js";
import { shareUnits } from "./sampling.js";

export const MOST_CONTROLS = 4000;
const MOST_LEVELS = 5;
const HIGHEST_DEGREE = 8;
/** Weights of combinations are multiples of 2^-24. */
const WEIGHT_BITS = 24;
/** The thinnest cell, as a share of the longest side of the region. */
const THINNEST = 1e-9;

/** A control value of a cell: a mean of control points, whose shares are in units of 2^-24. */
export interface Combination {
  readonly controls: readonly number[];
  readonly shares: readonly number[];
}

/** A point of a mesh: its cell, and where in it along each axis, in units of 2^-24 of the cell's side. */
export interface Located {
  readonly cell: number;
  readonly inside: readonly number[];
}

export class Mesh {
  readonly degree: number;
  /** For each axis, where the cells of level 0 begin and end. */
  private readonly _lines: Float64Array[];
  private readonly _counts: number[];
  /** For each cell, its level and its position along each axis among the cells of that level. */
  private readonly _cells: number[][];
  /** The highest level. */
  readonly depth: number;
  /** The cell that covers each cell of the highest level; the first axis runs fastest. */
  private readonly _lookup: Int32Array;
  /** The control values of all cells, cell by cell; in each, the first axis runs fastest. */
  readonly combinations: readonly Combination[];
  /** The number of control points: the rows of weights. */
  readonly controls: number;

  constructor(
    reader: Reader,
    private readonly _lengths: readonly number[],
  ) {
    this.degree = reader.u8();
    requireValid(this.degree >= 1 && this.degree <= HIGHEST_DEGREE, "the degree of the mesh is out of range");
    this._lines = _lengths.map((length) => readLines(reader, length, Math.max(..._lengths)));
    this._counts = this._lines.map((lines) => lines.length - 1);
    const regular = this._counts.reduce((product, count) => product * (count * this.degree + 1), 1);
    requireValid(regular <= MOST_CONTROLS, "the mesh is too large");
    this._cells = this._readCells(reader);
    this.depth = Math.max(...this._cells.map((cell) => cell[0]!));
    requireValid(this.depth * this.degree <= WEIGHT_BITS, "cells of the mesh are halved too often");
    this._lookup = this._makeLookup();
    this._requireBalance();
    const { combinations, controls } = this._shareControls();
    this.combinations = combinations;
    this.controls = controls;
    requireValid(controls <= MOST_CONTROLS, "the mesh is too large");
  }

  get axes(): number {
    return this._lengths.length;
  }

  get size(): number {
    return this._cells.length;
  }

  /** How many control values each cell has. */
  get each(): number {
    return (this.degree + 1) ** this.axes;
  }

  /** The side of a cell along an axis. */
  side(cell: number, axis: number): number {
    const level = this._cells[cell]![0]!;
    const line = this._cells[cell]![1 + axis]! >> level;
    return (this._lines[axis]![line + 1]! - this._lines[axis]![line]!) * 2 ** -level;
  }

  /** The lower end of a cell along an axis. */
  low(cell: number, axis: number): number {
    const level = this._cells[cell]![0]!;
    const position = this._cells[cell]![1 + axis]!;
    const line = position >> level;
    return this._lines[axis]![line]! + (position - (line << level)) * this.side(cell, axis);
  }

  /** The cell of a point, counted from the lower ends, and where in it. */
  locate(point: readonly number[]): Located {
    const parts = 2 ** this.depth;
    const finest = point.map((x, axis) => {
      const lines = this._lines[axis]!;
      let line = 0;
      while (line < this._counts[axis]! - 1 && x >= lines[line + 1]!) line++;
      const share = ((x - lines[line]!) / (lines[line + 1]! - lines[line]!)) * parts;
      return line * parts + Math.min(Math.max(Math.trunc(share), 0), parts - 1);
    });
    const cell = this._lookup[this._placeOf(finest)]!;
    return { cell, inside: point.map((x, axis) => shareUnits((x - this.low(cell, axis)) / this.side(cell, axis))) };
  }

  private _readCells(reader: Reader): number[][] {
    const count = reader.count(2 * MOST_CONTROLS, 0);
    if (count === 0) return this._regularCells();
    requireValid(count * this.degree ** this.axes <= 2 * MOST_CONTROLS, "the mesh is too large");
    const cells = list(count, () => {
      const level = reader.choice(MOST_LEVELS + 1);
      return [level, ...this._counts.map((lines) => reader.count((lines << level) - 1, 0))];
    });
    const depth = Math.max(...cells.map((cell) => cell[0]!));
    const corners = cells.map(([level, ...position]) => position.map((at) => at * 2 ** (depth - level!)));
    for (let at = 1; at < count; at++) {
      requireValid(isBefore(corners[at - 1]!, corners[at]!), "the cells of the mesh are not in order");
    }
    requireValid(depth > 0, "no cell of the mesh is halved");
    return cells;
  }

  private _regularCells(): number[][] {
    const [columns, rows = 1] = this._counts as [number, number?];
    return list(columns * rows, (at) => {
      const row = Math.floor(at / columns);
      return this.axes === 1 ? [0, at] : [0, at - row * columns, row];
    });
  }

  private _placeOf(finest: readonly number[]): number {
    return finest.length === 1 ? finest[0]! : finest[1]! * this._counts[0]! * 2 ** this.depth + finest[0]!;
  }

  private _makeLookup(): Int32Array {
    const scale = 2 ** this.depth;
    const lookup = new Int32Array(this._counts.reduce((product, count) => product * count * scale, 1)).fill(-1);
    const message = "the cells do not cover the region once";
    let covered = 0;
    this._cells.forEach(([level, ...position], cell) => {
      const size = 2 ** (this.depth - level!);
      for (let part = 0; part < size ** this.axes; part++) {
        const offsets = [part % size, Math.floor(part / size)];
        const place = this._placeOf(position.map((at, axis) => at * size + offsets[axis]!));
        requireValid(lookup[place] === -1, message);
        lookup[place] = cell;
        covered += 1;
      }
    });
    requireValid(covered === lookup.length, message);
    return lookup;
  }

  /** The cell beyond an edge of another, −1 at the border: the one at the edge's first corner, if it is smaller. */
  private _neighbour(cell: number, axis: number, step: number): number {
    const [level, ...position] = this._cells[cell]!;
    const size = 2 ** (this.depth - level!);
    const at = position.map((place) => place * size);
    at[axis]! += step < 0 ? -1 : size;
    if (at[axis]! < 0 || at[axis]! >= this._counts[axis]! * 2 ** this.depth) return -1;
    return this._lookup[this._placeOf(at)]!;
  }

  private _largerNeighbours(cell: number): { neighbour: number; axis: number; step: number }[] {
    const level = this._cells[cell]![0]!;
    const edges = this._counts.flatMap((_, axis) =>
      [-1, 1].map((step) => ({ neighbour: this._neighbour(cell, axis, step), axis, step })),
    );
    return edges.filter(({ neighbour }) => neighbour >= 0 && this._cells[neighbour]![0]! < level);
  }

  /** Refuse cells of the plane that differ by more than a level from one beside them. */
  private _requireBalance(): void {
    if (this.axes === 1) return;
    for (let cell = 0; cell < this.size; cell++) {
      const level = this._cells[cell]![0]!;
      const larger = this._largerNeighbours(cell);
      const balanced = larger.every(({ neighbour }) => this._cells[neighbour]![0]! >= level - 1);
      requireValid(balanced, "neighbouring cells differ too much");
    }
  }

  /**
   * The control values of every cell as combinations of those that are free. On an edge that is half of a larger
   * cell's edge, they are those of the larger cell, cut in half by de Casteljau's algorithm.
   */
  private _shareControls(): { combinations: Combination[]; controls: number } {
    const places = this._cells.map((_, cell) => this._placesOf(cell));
    const known = new Map<number, Map<number, number>>();
    for (let level = 0; level <= this.depth; level++) {
      const cells = [...this._cells.keys()].filter((cell) => this._cells[cell]![0] === level);
      for (const cell of level > 0 ? cells : []) {
        for (const { neighbour, axis, step } of this._largerNeighbours(cell)) {
          this._shareEdge(known, places[cell]!, places[neighbour]!, cell, axis, step);
        }
      }
      for (const place of cells.flatMap((cell) => places[cell]!)) {
        if (!known.has(place)) known.set(place, new Map([[place, 2 ** WEIGHT_BITS]]));
      }
    }
    const free = [...new Set([...known.values()].flatMap((terms) => [...terms.keys()]))].sort((a, b) => a - b);
    const number = new Map(free.map((place, at) => [place, at]));
    const combinations = places.flat().map((place) => {
      const terms = [...known.get(place)!].map(([at, share]) => [number.get(at)!, share] as const);
      terms.sort((a, b) => a[0] - b[0]);
      return { controls: terms.map((term) => term[0]), shares: terms.map((term) => term[1]) };
    });
    return { combinations, controls: free.length };
  }

  /** A number for the place of each control value of a cell among those of its level. */
  private _placesOf(cell: number): number[] {
    const [level, ...position] = this._cells[cell]!;
    let places = [level!];
    for (let axis = this.axes - 1; axis >= 0; axis--) {
      const span = this._counts[axis]! * 2 ** this.depth * this.degree + 1;
      const along = list(this.degree + 1, (at) => position[axis]! * this.degree + at);
      places = places.flatMap((place) => along.map((at) => place * span + at));
    }
    return places;
  }

  private _shareEdge(
    known: Map<number, Map<number, number>>,
    own: number[],
    larger: number[],
    cell: number,
    axis: number,
    step: number,
  ): void {
    const edge = this._edgeOf(own, axis, step > 0 ? this.degree : 0);
    const whole = this._edgeOf(larger, axis, step > 0 ? 0 : this.degree);
    const upper = this.axes > 1 && this._cells[cell]![2 - axis]! % 2 === 1;
    const half = this.axes > 1 ? halves(this.degree, upper) : [[1]];
    edge.forEach((place, at) => {
      if (known.has(place)) return;
      const combination = new Map<number, number>();
      half[at]!.forEach((weight, other) => {
        if (weight === 0) return;
        for (const [control, share] of known.get(whole[other]!)!) {
          combination.set(control, (combination.get(control) ?? 0) + weight * share);
        }
      });
      known.set(place, combination);
    });
  }

  /** The control values of a cell on an edge orthogonal to an axis. */
  private _edgeOf(places: number[], axis: number, at: number): number[] {
    const count = this.degree + 1;
    if (this.axes === 1) return [places[at]!];
    return list(count, (along) => places[axis === 0 ? along * count + at : at * count + along]!);
  }
}

function readLines(reader: Reader, length: number, longest: number): Float64Array {
  const count = reader.count(MOST_CONTROLS + 1, 2);
  const lines = new Float64Array(count);
  for (let at = 0; at < count; at++) lines[at] = reader.number(0, length);
  requireValid(lines[0] === 0 && lines[count - 1] === length, "the mesh does not fit its region");
  for (let at = 1; at < count; at++) {
    requireValid(lines[at]! - lines[at - 1]! >= THINNEST * longest, "a cell of the mesh is too thin");
  }
  return lines;
}

/** Whether a corner comes before another: the last axis counts first. */
function isBefore(a: readonly number[], b: readonly number[]): boolean {
  for (let axis = a.length - 1; axis >= 0; axis--) {
    if (a[axis] !== b[axis]) return a[axis]! < b[axis]!;
  }
  return false;
}

/** De Casteljau at one half: the coefficients on the lower or the upper half, (new, old). */
function halves(degree: number, upper: boolean): number[][] {
  const lower = list(degree + 1, (i) =>
    list(degree + 1, (j) => (j <= i ? binomial(i, j) / 2 ** i : 0)),
  );
  return upper ? lower.reverse().map((row) => row.reverse()) : lower;
}

function binomial(n: number, k: number): number {
  let value = 1;
  for (let at = 1; at <= k; at++) value = (value * (n - at + 1)) / at;
  return value;
}
