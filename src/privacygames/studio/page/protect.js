// "Protect a file": a table goes through the designed mechanism; the protected one and its manifest are downloaded.
import { ask, get, pause, start } from "./api.js";
import { regionOf } from "./cartography.js";
import { contentOf, dataTable, dropZone } from "./data.js";
import { $, chosen, digits, element, forget, on, palette, percent, save, say, state, svg } from "./shared.js";

const POLL_MS = 250;
const FIGURE = { left: 6, row: 34, bar: 9, letter: 6.6 };

let other = null; // the table of this card, if it is not that of step 1
let job = null;
let stopped = false;
let result = null;
let protectedRequest = null; // what the result is about
let checks = 0;

export function setUpProtect() {
  document.querySelectorAll('input[name="protect-table"]').forEach((each) => each.addEventListener("change", show));
  $("protect-file").addEventListener("change", () => { const files = [...$("protect-file").files]; if (files.length) open(files); });
  dropZone($("protect-drop"), open);
  for (const id of ["protect-column", "protect-longitude", "protect-who"]) $(id).addEventListener("change", check);
  $("protect").addEventListener("click", protect);
  $("cancel-protect").addEventListener("click", cancel);
  $("save-protected").addEventListener("click", () => download("table", `protected${result.result.ending}`));
  $("save-manifest").addEventListener("click", () => download("manifest", `protected${result.result.ending}.manifest.json`));
  on("table", () => {
    drop();
    if (dataTable() && !other) document.querySelector('input[name="protect-table"][value="same"]').checked = true;
    show();
  });
  on("result", () => { drop(); show(); });
  on("problem", () => { drop(); show(); });
  on("cleared", () => {
    drop();
    if (other) { state.held.delete(other.id); forget([other.id]); other = null; }
    $("protect-file").value = "";
    show();
  });
  show();
}

const table = () => (chosen("protect-table") === "same" ? dataTable() : other);

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

function isAboutPlaces() {
  // Positions tell nothing about the cells of a grid that lies nowhere: a table has to name them.
  return state.problem.kind === "points" || Boolean(regionOf(state.problem)?.box);
}

function show() {
  // The form for the design and table that there are now.
  const ready = Boolean(state.result && state.problem);
  $("protect-none").hidden = ready;
  $("protect-form").hidden = !ready;
  if (!ready) return;
  const same = document.querySelector('input[name="protect-table"][value="same"]');
  same.disabled = !dataTable();
  if (!dataTable() && same.checked) document.querySelector('input[name="protect-table"][value="other"]').checked = true;
  $("protect-drop").hidden = chosen("protect-table") === "same";
  say("protect-error", "");
  $("protect-columns").hidden = !table();
  $("protect-note").textContent = table() ? `${count(table().rows, "row")}, ${count(table().columns.length, "column")}.` : "";
  if (table()) listColumns();
}

function listColumns() {
  const places = isAboutPlaces();
  const roles = table().columns.map((each) => each.role);
  const options = (first) => [...first, ...table().columns.map((each, at) => element("option", { value: at }, each.name))];
  const wanted = (...names) => names.map((name) => roles.indexOf(name)).find((at) => at >= 0);
  const fallback = Math.max(0, roles.findIndex((role) => !["who", "time", "count"].includes(role)));
  $("protect-column-name").textContent = places ? "Latitude" : state.problem.kind === "numbers" ? "Number" : "Category";
  $("protect-column").replaceChildren(...options([]));
  $("protect-longitude").replaceChildren(...options([element("option", { value: "" }, "in the same column")]));
  $("protect-who").replaceChildren(...options([element("option", { value: "" }, "each is somebody else's")]));
  const secret = places ? wanted("latitude", "position") : state.problem.kind === "numbers" ? wanted("number") : wanted("category");
  $("protect-column").value = secret ?? fallback;
  $("protect-longitude").value = wanted("longitude") ?? "";
  $("protect-longitude-label").hidden = !places;
  $("protect-who").value = wanted("who") ?? "";
  check();
}

function request() {
  const longitude = isAboutPlaces() && $("protect-longitude").value !== "" ? [Number($("protect-longitude").value)] : [];
  const who = $("protect-who").value === "" ? null : Number($("protect-who").value);
  return {
    mechanism: state.result.id, table: table().id, columns: [Number($("protect-column").value), ...longitude],
    who, decimal: table().decimal, outside: $("protect-outside").value,
  };
}

async function open(files) {
  drop();
  if (other) { state.held.delete(other.id); forget([other.id]); other = null; }
  $("protect-columns").hidden = true;
  say("protect-error", "");
  $("protect-note").textContent = "Reading …";
  try {
    const opened = await ask("POST", "files?header=auto", await contentOf(files), { raw: true });
    if (opened.table) forget([opened.id]); // of a recording only its table is used here
    other = opened.table ?? opened;
    state.names.add(other.id);
    state.held.add(other.id);
    show();
  } catch (error) {
    $("protect-note").textContent = "";
    say("protect-error", error.message);
  }
}

async function check() {
  // How many rows hold a secret, before anything is protected.
  const mine = (checks += 1);
  say("protect-error", "");
  $("protect").disabled = true;
  $("protect-check").textContent = "Looking at the rows …";
  try {
    const now = await start(`files/${table().id}/check`, { ...request(), outside: "leave" });
    if (mine !== checks) return;
    for (const option of $("protect-outside").options) option.hidden = option.disabled = (option.value === "nearest" && !now.has_nearest) || (option.value === "other" && !now.has_other);
    if ($("protect-outside").selectedOptions[0].disabled) $("protect-outside").value = now.has_other ? "other" : "leave";
    const inside = now.rows - now.outside - now.missing;
    const examples = now.first.map((each) => `“${each.text}” in row ${each.line}`).join(", ");
    const parts = [`${inside} of ${now.rows} rows hold one of the secrets.`];
    if (now.outside) parts.push(`${now.outside} hold something else: ${examples}${now.outside > now.first.length ? ", …" : ""}.`);
    if (now.missing) parts.push(`${now.missing} ${now.missing === 1 ? "is" : "are"} empty, and left out.`);
    $("protect-check").textContent = parts.join(" ");
    $("protect").disabled = inside === 0 && !now.has_nearest && !now.has_other;
  } catch (error) {
    if (mine !== checks) return;
    $("protect-check").textContent = "";
    say("protect-error", error.message);
  }
}

async function protect() {
  drop();
  stopped = false;
  say("protect-error", "");
  busy(true);
  $("protect-status").textContent = "Starting …";
  $("protect-bar").removeAttribute("value");
  try {
    protectedRequest = request();
    const started = await start("protected", protectedRequest);
    job = started.id;
    state.names.add(job);
    state.held.add(job);
    const done = await finished();
    if (done) { result = done; showResult(); }
    else $("protect-status").textContent = "Cancelled. Nothing was protected.";
  } catch (error) {
    say("protect-error", error.message);
    drop();
  } finally {
    busy(false);
  }
}

async function finished() {
  // Poll until it is over, with the share done and the time left; null if it was cancelled.
  for (;;) {
    if (stopped || !job) return null;
    const now = await get(`protected/${job}`);
    if (now.state === "done") return now;
    if (now.state === "cancelled") return null;
    if (now.state === "failed") throw new Error(now.error.message);
    const share = now.progress.share;
    if (share > 0) {
      $("protect-bar").value = share;
      const left = Math.ceil(now.seconds * (1 / share - 1));
      $("protect-status").textContent = `${percent(share)} of the rows${left > 0 ? `, about ${left} s left` : ""}.`;
    } else $("protect-status").textContent = now.ahead ? `Waiting: ${now.ahead} before it.` : "Reading the table …";
    await pause(POLL_MS);
  }
}

async function cancel() {
  stopped = true;
  if (job) await ask("DELETE", `protected/${job}`).catch(() => {});
  drop();
}

function busy(is) {
  $("protect").disabled = is;
  $("cancel-protect").hidden = !is;
  $("protect-progress").hidden = !is && !stopped;
  $("protect-bar").hidden = !is;
}

function drop() {
  // Forget the protected file: it is of another design, table or person.
  if (job) { state.held.delete(job); forget([job]); }
  job = result = null;
  $("protected").hidden = true;
  $("protected-notes").replaceChildren();
  $("protected-figure").replaceChildren();
  $("protected-statistics").tBodies[0].replaceChildren();
}

async function download(part, name) {
  try {
    save(await ask("GET", `protected/${job}/${part}`, undefined, { bytes: true }), name);
  } catch (error) {
    say("protect-error", error.message);
  }
}

const rowsThat = (rows, one, many) => (rows === 1 ? `1 row ${one}` : `${rows} rows ${many}`);
const REASONS = {
  missing: (rows) => rowsThat(rows, "was empty or could not be read, and is left out.", "were empty or could not be read, and are left out."),
  unknown: (rows) => rowsThat(rows, "held something else, and is left out.", "held something else, and are left out."),
  far: (rows) => rowsThat(rows, "lay more than one step outside all secrets, and was moved to the nearest.", "lay more than one step outside all secrets, and were moved to the nearest."),
  exchanged: (rows) => rowsThat(rows, "would fit with latitude and longitude exchanged: look at the columns.", "would fit with latitude and longitude exchanged: look at the columns."),
};

function cost({ epsilons, any_pair: anyPair }) {
  const units = Object.entries(epsilons).filter(([per]) => !per.includes("hamming")).map(([per, value]) => `${digits(value)} ${per.replace(" of the absolute distance", "")}`);
  return `ε = ${[...units, `${digits(anyPair)} between any two secrets`].join(", ")}`;
}

function asTheyAre() {
  // What is not protected: the reader of the file must not believe that it is.
  const { columns, who } = protectedRequest;
  const others = table().columns.map((each) => each.name).filter((_, at) => !columns.includes(at));
  if (!others.length) return "The table has no other columns.";
  const named = who === null ? "" : ` “${table().columns[who].name}” still says whose row it is.`;
  return `Not protected, and as they were: ${others.slice(0, 8).join(", ")}${others.length > 8 ? ", …" : ""}.${named} What they tell about the secret, they still tell: remove what the reader need not have.`;
}

function together(now) {
  // What the guarantee of a row does not say of several.
  const notes = ["Protecting these rows again draws other outputs, and both files together reveal more: give out one."];
  if (now.per_user === null && now.rows_out > 1) notes.unshift(`Each row counts as somebody else's. If they are all one person's, such as a recording of your own, the ${now.rows_out} rows may reveal ${now.rows_out} times as much together, and a place that occurs often can be found.`);
  return notes;
}

function showResult() {
  const now = result.result;
  $("protected").hidden = false;
  const rows = now.most_rows === 1 ? "one row" : `at most ${now.most_rows} rows`;
  const each = now.per_user === null ? `Each row: ${cost(now.per_row)}.` : `Each of ${now.people} people has ${rows}: ${cost(now.per_user)}${now.most_rows === 1 ? "" : " for all of them"}.`;
  $("protected-text").textContent = `${now.rows_out} of ${now.rows_in} rows are protected. ${each}`;
  const odd = now.odd.map((one) => (REASONS[one.reason] ?? ((rows) => `${rows} rows: ${one.reason}.`))(one.rows));
  $("protected-notes").replaceChildren(...[asTheyAre(), ...together(now), ...odd, ...now.warnings].map((text) => element("li", {}, text)));
  $("protect-status").textContent = "";
  drawStatistics();
}

export function drawStatistics() {
  const statistics = result?.result.statistics;
  $("protected-figure").replaceChildren();
  const rows = $("protected-statistics").tBodies[0];
  rows.replaceChildren();
  document.querySelector("#protected .scroll").hidden = !statistics;
  if (!result || !statistics) {
    if (result) $("protected-figure").append(element("p", {}, "The outputs are places: their distances from the truth are those under “What it means”."));
    return;
  }
  const told = (one, show) => `${show(one.estimated)} (${show(one.low)} to ${show(one.high)})`;
  const row = (one, show) => element("tr", {}, element("td", {}, one.name), element("td", {}, show(one.before)), element("td", {}, one.after === null ? "–" : show(one.after)), element("td", {}, told(one, show)));
  rows.append(...statistics.means.map((one) => row(one, digits)), ...statistics.shares.map((one) => row(one, percent)));
  $("protected-figure").append(figure(statistics.shares));
}

function figure(shares) {
  // For each value a bar before, one after, and the interval that can be estimated.
  const colours = palette();
  const width = Math.max(300, Math.min(720, $("protected-figure").clientWidth || 600));
  const label = Math.min(0.36 * width, 190);
  const most = Math.max(...shares.flatMap((one) => [one.before, one.after ?? 0, one.high]), 0.01);
  const x = (share) => label + 10 + (share / most) * (width - label - 24);
  const height = FIGURE.row * shares.length + 30;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Shares in your table, in the protected one, and as estimated from it; the numbers are in the table below" });
  const text = (at, y, words, attributes = {}) => { const node = svg("text", { x: at, y, fill: colours.ink, "font-size": 13, ...attributes }); node.textContent = words; return node; };
  shares.forEach((one, at) => {
    const top = FIGURE.row * at + 4;
    const longest = Math.floor(label / FIGURE.letter);
    drawing.append(text(label, top + 15, one.name.length > longest ? `${one.name.slice(0, longest - 1)}…` : one.name, { "text-anchor": "end" }));
    drawing.append(svg("rect", { x: x(0), y: top, width: Math.max(x(one.before) - x(0), 0.5), height: FIGURE.bar, fill: colours.accent }));
    if (one.after !== null) drawing.append(svg("rect", { x: x(0), y: top + FIGURE.bar + 1, width: Math.max(x(one.after) - x(0), 0.5), height: FIGURE.bar, fill: "none", stroke: colours.accent }));
    const middle = top + 2 * FIGURE.bar + 5;
    drawing.append(svg("line", { x1: x(one.low), x2: x(one.high), y1: middle, y2: middle, stroke: colours.mark, "stroke-width": 2 }));
    drawing.append(svg("circle", { cx: x(one.estimated), cy: middle, r: 3.5, fill: colours.mark }));
  });
  const y = height - 10;
  const legend = [["in your table", { fill: colours.accent }], ["protected", { fill: "none", stroke: colours.accent }], ["estimated", { fill: colours.mark }]];
  let left = FIGURE.left;
  for (const [words, look] of legend) {
    drawing.append(svg("rect", { x: left, y: y - 9, width: 14, height: 9, ...look }), text(left + 20, y, words));
    left += 20 + FIGURE.letter * words.length + 8;
  }
  return drawing;
}
