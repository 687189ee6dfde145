/** The errors of this package. No message repeats the content of a file, or a secret. */

/** The bytes are no mechanism file of this format, or are damaged, altered or too large. */
export class InvalidFile extends Error {
  override readonly name = "InvalidFile";
}

/** Raise InvalidFile unless a condition holds. */
export function requireValid(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvalidFile(message);
}

/** The secret is none of this mechanism's. */
export class UnknownSecret extends Error {
  override readonly name = "UnknownSecret";
}

/** An option is not among what is allowed. */
export class InvalidOption extends Error {
  override readonly name = "InvalidOption";
}

/** The site's budget does not suffice for an output, and nothing that was released before may be repeated. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";

  constructor(
    message: string,
    /** When an output will be affordable again, in milliseconds since 1970; null if never. */
    readonly affordableAt: number | null,
  ) {
    super(message);
  }
}

/** The store failed: nothing was charged, and no output was released. */
export class StoreFailed extends Error {
  override readonly name = "StoreFailed";
}
