/** Bundle the extension for both browsers (`extension/dist/`), and the offline page (into the Python package). */
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const extension = join(here, "extension");
const page = join(here, "..", "src", "privacygames", "device", "page");
const { version } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));

/** Every script becomes one file without imports: content scripts may have none. */
async function bundle(folder, sources, isFirefox = false) {
  const { metafile } = await build({
    entryPoints: Object.fromEntries([...sources, join(here, "src", "worker.ts")].map((file) => [file.split("/").at(-1).slice(0, -3), file])),
    outdir: folder,
    bundle: true,
    format: "iife",
    target: "es2023",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    alias: { "privacygames-device": join(here, "src", "index.ts") },
    define: { FIREFOX: String(isFirefox) },
    logOverride: { "empty-import-meta": "silent" }, // the worker's address is given where one is made
    metafile: true,
  });
  const sizes = Object.entries(metafile.outputs).map(([file, { bytes }]) => `${file.split("/").at(-1)} ${(bytes / 1000).toFixed(1)} kB`);
  console.log(`${folder.split("/").slice(-2).join("/")}: ${sizes.join(", ")}`);
}

async function emptyFolder(folder, ...sources) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const source of sources) await cp(source, folder, { recursive: true });
  await cp(join(here, "shared", "look.css"), join(folder, "look.css"));
}

const { both, ...own } = JSON.parse(await readFile(join(extension, "manifest.json"), "utf8"));
for (const browser of ["chromium", "firefox"]) {
  const isFirefox = browser === "firefox";
  const folder = join(extension, "dist", browser);
  const names = ["override", "bridge", "background", "popup", "options", ...(isFirefox ? [] : ["offscreen"])];
  await emptyFolder(folder, join(extension, "static"));
  if (isFirefox) await rm(join(folder, "offscreen.html"));
  await bundle(folder, names.map((name) => join(extension, "src", `${name}.ts`)), isFirefox);
  const permissions = [...both.permissions, ...own[browser].permissions];
  await writeFile(join(folder, "manifest.json"), `${JSON.stringify({ ...both, ...own[browser], permissions, version }, null, 2)}\n`);
}

await emptyFolder(page, join(here, "page", "static"));
await bundle(page, ["page", "service-worker"].map((name) => join(here, "page", "src", `${name}.ts`)));
