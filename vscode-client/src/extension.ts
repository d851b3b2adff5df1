/** Where the editor enters: puts the parts together and starts the server. */

import * as vscode from "vscode";
import { concernsStart } from "./configuration";
import { FindingStore } from "./findingStore";
import { GuideView } from "./guideView";
import { MigrationView, setContext } from "./migrationView";
import { onDidSelectInterpreter } from "./pythonExtension";
import { ReportView } from "./reportView";
import { openSample } from "./sample";
import { GUIDE, MIGRATE_FILE, VERIFY } from "./serverCommands";
import { Session } from "./session";
import { ShapeMarks } from "./shapeMarks";
import { createStatusItem } from "./statusItem";
import { selectTarget } from "./target";

let session: Session | undefined;

/** Called by the editor; the server starts afterwards, so that nobody waits for it. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("npulens", { log: true });
  const started = new Session(context, log);
  session = started;
  const store = new FindingStore();
  const { registerCommand } = vscode.commands;
  const tellManifest = (): void => {
    void setContext("npulens.state", started.state);
    void setContext("npulens.canMigrate", started.has(MIGRATE_FILE));
    void setContext("npulens.canVerify", started.has(VERIFY));
    void setContext("npulens.canGuide", started.has(GUIDE));
  };
  context.subscriptions.push(
    log,
    started,
    store,
    createStatusItem(started, store),
    new MigrationView(context, started, store),
    new GuideView(started),
    new ReportView(context, started),
    new ShapeMarks(context, started, store),
    started.onDidChange(tellManifest),
    registerCommand("npulens.restart", () => started.restart()),
    registerCommand("npulens.showLog", () => {
      log.show();
    }),
    registerCommand("npulens.selectTarget", selectTarget),
    registerCommand("npulens.openSample", () => openSample(context)),
    vscode.workspace.onDidGrantWorkspaceTrust(async () => {
      await started.restart();
      await followPythonExtension(context, started);
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (concernsStart(event)) {
        void started.restart();
      }
    }),
  );
  tellManifest();
  void started.restart();
  void followPythonExtension(context, started);
}

/** Another interpreter chosen there is another interpreter here. */
async function followPythonExtension(
  context: vscode.ExtensionContext,
  started: Session,
): Promise<void> {
  const listener = await onDidSelectInterpreter(() => void started.interpreterChanged());
  context.subscriptions.push(listener);
}

/** Called by the editor, which waits for the server to end. */
export async function deactivate(): Promise<void> {
  await session?.stop();
}
