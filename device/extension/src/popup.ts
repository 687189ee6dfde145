/** The popup: what the site of the current tab is told, and what is left of its budget. */
import type { Mode } from "./channel.js";
import { outputsLeft } from "../../shared/budget.js";
import { byId, coordinates, element, kilometres, moment } from "../../shared/elements.js";
import { sketch } from "../../shared/map.js";
import type { Command, SiteState, Told } from "./messages.js";
import { hostOf } from "./site.js";

/** Positions that are listed. */
const LISTED = 3;

const EXPLANATIONS: Record<Mode, (state: SiteState) => string> = {
  protected: ({ mechanism, accuracyKm, epsilon }) =>
    `${mechanism}: within ${kilometres(accuracyKm)} of you nineteen times out of twenty (epsilon ${Math.ceil(epsilon * 1000) / 1000} per km).`,
  exact: () => "The browser answers this site itself. Nothing is protected.",
  refuse: () => "The site is told that you refused.",
};

async function run(command: Command): Promise<SiteState> {
  const state = (await chrome.runtime.sendMessage(command)) as SiteState | null;
  if (state === null) throw new Error("The active mechanism or the ledger cannot be read. Sites are told nothing meanwhile; see Options.");
  return state;
}

function list(told: readonly Told[]): void {
  byId("told").replaceChildren(
    ...told.map((entry) => {
      const row = element("li", coordinates(entry));
      row.append(element("time", moment(entry.at)));
      return row;
    }),
  );
}

function show(state: SiteState): void {
  const { host, account, mode, told, balance, epsilon, accuracyKm } = state;
  byId("host").textContent = host;
  byId<HTMLInputElement>("site").querySelectorAll<HTMLInputElement>("input[name=mode]").forEach((input) => {
    input.checked = input.value === mode;
  });
  byId("explanation").textContent = EXPLANATIONS[mode](state);
  byId("told-heading").textContent = told.length === 0 ? "Not told anything yet" : account === host ? "What it was told" : `What ${account} was told`;
  byId("map").replaceChildren(...(told.length === 0 ? [] : [sketch(told, accuracyKm)]));
  list(told.slice(0, LISTED));
  byId("more").hidden = told.length <= LISTED;
  byId("more").textContent = `${told.length - LISTED} earlier`;
  byId("more").onclick = () => {
    byId("more").hidden = true;
    list(told);
  };
  byId("budget-section").hidden = mode !== "protected";
  const left = outputsLeft(balance, epsilon);
  byId("meter").style.setProperty("inline-size", `${Math.max(0, Math.min(1, balance.left / balance.budget)) * 100}%`);
  const renewal = balance.nextRefund === null ? "" : ` The oldest stops counting at ${moment(balance.nextRefund)}.`;
  byId("budget").textContent =
    left > 0 ? `${left} new position${left === 1 ? "" : "s"} within a day.${renewal}` : `None: the last position is repeated.${renewal}`;
  byId("site").hidden = false;
}

async function main(): Promise<void> {
  for (const item of document.querySelectorAll<HTMLElement>(FIREFOX ? ".chromium" : ".firefox")) item.hidden = true;
  byId("options").onclick = () => void chrome.runtime.openOptionsPage();
  const [tab] = await chrome.tabs.query({ active: true, currentWindow: true });
  const host = new URLSearchParams(location.search).get("host") ?? hostOf(tab?.url);
  if (host === null) {
    byId("none").hidden = false;
    return;
  }
  show(await run({ command: "site", host }));
  byId("site").addEventListener("change", (event) => {
    const { name, value } = event.target as HTMLInputElement;
    if (name === "mode") void run({ command: "mode", host, mode: value as Mode }).then(show, fail);
  });
}

function fail(error: unknown): void {
  byId("trouble").textContent = error instanceof Error ? error.message : String(error);
  byId("trouble").hidden = false;
}

main().catch(fail);
