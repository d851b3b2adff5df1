/** What the Migration view shows, as a tree without anything of the editor. */

import { count, filterWords, fits, type Counts, type Finding } from "./findings";

export type Grouping = "family" | "file";

export const FAMILIES = [
  "engine",
  "device",
  "parallel",
  "precision",
  "layout",
  "api",
  "library",
  "fused",
  "shapes",
  "launch",
] as const;

/** A family of rules; `own` are those that a project brings along. */
export type Family = (typeof FAMILIES)[number] | "own";

export type Group =
  | { readonly kind: "family"; readonly family: Family }
  | { readonly kind: "rule"; readonly code: string; readonly name: string }
  | { readonly kind: "file"; readonly uri: string; readonly path: string };

/** A branch of the tree; findings are its leaves. */
export interface Branch {
  readonly id: string;
  readonly group: Group;
  readonly counts: Counts;
  readonly children: readonly Node[];
}

/** A finding; in a branch for its file, the path need not be told again. */
export interface Leaf {
  readonly id: string;
  readonly finding: Finding;
  readonly isBelowFile: boolean;
}

export type Node = Branch | Leaf;

/** The family of a rule: the first digit of its code tells. */
export function familyOf(code: string): Family {
  const digit = /^NPU(\d)\d\d$/.exec(code)?.[1];
  return (digit === undefined ? undefined : FAMILIES[Number(digit)]) ?? "own";
}

/**
 * The tree of all findings that pass the filter, most urgent first.
 *
 * @param findings In any order.
 * @param grouping What the first level is.
 * @param filter Words that have to be in a finding; empty for all.
 */
export function buildTree(
  findings: readonly Finding[],
  grouping: Grouping,
  filter: string,
): Branch[] {
  const words = filterWords(filter);
  const shown = findings.filter((finding) => fits(finding, words)).sort(inOrder);
  return grouping === "file" ? byFile(shown) : byFamily(shown);
}

function byFile(findings: readonly Finding[]): Branch[] {
  return [...groups(findings, (finding) => finding.uri)].map(([uri, found]) => ({
    id: uri,
    group: { kind: "file", uri, path: found[0].path },
    counts: count(found),
    children: leaves(found, uri, true),
  }));
}

function byFamily(findings: readonly Finding[]): Branch[] {
  const families = groups(findings, (finding) => familyOf(finding.code));
  const branches = [...families].map(([family, found]) => ({
    id: family,
    group: { kind: "family" as const, family },
    counts: count(found),
    children: byRule(found, family),
  }));
  const order: readonly Family[] = ["engine", "own", ...FAMILIES];
  return branches.sort((a, b) => order.indexOf(a.group.family) - order.indexOf(b.group.family));
}

function byRule(findings: readonly Finding[], parent: string): Branch[] {
  const rules = groups(findings, (finding) => finding.code);
  const branches = [...rules].map(([code, found]) => {
    const id = `${parent}/${code}`;
    const name = found[0].rule;
    const children = leaves(found, id, false);
    return { id, group: { kind: "rule" as const, code, name }, counts: count(found), children };
  });
  return branches.sort((a, b) => compare(a.group.code, b.group.code));
}

function leaves(findings: readonly Finding[], parent: string, isBelowFile: boolean): Leaf[] {
  const seen = new Map<string, number>();
  return findings.map((finding) => {
    const place = `${parent}#${finding.uri}:${finding.line}:${finding.column}:${finding.code}`;
    const number = seen.get(place) ?? 0;
    seen.set(place, number + 1);
    return { id: `${place}:${number}`, finding, isBelowFile };
  });
}

function groups<Key>(
  findings: readonly Finding[],
  key: (finding: Finding) => Key,
): Map<Key, [Finding, ...Finding[]]> {
  const found = new Map<Key, [Finding, ...Finding[]]>();
  for (const finding of findings) {
    const group = found.get(key(finding));
    if (group === undefined) {
      found.set(key(finding), [finding]);
    } else {
      group.push(finding);
    }
  }
  return found;
}

function inOrder(a: Finding, b: Finding): number {
  return (
    compare(a.path, b.path) ||
    Number(b.isProblem) - Number(a.isProblem) ||
    a.line - b.line ||
    a.column - b.column
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
