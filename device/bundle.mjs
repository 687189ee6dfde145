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
  legalComments: "none",
});
