/** Has the editor show an edit of many files before it is made, with everything in it ticked. */

import * as vscode from "vscode";
import {
  CancellationToken,
  type ApplyWorkspaceEditParams,
  type ApplyWorkspaceEditRequest,
  type ApplyWorkspaceEditResult,
  type CreateFile,
} from "vscode-languageclient/node";

const ASKS = "npulens.preview";

/** Apply an edit that the server asks for, as the editor does a refactoring of its own. */
export async function applyEdit(
  params: ApplyWorkspaceEditParams,
  next: ApplyWorkspaceEditRequest.HandlerSignature,
): Promise<ApplyWorkspaceEditResult> {
  const lone = loneDocument(params);
  const wasDirty = vscode.workspace.textDocuments.some(
    (document) => document.isDirty && document.uri.toString() === lone?.toString(),
  );
  const answer = await next(preview(params), CancellationToken.None);
  if (answer instanceof Error) {
    throw answer;
  }
  if (lone !== undefined && !wasDirty && answer.applied) {
    await save(lone);
  }
  return answer;
}

/** Of a refactoring the document that it changes, if that is one alone. */
function loneDocument({ edit, metadata }: ApplyWorkspaceEditParams): vscode.Uri | undefined {
  const [first, ...others] = edit.documentChanges ?? [];
  if (metadata?.isRefactoring !== true || first === undefined || others.length > 0) {
    return undefined;
  }
  return "textDocument" in first ? vscode.Uri.parse(first.textDocument.uri) : undefined;
}

/** The editor saves what a refactoring has changed, but not where that is one file. */
async function save(uri: vscode.Uri): Promise<void> {
  if (vscode.workspace.getConfiguration("files").get<boolean>("refactoring.autoSave")) {
    const document = await vscode.workspace.openTextDocument(uri);
    await document.save();
  }
}

/**
 * What the editor is asked to apply: of a refactoring, so that it shows its preview first.
 *
 * An extension cannot ask for that. The editor does it by itself for edits that need confirmation,
 * but leaves those unticked, so that "Apply" would apply nothing. So the one that needs confirmation
 * is to create a file that exists already, if it does not exist: it does nothing, and the preview
 * does not list it.
 */
function preview(params: ApplyWorkspaceEditParams): ApplyWorkspaceEditParams {
  const { edit, label, metadata } = params;
  const first = edit.documentChanges?.find((change) => "textDocument" in change);
  if (metadata?.isRefactoring !== true || edit.documentChanges === undefined || !first) {
    return params;
  }
  const nothing: CreateFile = {
    kind: "create",
    uri: first.textDocument.uri,
    options: { ignoreIfExists: true },
    annotationId: ASKS,
  };
  const annotation = { label: label ?? "npulens", needsConfirmation: true };
  return {
    ...params,
    edit: {
      documentChanges: [...edit.documentChanges, nothing],
      changeAnnotations: { ...edit.changeAnnotations, [ASKS]: annotation },
    },
  };
}
