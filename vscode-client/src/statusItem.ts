/** The item in the status bar: whether the server runs, and how much is left. */

import * as vscode from "vscode";
import type { FindingStore } from "./findingStore";
import { count, type Counts } from "./findings";
import { countsText, describe, explain } from "./messages";
import type { Session } from "./session";

const ICONS = { starting: "loading~spin", running: "eye", waiting: "sync~spin", failed: "error" };

export function createStatusItem(session: Session, store: FindingStore): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("npulens", vscode.StatusBarAlignment.Right, 100);
  item.name = "npulens";
  item.command = "npulens.showLog";
  const update = (): void => {
    const counts = count(store.all());
    const isRunning = session.state === "running";
    item.text = `$(${ICONS[session.state]}) npulens${isRunning && counts.problems > 0 ? ` ${counts.problems}` : ""}`;
    item.tooltip = tooltip(session, counts);
    item.backgroundColor =
      session.state === "failed"
        ? new vscode.ThemeColor("statusBarItem.errorBackground")
        : undefined;
  };
  update();
  item.show();
  return vscode.Disposable.from(item, session.onDidChange(update), store.onDidChange(update));
}

function tooltip(session: Session, counts: Counts): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  const lines = [stateText(session)];
  if (session.state === "running") {
    lines.push(countsText(counts));
  }
  lines.push(vscode.l10n.t("Click for the log"));
  lines.forEach((line, index) => text.appendText(index === 0 ? line : `\n\n${line}`));
  return text;
}

function stateText(session: Session): string {
  switch (session.state) {
    case "starting":
      return vscode.l10n.t("The server is starting");
    case "waiting":
      return vscode.l10n.t("The server has ended and will be started again");
    case "running":
      return session.server === undefined ? "" : describe(session.server);
    case "failed":
      return session.problem === undefined
        ? vscode.l10n.t("The server does not run")
        : explain(session.problem);
  }
}
