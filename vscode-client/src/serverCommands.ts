/** The commands of the server: fills in what they need, and says what came of them. */

import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import { tellOfFailure } from "./messages";
import { prepareRun } from "./scriptRun";
import { pickShape } from "./shapePick";

export const MIGRATE_FILE = "npulens.migrateFile";
export const RESTART_INDEX = "npulens.restartIndex";
export const RANK_SHAPES = "npulens.rankShapes";
export const VERIFY = "npulens.verify";
const TRACE_SHAPES = "npulens.traceShapes";
export const GUIDE = "npulens.guide";
const MIGRATE_WORKSPACE = "npulens.migrateWorkspace";
const WRITE_REPORT = "npulens.writeReport";
const OF_THE_FILE = [MIGRATE_FILE, "npulens.addRunTimeMigration", "npulens.removeRunTimeMigration"];
const SHOWN_FOR = 5_000;

/** Stands between the editor and the server for every command. */
export async function executeCommand(
  command: string,
  given: unknown[],
  next: ExecuteCommandSignature,
): Promise<unknown> {
  if (command === RANK_SHAPES) {
    const uri = typeof given[0] === "string" ? given[0] : activePython();
    return pickShape(uri, (args) => Promise.resolve(next(command, args)));
  }
  const args = await completed(command, given);
  if (args === undefined) {
    return undefined;
  }
  let answer: unknown;
  try {
    answer = await next(command, args);
  } catch (error) {
    if (!(error instanceof vscode.CancellationError)) {
      void tellOfFailure(error, command === VERIFY || command === TRACE_SHAPES);
    }
    return undefined;
  }
  if (command === MIGRATE_FILE || command === MIGRATE_WORKSPACE) {
    tellOfFixes(answer);
  } else if (command === WRITE_REPORT && typeof args[0] === "string") {
    await vscode.window.showTextDocument(vscode.Uri.parse(args[0]));
  }
  return answer;
}

/** The arguments with those that a menu or the palette does not give; `undefined` if there are none. */
async function completed(command: string, given: unknown[]): Promise<unknown[] | undefined> {
  if (OF_THE_FILE.includes(command)) {
    const [first, ...rest] = given;
    const uri = first instanceof vscode.Uri ? first : vscode.window.activeTextEditor?.document.uri;
    const named = typeof first === "string" ? first : uri?.toString();
    // Menus add arguments of the editor, which are none of the server's.
    return named === undefined ? undefined : [named, ...(typeof first === "string" ? rest : [])];
  }
  if (command === VERIFY || command === TRACE_SHAPES) {
    return prepareRun(given);
  }
  if (command === MIGRATE_WORKSPACE) {
    return [];
  }
  if (command === WRITE_REPORT && typeof given[0] !== "string") {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const target = await vscode.window.showSaveDialog({
      filters: { JSON: ["json"] },
      ...(folder && { defaultUri: vscode.Uri.joinPath(folder, "npulens.json") }),
    });
    return target && [target.toString()];
  }
  return given;
}

/** The Python file that is looked at, if there is one. */
function activePython(): string | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document?.languageId === "python" ? document.uri.toString() : undefined;
}

function tellOfFixes(answer: unknown): void {
  const { fixes, applied } = (answer ?? {}) as { fixes?: unknown; applied?: unknown };
  if (typeof fixes !== "number") {
    return;
  }
  let text = vscode.l10n.t("npulens: {0} safe fixes.", fixes);
  if (fixes === 0) {
    text = vscode.l10n.t("npulens: there is nothing left that can be fixed safely.");
  } else if (applied === false) {
    text = vscode.l10n.t("npulens: nothing has been changed.");
  }
  vscode.window.setStatusBarMessage(text, SHOWN_FOR);
}
