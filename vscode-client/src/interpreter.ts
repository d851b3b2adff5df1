/** Which Python could run the server, and what is known of it. */

export type Version = readonly [major: number, minor: number, micro: number];

export const OLDEST_PYTHON: Version = [3, 10, 0];

/** Where an interpreter was named. */
export type Origin = "setting" | "pythonExtension" | "path";

/** An interpreter that may or may not be there. */
export interface Candidate {
  readonly command: string;
  readonly origin: Origin;
}

/** What an interpreter says of itself. */
export interface Python {
  readonly executable: string;
  readonly version: Version;
  /** Such as `cp311`: the folder of the bundle with the packages for it. */
  readonly tag: string;
  /** The version of npulens installed in its environment, if any. */
  readonly npulens: string | null;
}

/** Prints what `parsePython` reads; runs on every Python 3, without the packages of users. */
export const PROBE = `
import json, sys, sysconfig
try:
    from importlib.metadata import version
    npulens = version("npulens")
except Exception:
    npulens = None
kind = "cp" if sys.implementation.name == "cpython" else sys.implementation.name
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(json.dumps({
    "executable": sys.executable,
    "version": list(sys.version_info[:3]),
    "tag": kind + "%d%d" % sys.version_info[:2] + threads,
    "npulens": npulens,
}))
`;

/**
 * The interpreters to try, best first.
 *
 * @param setting What the user has set, empty if nothing; then nothing else is tried.
 * @param selected The environment chosen in the Python extension, if there is one.
 * @param platform As `process.platform`.
 */
export function candidates(
  setting: string,
  selected: string | undefined,
  platform: NodeJS.Platform,
): Candidate[] {
  if (setting !== "") {
    return [{ command: setting, origin: "setting" }];
  }
  const onPath = platform === "win32" ? ["python", "py"] : ["python3", "python"];
  return [
    ...(selected === undefined ? [] : [{ command: selected, origin: "pythonExtension" as const }]),
    ...onPath.map((command) => ({ command, origin: "path" as const })),
  ];
}

/** What the output of `PROBE` says, `undefined` if it is something else. */
export function parsePython(output: string): Python | undefined {
  let told: unknown;
  try {
    told = JSON.parse(output.trim().split(/\r?\n/).at(-1) ?? "");
  } catch {
    return undefined;
  }
  if (typeof told !== "object" || told === null) {
    return undefined;
  }
  const { executable, version, tag, npulens } = told as Record<string, unknown>;
  if (typeof executable !== "string" || typeof tag !== "string" || !isVersion(version)) {
    return undefined;
  }
  return { executable, version, tag, npulens: typeof npulens === "string" ? npulens : null };
}

/** Whether npulens runs on this version at all. */
export function isNewEnough(version: Version): boolean {
  const [major, minor] = version;
  return major > OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1]);
}

function isVersion(value: unknown): value is Version {
  return (
    Array.isArray(value) && value.length === 3 && value.every((part) => typeof part === "number")
  );
}
