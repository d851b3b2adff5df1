// Installs a .vsix into a real VS Code workbench and uses it as a user does.
//   scripts/install-workbench.sh FOLDER
//   node scripts/workbench-test.mjs FOLDER FILE.vsix PICTURES [PYTHON]
// With PYTHON, an interpreter that npulens is installed for, the server is taken from there.
// Pictures of each step are put into the folder PICTURES, to be looked at.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [folder, vsix, pictures, python] = process.argv.slice(2).map((each) => resolve(each));
const here = join(import.meta.dirname, "..");
const port = 18080 + (process.pid % 1000);
const work = mkdtempSync(join(tmpdir(), "npulens-workbench-"));
const project = join(work, "project");
const script = join(project, "train.py");
const LONG = 60_000;

function startWorkbench() {
  const nowhere = "http://127.0.0.1:9/";
  const gallery = { serviceUrl: nowhere, itemUrl: nowhere, resourceUrlTemplate: nowhere };
  const node = join(folder, "node24/node_modules/node/bin/node");
  const entry = join(folder, "server/node_modules/code-server/out/node/entry.js");
  const env = { ...process.env, EXTENSIONS_GALLERY: JSON.stringify(gallery) };
  const places = [
    "--extensions-dir",
    join(work, "extensions"),
    "--user-data-dir",
    join(work, "data"),
  ];
  mkdirSync(join(work, "data/User"), { recursive: true });
  const settings = {
    "workbench.startupEditor": "none",
    "security.workspace.trust.enabled": false,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": false,
    "update.mode": "none",
    "chat.disableAIFeatures": true,
    "editor.codeActionsOnSave": { "source.fixAll.npulens": "explicit" },
    "editor.minimap.enabled": false,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
  };
  writeFileSync(join(work, "data/User/settings.json"), JSON.stringify(settings));
  if (python) {
    const start = { "npulens.importStrategy": "fromEnvironment", "npulens.interpreter": python };
    mkdirSync(join(work, "data/Machine"), { recursive: true });
    writeFileSync(join(work, "data/Machine/settings.json"), JSON.stringify(start));
  }
  writeFileSync(
    join(work, "config.yaml"),
    `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`,
  );
  execFileSync(node, [entry, "--install-extension", vsix, ...places], { env, stdio: "inherit" });
  const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
  const config = ["--config", join(work, "config.yaml"), "--disable-getting-started-override"];
  return spawn(node, [entry, ...config, ...quiet, ...places], { env, stdio: "ignore" });
}

async function isUp() {
  for (let tries = 0; tries < 120; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
    await new Promise((done) => setTimeout(done, 500));
  }
  throw new Error("The workbench does not start.");
}

function startBrowser() {
  const require = createRequire(join(folder, "browser/package.json"));
  const nothingElse = ["--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1"];
  const { chromium } = require("playwright-core");
  return chromium.launchPersistentContext(join(work, "browser"), {
    executablePath: "/usr/bin/chromium",
    headless: true,
    viewport: { width: 1280, height: 800 },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", ...nothingElse],
  });
}

/** What the log of the extension says, from its own file. */
function extensionLog() {
  const logs = join(work, "data/logs");
  const file = readdirSync(logs, { recursive: true }).find((each) => /npulens\.log$/.test(each));
  return file === undefined ? "" : readFileSync(join(logs, file), "utf8");
}

async function waitFor(what, check) {
  const end = Date.now() + LONG;
  while (!(await check())) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise((done) => setTimeout(done, 200));
  }
  console.log(`ok ${what}`);
}

async function use(page) {
  const { keyboard } = page;
  let number = 0;
  const picture = async (name) => {
    await page.waitForTimeout(700);
    number += 1;
    await page.screenshot({ path: join(pictures, `${number}-${name}.png`) });
  };
  const seen = (selector, text) => page.locator(selector, { hasText: text }).first();
  const command = async (title) => {
    const input = page.locator(".quick-input-widget input").first();
    for (let tries = 0; tries < 10 && !(await input.isVisible()); tries += 1) {
      await keyboard.press("F1");
      await page.waitForTimeout(500);
    }
    await keyboard.type(title);
    await seen(".quick-input-list .monaco-list-row", title).waitFor({ timeout: LONG });
    await keyboard.press("Enter");
  };

  await page.goto(`http://127.0.0.1:${port}/?folder=${project}`);
  await page.locator(".monaco-workbench").waitFor({ timeout: LONG });
  await seen(".explorer-folders-view .monaco-list-row", "train.py").dblclick({ timeout: LONG });
  await page.locator(".squiggly-error").first().waitFor({ timeout: LONG });
  console.log("ok squiggles");
  await picture("diagnostics");

  const status = page.locator("#npulens\\.npulens\\.npulens, .statusbar-item", {
    hasText: "npulens",
  });
  await waitFor("the status item counts findings", async () =>
    /npulens \d+/.test((await status.first().innerText()) ?? ""),
  );
  await status.first().hover();
  await picture("status");

  await page.locator(".monaco-editor .view-lines").first().click();
  await keyboard.press("Control+g");
  await keyboard.type("33:25");
  await keyboard.press("Enter");
  const action = seen(".action-widget .monaco-list-row", ".npu()");
  await waitFor("the light bulb offers .npu()", async () => {
    await keyboard.press("Control+.");
    return action.waitFor({ timeout: 3_000 }).then(
      () => true,
      () => false,
    );
  });
  await picture("quick-fixes");
  await action.click();
  await waitFor("a quick fix changes the text", async () =>
    (await page.locator(".view-lines").first().innerText())
      .replace(/\s/g, "")
      .includes("Block(256).npu()"),
  );

  await page
    .locator('.activitybar .action-label[aria-label^="npulens"]')
    .first()
    .click({ force: true });
  const view = '.pane-body [role="treeitem"]';
  await seen(view, "Devices").waitFor({ timeout: LONG });
  await picture("by-family");
  await seen(view, "NPU101").click();
  await picture("by-family-open");
  await page.locator('.sidebar .action-label[aria-label="Group by File"]').first().click();
  await seen(view, "train.py").waitFor({ timeout: LONG });
  await seen(view, "train.py").click();
  await seen(view, "needs CUDA").waitFor({ timeout: LONG });
  await seen(view, "train.py").hover();
  await picture("by-file");
  console.log("ok the Migration view groups by family and by file");

  await command("npulens: Select Target");
  await seen(".quick-input-list .monaco-list-row", "PyTorch 2.7").waitFor();
  await picture("target");
  await seen(".quick-input-list .monaco-list-row", "PyTorch 2.7").click();
  await seen(".quick-input-list .monaco-list-row", "device-agnostic").waitFor();
  await picture("style");
  await seen(".quick-input-list .monaco-list-row", /^npu/).click();
  const kept = join(project, ".vscode/settings.json");
  await waitFor("the target is kept in the workspace", () => {
    try {
      return JSON.parse(readFileSync(kept, "utf8"))["npulens.torchVersion"] === "2.7";
    } catch {
      return false;
    }
  });

  await page.locator(".monaco-editor .view-lines").first().click();
  await page.waitForTimeout(2_000); // the findings for the new target
  await keyboard.press("Control+s");
  await waitFor("saving fixes all that is safe", () => {
    const text = readFileSync(script, "utf8");
    return text.includes("import torch_npu") && text.includes("torch.npu.synchronize");
  });
  await picture("saved");

  await command("npulens: Show Log");
  await picture("log");
  await command("Developer: Show Running Extensions");
  const running = seen(".runtime-extensions-editor .monaco-list-row", "npulens");
  await running.waitFor({ timeout: LONG });
  const [, time] = /(\d+)\s*ms/.exec(await running.innerText()) ?? [];
  console.log(`ok activated in ${time} ms`);
  assert.ok(Number(time) < 300);
  await keyboard.press("Escape");

  await command("npulens: Migrate Workspace");
  await seen(".part.panel .monaco-list-row", "other.py").waitFor({ timeout: LONG });
  await picture("preview");
  await seen(".part.panel .monaco-list-row", "other.py").click();
  await keyboard.press("Space");
  await seen(".part.panel .monaco-button", "Apply").click();
  await waitFor("the workspace is migrated after the preview", () =>
    readFileSync(join(project, "other.py"), "utf8").includes("x.npu()"),
  );
  await command("npulens: Restart Server");
  await waitFor("the server starts again", () => extensionLog().split("npulens 0.").length > 2);
  await command("Preferences: Toggle between Light/Dark Themes");
  await picture("other-theme");
  await command("Welcome: Open Walkthrough");
  await keyboard.type("Ascend");
  await page.waitForTimeout(1500);
  await keyboard.press("Enter");
  await picture("walkthrough");
}

mkdirSync(pictures, { recursive: true });
cpSync(join(here, "sample"), project, { recursive: true });
writeFileSync(join(project, "other.py"), "import torch\n\n\ndef move(x):\n    return x.cuda()\n");
const workbench = startWorkbench();
let browser;
try {
  await isUp();
  browser = await startBrowser();
  const page = browser.pages()[0] ?? (await browser.newPage());
  try {
    await use(page);
  } catch (error) {
    await page.screenshot({ path: join(pictures, "failed.png") });
    console.error(extensionLog());
    throw error;
  }
  const log = extensionLog();
  console.log(log);
  assert.match(log, python ? /from the environment of/ : /bundled with the extension/);
  console.log("workbench test: passed");
} finally {
  await browser?.close();
  workbench.kill();
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
}
