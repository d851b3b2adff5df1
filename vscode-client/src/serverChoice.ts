/** Which server is started: the bundled one, that of the environment, or one that the user names. */

import type { Bundle } from "./bundle";
import { isNewEnough, type Candidate, type Python, type Version } from "./interpreter";

export type ImportStrategy = "useBundled" | "fromEnvironment";

/** How the server is started. */
export interface ServerChoice {
  readonly kind: "bundled" | "environment" | "path";
  readonly command: string;
  /** What stands between that and the name of a command of npulens. */
  readonly program: readonly string[];
  /** All arguments for the server. */
  readonly args: readonly string[];
  /** The version of npulens, as far as it is known before it runs. */
  readonly version: string | undefined;
  /** The interpreter, if npulens is not a program of its own. */
  readonly python: Python | undefined;
}

/** Why there is nothing to start. */
export type Problem =
  | { readonly kind: "noProgram"; readonly command: string }
  | { readonly kind: "noPython"; readonly tried: readonly string[] }
  | { readonly kind: "oldPython"; readonly command: string; readonly version: Version }
  | { readonly kind: "notInstalled"; readonly command: string }
  | { readonly kind: "notInBundle"; readonly command: string; readonly bundle: Bundle };

/** Asks programs what they are; `undefined` for what does not run, or is something else. */
export interface Probes {
  python(command: string): Promise<Python | undefined>;
  /** The version of a program `npulens`. */
  npulens(command: string): Promise<string | undefined>;
}

/** What decides. */
export interface Wishes {
  readonly strategy: ImportStrategy;
  /** A program `npulens`, empty if the user has named none. */
  readonly path: string;
  /** Further arguments of `npulens server`. */
  readonly args: readonly string[];
  readonly bundle: Bundle | undefined;
  /** The script that starts npulens, of the bundle or of the environment. */
  readonly launcher: string;
}

/**
 * The first interpreter that can run a server decides; if none can, the first that exists tells why.
 *
 * @param wishes What the user and the build of the extension want.
 * @param interpreters Best first.
 * @param probes Ask an interpreter, or the program that the user names, what it is.
 */
export async function chooseServer(
  wishes: Wishes,
  interpreters: readonly Candidate[],
  probes: Probes,
): Promise<ServerChoice | Problem> {
  if (wishes.path !== "") {
    return programOf(wishes, await probes.npulens(wishes.path));
  }
  let problem: Problem | undefined;
  for (const { command } of interpreters) {
    const python = await probes.python(command);
    if (python !== undefined) {
      const found = serverOf(python, wishes);
      if (isServer(found)) {
        return found;
      }
      problem ??= found;
    }
  }
  return problem ?? { kind: "noPython", tried: interpreters.map(({ command }) => command) };
}

/** Whether there is something to start. */
export function isServer(found: ServerChoice | Problem): found is ServerChoice {
  return "args" in found;
}

/**
 * What the launcher is told by variables. None of them is one of Python itself: scripts that the
 * server runs on the emulated NPU get what it has.
 *
 * @param cache Where compiled modules of Python go.
 */
export function launchVariables({ kind }: ServerChoice, cache: string): Record<string, string> {
  return { NPULENS_SERVER: kind, NPULENS_PYCACHE: cache };
}

function programOf(wishes: Wishes, version: string | undefined): ServerChoice | Problem {
  const command = wishes.path;
  return version === undefined
    ? { kind: "noProgram", command }
    : { kind: "path", command, ...starting([], wishes), version, python: undefined };
}

function serverOf(python: Python, wishes: Wishes): ServerChoice | Problem {
  const { strategy, bundle } = wishes;
  const command = python.executable;
  const started = starting(["-X", "utf8", wishes.launcher], wishes);
  if (!isNewEnough(python.version)) {
    return { kind: "oldPython", command, version: python.version };
  }
  const bundled = bundle && isFor(python, bundle) ? bundle : undefined;
  const isInstalled = python.npulens !== null;
  if (isInstalled && (strategy === "fromEnvironment" || bundled === undefined)) {
    return { kind: "environment", command, ...started, version: python.npulens, python };
  }
  if (bundled !== undefined) {
    return { kind: "bundled", command, ...started, version: bundled.version, python };
  }
  return bundle === undefined
    ? { kind: "notInstalled", command }
    : { kind: "notInBundle", command, bundle };
}

function isFor(python: Python, bundle: Bundle): boolean {
  return bundle.pythons === undefined || bundle.pythons.includes(python.tag);
}

function starting(
  program: readonly string[],
  { args }: Wishes,
): Pick<ServerChoice, "program" | "args"> {
  return { program, args: [...program, "server", ...args] };
}
