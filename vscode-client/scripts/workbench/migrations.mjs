// Migrates whole projects with the keys and buttons a user has: what the preview shows before
// "Apply" is pressed has to be what the files hold afterwards.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { LONG } from "./user.mjs";

const PROJECTS = join(import.meta.dirname, "projects");
const PANEL = ".part.panel";
const ROW = `${PANEL} .monaco-list-row:not(.monaco-tree-sticky-row)`;

const plain = (text) =>
  text.replaceAll("\u00a0", " ").replaceAll("\u200c", "").replaceAll("⏎", "\n");

/** The edits that the preview shows for each file; all of them have to be ticked. */
async function previewed(page) {
  const found = new Map();
  for (let before = -1; before < found.size;) {
    before = found.size;
    const rows = await page.locator(ROW).evaluateAll((elements) =>
      elements.map((row) => ({
        index: Number(row.getAttribute("data-index")),
        label: row.getAttribute("aria-label"),
        isTicked: row.querySelector('[role="checkbox"]').getAttribute("aria-checked") === "true",
        text: row.textContent,
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
  const edits = {};
  let file;
  for (const [, row] of [...found].sort(([a], [b]) => a - b)) {
    assert.ok(row.isTicked, `not ticked: ${JSON.stringify(row)}`);
    const name = /^(.*), making text edits$/.exec(row.label)?.[1];
    if (name === undefined) {
      edits[file].push(rowEdit(row));
    } else {
      file = name;
      edits[file] = [];
    }
  }
  return edits;
}

/** A row as an edit: behind `context` in the line, `removed` becomes `inserted`. */
function rowEdit({ label, text, removed, inserted }) {
  const line = /^line (\d+), /.exec(label)?.[1];
  assert.ok(line, `not understood: ${label}`);
  const context = text.slice(0, text.indexOf(removed + inserted));
  const [before, goes, comes] = [context, removed, inserted].map(plain);
  return { line: Number(line), context: before, removed: goes, inserted: comes };
}

/** What a text becomes by the edits that a preview has shown. */
function withEdits(text, edits) {
  let after = text;
  for (const { line, context, removed, inserted } of edits.toReversed()) {
    const start = text.split("\n", line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const end = text.indexOf("\n", start);
    const at = text.indexOf(context + removed, start);
    assert.ok(at >= start && at <= end, `line ${line} has no "${context}${removed}"`);
    const place = at + context.length;
    after = after.slice(0, place) + inserted + after.slice(place + removed.length);
  }
  return after;
}

/** What `git diff` says of a project, without what differs from run to run. */
function patchOf(before, after) {
  const args = ["diff", "--no-index", "--no-color", "--no-renames", before, after];
  const patch = spawnSync("git", args, { encoding: "utf8" }).stdout;
  return patch
    .replaceAll(/^(diff|index|---) .*\n/gm, "")
    .replaceAll(/^\+\+\+ b(.*)$/gm, (_, path) => `+++ ${relative(after, path)}`)
    .replaceAll(/^(@@ .* @@).*$/gm, "$1");
}

function assertPatch(name, project) {
  const expected = readFileSync(join(PROJECTS, `${name}.diff`), "utf8");
  assert.equal(patchOf(join(PROJECTS, name), project), expected);
  console.log(`ok git diff of ${name} is what is expected`);
}

async function open({ user, page, workbench }, name) {
  const project = join(workbench.work, name);
  cpSync(join(PROJECTS, name), project, { recursive: true });
  const file = name === "rewrite" ? "model.py" : "train.py";
  await user.openWorkspace(`http://127.0.0.1:${workbench.port}/?folder=${project}`, file);
  return { project, page, user, name };
}

/** Press "Apply" in the preview that is shown: files have to hold what it shows, and no others. */
async function apply({ user, page, name, project }, picture) {
  const button = user.seen(`${PANEL} .monaco-button`, "Apply");
  await button.waitFor({ timeout: LONG });
  await page.waitForTimeout(1_000);
  const shown = await previewed(page);
  const expected = Object.entries(shown).map(([file, edits]) => [
    file,
    withEdits(content(project, file), edits),
  ]);
  await user.picture(picture);
  const others = filesOf(project).filter((file) => shown[file] === undefined);
  const before = others.map((file) => content(project, file));
  await button.click();
  return {
    files: Object.keys(shown).sort(),
    edits: shown,
    assertApplied: async () => {
      await user.waitFor(`the files of ${name} hold what the preview has shown`, () =>
        expected.every(([file, text]) => content(project, file) === text),
      );
      assert.deepEqual(
        others.map((file) => content(project, file)),
        before,
      );
    },
  };
}

/** Migrate a workspace; nothing is pressed but the command and "Apply". */
async function migrate(opened) {
  await opened.user.command("NPU Lens: Migrate Workspace");
  const { files, edits, assertApplied } = await apply(opened, `preview-${opened.name}`);
  await assertApplied();
  for (const each of Object.values(edits).flat()) {
    assert.ok(!/\n[^]/.test(each.removed + each.inserted), `several lines: ${each.inserted}`);
  }
  return files;
}

const filesOf = (project) =>
  readdirSync(project, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile() && !each.parentPath.includes(".npulens_cache"))
    .map((each) => relative(project, join(each.parentPath, each.name)));

const content = (project, file) => readFileSync(join(project, file), "utf8");

async function trainer(context) {
  const opened = await open(context, "trainer");
  assert.deepEqual(await migrate(opened), ["train.py"]);
  assertPatch("trainer", opened.project);
}

async function wholePackage(context) {
  const opened = await open(context, "package");
  const files = ["data/loading.py", "look.ipynb", "models/encoder.py", "train.py"];
  assert.deepEqual(await migrate(opened), files);
  assertPatch("package", opened.project);
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
  await rewriteAfterPreview(opened);
  await user.select("self.weight * x");
  await user.fix("Use torch_npu.npu_rms_norm (unsafe: review", "rms-norm-of-a-model");
  await user.waitFor("RMSNorm becomes a fused operator in the model", async () =>
    (await user.text()).includes("torch_npu.npu_rms_norm("),
  );
  await user.keyboard.press("Control+s");
  await user.waitFor("RMSNorm is rewritten on the disk", () =>
    /torch_npu\.npu_rms_norm\(x, self\.weight/.test(content(opened.project, "model.py")),
  );
  assertPatch("rewrite", opened.project);
}

/** The editor previews an action on Ctrl+Enter: "Apply" makes the rewrite with its import. */
async function rewriteAfterPreview(opened) {
  const { user } = opened;
  await user.select("att @ v");
  await user.previewFix("Use torch_npu.npu_fusion_attention (unsafe: review");
  const { edits, assertApplied } = await apply(opened, "preview-of-an-unsafe-rewrite");
  const rows = edits["model.py"].map(({ removed, inserted }) => removed + inserted);
  assert.equal(rows.filter((text) => !/^(import|from) .*\n$/.test(text)).length, 1, "not one edit");
  await user.waitFor("the rewrite is in the editor", async () =>
    (await user.text()).includes("y = torch_npu.npu_fusion_attention("),
  );
  await user.keyboard.press("Control+s");
  await assertApplied();
}

export async function migrations(context) {
  await trainer(context);
  await wholePackage(context);
  await rewrite(context);
}
