/** What the user has chosen, kept in the browser's storage for this extension. */
import type { Mode } from "./channel.js";

/** The user's choices. */
export interface Settings {
  /** For sites without a choice of their own. */
  readonly standard: "protected" | "refuse";
  /** Choices by host. */
  readonly sites: Readonly<Record<string, Mode>>;
  /** The mechanism in use: the id of an imported one, or null for the built-in noise. */
  readonly active: string | null;
  /** Epsilon of the built-in noise, per km. */
  readonly epsilonPerKm: number;
  /** Answers that a site may be given within a day, each with a new draw. */
  readonly answersPerSite: number;
  /** Answers that all sites together may be given within a day. */
  readonly answersInAll: number;
  /** Minutes for which an answer is repeated. */
  readonly holdMinutes: number;
}

/** One kilometre off on average, within 2.4 km nineteen times out of twenty. */
export const STANDARD: Settings = {
  standard: "protected",
  sites: {},
  active: null,
  epsilonPerKm: 2,
  answersPerSite: 6,
  answersInAll: 24,
  holdMinutes: 60,
};

/** The limits of each number, and the step of its control. */
export const LIMITS = {
  epsilonPerKm: { min: 0.1, max: 20, step: 0.1 },
  answersPerSite: { min: 1, max: 96, step: 1 },
  answersInAll: { min: 1, max: 960, step: 1 },
  holdMinutes: { min: 5, max: 1440, step: 5 },
} as const;

const KEY = "settings";
const MODES: readonly unknown[] = ["protected", "exact", "refuse"];

/** Settings from whatever was stored: each value that is not allowed is replaced by the standard one. */
export function parse(stored: unknown): Settings {
  const given = (typeof stored === "object" && stored !== null ? stored : {}) as Record<string, unknown>;
  const number = (name: keyof typeof LIMITS): number => {
    const value = given[name];
    const { min, max } = LIMITS[name];
    return typeof value === "number" && value >= min && value <= max ? value : STANDARD[name];
  };
  const active = given["active"];
  return {
    standard: given["standard"] === "refuse" ? "refuse" : "protected",
    sites: Object.fromEntries(
      Object.entries((given["sites"] ?? {}) as Record<string, Mode>).filter(([, mode]) => MODES.includes(mode)),
    ),
    active: typeof active === "string" ? active : null,
    epsilonPerKm: number("epsilonPerKm"),
    answersPerSite: Math.round(number("answersPerSite")),
    answersInAll: Math.round(number("answersInAll")),
    holdMinutes: number("holdMinutes"),
  };
}

/** The settings as they are stored. */
export async function load(): Promise<Settings> {
  return parse((await chrome.storage.local.get(KEY))[KEY]);
}

/** Changes some settings; what is not named stays. */
export async function change(changes: Partial<Settings>): Promise<Settings> {
  const settings = parse({ ...(await load()), ...changes });
  await chrome.storage.local.set({ [KEY]: settings });
  return settings;
}

/** What a host may have. */
export function modeOf(settings: Settings, host: string): Mode {
  return Object.hasOwn(settings.sites, host) ? (settings.sites[host] as Mode) : settings.standard;
}
