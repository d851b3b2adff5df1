/** Asks programs what they are. */

import { execFile } from "node:child_process";
import { parsePython, PROBE } from "./interpreter";
import type { Probes } from "./serverChoice";

const LONGEST = 10_000;

/**
 * Ask programs, which are looked up in PATH if they are no paths.
 *
 * @param folder Where they run; Python imports from there, so nobody else's code may be in it.
 */
export function probesIn(folder: string): Probes {
  return {
    python: async (command) => {
      const output = await outputOf(command, ["-c", PROBE], folder);
      return output === undefined ? undefined : parsePython(output);
    },
    npulens: async (command) => {
      const output = await outputOf(command, ["--version"], folder);
      return /^npulens\b\D*(\d\S*)/.exec(output ?? "")?.[1];
    },
  };
}

function outputOf(command: string, args: string[], cwd: string): Promise<string | undefined> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const options = { cwd, timeout: LONGEST, windowsHide: true, env };
  return new Promise((resolve) => {
    execFile(command, args, options, (error, output) => {
      resolve(error === null ? output : undefined);
    });
  });
}
