/** Says of each of many files whether it is accepted: `node judge.js FILES`, each preceded by its length in 4 bytes. */

import { readFileSync } from "node:fs";
import { PACKAGE } from "./files.js";

const { InvalidFile, open } = (await import(new URL("dist/index.js", PACKAGE).href)) as typeof import("../src/index.js");

const files = readFileSync(process.argv[2]!);
const verdicts: string[] = [];
for (let at = 0; at < files.length; ) {
  const length = files.readUInt32LE(at);
  verdicts.push(await judge(new Uint8Array(files.subarray(at + 4, at + 4 + length))));
  at += 4 + length;
}
process.stdout.write(JSON.stringify(verdicts));

async function judge(file: Uint8Array): Promise<string> {
  try {
    return (await (await open(file)).verify()).holds ? "accepted" : "violated";
  } catch (error) {
    if (error instanceof InvalidFile) return "invalid";
    throw error;
  }
}
