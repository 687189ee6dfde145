/** Bundle the package for browsers: one module, and the worker beside it. */
import { build } from "esbuild";

await build({
  entryPoints: ["src/index.ts", "src/worker.ts"],
  outdir: "dist",
  bundle: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  // Members of classes that no user of the package sees.
  mangleProps:
    /^(_[a-z]\w*|approximate|approximateRow|axes|choice|columns|combinations|controls|degree|depth|exponent|integer|kilometres|lengths|ofCells|ofLabels|readNumbers|readPlaces|readSets|readTexts|rectangle|shares)$/,
});
