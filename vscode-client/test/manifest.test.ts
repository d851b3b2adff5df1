import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { EDITOR_SETTINGS, SERVER_SETTINGS, START_SETTINGS } from "../src/settings";

const VERIFY = "npulens.verify";

interface Manifest {
  readonly icon: string;
  readonly contributes: {
    readonly commands: readonly {
      readonly command: string;
      readonly icon?: string;
      readonly enablement?: string;
    }[];
    readonly configuration: readonly {
      readonly properties: Readonly<Record<string, { readonly scope?: string }>>;
    }[];
    readonly menus: Readonly<
      Record<string, readonly { readonly command: string; readonly when?: string }[]>
    >;
    readonly walkthroughs: readonly {
      readonly steps: readonly { readonly media: { readonly svg: string } }[];
    }[];
  };
}

const manifestText = readFileSync("package.json", "utf8");
const manifest = JSON.parse(manifestText) as Manifest;
const english = texts("package.nls.json");
const chinese = texts("package.nls.zh-cn.json");
const messages = texts("l10n/bundle.l10n.zh-cn.json");
const sources = readdirSync("src").map((name) => readFileSync(`src/${name}`, "utf8"));
const { contributes } = manifest;

function texts(file: string): Record<string, string> {
  return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
}

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{\d\}|`[^`]*`|\(command:[^)]*\)/g)].map(([found]) => found).sort();
}

describe("the manifest", () => {
  it("has a text in both languages for every key, and no others", () => {
    const used = [...manifestText.matchAll(/"%([\w.-]+)%"/g)].map(([, key]) => key ?? "");
    const keys = [...new Set(used)].sort();
    assert.deepEqual(Object.keys(english).sort(), keys);
    assert.deepEqual(Object.keys(chinese).sort(), keys);
  });
  it("links to the same commands and code in both languages", () => {
    for (const [key, text] of Object.entries(english)) {
      assert.deepEqual(placeholders(chinese[key] ?? ""), placeholders(text), key);
    }
  });
  it("has every setting that the extension reads, with a scope", () => {
    const properties = Object.assign(
      {},
      ...contributes.configuration.map((c) => c.properties),
    ) as Record<string, { readonly scope?: string }>;
    const expected = [...SERVER_SETTINGS, ...EDITOR_SETTINGS, ...START_SETTINGS, "trace.server"];
    assert.deepEqual(
      Object.keys(properties).sort(),
      expected.map((key) => `npulens.${key}`).sort(),
    );
    for (const [key, { scope }] of Object.entries(properties)) {
      assert.ok(scope, key);
    }
  });
  it("has an icon for each command", () => {
    for (const { command, icon } of contributes.commands) {
      assert.match(icon ?? "", /^\$\([a-z-]+\)$/, command);
    }
  });
  it("has a title for each command that a menu shows", () => {
    const commands = contributes.commands.map(({ command }) => command);
    for (const items of Object.values(contributes.menus)) {
      for (const { command } of items) {
        assert.ok(commands.includes(command), command);
      }
    }
  });
  it("offers to execute code only where the workspace is trusted", () => {
    const conditions = [
      contributes.commands.find(({ command }) => command === VERIFY)?.enablement,
      ...Object.values(contributes.menus)
        .flat()
        .filter(({ command }) => command === VERIFY)
        .map(({ when }) => when),
    ];
    assert.equal(conditions.length, 3);
    for (const condition of conditions) {
      assert.ok(condition?.split(" && ").includes("isWorkspaceTrusted"), condition);
    }
  });
  it("names files that are there", () => {
    const steps = contributes.walkthroughs.flatMap(({ steps }) => steps);
    for (const file of [manifest.icon, ...steps.map(({ media }) => media.svg)]) {
      assert.ok(existsSync(file), file);
    }
  });
});

describe("messages", () => {
  it("are translated, each with the same placeholders", () => {
    const used = sources.flatMap((source) =>
      [...source.matchAll(/\bt\(\s*"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text ?? ""),
    );
    assert.deepEqual([...new Set(used)].sort(), Object.keys(messages).sort());
    for (const [text, translated] of Object.entries(messages)) {
      assert.deepEqual(placeholders(translated), placeholders(text), text);
    }
  });
});
