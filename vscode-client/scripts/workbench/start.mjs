// Starts a real VS Code workbench with a .vsix in it, all of its files in one folder, and a browser
// to show it.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

export const SETTINGS = {
  "workbench.startupEditor": "none",
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "files.autoSave": "off", // as on a desktop
  "extensions.autoUpdate": false,
  "update.mode": "none",
  "chat.disableAIFeatures": true,
  "editor.codeActionsOnSave": { "source.fixAll.npulens": "explicit" },
  "editor.minimap.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.editor.useModal": "off",
  // What is typed is what is written.
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.autoSurround": "never",
};

/** Words of the workbench in Chinese; the rest of it stays English, only npulens is looked at. */
const CHINESE_WORDS = {
  "vs/workbench/contrib/files/browser/explorerViewlet": { explore: "资源管理器" },
  "vs/workbench/contrib/markers/browser/messages": { "markers.panel.title.problems": "问题" },
};

export class Workbench {
  /**
   * @param folder Where `install-workbench.sh` has put the parts.
   * @param work An empty folder for all files.
   */
  constructor(folder, work) {
    this.work = work;
    this.port = 18080 + (process.pid % 1000);
    this.extensions = join(work, "extensions");
    this.folder = folder;
    const nowhere = "http://127.0.0.1:9/";
    const gallery = { serviceUrl: nowhere, itemUrl: nowhere, resourceUrlTemplate: nowhere };
    // What is written to the home folder of the user is seen there.
    const home = join(work, "home");
    mkdirSync(home);
    this.env = { ...process.env, HOME: home, EXTENSIONS_GALLERY: JSON.stringify(gallery) };
    for (const name of ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "PYENV_VERSION"]) {
      delete this.env[name];
    }
    this.entry = [
      join(folder, "node24/node_modules/node/bin/node"),
      join(folder, "server/node_modules/code-server/out/node/entry.js"),
    ];
    this.places = ["--extensions-dir", this.extensions, "--user-data-dir", join(work, "data")];
    mkdirSync(join(work, "data/User"), { recursive: true });
    writeFileSync(join(work, "data/User/settings.json"), JSON.stringify(SETTINGS));
  }

  install(vsix) {
    const [node, entry] = this.entry;
    const args = [entry, "--install-extension", vsix, ...this.places];
    execFileSync(node, args, { env: this.env, stdio: ["ignore", "ignore", "inherit"] });
  }

  /** Make and install an extension that offers Chinese as display language. */
  installChinese(vsce) {
    const pack = join(this.work, "chinese");
    mkdirSync(pack);
    const localization = {
      languageId: "zh-cn",
      languageName: "Chinese Simplified",
      localizedLanguageName: "中文(简体)",
      translations: [{ id: "vscode", path: "./main.i18n.json" }],
    };
    const manifest = {
      ...{ name: "chinese-words", publisher: "npulens-test", version: "1.0.0" },
      ...{ engines: { vscode: "^1.91.0" }, categories: ["Language Packs"] },
      contributes: { localizations: [localization] },
    };
    writeFileSync(join(pack, "package.json"), JSON.stringify(manifest));
    const translation = { version: "1.0.0", contents: CHINESE_WORDS };
    writeFileSync(join(pack, "main.i18n.json"), JSON.stringify(translation));
    const vsix = join(this.work, "chinese.vsix");
    const quiet = ["--no-dependencies", "--allow-missing-repository", "--skip-license"];
    execFileSync(process.execPath, [vsce, "package", ...quiet, "--out", vsix], {
      cwd: pack,
      stdio: "ignore",
    });
    this.install(vsix);
    // The workbench writes this where packs are installed while it runs.
    const name = `${manifest.publisher}.${manifest.name}`;
    const words = join(this.extensions, `${name}-${manifest.version}`, "main.i18n.json");
    const { languageId, localizedLanguageName: label } = localization;
    const extension = { extensionIdentifier: { id: name }, version: manifest.version };
    const known = { hash: "1", label, extensions: [extension], translations: { vscode: words } };
    writeFileSync(
      join(this.work, "data/languagepacks.json"),
      JSON.stringify({ [languageId]: known }),
    );
  }

  async start() {
    const config = join(this.work, "config.yaml");
    writeFileSync(config, `bind-addr: 127.0.0.1:${this.port}\nauth: none\ncert: false\n`);
    const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
    const [node, entry] = this.entry;
    this.process = spawn(
      node,
      [entry, "--config", config, "--disable-getting-started-override", ...quiet, ...this.places],
      { env: this.env, stdio: "ignore" },
    );
    for (let tries = 0; tries < 120; tries += 1) {
      const answer = await fetch(`http://127.0.0.1:${this.port}/healthz`).catch(() => undefined);
      if (answer?.ok) {
        return;
      }
      await new Promise((done) => setTimeout(done, 500));
    }
    throw new Error("The workbench does not start.");
  }

  async openBrowser() {
    const require = createRequire(join(this.folder, "browser/package.json"));
    const nothingElse = ["--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1"];
    const { chromium } = require("playwright-core");
    this.browser = await chromium.launchPersistentContext(join(this.work, "browser"), {
      executablePath: "/usr/bin/chromium",
      headless: true,
      viewport: { width: 1280, height: 800 },
      args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", ...nothingElse],
    });
    return this.browser.pages()[0] ?? this.browser.newPage();
  }

  /** What the log of the extension says, from its own files; one for each window. */
  log() {
    const logs = join(this.work, "data/logs");
    return readdirSync(logs, { recursive: true })
      .filter((each) => /npulens\.log$/.test(each))
      .sort()
      .map((each) => readFileSync(join(logs, each), "utf8"))
      .join("");
  }

  /** The processes of servers of npulens that this workbench has started. */
  servers() {
    const found = [];
    for (const pid of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
      try {
        const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        if (args.includes("server") && environment.includes(`HOME=${this.env.HOME}`)) {
          found.push(...(/python/.test(args[0]) ? [Number(pid)] : []));
        }
      } catch {
        // It has ended meanwhile.
      }
    }
    return found;
  }

  async stop() {
    await this.browser?.close();
    this.process?.kill();
  }
}
