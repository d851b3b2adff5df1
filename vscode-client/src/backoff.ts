/** When a server that has crashed is started again. */

const WINDOW = 3 * 60_000;
const MOST_CRASHES = 5;
const FIRST_DELAY = 1_000;

/** Remembers the crashes of the last minutes. */
export class CrashHistory {
  private times: number[] = [];

  /**
   * Take note of a crash.
   *
   * @param now Milliseconds on any clock.
   * @returns Milliseconds to wait before the next start, or `undefined` after too many crashes.
   */
  crashed(now: number): number | undefined {
    this.times = [...this.times.filter((time) => now - time < WINDOW), now];
    if (this.times.length >= MOST_CRASHES) {
      return undefined;
    }
    return FIRST_DELAY * 2 ** (this.times.length - 1);
  }

  /** Start counting anew, as the user has asked for a start. */
  forget(): void {
    this.times = [];
  }
}
