import assert from "node:assert/strict";
import { serverSettings, startSettings } from "../src/settings";

describe("settings for the server", () => {
  const cases: [Record<string, unknown>, Record<string, unknown>][] = [
    [{}, {}],
    [{ torchVersion: null, select: [], language: "", ignore: undefined }, {}],
    [
      { torchVersion: "2.8", select: ["NPU1"], codeLens: false },
      { torchVersion: "2.8", select: ["NPU1"], codeLens: false },
    ],
    [{ path: "/npulens", interpreter: "/python", args: ["-v"], trace: { server: "off" } }, {}],
  ];
  for (const [given, expected] of cases) {
    it(`are ${JSON.stringify(expected)} of ${JSON.stringify(given)}`, () => {
      assert.deepEqual(
        serverSettings((key) => given[key]),
        expected,
      );
    });
  }
});

describe("settings for the start", () => {
  const variables = { workspaceFolder: "/project", userHome: "/home/me", "env:ROOT": "/root" };
  const start = (given: Record<string, unknown>): Record<string, unknown> => ({
    ...startSettings((key) => given[key], variables),
  });
  const none = { strategy: "useBundled", interpreter: "", path: "", args: [] };
  it("are nothing by default", () => {
    assert.deepEqual(start({}), none);
  });
  it("fill in variables", () => {
    const given = {
      importStrategy: "fromEnvironment",
      interpreter: "${workspaceFolder}/.venv/bin/python",
      path: "~/bin/npulens",
      args: ["--log", "${env:ROOT}/log", "${env:UNKNOWN}", "~other"],
    };
    assert.deepEqual(start(given), {
      strategy: "fromEnvironment",
      interpreter: "/project/.venv/bin/python",
      path: "/home/me/bin/npulens",
      args: ["--log", "/root/log", "${env:UNKNOWN}", "~other"],
    });
  });
  it("leave out what is of the wrong type", () => {
    assert.deepEqual(start({ importStrategy: 1, interpreter: 3, path: null, args: "x" }), none);
    assert.deepEqual(start({ args: [1, "x"] }), { ...none, args: ["x"] });
  });
});
