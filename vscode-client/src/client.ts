/** The client of the language server: what it tells the server, and what it does on its own. */

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type Executable,
} from "vscode-languageclient/node";
import { settingsForServer } from "./configuration";
import { LANGUAGES } from "./languages";
import { applyEdit } from "./preview";
import { executeCommand } from "./serverCommands";

/**
 * A client that is not started yet, and is not started again by itself.
 *
 * @param server The process to start.
 * @param log Where the server's records go.
 * @param lost Called when the connection has ended without having been asked to.
 */
export function createClient(
  server: Executable,
  log: vscode.LogOutputChannel,
  lost: () => void,
): LanguageClient {
  return new LanguageClient("npulens", "npulens", server, {
    documentSelector: [
      ...LANGUAGES.flatMap((language) => [
        { scheme: "file", language },
        { scheme: "untitled", language },
      ]),
      { notebook: "*", language: "python" },
    ],
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: settingsForServer(),
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        lost();
        const message = vscode.l10n.t("The connection to the server has ended.");
        return { action: CloseAction.DoNotRestart, handled: true, message };
      },
    },
    initializationFailedHandler: () => false,
    middleware: {
      executeCommand,
      workspace: {
        handleApplyEdit: applyEdit,
        // A setting may end this server, which then wants to hear of no other.
        didChangeConfiguration: (sections, next) =>
          next(sections).catch((error: unknown) => {
            log.debug(String(error));
          }),
        configuration: ({ items }) =>
          items.map(({ scopeUri }) =>
            settingsForServer(scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri)),
          ),
      },
    },
  });
}
