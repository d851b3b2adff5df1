/** The report of the workspace in a tab of the editor. */

import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import { settingsForReport } from "./configuration";
import { forWebview, placeOf } from "./reportPage";
import { runReport } from "./reportRun";
import type { Session } from "./session";

const TYPE = "npulens.report";

export class ReportView implements vscode.Disposable {
  private readonly parts: vscode.Disposable[];
  private panel: vscode.WebviewPanel | undefined;
  private folder: vscode.WorkspaceFolder | undefined;
  private isRunning = false;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
  ) {
    const { registerCommand } = vscode.commands;
    this.parts = [
      registerCommand("npulens.showReport", () => this.choose()),
      registerCommand("npulens.refreshReport", () => this.make()),
    ];
  }

  dispose(): void {
    this.panel?.dispose();
    this.parts.forEach((part) => {
      part.dispose();
    });
  }

  /** Ask which folder is meant if there are several; the report is made anew each time. */
  private async choose(): Promise<void> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const placeHolder = vscode.l10n.t("The folder that the report is about");
    const folder =
      folders.length > 1
        ? await vscode.window.showWorkspaceFolderPick({ placeHolder })
        : folders[0];
    if (folder !== undefined) {
      this.folder = folder;
      await this.make();
    } else if (folders.length === 0) {
      void vscode.window.showInformationMessage(
        vscode.l10n.t("The report is about a folder. Open one first."),
      );
    }
  }

  /** Make the page and show it; one at a time. */
  private async make(): Promise<void> {
    const { folder } = this;
    if (folder === undefined || this.isRunning) {
      return;
    }
    this.isRunning = true;
    const title = vscode.l10n.t("npulens: the report is being made");
    const location = vscode.ProgressLocation.Notification;
    try {
      await vscode.window.withProgress({ title, location, cancellable: true }, async (_, token) => {
        const ending = new AbortController();
        token.onCancellationRequested(() => {
          ending.abort();
        });
        const page = await this.page(folder, ending.signal);
        if (!token.isCancellationRequested) {
          await this.show(folder, page);
        }
      });
    } catch (error) {
      if (!(error instanceof Error && error.name === "AbortError")) {
        void tellOfFailure(error, this.session.log);
      }
    } finally {
      this.isRunning = false;
    }
  }

  /** What `npulens report` writes into the storage of the extension, from where it is taken. */
  private async page(folder: vscode.WorkspaceFolder, signal: AbortSignal): Promise<string> {
    const program = this.session.program();
    if (program === undefined) {
      throw new Error(vscode.l10n.t("The server does not run"));
    }
    const storage = (this.context.storageUri ?? this.context.globalStorageUri).fsPath;
    const output = join(storage, "report.html");
    await mkdir(storage, { recursive: true });
    await rm(output, { force: true });
    try {
      const wishes = { folder: folder.uri.fsPath, output, ...settingsForReport(folder.uri) };
      const complaints = await runReport(program, wishes, signal);
      if (complaints !== "") {
        this.session.log.warn(complaints);
      }
      return await readFile(output, "utf8").catch(() => {
        throw new Error(complaints.split("\n").at(-1));
      });
    } finally {
      await rm(output, { force: true });
    }
  }

  private async show(folder: vscode.WorkspaceFolder, page: string): Promise<void> {
    const resources = vscode.Uri.joinPath(this.context.extensionUri, "resources").fsPath;
    const [style, script] = await Promise.all([
      readFile(join(resources, "report.css"), "utf8"),
      readFile(join(resources, "report.js"), "utf8"),
    ]);
    const html = forWebview(page, randomBytes(24).toString("hex"), { style, script });
    const panel = this.panel ?? this.open();
    panel.title = vscode.l10n.t("Report: {0}", folder.name);
    panel.webview.html = html;
    if (!panel.visible) {
      panel.reveal();
    }
  }

  private open(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel(TYPE, "npulens", vscode.ViewColumn.Active, {
      enableScripts: true,
      enableFindWidget: true,
      localResourceRoots: [],
      retainContextWhenHidden: true,
    });
    panel.iconPath = vscode.Uri.joinPath(this.context.extensionUri, "resources", "icon.png");
    panel.webview.onDidReceiveMessage((message: unknown) => goTo(message, panel));
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    this.panel = panel;
    return panel;
  }
}

/** Open the place that was clicked, if it is in the workspace; with Ctrl beside the report. */
async function goTo(message: unknown, panel: vscode.WebviewPanel): Promise<void> {
  const { link, column, isBeside } = (message ?? {}) as Record<string, unknown>;
  const place = placeOf(link);
  const uri = place && vscode.Uri.file(place.path);
  if (
    place === undefined ||
    uri === undefined ||
    vscode.workspace.getWorkspaceFolder(uri) === undefined
  ) {
    return;
  }
  const character = typeof column === "number" && column > 0 ? column - 1 : 0;
  const position = new vscode.Position(Math.max(0, place.line - 1), character);
  await vscode.commands.executeCommand("vscode.open", uri, {
    selection: new vscode.Range(position, position),
    viewColumn: isBeside === true ? vscode.ViewColumn.Beside : panel.viewColumn,
  });
}

async function tellOfFailure(error: unknown, log: vscode.LogOutputChannel): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  log.error(reason);
  const showLog = vscode.l10n.t("Show Log");
  const text = vscode.l10n.t("The report could not be made: {0}", reason);
  if ((await vscode.window.showErrorMessage(text, showLog)) === showLog) {
    log.show();
  }
}
