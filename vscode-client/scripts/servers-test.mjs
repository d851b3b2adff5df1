// Runs the servers that one build of the extension can start, as the extension does: the bundled
// one, and that of an environment. Each has to find what is in a file, to make the report, and to run
// a script on the emulated NPU, or to say what that needs.
//   node scripts/servers-test.mjs EXTENSION PYTHON...
// EXTENSION is the folder of an unpacked .vsix. The first PYTHON has npulens installed; what others
// have is asked, and one that is too old has to be refused.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import {
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";

const [extension, ...pythons] = process.argv.slice(2).map((each) => resolve(each));
const work = mkdtempSync(join(tmpdir(), "npulens-servers-"));
const project = join(work, "project");
const CODE = "import torch\nx = torch.ones(2).cuda()\n";
/** It trains, and would not if it found packages of the server or the switches of its Python. */
const SCRIPT = `import os, sys
import torch
import beside

assert "npulens" not in sys.modules and not any("common" in entry for entry in sys.path)
assert sys.pycache_prefix is None and not sys.flags.utf8_mode
assert sys.argv[1:] == ["--rate", "0.1"], sys.argv
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(8, 4).cuda()).square().mean()
    loss.backward()
    optimizer.step()
`;
const LONG = 120_000;

async function ownModules() {
  const names = ["bundle", "interpreter", "probe", "reportPage", "reportRun", "serverChoice"];
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

/** What a server says of itself, the codes of what it finds, and what came of running a script. */
async function answers({ command, args }, options) {
  const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("exit", done));
  const connection = createMessageConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin),
  );
  connection.listen();
  const initialize = { processId: process.pid, rootUri: null, capabilities: {} };
  const tooEarly = ended.then((code) => assert.fail(`the server ends with ${code}`));
  const started = connection.sendRequest("initialize", initialize);
  const { serverInfo } = await Promise.race([started, tooEarly]);
  const found = new Promise((done) =>
    connection.onNotification("textDocument/publishDiagnostics", done),
  );
  await connection.sendNotification("initialized", {});
  const document = { uri: "file:///two.py", languageId: "python", version: 1, text: CODE };
  await connection.sendNotification("textDocument/didOpen", { textDocument: document });
  const { diagnostics } = await found;
  const script = pathToFileURL(join(project, "train.py")).href;
  const run = await connection
    .sendRequest("workspace/executeCommand", {
      command: "npulens.verify",
      arguments: [script, { arguments: ["--rate", "0.1"] }],
    })
    .catch((error) => error.message);
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  assert.equal(await ended, 0);
  return { serverInfo, codes: diagnostics.map((each) => each.code), run };
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
  const launcher = own.launcherOf(extension);
  mkdirSync(project);
  writeFileSync(join(project, "two.py"), CODE);
  writeFileSync(join(project, "train.py"), SCRIPT);
  writeFileSync(join(project, "beside.py"), "");
  const cache = join(work, "pycache");
  const env = { ...process.env };
  for (const name of Object.keys(env).filter((each) => each.startsWith("PYTHON"))) {
    delete env[name]; // what is tested here is the default
  }
  const probes = own.probesIn(extension);
  for (const [index, python] of pythons.entries()) {
    const asked = await probes.python(python);
    assert.ok(asked, python);
    const version = asked.version.join(".");
    const isInstalled = asked.npulens !== null;
    assert.ok(index > 0 || isInstalled, `${python} has no npulens`);
    for (const strategy of ["useBundled", "fromEnvironment"].slice(0, isInstalled ? 2 : 1)) {
      const wishes = { strategy, path: "", args: [], bundle, launcher };
      const candidates = [{ command: python, origin: "setting" }];
      const server = await own.chooseServer(wishes, candidates, probes);
      if (!own.isNewEnough(asked.version)) {
        assert.equal(server.kind, "oldPython");
        console.log(`ok Python ${version} is refused`);
        continue;
      }
      assert.equal(server.kind, strategy === "useBundled" ? "bundled" : "environment");
      const options = { cwd: extension, env: { ...env, ...own.launchVariables(server, cache) } };
      const { serverInfo, codes, run } = await answers(server, options);
      assert.equal(serverInfo.name, "npulens");
      assert.deepEqual(codes, ["NPU105"]);
      const told = typeof run === "string" ? run : run.message;
      assert.ok(
        run.status === "passed" || /^verify needs PyTorch .*npulens\[verify\]/.test(run),
        told,
      );
      await report(own, server, options);
      console.log(`ok ${server.kind} npulens ${serverInfo.version} on Python ${version}; ${told}`);
    }
  }
  const left = readdirSync(extension, { recursive: true }).filter((each) => /pyc/.test(each));
  assert.deepEqual(left, [], "the servers leave files in the extension");
  const kept = readdirSync(cache, { recursive: true });
  assert.ok(kept.some((each) => /npulens.*pyc$/.test(each)));
  const foreign = kept.filter((each) => /beside|torch[/\\]nn/.test(each));
  assert.deepEqual(foreign, [], "scripts that are run leave files in the storage");
  assert.deepEqual(readdirSync(project).sort(), ["beside.py", "train.py", "two.py"]);
} finally {
  clearTimeout(timer);
  rmSync(work, { recursive: true });
}
