/** Reading mechanism files: docs/reference/device-file.md says what each byte means. */

import { InvalidFile } from "./errors.js";
import { FiniteMechanism, type Heading } from "./finite.js";
import { PointMechanism } from "./points.js";
import { LARGEST, MOST_BYTES, Reader, SMALLEST } from "./reader.js";
import type { Kind, Mechanism } from "./types.js";

const FIRST_LINE = "privacygames device 1";
const DISCLOSURES = [
  "private: computed from the prior",
  "shareable: nothing in it depends on the prior, or on visits beyond the public lattice",
];
const KINDS: readonly Kind[] = ["grid", "points", "numbers", "categories", "sets"];
const MOST_LINE_BYTES = 200;
const MOST_UNIT_LENGTH = 40;
const DIGEST_BYTES = 32;
const FEWEST_BITS = 52;
const MOST_BITS = 62;

/**
 * Read a mechanism file: its structure, limits, sums of weights and digest are checked, its ratios are not.
 *
 * @throws InvalidFile
 */
export async function open(bytes: Uint8Array): Promise<Mechanism> {
  if (bytes.length > MOST_BYTES) throw new InvalidFile(`the file has more than ${MOST_BYTES} bytes`);
  if (bytes.length < DIGEST_BYTES) throw new InvalidFile("the file ends too early");
  const content = bytes.slice(0, bytes.length - DIGEST_BYTES);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  if (digest.some((byte, at) => byte !== bytes[content.length + at])) {
    throw new InvalidFile("the content does not match its digest: the file was damaged or altered");
  }
  const reader = new Reader(content);
  const heading = readHeading(reader, digest);
  const mechanism =
    heading.kind === "points" ? PointMechanism.read(reader, heading) : FiniteMechanism.read(reader, heading);
  reader.end();
  return mechanism;
}

function readHeading(reader: Reader, digest: Uint8Array): Heading {
  if (reader.line(MOST_LINE_BYTES) !== FIRST_LINE) {
    throw new InvalidFile("this is no mechanism for devices, or of another version of the format");
  }
  const disclosure = reader.line(MOST_LINE_BYTES);
  if (!DISCLOSURES.includes(disclosure)) throw new InvalidFile("the disclosure is none of those that there are");
  const kind = KINDS[reader.choice(KINDS.length)]!;
  const bits = reader.u8();
  if (bits < FEWEST_BITS || bits > MOST_BITS) throw new InvalidFile("the number of bits is out of range");
  const epsilon = reader.number(SMALLEST, LARGEST);
  const unit = reader.text();
  if ([...unit].length > MOST_UNIT_LENGTH) throw new InvalidFile("the unit is too long");
  const id = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { kind, id, disclosure, bits, epsilon, unit };
}
