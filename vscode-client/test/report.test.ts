import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forWebview, placeOf } from "../src/reportPage";
import { reportArguments, runReport, type ReportWishes } from "../src/reportRun";
import { projectSettings } from "../src/settings";

const SCRIPT = `'sha256-${"a+/".repeat(14)}b='`;
const STYLE = `'sha256-${"c".repeat(43)}='`;
const ADDED = { style: "a { color: red }", script: 'say("$&$1")' };

function policy(script = SCRIPT, style = STYLE, end = "form-action 'none'"): string {
  return `default-src 'none'; script-src ${script}; style-src ${style}; base-uri 'none'; ${end}`;
}

function page(content: string, body = ""): string {
  const escaped = content.replaceAll("'", "&#39;");
  return (
    `<!DOCTYPE html>\n<html lang="en">\n<head>\n` +
    `<meta http-equiv="Content-Security-Policy" content="${escaped}">\n<style>b {}</style>\n` +
    `</head>\n<body>\n${body}\n<script>run()</script>\n</body>\n</html>\n`
  );
}

function policyOf(text: string): string {
  const found = [...text.matchAll(/Content-Security-Policy" content="([^"]*)"/g)];
  assert.equal(found.length, 1);
  return found[0]?.[1] ?? "";
}

describe("the page in a webview", () => {
  it("allows besides its own parts what has the nonce, and nothing else", () => {
    const shown = forWebview(page(policy()), "n0nce", ADDED);
    assert.equal(policyOf(shown), policy(`${SCRIPT} 'nonce-n0nce'`, `${STYLE} 'nonce-n0nce'`));
    assert.ok(shown.includes('<style nonce="n0nce">a { color: red }</style></head>'));
    assert.ok(shown.endsWith('<script nonce="n0nce">say("$&$1")</script></body></html>'));
    assert.equal(shown.split('nonce="').length, 3);
  });
  it("is otherwise what it was", () => {
    const shown = forWebview(page(policy(), "<p>$1 $&amp;</p>"), "n", ADDED);
    const before = shown
      .replace(/<style nonce.*?<\/style>/, "")
      .replace(/<script nonce.*?<\/script>/, "");
    assert.equal(
      before.replaceAll("\n", ""),
      page(policy(`${SCRIPT} 'nonce-n'`, `${STYLE} 'nonce-n'`), "<p>$1 $&amp;</p>")
        .replaceAll("&#39;", "'")
        .replaceAll("\n", ""),
    );
  });
  const refused: [string, string][] = [
    ["without a policy", "<html><head></head><body></body></html>"],
    ["that allows any script", page(policy("'unsafe-inline'"))],
    ["that allows any style", page(policy(SCRIPT, "*"))],
    ["that allows two scripts", page(policy(`${SCRIPT} ${SCRIPT}`))],
    ["that loads pictures", page(policy(SCRIPT, STYLE, "form-action 'none'; img-src *"))],
  ];
  for (const [what, text] of refused) {
    it(`is refused ${what}`, () => {
      assert.throws(() => forWebview(text, "n", ADDED), /policy/);
    });
  }
});

describe("a link of the page", () => {
  const cases: [unknown, ReturnType<typeof placeOf>][] = [
    ["vscode://file/home/me/a%20b.py:12", { path: "/home/me/a b.py", line: 12 }],
    ["vscode://file/C:/me/a.py:3", { path: "/C:/me/a.py", line: 3 }],
    ["vscode://file/a%23b%3A1.py:4", { path: "/a#b:1.py", line: 4 }],
    ["vscode://file/%FF.py:1", undefined],
    ["vscode://file/a.py", undefined],
    ["vscode://file/a.py?windowId=_blank:1", undefined],
    ["vscode://settings/a:1", undefined],
    ["https://example.org/a.py:1", undefined],
    ["javascript:alert(1):1", undefined],
    [7, undefined],
    [undefined, undefined],
  ];
  for (const [link, place] of cases) {
    it(`${String(link)} leads to ${place === undefined ? "no place" : place.path}`, () => {
      assert.deepEqual(placeOf(link), place);
    });
  }
});

describe("npulens report", () => {
  const wishes: ReportWishes = {
    folder: "-folder",
    output: "/storage/report.html",
    language: "",
    settings: projectSettings((key) => ({ torchVersion: "2.7", language: "zh", ignore: [] })[key]),
  };
  it("gets the folder last, and the settings that the project may overrule", () => {
    const args = reportArguments(wishes);
    assert.deepEqual(args.slice(-2), ["--", "-folder"]);
    assert.equal(args[args.indexOf("--editor-settings") + 1], '{"torchVersion":"2.7"}');
    assert.ok(args.includes("--no-cache"));
    assert.ok(!args.includes("--language"));
  });
  it("gets the language that the user asks for", () => {
    const args = reportArguments({ ...wishes, language: "zh" });
    assert.equal(args[args.indexOf("--language") + 1], "zh");
  });

  describe("as a process", () => {
    const work = mkdtempSync(join(tmpdir(), "npulens-report-"));
    after(() => {
      rmSync(work, { recursive: true });
    });
    const program = (script: string): Parameters<typeof runReport>[0] => {
      const file = join(work, "program.cjs");
      writeFileSync(file, script);
      return { command: process.execPath, args: [file], cwd: work, env: process.env };
    };
    const output = join(work, "out.html");
    const wanted = { ...wishes, output };

    it("writes where it is told, and what it complains about is handed on", async () => {
      const script = `
        const { argv } = process;
        require("node:fs").writeFileSync(argv[argv.indexOf("--output-file") + 1], argv[2]);
        console.error("a.py: cannot be read");
        process.exitCode = 2;`;
      const told = await runReport(program(script), wanted, new AbortController().signal);
      assert.equal(told, "a.py: cannot be read");
      assert.equal(readFileSync(output, "utf8"), "report");
    });
    it("is ended by the user", async () => {
      const ending = new AbortController();
      const running = runReport(program("setInterval(() => 0, 1000)"), wanted, ending.signal);
      setTimeout(() => {
        ending.abort();
      }, 50);
      await assert.rejects(running, { name: "AbortError" });
    });
    it("may be missing", async () => {
      const missing = { ...program(""), command: join(work, "missing") };
      await assert.rejects(runReport(missing, wanted, new AbortController().signal), /ENOENT/);
    });
  });
});
