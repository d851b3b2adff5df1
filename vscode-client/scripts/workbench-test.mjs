// Installs a .vsix into a real VS Code workbench and uses it as a user does.
//   scripts/install-workbench.sh FOLDER
//   node scripts/workbench-test.mjs FOLDER FILE.vsix PICTURES [PYTHON]
// With PYTHON, an interpreter that npulens is installed for, the same extension is then told to take
// the server from there. Pictures of each step are put into the folder PICTURES, to be looked at.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Workbench } from "./workbench/start.mjs";
import { STEPS } from "./workbench/steps.mjs";
import { User } from "./workbench/user.mjs";

const [folder, vsix, pictures, python] = process.argv.slice(2).map((each) => resolve(each));
const here = join(import.meta.dirname, "..");
const work = mkdtempSync(join(tmpdir(), "npulens-workbench-"));
const project = join(work, "project");

/** All files below a folder, without what the workbench keeps for itself. */
function files(place) {
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => relative(place, join(each.parentPath, each.name)))
    .sort();
}

mkdirSync(pictures, { recursive: true });
cpSync(join(here, "sample"), project, { recursive: true });
for (const name of ["other.py", "moved.py"]) {
  writeFileSync(join(project, name), "import torch\n\n\ndef move(x):\n    return x.cuda()\n");
}
const workbench = new Workbench(folder, work);
try {
  workbench.install(vsix);
  workbench.installChinese(join(here, "node_modules/@vscode/vsce/vsce"));
  const packed = files(workbench.extensions);
  await workbench.start();
  const page = await workbench.openBrowser();
  const user = new User(page, pictures);
  const refused = [];
  page.on("console", (message) => {
    if (/Content Security Policy/.test(message.text())) {
      refused.push(message.text());
    }
  });
  try {
    const context = { user, page, workbench, project, python };
    for (const [name, step] of Object.entries(STEPS)) {
      console.log(`-- ${name}`);
      await step(context);
    }
    const ours = refused.filter((text) => /sha256-[^ ]+ 'nonce-/.test(text));
    assert.deepEqual(ours, [], "the policy of the report stops parts of it");
  } catch (error) {
    await user.picture("failed");
    console.error(workbench.log());
    throw error;
  }
  console.log(workbench.log());
  const kept = [".vscode/settings.json", "moved.py", "other.py", "requirements.txt", "train.py"];
  assert.deepEqual(files(project), kept, "npulens leaves files in the workspace");
  const installed = files(workbench.extensions).filter((each) => !/^extensions\.json/.test(each));
  const before = packed.filter((each) => !/^extensions\.json/.test(each));
  assert.deepEqual(installed, before, "npulens leaves files in its own folder");
  const home = files(workbench.env.HOME).filter((each) => /npulens|\.py/.test(each));
  assert.deepEqual(home, [], "npulens leaves files in the home folder");
  console.log("ok nothing is left outside of the storage of the extension");
  console.log("workbench test: passed");
} finally {
  await workbench.stop();
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
}
