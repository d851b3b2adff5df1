import assert from "node:assert/strict";
import {
  closed,
  contextOf,
  isOneLine,
  readGuide,
  shows,
  type GuidePoint,
} from "../src/guidePoints";

const POINT: GuidePoint = {
  id: "safe-fixes",
  title: "No safe fix is left",
  text: "They change no results.",
  state: "open",
  by: null,
  when: null,
  note: "",
  evidence: "2 findings, the first at train.py:3",
  place: { path: "/project/train.py", line: 3 },
  command: "npulens fix .",
  read: ["docs/migrating.md"],
};
const TICKED: GuidePoint = {
  ...POINT,
  state: "done",
  by: "hand",
  when: "2026-05-04",
  note: "loss.csv",
  evidence: "",
  place: null,
};

describe("the guide", () => {
  it("is read from the answer of the server", () => {
    const guide = { root: "/project", next: "safe-fixes", phases: [] };
    assert.deepEqual(readGuide(guide), guide);
  });
  it("is none where the server has no such command", () => {
    for (const answer of [undefined, null, 3, [], { root: "/project" }, { phases: [] }]) {
      assert.equal(readGuide(answer), undefined);
    }
  });
  it("counts what is not open in a phase", () => {
    const skipped: GuidePoint = { ...TICKED, state: "skipped" };
    const points = [POINT, TICKED, skipped, { ...POINT, state: "not-needed" as const }];
    assert.equal(closed({ id: "migration", title: "Migration", points }), 3);
  });
  it("says why a point is in its state", () => {
    assert.equal(shows(POINT), "2 findings, the first at train.py:3");
    assert.equal(shows(TICKED), "2026-05-04, loss.csv");
    assert.equal(shows({ ...POINT, evidence: "" }), "");
  });
  it("types only what a terminal does not run by itself", () => {
    assert.ok(isOneLine("npulens fix ."));
    assert.ok(!isOneLine("npulens fix .\n"));
    assert.ok(!isOneLine("python 'a\rb.py'"));
  });
  it("offers what can be done with a point", () => {
    assert.equal(contextOf(POINT), "guidePoint open place command");
    assert.equal(contextOf(TICKED), "guidePoint marked command");
    const closedByCode: GuidePoint = { ...POINT, state: "done", by: "code", command: null };
    assert.equal(contextOf(closedByCode), "guidePoint closed place");
  });
});
