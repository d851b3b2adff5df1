/** Runs `npulens report` beside the server. */

import { spawn } from "node:child_process";

/** How npulens is started: what follows is the name of a command and its arguments. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** What the report is about, and how it is written. */
export interface ReportWishes {
  /** The folder that is read. */
  readonly folder: string;
  /** The file that is written. */
  readonly output: string;
  /** The language that the user asks for, empty for none. */
  readonly language: string;
  /** What counts where the configuration of the project says nothing. */
  readonly settings: Readonly<Record<string, unknown>>;
}

const MOST_TOLD = 2_000;

/** The arguments of npulens; nothing is left in the folder. */
export function reportArguments(wishes: ReportWishes): string[] {
  const { folder, output, language, settings } = wishes;
  return [
    "report",
    ...["--output-file", output, "--format", "html", "--editor-links", "--no-cache"],
    ...["--editor-settings", JSON.stringify(settings)],
    ...(language === "" ? [] : ["--language", language]),
    ...["--", folder],
  ];
}

/**
 * Run npulens until it ends.
 *
 * @param signal Ends it before.
 * @returns The end of what it complains about; files that cannot be read are no reason to fail.
 * @throws Error It could not be started, or was ended by the signal (`AbortError`).
 */
export function runReport(
  program: Program,
  wishes: ReportWishes,
  signal: AbortSignal,
): Promise<string> {
  const { command, args, cwd, env } = program;
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, ...reportArguments(wishes)], {
      ...{ cwd, env, signal, windowsHide: true },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let told = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      told = (told + text).slice(-MOST_TOLD);
    });
    child.on("error", reject);
    child.on("close", () => {
      resolve(told.trim());
    });
  });
}
