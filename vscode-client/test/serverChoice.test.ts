import assert from "node:assert/strict";
import type { Bundle } from "../src/bundle";
import { candidates, parsePython, type Python } from "../src/interpreter";
import { chooseServer, isServer, type Wishes } from "../src/serverChoice";

const BUNDLE: Bundle = {
  version: "0.1.0",
  platform: "linux-x64",
  pythons: ["cp310", "cp311"],
};

const LAUNCHER = "/extension/launcher/npulens_server.py";

function python(tag: string, npulens: string | null = null): Python {
  const minor = Number(/^[a-z]+3(\d+)/.exec(tag)?.[1]);
  return { executable: `/usr/bin/${tag}`, version: [3, minor, 1], tag, npulens };
}

function wishes(changes: Partial<Wishes> = {}): Wishes {
  return {
    strategy: "useBundled",
    path: "",
    args: [],
    bundle: BUNDLE,
    launcher: LAUNCHER,
    ...changes,
  };
}

/** What is chosen in a world with these interpreters, in short. */
async function chosen(wanted: Wishes, ...pythons: (Python | undefined)[]): Promise<string> {
  const names = pythons.map((_, index) => String(index));
  const interpreters = names.map((command) => ({ command, origin: "path" as const }));
  const found = await chooseServer(wanted, interpreters, {
    python: (command) => Promise.resolve(pythons[Number(command)]),
    npulens: (command) => Promise.resolve(command === "/mine/npulens" ? "0.1.0" : undefined),
  });
  return isServer(found) ? `${found.kind} ${found.command} ${found.args.join(" ")}` : found.kind;
}

describe("interpreters to try", () => {
  const cases: [string, string | undefined, NodeJS.Platform, string[]][] = [
    ["", undefined, "linux", ["python3", "python"]],
    ["", undefined, "win32", ["python", "py"]],
    ["", "/env/bin/python", "darwin", ["/env/bin/python", "python3", "python"]],
    ["/mine", "/env/bin/python", "linux", ["/mine"]],
  ];
  for (const [setting, selected, platform, expected] of cases) {
    it(`are ${expected.join(", ")} on ${platform}`, () => {
      const found = candidates(setting, selected, platform).map(({ command }) => command);
      assert.deepEqual(found, expected);
    });
  }
});

describe("the answer of an interpreter", () => {
  const told = { executable: "/p", version: [3, 11, 7], tag: "cp311", npulens: null };
  it("is understood", () => {
    assert.deepEqual(parsePython(`${JSON.stringify(told)}\n`), told);
  });
  it("is understood after what a start-up file of the user prints", () => {
    assert.deepEqual(parsePython(`hello\r\n${JSON.stringify(told)}\r\n`), told);
  });
  for (const output of ["", "Python 2", "[]", "null", '{"executable": "/p"}']) {
    it(`is none of ours: ${output}`, () => {
      assert.equal(parsePython(output), undefined);
    });
  }
});

describe("the server", () => {
  const bundled = `bundled /usr/bin/cp311 -X utf8 ${LAUNCHER} server`;
  const installed = `environment /usr/bin/cp311 -X utf8 ${LAUNCHER} server`;
  const fromEnvironment = wishes({ strategy: "fromEnvironment" });
  const empty = wishes({ bundle: undefined });
  const universal = wishes({ bundle: { version: "0.1.0", platform: "universal" } });
  const cases: [string, Wishes, (Python | undefined)[], string][] = [
    ["is the bundled one", wishes(), [python("cp311")], bundled],
    ["is bundled though one is installed", wishes(), [python("cp311", "0.1.0")], bundled],
    ["is that of the environment", fromEnvironment, [python("cp311", "0.1.0")], installed],
    ["is bundled if the environment has none", fromEnvironment, [python("cp311")], bundled],
    ["of an empty build is installed", empty, [python("cp311", "0.1.0")], installed],
    ["of an empty build may be missing", empty, [python("cp311")], "notInstalled"],
    ["of the universal build is bundled", universal, [python("cp311", "0.1.0")], bundled],
    [
      "of the universal build runs on every Python",
      universal,
      [python("cp315t")],
      `bundled /usr/bin/cp315t -X utf8 ${LAUNCHER} server`,
    ],
    ["of the universal build needs a new Python, too", universal, [python("cp39")], "oldPython"],
    [
      "is installed where the bundle has no packages",
      wishes(),
      [python("cp315", "0.1.0")],
      `environment /usr/bin/cp315 -X utf8 ${LAUNCHER} server`,
    ],
    ["is none for other Pythons", wishes(), [python("cp315")], "notInBundle"],
    ["is none for PyPy", wishes(), [python("pypy311")], "notInBundle"],
    ["is none for free threads", wishes(), [python("cp311t")], "notInBundle"],
    ["is none for an old Python", wishes(), [python("cp39", "0.1.0")], "oldPython"],
    ["is none without Python", wishes(), [undefined, undefined], "noPython"],
    [
      "runs on the first Python that can",
      wishes(),
      [undefined, python("cp39"), python("cp311")],
      bundled,
    ],
    ["fails for the first reason", empty, [python("cp39"), python("cp311")], "oldPython"],
    ["is what the user names", wishes({ path: "/mine/npulens" }), [], "path /mine/npulens server"],
    ["is none if what the user names is none", wishes({ path: "/x" }), [], "noProgram"],
    ["gets arguments", wishes({ args: ["-v"] }), [python("cp311")], `${bundled} -v`],
  ];
  for (const [what, wanted, pythons, expected] of cases) {
    it(what, async () => {
      assert.equal(await chosen(wanted, ...pythons), expected);
    });
  }
});
