/** Reads the bytes of a file in order; every length is checked before anything of that length is read. */

import { InvalidFile } from "./errors.js";

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
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  private advance(count: number): number {
    const at = this.at;
    if (count > this.bytes.length - at) throw new InvalidFile("the file ends too early");
    this.at = at + count;
    return at;
  }

  take(count: number): Uint8Array {
    const at = this.advance(count);
    return this.bytes.slice(at, at + count);
  }

  /** A line of ASCII, without its end. */
  line(most: number): string {
    const end = this.bytes.subarray(this.at, this.at + most).indexOf(10);
    if (end < 0) throw new InvalidFile("the first lines are not those of a mechanism for devices");
    const line = String.fromCharCode(...this.bytes.subarray(this.at, this.at + end));
    this.at += end + 1;
    return line;
  }

  u8(): number {
    return this.view.getUint8(this.advance(1));
  }

  u16(): number {
    return this.view.getUint16(this.advance(2), true);
  }

  u32(): number {
    return this.view.getUint32(this.advance(4), true);
  }

  f64(): number {
    return this.view.getFloat64(this.advance(8), true);
  }

  /** A number from `low` to `high`, which are not negative zero either. */
  number(low: number, high: number): number {
    const value = this.f64();
    if (!(value >= low && value <= high) || Object.is(value, -0)) throw new InvalidFile("a number is out of range");
    return value;
  }

  /** A whole number from 1, or another least one, to `most`, of four bytes. */
  count(most: number, least = 1): number {
    const value = this.u32();
    if (value < least || value > most) throw new InvalidFile("a count is out of range");
    return value;
  }

  /** One of the first `choices` whole numbers. */
  choice(choices: number): number {
    const value = this.u8();
    if (value >= choices) throw new InvalidFile("a choice is none of those that there are");
    return value;
  }

  text(): string {
    const length = this.u16();
    if (length > MOST_TEXT_BYTES) throw new InvalidFile("a text is too long");
    try {
      return DECODER.decode(this.take(length));
    } catch (error) {
      if (error instanceof InvalidFile) throw error;
      throw new InvalidFile("a text is not UTF-8");
    }
  }

  end(): void {
    if (this.at !== this.bytes.length) throw new InvalidFile("something follows the end of the file");
  }
}
