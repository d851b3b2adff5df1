/** What the server needs to run a script on the emulated NPU: the user's will, and saved files. */

import { posix } from "node:path";
import * as vscode from "vscode";
import { splitArguments } from "./commandLine";

/** What was typed last for each script of this window. */
const lastLines = new Map<string, string>();

/**
 * The arguments of the server's command, `undefined` if nothing shall run.
 *
 * @param given The options of a key binding, for the script that is looked at, or all that another
 * extension names; without these, the user is asked.
 */
export async function prepareRun(given: readonly unknown[]): Promise<unknown[] | undefined> {
  if (!vscode.workspace.isTrusted) {
    tell(vscode.l10n.t("Scripts are run only in workspaces that you trust."));
    return undefined;
  }
  const args = typeof given[0] === "string" ? [...given] : await completed(given[0]);
  if (args !== undefined) {
    // What is run is what is on the disk, and the server refuses if that is something else.
    await vscode.workspace.saveAll(false);
  }
  return args;
}

async function completed(given: unknown): Promise<unknown[] | undefined> {
  const uri = given instanceof vscode.Uri ? given : activeScript();
  if (uri?.scheme !== "file") {
    const { t } = vscode.l10n;
    tell(t("Open the Python script or notebook that shall run, and save it in a file."));
    return undefined;
  }
  const isOfBinding = typeof given === "object" && !(given instanceof vscode.Uri);
  return isOfBinding ? [uri.toString(), given] : askForArguments(uri);
}

async function askForArguments(uri: vscode.Uri): Promise<unknown[] | undefined> {
  const { t } = vscode.l10n;
  const key = uri.toString();
  const line = await vscode.window.showInputBox({
    title: t("Run {0} on an Emulated NPU", posix.basename(uri.path)),
    prompt: t("Its code is executed, in a migrated copy and for 3 optimizer steps at most."),
    placeHolder: t("Arguments of the script, such as --epochs 1"),
    value: lastLines.get(key) ?? "",
    ignoreFocusOut: true,
    validateInput: (typed) =>
      splitArguments(typed) === undefined ? t("A quote is not closed.") : undefined,
  });
  const typed = line === undefined ? undefined : splitArguments(line);
  if (line === undefined || typed === undefined) {
    return undefined;
  }
  lastLines.set(key, line);
  return [key, { arguments: typed }];
}

/** The notebook or file that is looked at. */
function activeScript(): vscode.Uri | undefined {
  const { activeNotebookEditor, activeTextEditor } = vscode.window;
  return activeNotebookEditor?.notebook.uri ?? activeTextEditor?.document.uri;
}

function tell(text: string): void {
  void vscode.window.showWarningMessage(text);
}
