/** What content scripts and the extension's own pages ask the service worker, and what it replies. */
import type { Balance } from "privacygames-device";

import type { ErrorCode, Mode } from "./channel.js";
import type { Settings } from "./settings.js";

/** A question of a content script. It has no content: the browser says who asks. */
export type Request = "position" | "mode";

/** What a content script passes on to its page. */
export type Reply =
  | { readonly kind: "told"; readonly latitude: number; readonly longitude: number; readonly accuracy: number; readonly timestamp: number }
  | { readonly kind: "failed"; readonly code: ErrorCode }
  | { readonly kind: "native" }
  | { readonly kind: "mode"; readonly mode: Mode };

/** A command of the popup or the options page. */
export type Command =
  | { readonly command: "site"; readonly host: string }
  | { readonly command: "overview" }
  | { readonly command: "mode"; readonly host: string; readonly mode: Mode | null }
  | { readonly command: "change"; readonly changes: Partial<Settings> };

/** One position that a site was told. */
export interface Told {
  readonly at: number;
  readonly latitude: number;
  readonly longitude: number;
}

/** What the popup shows of a site. */
export interface SiteState {
  readonly host: string;
  readonly account: string;
  readonly mode: Mode;
  readonly isStandard: boolean;
  readonly balance: Balance;
  readonly epsilon: number;
  readonly accuracyKm: number;
  readonly mechanism: string;
  /** What all hosts of the account were told, the latest first. */
  readonly told: readonly Told[];
}

/** What the options page shows. */
export interface Overview {
  readonly settings: Settings;
  readonly sites: readonly { readonly account: string; readonly told: number; readonly last: number }[];
}
