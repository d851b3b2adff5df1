// What the test in the workbench does, in order; later steps start where earlier ones ended.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { migrations } from "./migrations.mjs";
import { SETTINGS } from "./start.mjs";
import { LONG } from "./user.mjs";

const VIEW = '.pane-body [role="treeitem"]';
const MARK = ".glyph-margin-widgets .cgmr, .margin .cgmr";

/** How many marks of a kind stand in the margin: a picture each, of the extension. */
function marks(page, kind) {
  const isOurs = (elements, name) =>
    elements.filter((each) => getComputedStyle(each).backgroundImage.includes(name)).length;
  return page.locator(MARK).evaluateAll(isOurs, kind);
}

async function findings({ user, page, workbench, project }) {
  await user.openWorkspace(`http://127.0.0.1:${workbench.port}/?folder=${project}`);
  console.log("ok squiggles");
  const status = user.seen(".statusbar-item", "npulens");
  await user.waitFor("the status item counts findings", async () =>
    /npulens \d+/.test(await status.innerText()),
  );
  await user.picture("diagnostics");
  await status.hover();
  await user.picture("status");
  await page.mouse.move(640, 300);
}

async function hovers({ user, page }) {
  await user.select("manual_seed_all");
  const hover = page.locator(".monaco-hover:visible");
  await user.waitFor("a hover tells what a name is on the NPU", async () => {
    await user.seen(".view-line", "manual_seed_all").locator("span span").first().hover();
    await page.waitForTimeout(1_000);
    const texts = await hover.allInnerTexts();
    return texts.some((text) => /NPU101/.test(text) && /torch\.npu\.manual_seed_all/.test(text));
  });
  await user.picture("hover");
  await page.mouse.move(640, 780);
}

async function shapes({ user, page }) {
  await user.select("largest =");
  await user.waitFor("an inlay hint tells a dynamic shape", async () =>
    /largest: \[.*\] dynamic/.test(await user.text()),
  );
  await user.waitFor(
    "dynamic shapes and syncs are marked in the margin",
    async () => (await marks(page, "dynamicShape")) === 1 && (await marks(page, "hostSync")) === 1,
  );
  await user.picture("shapes");
  await user.set("User", { ...SETTINGS, "npulens.hotspotMarks": false });
  await user.waitFor("a setting turns the marks off", async () => {
    return (await marks(page, "dynamicShape")) + (await marks(page, "hostSync")) === 0;
  });
  await user.set("User", SETTINGS);
  await user.command("NPU Lens: Show Ranked Dynamic Shapes");
  await user.row("train.py:40").waitFor({ timeout: LONG });
  await user.picture("ranked-shapes");
  await user.keyboard.press("ArrowDown");
  await user.keyboard.press("Enter");
  const cursor = user.seen(".statusbar-item", /Ln 47, Col/);
  await cursor.waitFor({ timeout: LONG });
  console.log("ok a ranked shape is gone to");
  await user.command("NPU Lens: Show Ranked Dynamic Shapes");
  await user.row("train.py:40").waitFor({ timeout: LONG });
  await page.locator('.quick-input-titlebar [aria-label="In the whole workspace"]').click();
  await user.seen(".quick-input-title", "in the workspace").waitFor({ timeout: LONG });
  await user.row("train.py:40").waitFor({ timeout: LONG });
  await user.keyboard.press("Escape");
  await cursor.waitFor({ timeout: LONG });
  console.log("ok shapes of the workspace are ranked, and Escape leads back");
}

async function fixes({ user, page }) {
  await user.select("manual_seed_all");
  await page
    .locator('[class*="codicon-lightbulb"], [class*="codicon-light-bulb"]')
    .first()
    .waitFor();
  await user.fix("torch.npu.manual_seed_all", "quick-fixes");
  await user.waitFor("torch.cuda becomes torch.npu", async () =>
    (await user.text()).includes("torch.npu.manual_seed_all(7)"),
  );
  await user.select("torch.rsqrt");
  await user.fix("npu_rms_norm", "rms-norm");
  await user.waitFor("RMSNorm becomes a fused operator", async () =>
    (await user.text()).includes("torch_npu.npu_rms_norm(x, self.weight"),
  );
  await user.picture("rms-norm-applied");
}

async function migrationView({ user, page }) {
  const icon = page.locator('.activitybar .action-label[aria-label^="NPU Lens"]').first();
  await icon.click({ force: true });
  await user.seen(VIEW, "Devices").waitFor({ timeout: LONG });
  await user.picture("by-family");
  await user.seen(VIEW, "NPU101").click();
  await user.picture("by-family-open");
  await clickInTitle(page, "Group by File");
  const train = user.seen(VIEW, /train\.py(?!:)/); // not the place of a finding
  await train.waitFor({ timeout: LONG });
  await train.click();
  await user.seen(VIEW, "needs CUDA").waitFor({ timeout: LONG });
  await user.seen(VIEW, "train.py").hover();
  await user.picture("by-file");
  console.log("ok the Migration view groups by family and by file");
  await filter({ user, page });
  const moved = user.seen(VIEW, "moved.py");
  await user.waitFor("all that is safe is fixed in a file of the view", async () => {
    const isThere = await moved.isVisible();
    if (isThere && !(await user.seen(".tab.active", "moved.py").isVisible())) {
      await moved.hover();
      await moved.locator('[aria-label^="Fix All Safe Here"]').click(); // the view may be changing
      await page.waitForTimeout(2_000);
    }
    return (await user.text()).includes("return x.npu()");
  });
  await user.keyboard.press("Control+s");
  await user.waitFor("what is fixed leaves the view", async () => {
    return (await user.seen(VIEW, "moved.py").count()) === 0;
  });
  await user.openFile("train.py");
}

/** The actions of a view are seen under the mouse; the guide has a title of its own. */
async function clickInTitle(page, name) {
  const title = page.locator(".sidebar .pane-header").first();
  await title.hover();
  await title.locator(`.action-label[aria-label="${name}"]`).first().click();
}

async function filter({ user, page }) {
  await clickInTitle(page, "Filter...");
  await user.seen(".quick-input-widget", "Filter findings").waitFor({ timeout: LONG });
  await user.keyboard.type("NPU105 moved");
  await user.keyboard.press("Enter");
  await user.waitFor("a filter leaves what has its words", async () => {
    const rows = await page.locator(VIEW).allInnerTexts();
    return rows.some((row) => /^moved\.py/.test(row)) && !rows.some((row) => /train/.test(row));
  });
  await user.seen(".pane-body", "Filter: NPU105 moved").waitFor({ timeout: LONG });
  await user.picture("filtered");
  await clickInTitle(page, "Clear Filter");
  await user.seen(VIEW, "train.py").waitFor({ timeout: LONG });
  await clickInTitle(page, "More Actions...");
  await user.picture("view-menu");
  await user.seen(".monaco-menu .action-item", "Refresh").click();
  await user.seen(VIEW, "other.py").waitFor({ timeout: LONG });
  console.log("ok the view is filtered, and read again");
}

async function report({ user, page }) {
  await clickInTitle(page, "Show Report");
  const shown = user.webview();
  await shown.locator("#finding-list tbody tr").first().waitFor({ timeout: LONG });
  await user.picture("report");
  const policy = await shown.locator("meta[http-equiv]").getAttribute("content");
  assert.match(
    policy,
    /^default-src 'none'; script-src 'sha256-\S+' 'nonce-\w{48}'; style-src 'sha256-\S+' 'nonce-\w{48}'; base-uri 'none'; form-action 'none'$/,
  );
  const colours = await shown
    .locator("body")
    .evaluate((body) => [
      getComputedStyle(body).backgroundColor,
      getComputedStyle(document.documentElement).getPropertyValue("--vscode-editor-background"),
    ]);
  const hex = colours[0].match(/\d+/g).map((each) => Number(each).toString(16).padStart(2, "0"));
  assert.equal(`#${hex.join("")}`, colours[1]);
  console.log("ok the report has a strict policy, and the colours of the editor");
  await shown.locator(".meta", { hasText: "PyTorch 2.7" }).waitFor({ timeout: LONG });
  console.log("ok the report follows the settings of the editor");
  await shown.locator("#findings").evaluate((section) => section.scrollIntoView());
  await user.picture("report-findings");
  const link = shown.locator("#finding-list a.path", { hasText: "train.py:46:" }).first();
  await link.click();
  await user.seen(".statusbar-item", /Ln 46, Col 5/).waitFor({ timeout: LONG });
  console.log("ok a finding in the report leads to its place");
  await user.seen(".tab", "Report: project").click();
  const old = await shown.locator("#finding-list").elementHandle();
  await page.locator('.editor-actions .action-label[aria-label^="Make the Report"]').click();
  await user.waitFor("the report is made anew", () =>
    old.isVisible().then(
      (is) => !is,
      () => true,
    ),
  );
  await shown.locator("#finding-list tbody tr").first().waitFor({ timeout: LONG });
  await page.waitForTimeout(2_000); // the new page has taken the focus
}

async function target({ user, project }) {
  await user.command("NPU Lens: Select Target");
  await user.row("PyTorch 2.7").waitFor();
  await user.picture("target");
  await user.row("PyTorch 2.7").click();
  await user.row("device-agnostic").waitFor();
  await user.picture("style");
  await user.row(/^npu/).click();
  const kept = join(project, ".vscode/settings.json");
  await user.waitFor("the target is kept in the workspace", () => {
    try {
      return JSON.parse(readFileSync(kept, "utf8"))["npulens.torchVersion"] === "2.7";
    } catch {
      return false;
    }
  });
}

async function save({ user, page, project }) {
  await user.openFile("train.py");
  await user.focusEditor();
  await page.waitForTimeout(2_000); // the findings for the new target
  await user.keyboard.press("Control+s");
  await user.waitFor("saving fixes all that is safe", () => {
    const text = readFileSync(join(project, "train.py"), "utf8");
    return text.includes("import torch_npu") && text.includes("torch.npu.synchronize");
  });
  await user.picture("saved");
}

const hasTorch = (python) => spawnSync(python, ["-c", "import torch"]).status === 0;

/** Run the script that is open; what has been seen of it, or why it cannot run. */
async function run(user, picture) {
  await user.palette(
    "F1",
    "emulated npu",
    "Run This Script on an Emulated NPU (executes its code)",
  );
  await user.seen(".quick-input-widget", "Run train.py on an Emulated NPU").waitFor();
  await user.picture("run-arguments");
  await user.keyboard.press("Enter");
  const told = user.seen(
    ".notification-toast",
    /npulens: (passed|cut|not ready|stopped)|was not run/,
  );
  await told.waitFor({ timeout: 3 * LONG });
  await user.picture(picture);
  const text = await told.innerText();
  assert.equal(await user.page.locator(".notification-toast").count(), 1, "told twice");
  await user.command("Notifications: Clear All Notifications");
  return text;
}

async function verify({ user }) {
  await user.openFile("train.py");
  const text = await run(user, "run-without-pytorch");
  if (!hasTorch("python3")) {
    assert.match(text, /Select Interpreter[\s\S]*The script was not run: verify needs PyTorch /);
    console.log("ok what a run needs is told");
  }
}

/** The time is told and not asserted: the clock runs for other programs, too. */
async function activation({ user, page }) {
  await user.command("Developer: Show Running Extensions");
  const list = page.locator(".runtime-extensions-editor");
  await list.locator(".monaco-list-row").first().hover({ timeout: LONG });
  const running = user.seen(".runtime-extensions-editor .monaco-list-row", "NPU Lens");
  // The slowest come first.
  await user.waitFor("the extension is among the running extensions", async () => {
    await page.mouse.wheel(0, 150);
    return running.isVisible();
  });
  await user.picture("running-extensions");
  const [, time] = /(\d+)\s*ms/.exec(await running.innerText()) ?? [];
  const load = loadavg()[0] / cpus().length;
  console.log(`ok activated in ${time} ms, with ${load.toFixed(1)} programs for each processor`);
  assert.ok(Number(time) > 0);
  await user.seen(".statusbar-item", "npulens").click();
  await user.seen(".part.panel", "bundled with the extension").waitFor({ timeout: LONG });
  console.log("ok the status item leads to the log");
  await user.picture("log");
}

async function migrateWorkspace({ user, project }) {
  await user.command("NPU Lens: Migrate Workspace");
  await user.seen(".part.panel .monaco-list-row", "other.py").waitFor({ timeout: LONG });
  await user.picture("preview");
  await user.seen(".part.panel .monaco-button", "Apply").click();
  await user.waitFor("the workspace is migrated after the preview", () =>
    readFileSync(join(project, "other.py"), "utf8").includes("x.npu()"),
  );
}

async function otherTheme({ user, page }) {
  await user.command("Preferences: Toggle between Light/Dark Themes");
  await user.picture("other-theme");
  await user.seen(".tab", "Report: project").click();
  await user.webview().locator("#finding-list tbody tr").first().waitFor({ timeout: LONG });
  await user
    .webview()
    .locator("#overview")
    .evaluate(() => window.scrollTo(0, 0));
  await user.picture("report-other-theme");
  await user.command("NPU Lens: Show Ranked Dynamic Shapes");
  await user.row("train.py:40").waitFor({ timeout: LONG });
  await user.picture("ranked-shapes-other-theme");
  await user.keyboard.press("Escape");
  await user.command("Welcome: Open Walkthrough");
  await user.keyboard.type("Ascend");
  await page.waitForTimeout(1500);
  await user.keyboard.press("Enter");
  await user.picture("walkthrough");
}

async function crashes({ user, workbench }) {
  await user.command("NPU Lens: Restart Server");
  await user.waitFor(
    "the server starts again",
    () => workbench.log().split("npulens 0.").length > 2,
  );
  for (let crash = 1; crash <= 5; crash += 1) {
    await user.waitFor(
      `the server runs before crash ${crash}`,
      () => workbench.servers().length > 0,
    );
    await user.waitFor("its state is shown", async () =>
      user.page.locator('.statusbar-item [class*="codicon-eye"]').first().isVisible(),
    );
    workbench.servers().forEach((pid) => process.kill(pid, "SIGKILL"));
    const ends = `crash ${crash} is noticed`;
    await user.waitFor(ends, () => workbench.log().split("signal SIGKILL").length > crash);
    if (crash === 1) {
      await user.picture("after-a-crash");
    }
  }
  const message = user.seen(".notification-toast", "has ended several times");
  await message.waitFor({ timeout: LONG });
  await user.picture("after-crashes");
  const delays = [...workbench.log().matchAll(/started again in (\d+) s/g)].map(([, s]) => s);
  assert.deepEqual(delays, ["1", "2", "4", "8"]);
  await message.locator(".monaco-button", { hasText: "Start Again" }).click();
  await user.waitFor("the user has it started again", () => workbench.servers().length > 0);
}

/** What the log says of the server that started last; one before may end only behind that. */
function lastStarted(workbench) {
  return workbench
    .log()
    .match(/npulens \d[\d.]*, [^\n]*/g)
    .at(-1)
    .trim();
}

async function environment({ user, workbench, python }) {
  assert.match(workbench.log(), /bundled with the extension/);
  if (python === undefined) {
    return;
  }
  const from = "bundled with the extension, on Python";
  await user.set("Remote", { "npulens.interpreter": python });
  await user.waitFor("another interpreter runs the bundled server", () =>
    lastStarted(workbench).endsWith(`(${python})`),
  );
  assert.ok(lastStarted(workbench).includes(from));
  if (hasTorch(python)) {
    await user.openFile("train.py");
    assert.match(await run(user, "run"), /ended after 3 optimizer steps/);
    const seen = user.seen(".part.panel .monaco-list-row", "Seen in the run");
    await user.command("Problems: Focus on Problems View");
    await seen.waitFor({ timeout: LONG });
    await user.picture("seen-in-the-run");
    await user.command("NPU Lens: Clear Results of the Last Run");
    await seen.waitFor({ state: "detached", timeout: LONG });
    console.log("ok a script is run, what was seen stands at its lines, and is cleared");
  }
  await user.set("Remote", {
    "npulens.importStrategy": "fromEnvironment",
    "npulens.interpreter": python,
  });
  await user.waitFor("the same extension takes the server of an environment", () =>
    workbench.log().includes("from the environment of Python"),
  );
  await user.openFile("train.py");
  await user.focusEditor();
  await user.keyboard.press("Control+End");
  await user.keyboard.type("torch.cuda.empty_cache()");
  await user.page.locator(".squiggly-error").first().waitFor({ timeout: LONG });
  await user.keyboard.press("Control+s");
  await user.waitFor("that server finds and fixes, too", async () =>
    (await user.text()).includes("torch.npu.empty_cache()"),
  );
  await user.seen(".statusbar-item", "npulens").hover();
  await user.picture("from-the-environment");
  await user.set("Remote", {});
  await user.waitFor("the bundled one comes back", () =>
    lastStarted(workbench).includes("bundled with the extension"),
  );
}

async function chinese({ user, page, project, workbench }) {
  await user.command("Configure Display Language");
  await user.row("中文(简体)").waitFor({ timeout: LONG });
  await user.picture("display-language");
  await user.row("中文(简体)").click();
  const restart = user.seen(".monaco-dialog-box .monaco-button", /Restart|Reload/);
  await restart.waitFor({ timeout: LONG });
  await restart.click();
  await page.waitForTimeout(3_000);
  await page.goto(`http://127.0.0.1:${workbench.port}/?folder=${project}`);
  await page.locator(".monaco-workbench").waitFor({ timeout: LONG });
  await user.openFile("train.py"); // what starts the extension; the editor may not have it open
  await user.waitFor("the server runs in Chinese", () =>
    workbench.log().includes("扩展自带，运行于"),
  );
  await user.seen(".statusbar-item", "npulens").waitFor({ timeout: LONG });
  // Commands are found by their English titles, too.
  await user.palette("F1", "NPU Lens: Open Sample Script", "打开示例脚本");
  await page.locator(".squiggly-error").first().waitFor({ timeout: LONG });
  const lens = user.seen(".codelens-decoration", "个问题");
  await lens.waitFor({ timeout: LONG });
  const title = page.locator(".sidebar .pane-header").first();
  const show = title.locator('.action-label[aria-label="显示报告"]').first();
  if ((await show.count()) === 0) {
    const icon = page.locator('.activitybar .action-label[aria-label^="NPU Lens"]').first();
    await icon.click({ force: true });
  }
  await title.hover();
  await show.waitFor({ timeout: LONG });
  const byFamily = title.locator('.action-label[aria-label="按类别分组"]').first();
  if (await byFamily.isVisible()) {
    await byFamily.click();
  }
  await user.seen(VIEW, "设备").waitFor({ timeout: LONG });
  await user.picture("chinese");
  await user.palette("F1", "NPU Lens: Show Report", "显示报告");
  const shown = user.webview();
  await shown.locator("#finding-list tbody tr").first().waitFor({ timeout: LONG });
  assert.equal(await shown.locator("html").getAttribute("lang"), "zh-CN");
  await user.picture("chinese-report");
  console.log("ok menus, the view, findings and the report are in Chinese");
}

export const STEPS = {
  findings,
  hovers,
  shapes,
  fixes,
  migrationView,
  target,
  report,
  save,
  verify,
  activation,
  migrateWorkspace,
  otherTheme,
  crashes,
  environment,
  migrations,
  chinese,
};
