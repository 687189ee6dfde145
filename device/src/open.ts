/** Reading mechanism files: docs/reference/device-file.md says what each byte means. */

import { requireValid } from "./errors.js";
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
  requireValid(bytes.length <= MOST_BYTES, `the file has more than ${MOST_BYTES} bytes`);
  requireValid(bytes.length >= DIGEST_BYTES, "the file ends too early");
  const content = bytes.slice(0, bytes.length - DIGEST_BYTES);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  requireValid(digest.every((byte, at) => byte === bytes[content.length + at]), "the digest does not match: the file was damaged or altered");
  const reader = new Reader(content);
  const heading = readHeading(reader, digest);
  const mechanism =
    heading.kind === "points" ? PointMechanism.read(reader, heading) : FiniteMechanism.read(reader, heading);
  reader.end();
  return mechanism;
}

function readHeading(reader: Reader, digest: Uint8Array): Heading {
  requireValid(reader.line(MOST_LINE_BYTES) === FIRST_LINE, "this is no mechanism for devices, or of another version of the format");
  const disclosure = reader.line(MOST_LINE_BYTES);
  requireValid(DISCLOSURES.includes(disclosure), "the disclosure is not valid");
  const kind = KINDS[reader.choice(KINDS.length)]!;
  const bits = reader.u8();
  requireValid(bits >= FEWEST_BITS && bits <= MOST_BITS, "the number of bits is out of range");
  const epsilon = reader.number(SMALLEST, LARGEST);
  const unit = reader.text();
  requireValid([...unit].length <= MOST_UNIT_LENGTH, "the unit is too long");
  const id = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { kind, id, disclosure, bits, epsilon, unit };
}
