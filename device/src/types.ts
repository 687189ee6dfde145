/** The public types: what a mechanism, its secrets and its outputs are. */

/** A position on the Earth, in degrees. */
export interface Position {
  readonly latitude: number;
  readonly longitude: number;
}

/** A point of the plane, in kilometres from the south-west corner of the region. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** A name of a secret or output that is no place: a text, a number, or a set of texts. */
export type Label = string | number | readonly string[];

/** West, south, east and north, in degrees. */
export interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** What secrets are: cells of a grid, points of a region, numbers, texts, or sets of texts. */
export type Kind = "grid" | "points" | "numbers" | "categories" | "sets";

/**
 * A secret. Grids and points over degrees take a position, those in plain kilometres a place; a mechanism for the
 * points of an interval takes a number; all others take one of their labels.
 */
export type Secret = Position | Place | Label;

/** What is released for a secret: what it is called, or where it is. */
export interface Output {
  /** Its number among the outputs of the mechanism; null where there is no end of them. */
  readonly index: number | null;
  /** Its label; null where outputs are places without names. */
  readonly label: Label | null;
  /** Where it is; null unless the mechanism is over degrees. */
  readonly position: Position | null;
  /** Where it is in kilometres; null unless the mechanism is in plain kilometres. */
  readonly place: Place | null;
}

/** Returns this many random bytes, each uniform and independent: `crypto.getRandomValues`, unless a test says otherwise. */
export type RandomBytes = (count: number) => Uint8Array;

/** What verification found. */
export interface Verdict {
  /** Whether every ratio is at most what epsilon allows. */
  readonly holds: boolean;
  /** One sentence: what was checked, or what does not hold. It repeats nothing of the file. */
  readonly reason: string;
  /** The number of inequalities that were checked. */
  readonly checked: number;
}

/** Told the share of the work that is done, from 0 to 1. */
export type Progress = (share: number) => void;

/** A mechanism whose structure, limits and digest were checked; `verify` checks every ratio. */
export interface Mechanism {
  readonly kind: Kind;
  /** SHA-256 of its content, in hexadecimal. */
  readonly id: string;
  /** The epsilon of the guarantee, per unit of distance; null where none is given. */
  readonly epsilon: number | null;
  /** The box of a grid or of points over degrees; null elsewhere, and where it works anywhere on the Earth. */
  readonly box: Box | null;
  /** What is guaranteed, and between what, in one sentence. */
  readonly guarantee: string;
  /** What the file says about the data it was made from: private, or shareable. */
  readonly disclosure: string;
  /**
   * In kilometres, the distance within which the output lies of the secret with probability 0.95 or more, whatever the
   * secret (of the region, if there is one); null where secrets are no places. It says nothing of the secret.
   */
  readonly accuracyKm: number | null;
  /** Check every ratio, on the integers that are sampled. */
  verify(onProgress?: Progress): Promise<Verdict>;
  /**
   * A random output for a secret. Throws `UnknownSecret` where it is none of the mechanism's, without repeating it; a
   * place outside the region is moved to its nearest point.
   */
  sample(secret: Secret, random?: RandomBytes): Output;
}
