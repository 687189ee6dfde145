// Step 1, "What is secret": creates a problem from the chosen source, and announces it to the other parts.
import { allStarted, ask, post } from "./api.js";
import { dataBody, dataKind, setUpData } from "./data.js";
import { $, chosen, digits, element, emit, forget, on, percent, say, state } from "./shared.js";

let latest = 0;

const shapes = {
  even: () => 1,
  hill: (at) => Math.round(10 + 90 * Math.exp(-((at - 0.5) ** 2) / 0.08)),
  young: (at) => Math.round(5 + 95 * Math.exp(-3 * at)),
};

export function setUpSources() {
  for (let n = 0; n < 10; n += 1) {
    $("person").append(element("option", { value: n }, `${n + 1}`));
    $("seed").append(element("option", { value: n }, "ABCDEFGHIJ"[n]));
  }
  $("person").value = 7;
  document.querySelectorAll('input[name="source"]').forEach((each) => each.addEventListener("change", () => { showPanel(); load(); }));
  document.querySelectorAll('input[name="secrets"]').forEach((each) => each.addEventListener("change", () => { showPanel(); load(); }));
  for (const id of ["person", "seed", "columns", "rows", "cost", "age-from", "age-to", "age-shape", "labels"]) {
    $(id).addEventListener("change", load);
  }
  on("expired", async () => { // the server forgets what has not been used for an hour
    await load();
    if (state.loaded) $("source-note").textContent += " It had been forgotten, and was loaded again.";
  });
  setUpData({ load: () => { showPanel(); return load(); }, loading: announceReading, cleared: clear });
  $("document").addEventListener("change", load);
}

export function showPanel() {
  const source = chosen("source");
  document.querySelectorAll(".panel").forEach((panel) => { panel.hidden = panel.dataset.for !== source; });
  const places = source === "places" || (source === "own" && dataKind() === "places");
  const points = places && chosen("secrets") === "points";
  for (const id of ["guarantee", "grid-size"]) $(id).hidden = !places;
  $("cost-label").hidden = points || ["categories", "file"].includes(source) || (source === "own" && !["places", "numbers"].includes(dataKind()));
  $("guarantee-means").textContent = points
    ? "For coordinates, however close: outputs are the centres of the columns and rows, and cost you their distance."
    : "For cells: close points on two sides of a border may have very different outputs.";
}

export async function load() {
  const mine = (latest += 1);
  let waiting = true;
  say("source-error", "");
  try {
    const body = await requestBody();
    if (mine !== latest) return;
    if (body === null) {
      $("source-note").textContent = "Choose a file.";
      clear();
      return;
    }
    emit("loading");
    setTimeout(() => { if (mine === latest && waiting) $("source-note").textContent = "Reading …"; }, 400);
    const response = body.pgm ? await ask("POST", "verify", body.pgm, { raw: true }) : await post("problems", body);
    if (mine !== latest) return;
    if (response.kind === "points" && body.pgm && !response.problem) {
      forget([response.id]);
      throw new Error("The secrets of this mechanism are numbers of an interval, which this page does not show. Draw outputs with privacygames sample, or over the HTTP API.");
    }
    const problem = body.pgm ? response.problem : response;
    state.names.add(response.id);
    const before = state.problem ? [state.problem.id, ...state.results.map((each) => each.id)].filter(Boolean) : [];
    allStarted().then(() => forget(before));
    const possible = problem.prior.filter((p) => p > 0).length;
    const outside = problem.left_out ? ` ${problem.left_out} visits far away from the others are outside the map, and left out.` : "";
    const about = problem.kind === "points"
      ? `Any point of ${digits(problem.map.width)} × ${digits(problem.map.height)} km is a secret. The prior has ${problem.shape[0]} of them, the likeliest with ${percent(Math.max(...problem.prior))}; ${problem.shape[1]} outputs.`
      : `${problem.shape[0]} secrets, ${possible} of them possible; the likeliest with ${percent(Math.max(...problem.prior))}.`;
    $("source-note").textContent = `${about}${outside}`;
    emit("problem", problem);
    if (body.pgm) emit("opened", response);
  } catch (error) {
    if (mine !== latest) return;
    $("source-note").textContent = "";
    say("source-error", error.status === "NOT_FOUND" ? "The file was forgotten after a while without use: choose it again." : error.message);
    clear();
  } finally {
    waiting = false;
  }
}

function announceReading() {
  latest += 1; // a problem that is still loading is outdated
  say("source-error", "");
  $("source-note").textContent = "";
}

function clear() {
  // Remove everything about the earlier source, from the page and from the server.
  const names = [...state.names].filter((name) => !state.held.has(name));
  allStarted().then(() => forget(names));
  Object.assign(state, { problem: null, loaded: false, result: null, results: [], secret: null, place: null, output: null, releases: null, samples: [] });
  emit("unloaded");
  emit("cleared");
}

async function requestBody() {
  const source = chosen("source");
  const whole = (id) => Number.isInteger(Number($(id).value)) && Number($(id).value) >= 1 && Number($(id).value) <= 60;
  if (!$("grid-size").hidden && !(whole("columns") && whole("rows"))) throw new Error("Columns and rows are whole numbers from 1 to 60.");
  const grid = { columns: Number($("columns").value), rows: Number($("rows").value), cost: $("cost").value === "hamming" ? "hamming" : "euclidean", secrets: chosen("secrets") };
  if (source === "places") return { invented: { seed: Number($("seed").value), person: Number($("person").value), ...grid } };
  if (source === "own") return dataBody(grid);
  if (source === "ages") return { document: ages() };
  if (source === "categories") return { document: categories() };
  const file = $("document").files[0];
  if (!file) return null;
  return file.name.endsWith(".pgm") ? { pgm: await file.arrayBuffer() } : { toml: await file.text() };
}

function ages() {
  const [from, to] = [Number($("age-from").value), Number($("age-to").value)];
  if (!(Number.isInteger(from) && Number.isInteger(to) && from < to && to - from <= 150)) throw new Error("Ages go from a whole number to a larger one, at most 150 years apart.");
  const counts = [];
  for (let age = from; age <= to; age += 1) counts.push(shapes[$("age-shape").value]((age - from) / (to - from)));
  return {
    space: { kind: "numbers", from, to, unit: "years" },
    prior: { counts },
    problem: { cost: $("cost").value === "hamming" ? "hamming" : "absolute", distance: "absolute" },
  };
}

function categories() {
  const parsed = [];
  $("labels").value.split("\n").forEach((line, at) => {
    if (!line.trim()) return;
    const [label, count, ...more] = line.split(/[,;\t]/).map((each) => each.trim());
    const number = count === undefined ? 1 : Number(count);
    if (!label || more.length || count === "" || !(number >= 0 && Number.isFinite(number))) throw new Error(`Line ${at + 1}: write a name, a comma, and how common it is as a number, such as: asthma, 9.5`);
    parsed.push([label, number]);
  });
  if (parsed.length < 2) throw new Error("Give at least two categories, one a line.");
  if (new Set(parsed.map(([label]) => label)).size < parsed.length) throw new Error("Two lines have the same name.");
  if (!parsed.some(([, count]) => count > 0)) throw new Error("At least one must be more common than 0.");
  return {
    space: { kind: "categories", labels: parsed.map(([label]) => label) },
    prior: { counts: parsed.map(([, count]) => count) },
    problem: { cost: "hamming", distance: "hamming" },
  };
}
