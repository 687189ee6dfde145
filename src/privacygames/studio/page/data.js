// "My data": a file or a pasted column is read by the server, shown with guesses of what its columns are, and made a problem.
import { allStarted, ask, start } from "./api.js";
import { $, chosen, element, emit, forget, say, state } from "./shared.js";

export const ROLES = {
  ignore: "not used", who: "who", latitude: "latitude", longitude: "longitude", position: "coordinates",
  time: "time", number: "secret number", category: "secret category", count: "how often",
};
const SECRETS = ["latitude", "longitude", "position", "number", "category"];
const TOGETHER = { latitude: ["longitude"], longitude: ["latitude"] };
const GEOLIFE_HEADER_LINES = 6;
const REASONS = {
  "broken line": "not readable", "bad time": "without a time that can be read", "bad coordinates": "without a place that can be read",
  "same slot": "within ten minutes of another", "no number": "without a number", "no count": "without a count",
};

let uploads = 0;
let readings = 0;
let content = null; // kept for reading it again with or without a header
let table = null; // the preview, with the roles as chosen
let recording = null; // the visits of a recording as a table, to protect
let traces = null; // the name of the visits
let values = null; // the space and prior of numbers or categories
let actions = { loading: () => {}, cleared: () => {}, load: () => {} };

export const dataTable = () => (chosen("source") === "own" ? table ?? recording : null);
export const dataKind = () => (traces ? "places" : values ? values.tables.space.kind : null);

export function dataBody(grid) {
  // The request for a problem; null while there is no file.
  if (traces) return { traces: { id: traces, user: $("user").value === "" ? null : $("user").selectedOptions[0].dataset.name, ...grid } };
  if (!values) return null;
  const distance = values.tables.space.kind === "numbers" ? "absolute" : "hamming";
  return { document: { ...values.tables, problem: { cost: distance === "hamming" || grid.cost === "hamming" ? "hamming" : distance, distance } } };
}

export function setUpData(given) {
  actions = given;
  $("traces").addEventListener("change", () => { const files = [...$("traces").files]; if (files.length) readFiles(files); });
  dropZone($("drop"), readFiles);
  for (const event of ["dragover", "drop"]) document.addEventListener(event, (each) => each.preventDefault()); // a file beside the zone must not replace the page
  $("read-pasted").addEventListener("click", () => { if ($("pasted").value.trim()) open(new TextEncoder().encode($("pasted").value)); });
  $("has-header").addEventListener("change", () => open(content, $("has-header").value));
  for (const id of ["decimal", "dates"]) $(id).addEventListener("change", () => { table[id] = $(id).value || null; readColumns(); });
  $("user").addEventListener("change", () => { if (values) readColumns($("user").selectedOptions[0].dataset.name); else actions.load(); });
}

export function dropZone(zone, read) {
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (files.length) read(files);
  });
}

export async function contentOf(files) {
  // GeoLife has one file per trip: six header lines, then positions. Several of those are joined into one.
  if (files.length === 1) return files[0].arrayBuffer();
  if (!files.every((file) => file.name.toLowerCase().endsWith(".plt"))) throw new Error("Choose one file; only GeoLife's .plt files are read several at a time.");
  const texts = await Promise.all(files.map((file) => file.text()));
  return new TextEncoder().encode(texts.map((text, at) => (at ? text.split("\n").slice(GEOLIFE_HEADER_LINES).join("\n") : text)).join(""));
}

async function readFiles(files) {
  emit("files", files.map((file) => file.name));
  try {
    await open(await contentOf(files));
  } catch (error) {
    fail(error);
  }
}

export function forgetData() {
  const names = [table?.id, recording?.id, traces].filter(Boolean);
  names.forEach((name) => state.held.delete(name));
  allStarted().then(() => forget(names));
  table = recording = traces = values = null;
}

function hold(name) {
  state.names.add(name);
  state.held.add(name);
}

async function open(bytes, header = "auto") {
  const mine = (uploads += 1);
  readings += 1;
  content = bytes;
  actions.loading();
  $("traces-note").textContent = "Reading …";
  $("user").replaceChildren();
  forgetData();
  showTable();
  actions.cleared(); // before the new file is read: the earlier data may be somebody else's
  try {
    const opened = await ask("POST", `files?header=${header}`, bytes, { raw: true });
    if (mine !== uploads) { forget([opened.id, opened.table?.id].filter(Boolean)); return; }
    if (opened.kind === "table") {
      table = opened;
      hold(table.id);
      showTable();
      await readColumns();
    } else {
      takePlaces(opened);
      recording = opened.table;
      hold(recording.id);
      emit("table", recording);
      await actions.load();
    }
  } catch (error) {
    if (mine === uploads) fail(error);
  }
}

function fail(error) {
  $("traces-note").textContent = "";
  $("source-note").textContent = table ? "" : "Choose a file.";
  say("source-error", error.message);
}

async function readColumns(person = null) {
  const mine = (readings += 1);
  actions.loading();
  showBad(table.bad);
  try {
    const read = await start(`files/${table.id}/columns`, { roles: table.columns.map((each) => each.role), decimal: table.decimal, dates: table.dates, person });
    if (mine !== readings) { if (read.id) forget([read.id]); return; }
    if (traces) { state.held.delete(traces); forget([traces]); }
    traces = values = null;
    if (read.kind === "places") takePlaces(read);
    else takeValues(read, person);
    await actions.load();
  } catch (error) {
    if (mine !== readings) return;
    if (traces) { state.held.delete(traces); forget([traces]); }
    traces = values = null;
    actions.cleared();
    fail(error);
  } finally {
    emit("table", table);
  }
}

function takePlaces(read) {
  traces = read.id;
  hold(traces);
  const people = read.users.map((each, at) => ({ name: each.name, text: `${each.name || `person ${at + 1}`} (${each.visits} visits)` }));
  const total = read.users.reduce((sum, each) => sum + each.visits, 0);
  listPeople(people, `everyone together (${total} visits)`, people[0]?.name);
  told(read.rows, read.skipped, "", read.has_times ? "" : "It has no times: places are counted, and there is no typical day.");
  showBad([...(table?.bad ?? []), ...read.bad]);
}

function takeValues(read, person) {
  values = read;
  listPeople(read.people.map((each) => ({ name: each.name, text: `${each.name} (${each.rows} rows)` })), "everyone", person);
  told(read.rows, read.left_out, read.note, "");
  showBad([...table.bad, ...read.bad]);
}

function listPeople(people, everyone, first) {
  const options = people.map((each) => element("option", { value: "p", "data-name": each.name }, each.text));
  $("user").replaceChildren(element("option", { value: "" }, everyone), ...options);
  $("user").selectedIndex = 1 + people.findIndex((each) => each.name === first);
  $("user-label").hidden = people.length < 2;
}

function told(rows, leftOut, note, more) {
  const reasons = Object.entries(leftOut).map(([reason, count]) => `${count} ${REASONS[reason] ?? reason}`);
  if (table?.left_out) reasons.unshift(`${table.left_out} unlike the other rows`);
  $("traces-note").textContent = [`${rows} ${rows === 1 ? "row" : "rows"} read${reasons.length ? `; left out: ${reasons.join(", ")}` : ""}.`, note, more].filter(Boolean).join(" ");
}

function showTable() {
  $("table-box").hidden = !table;
  $("user-label").hidden = true;
  showBad(table?.bad ?? []);
  const { caption } = $("preview");
  if (!table) { $("preview").replaceChildren(caption); emit("table", null); return; }
  const head = element("tr", {}, ...table.columns.map((column) => element("th", { scope: "col" }, column.name)));
  const pickers = element("tr", { class: "roles" }, ...table.columns.map(picker));
  const rows = table.first.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  $("preview").replaceChildren(caption, element("thead", {}, head, pickers), element("tbody", {}, ...rows));
  caption.textContent = `The first ${rows.length} of ${table.rows} rows:`;
  $("has-header-label").hidden = table.header === null;
  $("has-header").value = table.header ? "yes" : "no";
  $("decimal").value = table.decimal;
  $("dates").value = table.dates ?? "";
  markRoles();
}

function picker(column, at) {
  const options = Object.entries(ROLES).map(([role, name]) => element("option", { value: role }, name));
  const select = element("select", { "aria-label": `What the column ${column.name} is`, onchange: () => choose(at, select.value) }, ...options);
  return element("td", {}, select);
}

function choose(at, role) {
  // One column of each role, and one secret.
  table.columns.forEach((column, other) => {
    const clashes = SECRETS.includes(role) && SECRETS.includes(column.role) && !(TOGETHER[role] ?? []).includes(column.role);
    if (other !== at && (column.role === role || clashes)) column.role = "ignore";
  });
  table.columns[at].role = role;
  markRoles();
  readColumns();
}

function markRoles() {
  $("preview").querySelectorAll(".roles select").forEach((select, at) => { select.value = table.columns[at].role; });
  for (const row of $("preview").rows) {
    [...row.cells].forEach((cell, at) => { cell.className = SECRETS.includes(table.columns[at].role) ? "secret" : table.columns[at].role === "ignore" ? "unused" : ""; });
  }
  const roles = table.columns.map((each) => each.role);
  const names = (wanted) => table.columns.filter((each) => wanted.includes(each.role)).map((each) => `“${each.name}”`).join(" and ");
  $("preview-secret").textContent = names(SECRETS) ? `The secret is ${names(SECRETS)}${names(["who"]) ? `, of ${names(["who"])}` : ""}.` : "No column is the secret yet.";
  const first = $("preview").querySelector("th.secret");
  const scroll = $("preview").parentElement;
  if (first) scroll.scrollLeft = Math.max(0, first.offsetLeft - scroll.clientWidth / 2);
  $("dates-label").hidden = !(roles.includes("time") && table.dates);
  $("dates-unsure").hidden = table.dates_sure;
}

function showBad(bad) {
  $("bad-box").hidden = !bad.length;
  $("bad-rows").replaceChildren(...bad.map((each) => element("tr", {},
    element("td", {}, `${each.line}`), element("td", {}, each.reason), element("td", {}, each.cells.filter((cell) => cell.trim()).join(" · ")))));
}
