/** The service worker (Chromium) or background page (Firefox): the only place that sees a true position, and that draws. */
import type { Mode } from "./channel.js";
import { activeMechanism } from "./mechanisms.js";
import { atWholeSteps, openLedger, protectedAnswer } from "./answers.js";
import type { Command, Overview, Reply, Request, SiteState } from "./messages.js";
import { change, load, modeOf, type Settings } from "./settings.js";
import { accountOf, siteOf, type Site } from "./site.js";
import { truePosition } from "./true-position.js";

const UNAVAILABLE: Reply = { kind: "failed", code: 2 };
const DENIED: Reply = { kind: "failed", code: 1 };

async function answer(site: Site): Promise<Reply> {
  const settings = await load();
  const mode = modeOf(settings, site.host);
  if (mode === "exact") return { kind: "native" };
  if (mode === "refuse") return atWholeSteps(Promise.resolve(DENIED));
  const work = activeMechanism(settings).then((active) => protectedAnswer(site.account, active, settings, truePosition));
  return atWholeSteps(work.catch(() => UNAVAILABLE));
}

async function reply(request: Request, sender: MessageSender): Promise<Reply> {
  const site = siteOf(sender);
  if (request === "mode") return { kind: "mode", mode: site === null ? "refuse" : modeOf(await load(), site.host) };
  if (site === null) return DENIED;
  const result = await answer(site);
  if (result.kind === "told" && sender.tab?.id !== undefined) {
    await chrome.action.setBadgeText({ text: "≈", tabId: sender.tab.id }).catch(() => undefined); // the tab may be gone
  }
  return result;
}

/**
 * Withholds the browser's own permission from every site but those that the user lets have the exact position (Chromium).
 * So a page that finds functions which are not replaced, such as in a frame that has just been made, is refused by them.
 */
async function withholdPermission({ sites }: Settings): Promise<void> {
  if (FIREFOX) return;
  const setting = "block";
  for (const scheme of ["http", "https"]) await chrome.contentSettings.location.set({ primaryPattern: `${scheme}://*/*`, setting });
  for (const [host, mode] of Object.entries(sites)) await permit(host, mode);
}

async function permit(host: string, mode: Mode | null): Promise<void> {
  if (FIREFOX) return;
  for (const scheme of ["http", "https"]) {
    const primaryPattern = `${scheme}://${host}:*/*`;
    await chrome.contentSettings.location.set({ primaryPattern, setting: mode === "exact" ? "allow" : "block" });
  }
}

async function siteState(host: string): Promise<SiteState> {
  const settings = await load();
  const { name, epsilon, accuracyKm } = await activeMechanism(settings);
  const ledger = await openLedger(settings, epsilon);
  const account = accountOf(host);
  const history = await ledger.history(account);
  return {
    host,
    account,
    mode: modeOf(settings, host),
    isStandard: !Object.hasOwn(settings.sites, host),
    balance: await ledger.balance(account, Date.now()),
    epsilon,
    accuracyKm,
    mechanism: name,
    told: history.flatMap(({ at, output: { position } }) => (position === null ? [] : [{ at, ...position }])),
  };
}

async function overview(): Promise<Overview> {
  const settings = await load();
  const { epsilon } = await activeMechanism({ ...settings, active: null });
  const ledger = await openLedger(settings, epsilon);
  const accounts = await ledger.sites();
  const sites = await Promise.all(
    accounts.map(async (account) => {
      const history = await ledger.history(account);
      return { account, told: history.length, last: history[0]?.at ?? 0 };
    }),
  );
  return { settings, sites: sites.sort((one, other) => other.last - one.last) };
}

async function execute(command: Command): Promise<unknown> {
  switch (command.command) {
    case "site":
      return siteState(command.host);
    case "overview":
      return overview();
    case "change":
      return change(command.changes);
    case "mode": {
      const { [command.host]: _before, ...others } = (await load()).sites;
      await permit(command.host, command.mode); // first: what is no longer exact ends before it is stored
      await change({ sites: command.mode === null ? others : { ...others, [command.host]: command.mode } });
      return siteState(command.host);
    }
  }
}

/** Whether a message is from the popup or the options page: pages and their content scripts have other origins. */
function isOwnPage(sender: MessageSender): boolean {
  return sender.url !== undefined && new URL(sender.url).origin === new URL(chrome.runtime.getURL("")).origin;
}

chrome.runtime.onMessage.addListener((message, sender, respond) => {
  if (sender.id !== chrome.runtime.id) return undefined;
  if (message === "position" || message === "mode") {
    if (sender.tab === undefined) return undefined;
    void reply(message, sender).then(respond, () => respond(UNAVAILABLE));
    return true;
  }
  if (typeof message === "object" && message !== null && isOwnPage(sender)) {
    void execute(message as Command).then(respond, () => respond(null));
    return true;
  }
  return undefined;
});

chrome.runtime.onInstalled.addListener(() => undefined); // starts the worker at once, so that the next line runs at installation
void load().then(withholdPermission);
