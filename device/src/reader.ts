/** Reads the bytes of a file in order; every length is checked before anything of that length is read. */

import { InvalidFile, requireValid } from "./errors.js";

/** Largest size of a file, in bytes. */
export const MOST_BYTES = 2 ** 26;
/** Largest number of secrets that are labels or cells. */
export const MOST_SECRETS = 2048;
/** Largest number of outputs. */
export const MOST_OUTPUTS = 8192;
/** Largest number of weights. */
export const MOST_WEIGHTS = 2 ** 23 - 2 ** 16;
/** Largest number of texts in one set. */
export const MOST_MEMBERS = 1000;
/** Largest number of bytes of one text. */
export const MOST_TEXT_BYTES = 1000;
/** Numbers that are parameters or distances are 0 or between these. */
export const SMALLEST = 1e-12;
export const LARGEST = 1e12;

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Reader {
  private _at = 0;
  private readonly _view: DataView;

  constructor(private readonly _bytes: Uint8Array) {
    this._view = new DataView(_bytes.buffer, _bytes.byteOffset, _bytes.byteLength);
  }

  private _advance(count: number): number {
    const at = this._at;
    requireValid(count <= this._bytes.length - at, "the file ends too early");
    this._at = at + count;
    return at;
  }

  take(count: number): Uint8Array {
    const at = this._advance(count);
    return this._bytes.slice(at, at + count);
  }

  /** A line of ASCII, without its end. */
  line(most: number): string {
    const end = this._bytes.subarray(this._at, this._at + most).indexOf(10);
    requireValid(end >= 0, "this is no mechanism for devices");
    const line = String.fromCharCode(...this._bytes.subarray(this._at, this._at + end));
    this._at += end + 1;
    return line;
  }

  u8(): number {
    return this._view.getUint8(this._advance(1));
  }

  u16(): number {
    return this._view.getUint16(this._advance(2), true);
  }

  u32(): number {
    return this._view.getUint32(this._advance(4), true);
  }

  f64(): number {
    return this._view.getFloat64(this._advance(8), true);
  }

  /** A number from `low` to `high`, which are not negative zero either. */
  number(low: number, high: number): number {
    const value = this.f64();
    requireValid(value >= low && value <= high && !Object.is(value, -0), "a number is out of range");
    return value;
  }

  /** A whole number from 1, or another least one, to `most`, of four bytes. */
  count(most: number, least = 1): number {
    const value = this.u32();
    requireValid(value >= least && value <= most, "a count is out of range");
    return value;
  }

  /** One of the first `choices` whole numbers. */
  choice(choices: number): number {
    const value = this.u8();
    requireValid(value < choices, "a choice is out of range");
    return value;
  }

  text(): string {
    const length = this.u16();
    requireValid(length <= MOST_TEXT_BYTES, "a text is too long");
    const bytes = this.take(length);
    try {
      return DECODER.decode(bytes);
    } catch {
      throw new InvalidFile("a text is not UTF-8");
    }
  }

  end(): void {
    requireValid(this._at === this._bytes.length, "something follows the end of the file");
  }
}
