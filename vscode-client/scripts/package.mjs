// Makes npulens-PLATFORM-VERSION.vsix in build/, with the server in it: `npm run package` for all
// platforms, `npm run package -- linux-x64` with packages that are compiled for one.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

const here = join(import.meta.dirname, "..");
const stage = join(here, "build", "stage");
const CONTENT = [
  ...["package.json", "package.nls.json", "package.nls.zh-cn.json", "README.md", "CHANGELOG.md"],
  ...["l10n", "launcher", "resources", "sample"],
];
const run = (cwd, command, ...args) => execFileSync(command, args, { cwd, stdio: "inherit" });
const windows = process.platform === "win32";
const platform = process.argv[2] ?? "universal";
const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));

function bundleServer() {
  const venv = join(here, "build", "venv");
  const python = join(venv, windows ? "Scripts/python.exe" : "bin/python");
  if (!existsSync(python)) {
    run(here, process.env.PYTHON ?? (windows ? "python" : "python3"), "-m", "venv", venv);
  }
  run(here, python, "-m", "pip", "install", "--quiet", "uv");
  run(
    here,
    python,
    join(here, "..", "scripts", "bundle_server.py"),
    platform,
    join(stage, "bundled"),
  );
}

// The licences of what is bundled into extension.js; Python packages bring theirs along.
function writeNotices() {
  const packages = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], {
    cwd: here,
    encoding: "utf8",
    shell: windows,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const notices = packages
    .split("\n")
    .filter((folder) => folder.includes("node_modules"))
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      const text = file === undefined ? license : readFileSync(join(folder, file), "utf8");
      return `${name} ${version}\n\n${text.trim()}\n`;
    });
  writeFileSync(
    join(stage, "dist", "THIRD-PARTY-NOTICES.txt"),
    notices.join(`\n${"-".repeat(80)}\n\n`),
  );
}

rmSync(stage, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });
for (const name of CONTENT) {
  cpSync(join(here, name), join(stage, name), { recursive: true });
}
cpSync(join(here, "..", "LICENSE"), join(stage, "LICENSE"));
bundleServer();
run(here, "node", "scripts/build.mjs");
cpSync(join(here, "dist"), join(stage, "dist"), { recursive: true });
writeNotices();
run(
  stage,
  "node",
  join(here, "node_modules/@vscode/vsce/vsce"),
  "package",
  "--no-dependencies",
  "--allow-missing-repository",
  "--no-rewrite-relative-links",
  "--allow-package-all-secrets", // the scan for them takes many minutes for thousands of Python files
  ...(platform === "universal" ? [] : ["--target", platform]),
  "--out",
  join(here, `build/npulens-${platform}-${version}.vsix`),
);
