/** Asks interpreters what they are. */

import { execFile } from "node:child_process";
import { parsePython, PROBE, type Python } from "./interpreter";

const LONGEST = 10_000;

/**
 * What an interpreter says of itself, `undefined` if it does not run.
 *
 * @param command A program, looked up in PATH if it is no path.
 * @param folder Where it runs; Python imports from there, so nobody else's code may be in it.
 */
export function probePython(command: string, folder: string): Promise<Python | undefined> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const options = { cwd: folder, timeout: LONGEST, windowsHide: true, env };
  return new Promise((resolve) => {
    execFile(command, ["-c", PROBE], options, (error, output) => {
      resolve(error === null ? parsePython(output) : undefined);
    });
  });
}
