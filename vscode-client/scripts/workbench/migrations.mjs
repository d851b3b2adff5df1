// Migrates whole projects with the keys and buttons a user has: what the preview shows before
// "Apply" is pressed has to be what the files hold afterwards.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LONG } from "./user.mjs";

const PROJECTS = join(import.meta.dirname, "projects");
const PANEL = ".part.panel";
const ROW = `${PANEL} .monaco-list-row:not(.monaco-tree-sticky-row)`;

/** Lines as a preview and a patch both tell them: without indentation and empty ones. */
const lines = (text, end) =>
  text
    .replaceAll(/[\u00a0\u200c]/g, " ")
    .split(end)
    .map((line) => line.trim())
    .filter(Boolean);

/** What the preview shows, as it opens: for each file the lines that go and those that come. */
async function previewed(page) {
  const found = new Map();
  for (let before = -1; before < found.size;) {
    before = found.size;
    const rows = await page.locator(ROW).evaluateAll((elements) =>
      elements.map((row) => ({
        index: Number(row.getAttribute("data-index")),
        file: /^(.*), making text edits$/.exec(row.getAttribute("aria-label"))?.[1],
        isTicked: row.querySelector('[role="checkbox"]').getAttribute("aria-checked") === "true",
        removed: [...row.querySelectorAll(".remove")].map((each) => each.textContent).join(""),
        inserted: [...row.querySelectorAll(".insert")].map((each) => each.textContent).join(""),
      })),
    );
    rows.forEach((row) => found.set(row.index, row));
    const { x, y, width, height } = await page.locator(`${PANEL} .monaco-list`).boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.wheel(0, 60);
    await page.waitForTimeout(300);
  }
  const changes = {};
  let file;
  for (const [, row] of [...found].sort(([a], [b]) => a - b)) {
    assert.ok(row.isTicked, `not ticked: ${JSON.stringify(row)}`);
    file = row.file ?? file;
    changes[file] ??= [];
    if (row.file === undefined) {
      changes[file].push([lines(row.removed, "⏎"), lines(row.inserted, "⏎")]);
    }
  }
  return changes;
}

/** The same of what has happened to the files of a project. */
function changed(before, after) {
  const patch = spawnSync("git", ["diff", "--no-index", "--no-color", "-U0", before, after], {
    encoding: "utf8",
  }).stdout;
  const changes = {};
  for (const part of patch.split(/^diff --git .*$/m).slice(1)) {
    const file = /^\+\+\+ b(.*)$/m.exec(part)[1].slice(after.length + 1);
    const hunks = part.split(/^@@ .* @@.*$/m).slice(1);
    changes[file] = hunks.map((hunk) => {
      const of = (sign) =>
        hunk
          .split("\n")
          .filter((line) => line.startsWith(sign))
          .map((line) => line.slice(1));
      return [lines(of("-").join("\n"), "\n"), lines(of("+").join("\n"), "\n")];
    });
  }
  return changes;
}

async function open({ user, page, workbench }, name) {
  const project = join(workbench.work, name);
  cpSync(join(PROJECTS, name), project, { recursive: true });
  const file = name === "rewrite" ? "model.py" : "train.py";
  await user.openWorkspace(`http://127.0.0.1:${workbench.port}/?folder=${project}`, file);
  return { project, page, user, name };
}

/** Migrate a workspace; nothing is pressed but the command and "Apply". */
async function migrate({ user, page, name, project }) {
  await user.command("NPU Lens: Migrate Workspace");
  const apply = user.seen(`${PANEL} .monaco-button`, "Apply");
  await apply.waitFor({ timeout: LONG });
  await page.waitForTimeout(1_000);
  const shown = await previewed(page);
  await user.picture(`preview-${name}`);
  await apply.click();
  const files = Object.keys(shown).sort();
  if (files.length === 1) {
    await user.command("File: Save All Files"); // the editor saves several files by itself, not one
  }
  await user.waitFor(`the files of ${name} are changed on the disk`, () => {
    const now = Object.keys(changed(join(PROJECTS, name), project)).sort();
    return JSON.stringify(now) === JSON.stringify(files);
  });
  assert.deepEqual(changed(join(PROJECTS, name), project), shown);
  console.log(`ok ${name}: ${files.join(", ")} hold what the preview has shown`);
  return files;
}

const content = (project, file) => readFileSync(join(project, file), "utf8");

async function trainer(context) {
  const opened = await open(context, "trainer");
  assert.deepEqual(await migrate(opened), ["train.py"]);
  const text = content(opened.project, "train.py");
  assert.match(text, /^import torch\nimport torch_npu  # noqa: F401\n/m);
  assert.doesNotMatch(text, /cuda/);
}

async function wholePackage(context) {
  const opened = await open(context, "package");
  const files = ["data/loading.py", "look.ipynb", "models/encoder.py", "train.py"];
  assert.deepEqual(await migrate(opened), files);
  for (const file of files) {
    assert.doesNotMatch(content(opened.project, file), /cuda|nccl/, file);
    assert.match(content(opened.project, file), /import torch_npu/, file);
  }
  assert.equal(JSON.parse(content(opened.project, "look.ipynb")).cells.length, 3);
}

/** An unsafe rewrite is one change, with its import, made when it is chosen and undone at once. */
async function rewrite(context) {
  const { user } = context;
  const opened = await open(context, "rewrite");
  await user.select("att @ v");
  await user.fix("Use torch_npu.npu_fusion_attention (unsafe: review", "attention");
  await user.waitFor("attention becomes a fused operator", async () =>
    (await user.text()).includes("y = torch_npu.npu_fusion_attention("),
  );
  await user.keyboard.press("Control+Home");
  await user.waitFor("its import comes with it", async () =>
    (await user.text()).includes("import torch_npu"),
  );
  assert.doesNotMatch(await user.text(), /att = /);
  await user.keyboard.press("Control+z");
  await user.waitFor("it is undone", async () => (await user.text()).includes("y = att @ v"));
  await user.keyboard.press("Control+Home");
  await user.waitFor("all of it is undone at once", async () => {
    const text = await user.text();
    return text.includes("import math") && !text.includes("torch_npu");
  });
  assert.deepEqual(await migrate(opened), ["model.py"]);
  assert.match(content(opened.project, "model.py"), /y = att @ v/);
  await user.select("self.weight * x");
  await user.fix("Use torch_npu.npu_rms_norm (unsafe: review", "rms-norm-of-a-model");
  await user.waitFor("RMSNorm becomes a fused operator in the model", async () =>
    (await user.text()).includes("torch_npu.npu_rms_norm("),
  );
  await user.keyboard.press("Control+s");
  await user.waitFor("RMSNorm is rewritten on the disk", () =>
    /torch_npu\.npu_rms_norm\(x, self\.weight/.test(content(opened.project, "model.py")),
  );
  assert.doesNotMatch(content(opened.project, "model.py"), /variance/);
}

export async function migrations(context) {
  await trainer(context);
  await wholePackage(context);
  await rewrite(context);
}
