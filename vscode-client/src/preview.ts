/** Has the editor show an edit of many files before it is made, with everything in it ticked. */

import type { ApplyWorkspaceEditParams, CreateFile } from "vscode-languageclient/node";

const ASKS = "npulens.preview";

/**
 * What the editor is asked to apply: of a refactoring, so that it shows its preview first.
 *
 * An extension cannot ask for that. The editor does it by itself for edits that need confirmation,
 * but leaves those unticked, so that "Apply" would apply nothing. So the one that needs confirmation
 * is to create a file that exists already, if it does not exist: it does nothing, and the preview
 * does not list it.
 */
export function preview(params: ApplyWorkspaceEditParams): ApplyWorkspaceEditParams {
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
