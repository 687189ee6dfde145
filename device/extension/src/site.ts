/** Who asks: the site that an answer is charged to. Taken from what the browser says of a sender, never from a message. */

/** A site that may ask. */
export interface Site {
  /** The name of the host in the address bar: what the user allows or refuses. */
  readonly host: string;
  /** What is charged: all hosts of one owner, as far as names tell. */
  readonly account: string;
}

/**
 * Second-level labels under which anybody may register a name below a country's domain. Without the list of public
 * suffixes (200 kB), names not covered here share the account of their last two labels: never more than one budget per owner.
 */
const REGISTRIES = new Set(["ac", "co", "com", "edu", "gob", "gouv", "gov", "go", "mil", "ne", "net", "nom", "or", "org", "sch"]);

/** The account of a host: its last two labels, or three below a country's registry; an address as it is. */
export function accountOf(host: string): string {
  if (/^[\d.]+$|:/.test(host)) return host;
  const labels = host.replace(/\.$/, "").split(".");
  const [second = "", top = ""] = labels.slice(-2);
  return labels.slice(top.length === 2 && REGISTRIES.has(second) ? -3 : -2).join(".");
}

/** The host of a web address; null for every other address. */
export function hostOf(address: string | undefined): string | null {
  if (address === undefined || !URL.canParse(address)) return null;
  const { protocol, hostname } = new URL(address);
  return protocol === "https:" || protocol === "http:" ? hostname : null;
}

/**
 * The site of a content script's message; null where there is none, such as in a sandboxed frame. What a frame asks for is
 * charged to the site in the address bar, as the browser's own permission is: a page cannot buy budgets with frames.
 */
export function siteOf(sender: MessageSender): Site | null {
  const own = hostOf(sender.origin ?? sender.url);
  if (own === null) return null;
  const host = (sender.frameId === 0 ? null : hostOf(sender.tab?.url)) ?? own;
  return { host, account: accountOf(host) };
}
