/** The migration guide as the server gives it, without anything of the editor. */

export type PointState = "done" | "skipped" | "not-needed" | "open";

/** A step of a migration. */
export interface GuidePoint {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly state: PointState;
  readonly by: "hand" | "code" | "run" | null;
  readonly when: string | null;
  readonly note: string;
  /** What shows the state, or is in the way; may be empty. */
  readonly evidence: string;
  /** The line of that, from 1. */
  readonly place: { readonly path: string; readonly line: number } | null;
  readonly command: string | null;
  readonly read: readonly string[];
}

export interface GuidePhase {
  readonly id: string;
  readonly title: string;
  readonly points: readonly GuidePoint[];
}

export interface Guide {
  readonly root: string;
  /** The first open point, `null` if there is none. */
  readonly next: string | null;
  readonly phases: readonly GuidePhase[];
}

/** A guide, `undefined` if the answer of the server is none. */
export function readGuide(answer: unknown): Guide | undefined {
  if (typeof answer !== "object" || answer === null) {
    return undefined;
  }
  const { root, phases } = answer as Partial<Guide>;
  return typeof root === "string" && Array.isArray(phases) ? (answer as Guide) : undefined;
}

/** How many points of a phase are not open. */
export function closed({ points }: GuidePhase): number {
  return points.filter(({ state }) => state !== "open").length;
}

/** What is behind the title of a point: why it is closed, or what is in the way. */
export function shows({ when, note, evidence }: GuidePoint): string {
  return [when ?? "", note, evidence].filter(Boolean).join(", ");
}

/** What the menu of a point depends on: whether it has a mark of a person, a place, a command. */
export function contextOf({ state, by, place, command }: GuidePoint): string {
  const parts = [
    state === "open" ? "open" : by === "hand" ? "marked" : "closed",
    ...(place === null ? [] : ["place"]),
    ...(command === null ? [] : ["command"]),
  ];
  return `guidePoint ${parts.join(" ")}`;
}

/** Whether a text has no control characters, so that a terminal runs nothing of it by itself. */
export function isOneLine(text: string): boolean {
  return !/\p{Cc}/u.test(text);
}
