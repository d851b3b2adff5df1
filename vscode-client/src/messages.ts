/** What the user is told about the server, and what can be done about it. */

import * as vscode from "vscode";
import type { Counts } from "./findings";
import { OLDEST_PYTHON } from "./interpreter";
import { PYTHON_EXTENSION } from "./pythonExtension";
import type { Problem, ServerChoice } from "./serverChoice";

/** Which server runs, in one line. */
export function describe(server: ServerChoice): string {
  const version = server.version ?? "";
  const python = server.python?.version.join(".") ?? "";
  switch (server.kind) {
    case "bundled":
      return vscode.l10n.t(
        "npulens {0}, bundled with the extension, on Python {1} ({2})",
        version,
        python,
        server.command,
      );
    case "environment":
      return vscode.l10n.t(
        "npulens {0}, from the environment of Python {1} ({2})",
        version,
        python,
        server.command,
      );
    case "path":
      return vscode.l10n.t("npulens {0}, as set in npulens.path ({1})", version, server.command);
  }
}

/** How many findings there are, as everywhere in npulens; what there is none of is left out. */
export function countsText({ problems, ready, advice }: Counts): string {
  const parts = [];
  if (problems > 0) {
    const one = vscode.l10n.t("1 problem");
    parts.push(problems === 1 ? one : vscode.l10n.t("{0} problems", problems));
  }
  if (ready > 0) {
    parts.push(vscode.l10n.t("{0} safe to fix", ready));
  }
  if (advice > 0) {
    parts.push(vscode.l10n.t("advice: {0}", advice));
  }
  return parts.join(" · ") || vscode.l10n.t("no problems");
}

/** Why there is no server, and what to do. */
export function explain(problem: Problem): string {
  const oldest = OLDEST_PYTHON.slice(0, 2).join(".");
  switch (problem.kind) {
    case "noProgram":
      return vscode.l10n.t(
        "The program in the setting npulens.path does not run, or is no npulens: {0}. Change or clear the setting.",
        problem.command,
      );
    case "noPython":
      return vscode.l10n.t(
        "npulens needs Python {0} or newer and finds none ({1}). Install it, or select an interpreter.",
        oldest,
        problem.tried.join(", "),
      );
    case "oldPython":
      return vscode.l10n.t(
        "npulens needs Python {0} or newer; {1} is Python {2}. Select another interpreter.",
        oldest,
        problem.command,
        problem.version.join("."),
      );
    case "notInstalled":
      return vscode.l10n.t(
        "This build of the extension takes npulens from your Python environment, and {0} does not have it. Install npulens there, or select another interpreter.",
        problem.command,
      );
    case "notInBundle":
      return vscode.l10n.t(
        "The server in the extension is for {0}; {1} is another Python. Select one of these, or install npulens in its environment.",
        (problem.bundle.pythons ?? []).join(", "),
        problem.command,
      );
  }
}

/** Show a problem with the one thing to do about it. */
export async function tellOfProblem(problem: Problem): Promise<void> {
  const isOfPath = problem.kind === "noProgram";
  const change = isOfPath ? vscode.l10n.t("Open Setting") : vscode.l10n.t("Select Interpreter");
  const log = vscode.l10n.t("Show Log");
  const answer = await vscode.window.showErrorMessage(explain(problem), change, log);
  if (answer === change) {
    await (isOfPath ? openSetting("path") : selectInterpreter());
  } else if (answer === log) {
    await vscode.commands.executeCommand("npulens.showLog");
  }
}

/**
 * Say why a command of the server has not done what was asked for.
 *
 * @param isOfPython Whether another interpreter may help, as for want of PyTorch.
 */
export async function tellOfFailure(error: unknown, isOfPython: boolean): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  const select = vscode.l10n.t("Select Interpreter");
  const log = vscode.l10n.t("Show Log");
  const text = isOfPython
    ? vscode.l10n.t("The script was not run: {0}", reason)
    : vscode.l10n.t("npulens could not do that: {0}", reason);
  const actions = isOfPython ? [select, log] : [log];
  const answer = await vscode.window.showErrorMessage(text, ...actions);
  if (answer === select) {
    await selectInterpreter();
  } else if (answer === log) {
    await vscode.commands.executeCommand("npulens.showLog");
  }
}

/** Say that the server has been given up. */
export async function tellOfCrashes(): Promise<void> {
  const again = vscode.l10n.t("Start Again");
  const log = vscode.l10n.t("Show Log");
  const text = vscode.l10n.t(
    "The server of npulens has ended several times in a few minutes and is not started again.",
  );
  const answer = await vscode.window.showErrorMessage(text, again, log);
  if (answer === again) {
    await vscode.commands.executeCommand("npulens.restart");
  } else if (answer === log) {
    await vscode.commands.executeCommand("npulens.showLog");
  }
}

async function selectInterpreter(): Promise<void> {
  if (vscode.extensions.getExtension(PYTHON_EXTENSION) === undefined) {
    await openSetting("interpreter");
  } else {
    await vscode.commands.executeCommand("python.setInterpreter");
  }
}

async function openSetting(key: string): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openSettings", `npulens.${key}`);
}
