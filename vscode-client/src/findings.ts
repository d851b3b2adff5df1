/** The findings that the Migration view shows, without anything of the editor. */

export type Severity = "error" | "warning" | "information" | "hint";

/** What npulens says of one place. */
export interface Finding {
  readonly uri: string;
  /** The file as users know it: relative to its folder of the workspace. */
  readonly path: string;
  /** Both from 0. */
  readonly line: number;
  readonly column: number;
  readonly severity: Severity;
  /** Such as `NPU101`. */
  readonly code: string;
  /** The name of the rule, such as `cuda-api`; empty where the server does not tell. */
  readonly rule: string;
  readonly message: string;
  /** It has to be changed before code runs as it should; all others are advice. */
  readonly isProblem: boolean;
  /** There is a fix that keeps results and needs no reading. */
  readonly isSafe: boolean;
}

/** How many findings of a kind there are. */
export interface Counts {
  readonly problems: number;
  /** Those of them with a safe fix. */
  readonly ready: number;
  readonly advice: number;
}

export function count(findings: readonly Finding[]): Counts {
  const problems = findings.filter((finding) => finding.isProblem);
  const ready = problems.filter((finding) => finding.isSafe).length;
  return { problems: problems.length, ready, advice: findings.length - problems.length };
}

/** Whether a finding has all words in its path, rule or message, in upper or lower case. */
export function fits(finding: Finding, words: readonly string[]): boolean {
  const { path, code, rule, message } = finding;
  const text = `${path} ${code} ${rule} ${message}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function filterWords(filter: string): string[] {
  return filter.toLowerCase().split(/\s+/).filter(Boolean);
}
