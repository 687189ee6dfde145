/** What the page's world and the isolated world say to each other over their private port. */

/** Name of the event that hands the port over, before any script of the page runs. */
export const HANDSHAKE = "privacygames:port";

/** A question: a number that the answer repeats, and what is asked. */
export type Question = readonly [id: number, asked: "position" | "mode"];

/** What a site may have: a protected position, the browser's own behaviour, or none. */
export type Mode = "protected" | "exact" | "refuse";

/** The code of a `GeolocationPositionError`. */
export type ErrorCode = 1 | 2 | 3;

/** What a site is told. Arrays of plain values, so that no lookup reaches a prototype that the page may have changed. */
export type Answer =
  | readonly [id: number, kind: "told", latitude: number, longitude: number, accuracy: number, timestamp: number]
  | readonly [id: number, kind: "failed", code: ErrorCode]
  | readonly [id: number, kind: "native"]
  | readonly [id: number, kind: "mode", mode: Mode];
