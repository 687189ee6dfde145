/** Bundles the extension for both browsers, and the offline page: `node extension/build.mjs` in `device/`. */
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "dist");
const { version } = JSON.parse(await readFile(join(here, "..", "package.json"), "utf8"));

/** Every script is one file without imports. */
async function bundle(folder, names, { isFirefox }) {
  const { metafile } = await build({
    entryPoints: {
      ...Object.fromEntries(names.map((name) => [name, join(here, "src", `${name}.ts`)])),
      worker: join(here, "..", "src", "worker.ts"),
    },
    outdir: folder,
    bundle: true,
    format: "iife",
    target: "es2023",
    minify: true,
    legalComments: "none",
    alias: { "privacygames-device": join(here, "..", "src", "index.ts") },
    define: { FIREFOX: String(isFirefox) },
    logOverride: { "empty-import-meta": "silent" }, // the worker's address is given where one is made
    metafile: true,
  });
  return Object.entries(metafile.outputs).map(([file, { bytes }]) => [file.split("/").at(-1), bytes]);
}

const manifest = JSON.parse(await readFile(join(here, "manifest.json"), "utf8"));

await rm(target, { recursive: true, force: true });
for (const browser of ["chromium", "firefox"]) {
  const isFirefox = browser === "firefox";
  const folder = join(target, browser);
  await mkdir(folder, { recursive: true });
  await cp(join(here, "static"), folder, { recursive: true });
  const scripts = ["override", "bridge", "background", "popup", "options", ...(isFirefox ? [] : ["offscreen"])];
  const sizes = await bundle(folder, scripts, { isFirefox });
  const own = structuredClone({ ...manifest.both, ...manifest[browser], version });
  own.permissions = [...manifest.both.permissions, ...manifest[browser].permissions];
  await writeFile(join(folder, "manifest.json"), `${JSON.stringify(own, null, 2)}\n`);
  if (isFirefox) await rm(join(folder, "offscreen.html"));
  console.log(`${browser}: ${sizes.map(([name, bytes]) => `${name} ${(bytes / 1000).toFixed(1)} kB`).join(", ")}`);
}
