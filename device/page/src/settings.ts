/** What `privacygames device page` writes beside the page. */

/** The rules of this page's ledger. */
export interface PageSettings {
  /** The name of the mechanism. */
  readonly name: string;
  /** New positions within a day. */
  readonly answersPerDay: number;
  /** Minutes for which a position is repeated. */
  readonly repeatMinutes: number;
}
