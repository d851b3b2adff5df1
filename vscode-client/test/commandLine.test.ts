import assert from "node:assert/strict";
import { splitArguments } from "../src/commandLine";

describe("arguments of a script", () => {
  const cases: [string, string[] | undefined][] = [
    ["", []],
    ["   ", []],
    ["--epochs 1", ["--epochs", "1"]],
    ["  --data  ./a\tb ", ["--data", "./a", "b"]],
    [`--name "two words" 'it is "so"'`, ["--name", "two words", 'it is "so"']],
    [`--path="C:\\my data"\\x`, ["--path=C:\\my data\\x"]],
    [`""`, [""]],
    ["$HOME *.py; ls", ["$HOME", "*.py;", "ls"]],
    ["--名 数据", ["--名", "数据"]],
    [`--name "two`, undefined],
    ["it's", undefined],
  ];
  for (const [line, expected] of cases) {
    it(`of ${JSON.stringify(line)} are ${JSON.stringify(expected)}`, () => {
      assert.deepEqual(splitArguments(line), expected);
    });
  }
});
