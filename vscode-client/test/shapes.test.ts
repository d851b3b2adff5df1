import assert from "node:assert/strict";
import { isAboutShapes, marksOf, readShapes, type RankedShape } from "../src/shapes";

const URI = "file:///project/net.py";

function shape(line: number, changes: Partial<RankedShape> = {}): RankedShape {
  return {
    uri: URI,
    range: { start: { line, character: 4 }, end: { line, character: 9 } },
    score: 60,
    code: "NPU802",
    function: "Net.forward",
    reached: "training",
    isShape: true,
    waits: false,
    message: "It depends on the mask.",
    ...changes,
  };
}

describe("ranked shapes", () => {
  it("are read from the answer of the server", () => {
    assert.deepEqual(readShapes([shape(1), shape(2)]), [shape(1), shape(2)]);
  });
  for (const answer of [undefined, null, {}, "text", [null, 1, {}, { uri: URI, code: "NPU802" }]]) {
    it(`are none in ${JSON.stringify(answer)}`, () => {
      assert.deepEqual(readShapes(answer), []);
    });
  }
});

describe("marks", () => {
  const lines = (shapes: readonly RankedShape[], told: [string, number][]): number[][] => {
    const marks = marksOf(
      shapes,
      URI,
      told.map(([code, line]) => ({ code, line })),
    );
    return [marks.dynamicShape, marks.hostSync].map((found) =>
      found.map(({ range }) => range.start.line),
    );
  };
  const wait = { isShape: false, waits: true, code: "NPU805" };
  const cases: [string, RankedShape[], [string, number][], number[][]][] = [
    [
      "are of two kinds",
      [shape(1), shape(2, wait)],
      [
        ["NPU802", 1],
        ["NPU805", 2],
      ],
      [[1], [2]],
    ],
    ["of both are of the worse", [shape(1, { waits: true })], [["NPU802", 1]], [[1], []]],
    ["of batches are shapes", [shape(1, { isShape: false })], [["NPU802", 1]], [[1], []]],
    ["stand only where a finding is", [shape(1), shape(3)], [["NPU802", 3]], [[3], []]],
    ["stand not where another rule tells", [shape(1)], [["NPU805", 1]], [[], []]],
    ["stand not in other files", [shape(1, { uri: "file:///b.py" })], [["NPU802", 1]], [[], []]],
  ];
  for (const [what, shapes, told, expected] of cases) {
    it(what, () => {
      assert.deepEqual(lines(shapes, told), expected);
    });
  }
});

describe("rules about shapes", () => {
  for (const [code, expected] of [
    ["NPU802", true],
    ["NPU812", true],
    ["NPU708", false],
    ["NPU8021", false],
    ["", false],
  ] as const) {
    it(`are ${expected ? "" : "not "}${code}`, () => {
      assert.equal(isAboutShapes(code), expected);
    });
  }
});
