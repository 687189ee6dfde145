/** Tables of integer weights: rows that each sum to a power of two. */

import { requireValid } from "./errors.js";
import { MOST_WEIGHTS, type Reader } from "./reader.js";

export class Weights {
  /** The weights as floats, each within a relative 2^-53. */
  readonly approximate: Float64Array;
  private readonly _halves: Uint32Array;

  private constructor(
    readonly rows: number,
    readonly columns: number,
    readonly bits: number,
    private readonly _exact: BigUint64Array,
  ) {
    this._halves = new Uint32Array(_exact.buffer);
    this.approximate = new Float64Array(rows * columns);
    for (let at = 0; at < this.approximate.length; at++) {
      this.approximate[at] = this._halves[2 * at + 1]! * 2 ** 32 + this._halves[2 * at]!;
    }
  }

  static read(reader: Reader, rows: number, columns: number, bits: number): Weights {
    requireValid(rows * columns <= MOST_WEIGHTS, "there are too many weights");
    const bytes = reader.take(8 * rows * columns);
    const weights = new Weights(rows, columns, bits, new BigUint64Array(bytes.buffer));
    weights._requireSums();
    return weights;
  }

  /** Halves of 32 bits add up without rounding, since there are fewer than 2^21 of them in a row. */
  private _requireSums(): void {
    for (let row = 0; row < this.rows; row++) {
      let low = 0;
      let high = 0;
      for (let at = 2 * row * this.columns; at < 2 * (row + 1) * this.columns; at += 2) {
        low += this._halves[at]!;
        high += this._halves[at + 1]!;
      }
      const sum = (BigInt(high) << 32n) + BigInt(low);
      requireValid(sum === 1n << BigInt(this.bits), "a row of weights does not sum to the power of two given");
    }
  }

  row(row: number): BigUint64Array {
    return this._exact.subarray(row * this.columns, (row + 1) * this.columns);
  }

  approximateRow(row: number): Float64Array {
    return this.approximate.subarray(row * this.columns, (row + 1) * this.columns);
  }

  at(row: number, column: number): bigint {
    return this._exact[row * this.columns + column]!;
  }

  /** Whether the one weight is at most the other, exactly. */
  inOrder(row: number, other: number, column: number): boolean {
    const a = 2 * (row * this.columns + column);
    const b = 2 * (other * this.columns + column);
    const high = this._halves[a + 1]! - this._halves[b + 1]!;
    return high < 0 || (high === 0 && this._halves[a]! <= this._halves[b]!);
  }
}
