/** Dynamic shapes as the server ranks them, without anything of the editor. */

/** Both from 0. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** A place where a shape depends on data, or where the host waits for the device. */
export interface RankedShape {
  readonly uri: string;
  readonly range: { readonly start: Position; readonly end: Position };
  /** How much it hurts, from 0 to 100. */
  readonly score: number;
  /** The rule, such as `NPU802`. */
  readonly code: string;
  /** `function` or `Class.method`. */
  readonly function: string;
  readonly reached: "training" | "evaluation" | "host" | "unknown";
  readonly isShape: boolean;
  readonly waits: boolean;
  readonly message: string;
}

/** What of a finding tells which place it is about. */
export interface Told {
  readonly code: string;
  readonly line: number;
}

export type MarkKind = "dynamicShape" | "hostSync";

/** The places in the server's answer; what is none is left out. */
export function readShapes(answer: unknown): RankedShape[] {
  return Array.isArray(answer) ? answer.filter(isShape) : [];
}

/**
 * The places to be marked in a file: those that its findings tell. What is ranked besides them hurts
 * little, or the user does not want to be told.
 */
export function marksOf(
  shapes: readonly RankedShape[],
  uri: string,
  told: readonly Told[],
): Record<MarkKind, RankedShape[]> {
  const marks: Record<MarkKind, RankedShape[]> = { dynamicShape: [], hostSync: [] };
  for (const shape of shapes) {
    const { line } = shape.range.start;
    if (shape.uri === uri && told.some((each) => each.code === shape.code && each.line === line)) {
      marks[kindOf(shape)].push(shape);
    }
  }
  return marks;
}

/** Waiting alone is a lesser evil than a shape that changes. */
export function kindOf(shape: RankedShape): MarkKind {
  return shape.waits && !shape.isShape ? "hostSync" : "dynamicShape";
}

/** Whether findings of a rule are about dynamic shapes. */
export function isAboutShapes(code: string): boolean {
  return /^NPU8\d\d$/.test(code);
}

function isShape(value: unknown): value is RankedShape {
  const { uri, range, score, code } = (value ?? {}) as Partial<RankedShape>;
  return (
    typeof uri === "string" &&
    typeof code === "string" &&
    typeof score === "number" &&
    typeof range?.start.line === "number"
  );
}
