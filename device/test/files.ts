/** The conformance vectors that Python wrote, and small helpers of the tests. */

import { readFileSync } from "node:fs";
import type { Output, Secret } from "../src/index.js";

export interface Draw {
  readonly secret: Secret;
  readonly random: string;
  readonly output: PlainOutput;
}

export interface PlainOutput {
  readonly index: number;
  readonly label: string | number | string[] | null;
  readonly place: readonly [number, number] | null;
}

export interface Vector {
  readonly name: string;
  readonly digest: string;
  readonly file: Uint8Array;
  readonly draws: readonly Draw[];
}

/** The folder of the package, seen from the compiled tests. */
export const PACKAGE = new URL("../../", import.meta.url);

export function vectors(): Vector[] {
  const text = readFileSync(new URL("test/vectors.json", PACKAGE), "utf8");
  const cases = JSON.parse(text) as (Omit<Vector, "file"> & { file: string })[];
  return cases.map((given) => ({ ...given, file: new Uint8Array(Buffer.from(given.file, "base64")) }));
}

export function vector(name: string): Vector {
  const wanted = vectors().find((given) => given.name === name);
  if (wanted === undefined) throw new Error(`there is no vector ${name}`);
  return wanted;
}

/** An output as Python writes it. */
export function plain({ index, label, position, place }: Output): PlainOutput {
  const coordinates = position !== null ? ([position.longitude, position.latitude] as const) : null;
  return {
    index: index!,
    label: Array.isArray(label) ? [...(label as string[])].sort() : (label as string | number | null),
    place: coordinates ?? (place !== null ? [place.x, place.y] : null),
  };
}

/** Gives out these bytes from the start at each call. */
export function given(hex: string): (count: number) => Uint8Array {
  const bytes = new Uint8Array(Buffer.from(hex, "hex"));
  return (count) => bytes.slice(0, count);
}

/** The file with other content, and a digest that fits it. */
export async function resealed(file: Uint8Array, change: (content: Uint8Array) => void): Promise<Uint8Array> {
  const content = file.slice(0, -32);
  change(content);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return Uint8Array.from([...content, ...digest]);
}
