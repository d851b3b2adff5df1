// How much processor time the activation of the extension takes, apart from the workbench, where
// the clock runs for all extensions at once.
//   node scripts/activation-test.mjs EXTENSION
// EXTENSION is the folder of an unpacked .vsix.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const MOST = 300;

/** Runs in a process of its own: loads the extension beside an editor that agrees to everything. */
function activate(file) {
  const anything = new Proxy(function () {}, {
    get: (_, key) =>
      key === Symbol.toPrimitive ? () => "" : key === "then" ? undefined : anything,
    apply: () => anything,
    construct: () => anything,
    set: () => true,
  });
  const Module = require("node:module");
  const load = Module._load;
  Module._load = (name, ...rest) =>
    name === "vscode" ? Object.create(anything) : load(name, ...rest);
  const before = process.cpuUsage();
  require(file).activate(anything);
  const { user, system } = process.cpuUsage(before);
  console.log((user + system) / 1000);
  process.exit();
}

const file = resolve(process.argv[2], "dist/extension.js");
const program = `(${activate})(${JSON.stringify(file)})`;
const times = [1, 2, 3, 4, 5]
  .map(() => Number(execFileSync(process.execPath, ["-e", program], { encoding: "utf8" })))
  .sort((a, b) => a - b);
console.log(`ok activation takes ${times[2]} ms of processor time (median of 5)`);
assert.ok(times[2] < MOST);
