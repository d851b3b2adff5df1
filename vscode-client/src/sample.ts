/** Opens the sample project of the walkthrough, a copy of its own in the storage of the extension. */

import * as vscode from "vscode";

export async function openSample(context: vscode.ExtensionContext): Promise<void> {
  const source = vscode.Uri.joinPath(context.extensionUri, "sample");
  const target = vscode.Uri.joinPath(context.globalStorageUri, "sample");
  await vscode.workspace.fs.copy(source, target, { overwrite: true });
  await vscode.window.showTextDocument(vscode.Uri.joinPath(target, "train.py"));
}
