import assert from "node:assert/strict";
import { CrashHistory } from "../src/backoff";

describe("a server that crashes", () => {
  it("is started later each time, and at last not at all", () => {
    const crashes = new CrashHistory();
    const delays = [0, 1, 2, 3, 4].map((second) => crashes.crashed(second * 1000));
    assert.deepEqual(delays, [1000, 2000, 4000, 8000, undefined]);
  });
  it("is started at once if it ran for long", () => {
    const crashes = new CrashHistory();
    const delays = [0, 1, 2, 3, 4].map((hour) => crashes.crashed(hour * 3_600_000));
    assert.deepEqual(delays, [1000, 1000, 1000, 1000, 1000]);
  });
  it("is forgiven when the user starts it", () => {
    const crashes = new CrashHistory();
    crashes.crashed(0);
    crashes.forget();
    assert.equal(crashes.crashed(1), 1000);
  });
});
