// Runs the servers that one build of the extension can start, as the extension does: the bundled
// one, and that of an environment. Each has to find what is in a file, and to make the report.
//   node scripts/servers-test.mjs EXTENSION PYTHON
// EXTENSION is the folder of an unpacked .vsix, PYTHON an interpreter with npulens installed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import {
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";

const [extension, python] = process.argv.slice(2).map((each) => resolve(each));
const work = mkdtempSync(join(tmpdir(), "npulens-servers-"));
const project = join(work, "project.py");
const CODE = "import torch\nx = torch.ones(2).cuda()\n";
const LONG = 60_000;

async function ownModules() {
  const names = ["bundle", "probe", "reportPage", "reportRun", "serverChoice"];
  const outfile = join(work, "modules.mjs");
  await build({
    stdin: {
      contents: names.map((name) => `export * from "./src/${name}";`).join("\n"),
      resolveDir: join(import.meta.dirname, ".."),
    },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile,
    logLevel: "warning",
  });
  return import(pathToFileURL(outfile).href);
}

/** What a server says of itself, and the codes of what it finds. */
async function answers({ command, args }, options) {
  const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
  const connection = createMessageConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin),
  );
  connection.listen();
  const initialize = { processId: process.pid, rootUri: null, capabilities: {} };
  const { serverInfo } = await connection.sendRequest("initialize", initialize);
  const found = new Promise((done) =>
    connection.onNotification("textDocument/publishDiagnostics", done),
  );
  await connection.sendNotification("initialized", {});
  const document = { uri: "file:///two.py", languageId: "python", version: 1, text: CODE };
  await connection.sendNotification("textDocument/didOpen", { textDocument: document });
  const { diagnostics } = await found;
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  const code = await new Promise((done) => child.on("exit", done));
  assert.equal(code, 0);
  return { serverInfo, codes: diagnostics.map((each) => each.code) };
}

async function report(own, server, options) {
  const output = join(work, "report.html");
  rmSync(output, { force: true });
  const program = { command: server.command, args: server.program, ...options };
  const wishes = { folder: project, output, language: "zh", settings: { torchVersion: "2.7" } };
  const told = await own.runReport(program, wishes, AbortSignal.timeout(LONG));
  assert.equal(told, "");
  const page = readFileSync(output, "utf8");
  assert.match(page, /NPU105/);
  assert.match(page, /lang="zh-CN"/);
  assert.match(page, /PyTorch 2\.7/);
  const shown = own.forWebview(page, "nonce", { style: "", script: "" });
  assert.match(shown, /script-src 'sha256-\S+' 'nonce-nonce'; style-src/);
}

const timer = setTimeout(() => {
  console.error("servers test: no answer");
  process.exit(1);
}, LONG);
try {
  const own = await ownModules();
  const bundle = own.readBundle(extension);
  assert.ok(bundle, "no server is bundled");
  writeFileSync(project, CODE);
  const env = { ...own.pythonEnvironment(), PYTHONPYCACHEPREFIX: join(work, "pycache") };
  const options = { cwd: extension, env };
  const expected = { useBundled: "bundled", fromEnvironment: "environment" };
  for (const [strategy, kind] of Object.entries(expected)) {
    const wishes = { strategy, path: "", args: [], bundle };
    const candidates = [{ command: python, origin: "setting" }];
    const server = await own.chooseServer(wishes, candidates, (command) =>
      own.probePython(command, extension),
    );
    assert.equal(server.kind, kind);
    const { serverInfo, codes } = await answers(server, options);
    assert.equal(serverInfo.name, "npulens");
    assert.deepEqual(codes, ["NPU105"]);
    await report(own, server, options);
    console.log(`ok ${strategy}: npulens ${serverInfo.version}, ${server.args.join(" ")}`);
  }
  const left = readdirSync(extension, { recursive: true }).filter((each) => /pyc/.test(each));
  assert.deepEqual(left, [], "the servers leave files in the extension");
} finally {
  clearTimeout(timer);
  rmSync(work, { recursive: true });
}
