import assert from "node:assert/strict";
import { count, type Finding, type Severity } from "../src/findings";
import { buildTree, familyOf, type Node } from "../src/tree";

function finding(
  path: string,
  line: number,
  code: string,
  severity: Severity = "error",
  isSafe = false,
): Finding {
  const [uri, rule, message] = [`file:///${path}`, `rule-${code}`, `Message of ${code}`];
  return {
    uri,
    path,
    line,
    column: 0,
    severity,
    code,
    rule,
    message,
    isProblem: severity === "error" || severity === "warning",
    isSafe,
  };
}

const FINDINGS = [
  finding("b.py", 4, "NPU701", "information"),
  finding("b.py", 9, "NPU101", "error", true),
  finding("a.py", 7, "NPU110", "error", true),
  finding("a.py", 2, "NPU101", "warning"),
  finding("run.sh", 1, "NPU901", "hint", true),
  finding("a.py", 2, "ACME1"),
];

/** A tree as lines, such as `device 3/2`: three are left, two of them ready. */
function drawn(nodes: readonly Node[], indent = ""): string[] {
  return nodes.flatMap((node) => {
    if (!("children" in node)) {
      const { path, line, code } = node.finding;
      return [`${indent}${node.isBelowFile ? "" : path}:${line} ${code}`];
    }
    const { group, counts } = node;
    const name =
      group.kind === "family" ? group.family : group.kind === "rule" ? group.code : group.path;
    const advice = counts.advice > 0 ? ` +${counts.advice}` : "";
    const text = `${indent}${name} ${counts.problems}/${counts.ready}${advice}`;
    return [text, ...drawn(node.children, `${indent}  `)];
  });
}

function ids(nodes: readonly Node[]): string[] {
  return nodes.flatMap((node) => [node.id, ...("children" in node ? ids(node.children) : [])]);
}

describe("the tree", () => {
  it("groups by file, work before advice", () => {
    assert.deepEqual(drawn(buildTree(FINDINGS, "file", "")), [
      "a.py 3/1",
      "  :2 NPU101",
      "  :2 ACME1",
      "  :7 NPU110",
      "b.py 1/1 +1",
      "  :9 NPU101",
      "  :4 NPU701",
      "run.sh 0/0 +1",
      "  :1 NPU901",
    ]);
  });
  it("groups by family and rule", () => {
    assert.deepEqual(drawn(buildTree(FINDINGS, "family", "")), [
      "own 1/0",
      "  ACME1 1/0",
      "    a.py:2 ACME1",
      "device 3/2",
      "  NPU101 2/1",
      "    a.py:2 NPU101",
      "    b.py:9 NPU101",
      "  NPU110 1/1",
      "    a.py:7 NPU110",
      "fused 0/0 +1",
      "  NPU701 0/0 +1",
      "    b.py:4 NPU701",
      "launch 0/0 +1",
      "  NPU901 0/0 +1",
      "    run.sh:1 NPU901",
    ]);
  });
  for (const [filter, expected] of [
    ["A.PY npu1", ["a.py 2/1", "  :2 NPU101", "  :7 NPU110"]],
    ["rule-npu7", ["b.py 0/0 +1", "  :4 NPU701"]],
    ["nothing of this", []],
  ] as const) {
    it(`shows what has all words of "${filter}"`, () => {
      assert.deepEqual(drawn(buildTree(FINDINGS, "file", filter)), expected);
    });
  }
  it("gives every node a name of its own, also to findings in one place", () => {
    const twice = [...FINDINGS, ...FINDINGS];
    for (const grouping of ["file", "family"] as const) {
      const found = ids(buildTree(twice, grouping, ""));
      assert.equal(new Set(found).size, found.length);
    }
  });
  it("keeps names when lines of other files change", () => {
    const before = ids(buildTree(FINDINGS, "file", ""));
    const after = ids(buildTree([...FINDINGS, finding("z.py", 1, "NPU101")], "file", ""));
    assert.deepEqual(after.slice(0, before.length), before);
  });
  it("is empty without findings", () => {
    assert.deepEqual(buildTree([], "family", ""), []);
  });
});

describe("counts", () => {
  it("take only work for ready", () => {
    assert.deepEqual(count(FINDINGS), { problems: 4, ready: 2, advice: 2 });
  });
});

describe("the family of", () => {
  for (const [code, family] of [
    ["NPU002", "engine"],
    ["NPU503", "api"],
    ["NPU801", "shapes"],
    ["NPU901", "launch"],
    ["ACME101", "own"],
    ["", "own"],
  ] as const) {
    it(`${code} is ${family}`, () => {
      assert.equal(familyOf(code), family);
    });
  }
});
