/** What the user has set: some of it is for the server, the rest says how to start it. */

import type { ImportStrategy } from "./serverChoice";

/** The settings that a configuration of the project can have, too. */
export const PROJECT_SETTINGS = [
  "torchVersion",
  "migrationStyle",
  "select",
  "extendSelect",
  "ignore",
  "exclude",
  "respectGitignore",
  "extendRules",
] as const;

/** The settings that the server knows; all others stay here. */
export const SERVER_SETTINGS = [
  ...PROJECT_SETTINGS,
  ...(["language", "logLevel", "codeLens", "shapeLens", "inlayHints", "cache"] as const),
] as const;

/** The settings of what the editor does by itself. */
export const EDITOR_SETTINGS = ["hotspotMarks"] as const;

/** The settings after whose change the server is started anew. */
export const START_SETTINGS = ["importStrategy", "interpreter", "path", "args"] as const;

/** How to start the server. */
export interface StartSettings {
  readonly strategy: ImportStrategy;
  readonly interpreter: string;
  readonly path: string;
  readonly args: readonly string[];
}

export type Lookup = (key: string) => unknown;

/** The settings for the server, without those that say nothing. */
export function serverSettings(lookup: Lookup): Record<string, unknown> {
  return saidIn(SERVER_SETTINGS, lookup);
}

/** Those that count where the configuration of the project says nothing. */
export function projectSettings(lookup: Lookup): Record<string, unknown> {
  return saidIn(PROJECT_SETTINGS, lookup);
}

function saidIn(keys: readonly string[], lookup: Lookup): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const key of keys) {
    const value = lookup(key);
    const isEmpty = Array.isArray(value) && value.length === 0;
    if (value !== undefined && value !== null && value !== "" && !isEmpty) {
      found[key] = value;
    }
  }
  return found;
}

/**
 * How the user wants the server to be started; what is of the wrong type counts as not set.
 *
 * @param lookup Finds a setting of npulens.
 * @param variables What `${...}` stands for.
 */
export function startSettings(
  lookup: Lookup,
  variables: Readonly<Record<string, string | undefined>>,
): StartSettings {
  const args = lookup("args");
  const texts = Array.isArray(args) ? args.filter((each) => typeof each === "string") : [];
  return {
    strategy: lookup("importStrategy") === "fromEnvironment" ? "fromEnvironment" : "useBundled",
    interpreter: expand(text(lookup("interpreter")), variables),
    path: expand(text(lookup("path")), variables),
    args: texts.map((each) => expand(each, variables)),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

/** Put values in place of `${name}`, and the home folder in place of a leading `~`. */
function expand(value: string, variables: Readonly<Record<string, string | undefined>>): string {
  const home = variables["userHome"];
  const start = home !== undefined && /^~(?=$|[\\/])/.test(value) ? home + value.slice(1) : value;
  return start.replace(/\$\{([\w:]+)\}/g, (whole, name: string) => variables[name] ?? whole);
}
