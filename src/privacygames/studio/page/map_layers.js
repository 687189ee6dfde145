// What a user lays on the map: names and outlines of their own, a map file, and, after an explicit click, a tile server.
import { post } from "./api.js";
import { centreOf, positionOf, regionOf } from "./cartography.js";
import { mapAbout, mapReady, mapSpec } from "./map.js";
import { openPmtiles } from "./pmtiles.js";
import { $, element, emit, on, say } from "./shared.js";

const MOST_BYTES = 32 * 2 ** 20; // of a GeoJSON file: a browser draws no more
const MOST_POINTS = 200_000;
const names = [];
let spot = null; // where a double click asked for a name

export function setUpMapLayers() {
  $("map-name-add").addEventListener("click", addName);
  $("map-name").addEventListener("keydown", (event) => { if (event.key === "Enter") addName(); });
  on("map-name", (place) => {
    spot = place;
    $("map-more").open = true;
    $("map-name-where").textContent = "the place you double-clicked";
    $("map-name").focus();
  });
  on("map-click", () => { spot = null; $("map-name-where").textContent = "the chosen place"; });
  $("map-geojson").addEventListener("change", () => read("map-geojson", readGeoJson));
  $("map-pmtiles").addEventListener("change", () => read("map-pmtiles", readPmtiles));
  $("map-files-clear").addEventListener("click", clearFiles);
  $("map-allow").addEventListener("click", () => allow($("map-template").value.trim()));
  $("map-forbid").addEventListener("click", () => allow(null));
  $("map-tiles").addEventListener("change", showTiles);
  on("map-shown", (geographic) => { $("map-more").hidden = !geographic; });
  on("cleared", () => { // the next data may be somebody else's
    names.length = 0;
    listNames();
    clearFiles();
  });
  mapReady().then(describeTiles);
  on("problem", describeTiles); // once a token was given
}

function addName() {
  const spec = mapSpec();
  const name = $("map-name").value.trim();
  if (!spec || !name) { $("map-name").focus(); return; }
  const region = regionOf(spec.problem);
  const [longitude, latitude] = positionOf(region, spec.problem.kind === "points" ? spec.cursor : centreOf(region, spec.cursor));
  names.push({ name, ...(spot ?? { longitude, latitude }) });
  spot = null;
  $("map-name").value = "";
  $("map-name-where").textContent = "the chosen place";
  listNames();
}

function listNames() {
  $("map-names").replaceChildren(...names.map((each, at) => element("li", {}, each.name, element("button", { type: "button", "aria-label": `Remove the name ${each.name}`, onclick: () => { names.splice(at, 1); listNames(); } }, "Remove"))));
  emit("map-layers", { names: [...names] });
}

async function read(id, reader) {
  const file = $(id).files[0];
  if (!file) return;
  say("map-file-error", "");
  try {
    $("map-file-note").textContent = await reader(file);
  } catch (error) {
    $("map-file-note").textContent = "";
    say("map-file-error", error.message);
  }
  $("map-files-clear").hidden = false;
}

async function readGeoJson(file) {
  if (file.size > MOST_BYTES) throw new Error("This file is too large to draw: at most 32 MB.");
  let content;
  try { content = JSON.parse(await file.text()); } catch { throw new Error("This is not a GeoJSON file: it is not valid JSON."); }
  const own = [];
  collect(content, own);
  if (!own.length) throw new Error("There are no points, lines or areas in this file.");
  const all = own.flatMap((each) => each.points);
  if (all.length > MOST_POINTS) throw new Error("This file has more points than can be drawn: at most 200,000.");
  if (!all.every(([x, y]) => Math.abs(x) <= 180 && Math.abs(y) <= 90)) throw new Error("The positions in this file are not longitudes and latitudes.");
  emit("map-layers", { own });
  return `${own.length} ${own.length === 1 ? "shape" : "shapes"} from ${file.name}.`;
}

function collect(node, own) {
  const parts = node?.features ?? node?.geometries ?? (node?.geometry ? [node.geometry] : null);
  if (Array.isArray(parts)) { parts.forEach((each) => collect(each, own)); return; }
  const depth = { Point: 0, MultiPoint: 1, LineString: 1, MultiLineString: 2, Polygon: 2, MultiPolygon: 3 }[node?.type];
  if (depth === undefined || !Array.isArray(node.coordinates)) return;
  const closed = node.type.endsWith("Polygon");
  const single = node.type.endsWith("Point");
  const lists = single ? [node.coordinates].flat(depth).map((each) => [each]) : [node.coordinates].flat(depth - 1);
  for (const points of single && depth === 0 ? [[node.coordinates]] : lists) {
    if (!Array.isArray(points) || !points.every((each) => Array.isArray(each) && Number.isFinite(each[0]) && Number.isFinite(each[1]))) throw new Error("A shape in this file has positions that are no numbers.");
    if (points.length) own.push({ points, closed });
  }
}

async function readPmtiles(file) {
  const archive = await openPmtiles(file);
  $("map-tiles").checked = false;
  emit("map-layers", { tiles: (L) => tileLayer(L, archive) });
  return `Pictures of zoom ${archive.minZoom} to ${archive.maxZoom} from ${file.name}, read from your disk.`;
}

function tileLayer(L, archive) {
  const Layer = L.GridLayer.extend({
    createTile({ x, y, z }, done) {
      const image = element("img", { alt: "", role: "presentation" });
      archive.tile(z, x, y).then((blob) => {
        if (!blob) { done(null, image); return; }
        const address = URL.createObjectURL(blob);
        image.onload = image.onerror = () => { URL.revokeObjectURL(address); done(null, image); };
        image.src = address;
      }).catch((error) => done(error, image));
      return image;
    },
  });
  return new Layer({ minNativeZoom: archive.minZoom, maxNativeZoom: archive.maxZoom });
}

function clearFiles() {
  for (const id of ["map-geojson", "map-pmtiles"]) $(id).value = "";
  $("map-file-note").textContent = "";
  say("map-file-error", "");
  $("map-files-clear").hidden = true;
  emit("map-layers", $("map-tiles").checked ? { own: [] } : { own: [], tiles: null });
}

function describeTiles() {
  const about = mapAbout();
  if (!about) return;
  for (const each of document.querySelectorAll(".map-moving")) each.hidden = !window.L; // pictures below need Leaflet
  const host = about.origin.replace(/^https?:\/\//, "");
  $("map-tiles-label").hidden = $("map-forbid").hidden = !about.origin;
  $("map-tiles-text").textContent = host ? `Show the map of ${host} now` : "";
  $("map-forbid").textContent = `Forbid ${host} again, and reload`;
  if (about.tiles && !$("map-template").value) $("map-template").value = about.tiles;
}

async function allow(template) {
  // The policy that forbids other hosts belongs to the loaded page, so only a reload can change it.
  say("map-tiles-error", "");
  if (template === "") { $("map-template").focus(); return; }
  try {
    await post("map/tiles", { template });
    location.reload();
  } catch (error) { say("map-tiles-error", error.message); }
}

function showTiles() {
  const { tiles, origin } = mapAbout();
  const host = origin.replace(/^https?:\/\//, "");
  emit("map-layers", { tiles: $("map-tiles").checked ? (L) => L.tileLayer(tiles, { maxNativeZoom: 19 }) : null, credit: $("map-tiles").checked ? `Tiles: ${host}` : "" });
}
