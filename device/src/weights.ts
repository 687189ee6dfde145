/** Tables of integer weights: rows that each sum to a power of two. */

import { InvalidFile } from "./errors.js";
import { MOST_WEIGHTS, type Reader } from "./reader.js";

export class Weights {
  /** The weights as floats, each within a relative 2^-53. */
  readonly approximate: Float64Array;
  private readonly halves: Uint32Array;

  private constructor(
    readonly rows: number,
    readonly columns: number,
    readonly bits: number,
    private readonly exact: BigUint64Array,
  ) {
    this.halves = new Uint32Array(exact.buffer);
    this.approximate = new Float64Array(rows * columns);
    for (let at = 0; at < this.approximate.length; at++) {
      this.approximate[at] = this.halves[2 * at + 1]! * 2 ** 32 + this.halves[2 * at]!;
    }
  }

  static read(reader: Reader, rows: number, columns: number, bits: number): Weights {
    if (rows * columns > MOST_WEIGHTS) throw new InvalidFile("there are too many weights");
    const bytes = reader.take(8 * rows * columns);
    const weights = new Weights(rows, columns, bits, new BigUint64Array(bytes.buffer));
    weights.requireSums();
    return weights;
  }

  /** Halves of 32 bits add up without rounding, since there are fewer than 2^21 of them in a row. */
  private requireSums(): void {
    for (let row = 0; row < this.rows; row++) {
      let low = 0;
      let high = 0;
      for (let at = 2 * row * this.columns; at < 2 * (row + 1) * this.columns; at += 2) {
        low += this.halves[at]!;
        high += this.halves[at + 1]!;
      }
      if ((BigInt(high) << 32n) + BigInt(low) !== 1n << BigInt(this.bits)) {
        throw new InvalidFile("the weights of a row do not sum to the power of two that they should");
      }
    }
  }

  row(row: number): BigUint64Array {
    return this.exact.subarray(row * this.columns, (row + 1) * this.columns);
  }

  approximateRow(row: number): Float64Array {
    return this.approximate.subarray(row * this.columns, (row + 1) * this.columns);
  }

  at(row: number, column: number): bigint {
    return this.exact[row * this.columns + column]!;
  }

  /** Whether the one weight is at most the other, exactly. */
  inOrder(row: number, other: number, column: number): boolean {
    const a = 2 * (row * this.columns + column);
    const b = 2 * (other * this.columns + column);
    const high = this.halves[a + 1]! - this.halves[b + 1]!;
    return high < 0 || (high === 0 && this.halves[a]! <= this.halves[b]!);
  }
}
