/** The options page: the mechanism in use, budgets, and the choices of sites. */
import { open, verifyInWorker } from "privacygames-device";

import type { Mode } from "./channel.js";
import { byId, element, kilometres, moment } from "../../shared/elements.js";
import { builtIn, importedFiles, isUsable, keepFile, removeFile } from "./mechanisms.js";
import type { Command, Overview } from "./messages.js";
import { LIMITS, type Settings } from "./settings.js";

const MODE_TEXTS: Record<Mode, string> = { protected: "a protected position", exact: "the exact position", refuse: "nothing" };
const NUMBERS = ["holdMinutes", "answersPerSite", "answersInAll"] as const;

/** The largest file that is read, in bytes. */
const LARGEST_FILE = 64 * 1024 * 1024;

async function run(command: Command): Promise<unknown> {
  const result = await chrome.runtime.sendMessage(command);
  if (result === null) throw new Error("This could not be stored: the browser's storage for this extension failed.");
  return result;
}

function fail(error: unknown): void {
  byId("trouble").textContent = error instanceof Error ? error.message : String(error);
  byId("trouble").hidden = false;
}

async function apply(changes: Partial<Settings>): Promise<void> {
  await run({ command: "change", changes });
  await show();
}

function cells(...contents: (string | HTMLElement)[]): HTMLTableRowElement {
  const row = element("tr");
  for (const content of contents) row.insertCell().append(content);
  return row;
}

function button(text: string, action: () => Promise<unknown>): HTMLButtonElement {
  const made = element("button", text);
  made.className = "link";
  made.onclick = () => void action().then(show).catch(fail);
  return made;
}

function mechanismRow(id: string | null, name: string, text: string, active: string | null): HTMLElement {
  const row = element("div");
  row.className = "mechanism";
  const input = element("input");
  Object.assign(input, { type: "radio", name: "active", id: `mechanism-${id ?? "built-in"}`, checked: id === active });
  input.onchange = () => void apply({ active: id }).catch(fail);
  const label = element("label");
  label.htmlFor = input.id;
  label.append(element("b", name), element("small", text));
  row.append(input, label);
  if (id !== null) {
    row.append(
      button("Remove", async () => {
        if (id === active) await run({ command: "change", changes: { active: null } });
        await removeFile(id);
      }),
    );
  }
  return row;
}

async function showMechanisms({ active, epsilonPerKm }: Settings): Promise<void> {
  const noise = builtIn(epsilonPerKm);
  const rows = [mechanismRow(null, "Built-in noise", `Anywhere: ${noise.guarantee}.`, active)];
  for (const file of await importedFiles()) {
    const text = await open(file.bytes).then(
      ({ guarantee, box }) => `${box === null ? "" : `Region ${box.south.toFixed(2)} to ${box.north.toFixed(2)} N, ${box.west.toFixed(2)} to ${box.east.toFixed(2)} E: `}${guarantee}.`,
      () => "This file cannot be read any more: remove it.",
    );
    rows.push(mechanismRow(file.id, file.name, text, active));
  }
  byId("mechanisms").replaceChildren(...rows);
  byId("noise").hidden = active !== null;
  byId("epsilonPerKm-out").textContent = `${epsilonPerKm} per km`;
  byId<HTMLInputElement>("epsilonPerKm").value = String(Math.log(epsilonPerKm));
  byId("noise-text").textContent = `Sites are told a position ${kilometres(2 / epsilonPerKm)} off on average, and within ${kilometres(noise.accuracyKm ?? 0)} nineteen times out of twenty.`;
}

async function show(): Promise<void> {
  const { settings, sites } = (await run({ command: "overview" })) as Overview;
  document.querySelectorAll<HTMLInputElement>("input[name=standard]").forEach((input) => {
    input.checked = input.value === settings.standard;
  });
  byId("sites").querySelector("tbody")?.replaceChildren(...sites.map(({ account, told, last }) => cells(account, String(told), moment(last))));
  byId("sites").hidden = sites.length === 0;
  byId("no-sites").hidden = sites.length > 0;
  const choices = Object.entries(settings.sites);
  byId("choices").hidden = choices.length === 0;
  byId("choices").querySelector("tbody")?.replaceChildren(
    ...choices.map(([host, mode]) => cells(host, MODE_TEXTS[mode], button("Forget", () => run({ command: "mode", host, mode: null })))),
  );
  for (const name of NUMBERS) byId<HTMLInputElement>(name).value = String(settings[name]);
  byId("budget-text").textContent =
    `Between two new positions a site is told the same one, wherever you are. When ${settings.answersPerSite} were told within a day, the last is repeated. ` +
    `All sites together learn at most what ${settings.answersInAll} positions give away.`;
  await showMechanisms(settings);
}

async function importFile(file: File): Promise<void> {
  byId("import-error").hidden = true;
  try {
    if (file.size > LARGEST_FILE) throw new Error("This file is larger than 64 MB.");
    const bytes = new Uint8Array(await file.arrayBuffer());
    const mechanism = await open(bytes);
    if (!isUsable(mechanism)) throw new Error("This mechanism is not for positions in degrees with an epsilon, so it cannot answer sites.");
    const verdict = await verifyInWorker(bytes, (share) => {
      byId("progress").textContent = `Verifying: ${Math.floor(share * 100)} %`;
    }, () => new Worker("worker.js"));
    if (!verdict.holds) throw new Error(verdict.reason);
    await keepFile({ id: mechanism.id, name: file.name.replace(/\.[^.]*$/, ""), bytes });
    byId("progress").textContent = `Verified: ${verdict.checked.toLocaleString("en")} inequalities hold. It is now in use.`;
    await apply({ active: mechanism.id });
  } catch (error) {
    byId("progress").textContent = "";
    byId("import-error").textContent = error instanceof Error ? error.message : String(error);
    byId("import-error").hidden = false;
  }
}

function main(): void {
  const file = byId<HTMLInputElement>("file");
  file.onchange = () => {
    const [chosen] = file.files ?? [];
    if (chosen !== undefined) void importFile(chosen).finally(() => (file.value = ""));
  };
  const noise = byId<HTMLInputElement>("epsilonPerKm");
  const { min, max } = LIMITS.epsilonPerKm;
  Object.assign(noise, { min: String(Math.log(min)), max: String(Math.log(max)), step: "any" });
  noise.onchange = () => void apply({ epsilonPerKm: Math.min(max, Math.max(min, Number(Math.exp(Number(noise.value)).toPrecision(2)))) }).catch(fail);
  for (const name of NUMBERS) {
    const input = byId<HTMLInputElement>(name);
    Object.assign(input, LIMITS[name]);
    input.onchange = () => void (input.checkValidity() ? apply({ [name]: input.valueAsNumber }) : show()).catch(fail);
  }
  document.querySelectorAll<HTMLInputElement>("input[name=standard]").forEach((input) => {
    input.onchange = () => void apply({ standard: input.value as Settings["standard"] }).catch(fail);
  });
  show().catch(fail);
}

main();
