/** The Migration view: all findings as a tree, by family of rules or by file. */

import * as vscode from "vscode";
import type { FindingStore } from "./findingStore";
import { count, type Finding, type Severity } from "./findings";
import { countsText } from "./messages";
import { MIGRATE_FILE, RESTART_INDEX } from "./serverCommands";
import type { Session } from "./session";
import { buildTree, type Branch, type Family, type Grouping, type Leaf, type Node } from "./tree";

const GROUPING = "npulens.grouping";
const ICONS: Record<Severity, vscode.ThemeIcon> = {
  error: new vscode.ThemeIcon("error", new vscode.ThemeColor("list.errorForeground")),
  warning: new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground")),
  information: new vscode.ThemeIcon("info"),
  hint: new vscode.ThemeIcon("lightbulb"),
};
const FAMILY_ICONS: Record<Family, string> = {
  engine: "gear",
  device: "circuit-board",
  parallel: "server-process",
  precision: "symbol-numeric",
  layout: "layers",
  api: "symbol-method",
  library: "library",
  fused: "zap",
  shapes: "symbol-array",
  launch: "rocket",
  own: "account",
};

export class MigrationView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly parts: vscode.Disposable[];
  private grouping: Grouping;
  private filter = "";

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly store: FindingStore,
  ) {
    this.grouping = context.workspaceState.get<Grouping>(GROUPING, "family");
    this.view = vscode.window.createTreeView("npulens.migration", {
      treeDataProvider: this,
      showCollapseAll: true,
    });
    const { registerCommand } = vscode.commands;
    this.parts = [
      this.view,
      store.onDidChange(() => {
        this.update();
      }),
      registerCommand("npulens.groupByFile", () => this.groupBy("file")),
      registerCommand("npulens.groupByFamily", () => this.groupBy("family")),
      registerCommand("npulens.filterFindings", () => this.askForFilter()),
      registerCommand("npulens.clearFilter", () => {
        this.filterBy("");
      }),
      registerCommand("npulens.refreshMigration", () => this.refresh()),
      registerCommand("npulens.fixFileOfView", fixFile),
      registerCommand("npulens.fixFinding", fixFinding),
    ];
    void this.groupBy(this.grouping);
    this.filterBy("");
  }

  dispose(): void {
    this.changed.dispose();
    this.parts.forEach((part) => {
      part.dispose();
    });
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      return buildTree(this.store.all(), this.grouping, this.filter);
    }
    return "children" in node ? [...node.children] : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return "children" in node ? branchItem(node) : leafItem(node);
  }

  private update(): void {
    const counts = count(this.store.all());
    this.view.message = this.message();
    this.view.badge =
      counts.problems === 0 ? undefined : { value: counts.problems, tooltip: countsText(counts) };
    this.changed.fire();
  }

  /** What the view does not show, as its title has no room for that. */
  private message(): string {
    if (this.filter === "") {
      return "";
    }
    return this.getChildren().length > 0
      ? vscode.l10n.t("Filter: {0}", this.filter)
      : vscode.l10n.t("No finding fits the filter: {0}", this.filter);
  }

  private async groupBy(grouping: Grouping): Promise<void> {
    this.grouping = grouping;
    this.update();
    await setContext(GROUPING, grouping);
    await this.context.workspaceState.update(GROUPING, grouping);
  }

  private async askForFilter(): Promise<void> {
    const given = await vscode.window.showInputBox({
      value: this.filter,
      title: vscode.l10n.t("Filter findings"),
      placeHolder: vscode.l10n.t("Words in a path, rule or message, such as NPU1 or models/"),
    });
    if (given !== undefined) {
      this.filterBy(given.trim());
    }
  }

  private filterBy(filter: string): void {
    this.filter = filter;
    void setContext("npulens.isFiltered", filter !== "");
    this.update();
  }

  private async refresh(): Promise<void> {
    if (this.session.has(RESTART_INDEX)) {
      await vscode.commands.executeCommand(RESTART_INDEX);
    }
    this.store.readAgain();
  }
}

/** Make a value known to the conditions of the manifest. */
export async function setContext(key: string, value: unknown): Promise<void> {
  await vscode.commands.executeCommand("setContext", key, value);
}

function branchItem({ id, group, counts }: Branch): vscode.TreeItem {
  const item = new vscode.TreeItem("", vscode.TreeItemCollapsibleState.Collapsed);
  switch (group.kind) {
    case "family":
      item.label = familyName(group.family);
      item.iconPath = new vscode.ThemeIcon(FAMILY_ICONS[group.family]);
      item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
      break;
    case "rule":
      item.label = group.name === "" ? group.code : `${group.code} ${group.name}`;
      break;
    case "file":
      item.label = group.path;
      item.resourceUri = vscode.Uri.parse(group.uri);
      item.iconPath = vscode.ThemeIcon.File;
      item.contextValue = counts.ready > 0 ? "fixableFile" : "file";
      break;
  }
  item.id = id;
  item.description = countsText(counts);
  item.tooltip = item.description;
  return item;
}

function leafItem({ id, finding, isBelowFile }: Leaf): vscode.TreeItem {
  const message = finding.message.replaceAll("`", "");
  const line = finding.line + 1;
  // What tells findings apart comes first, as the view is narrow.
  const item = new vscode.TreeItem(isBelowFile ? String(line) : `${finding.path}:${line}`);
  item.id = id;
  item.description = message;
  item.iconPath = ICONS[finding.severity];
  item.tooltip = new vscode.MarkdownString(
    `**${finding.code}** ${finding.rule}\n\n${finding.message}\n\n${finding.path}:${line}`,
  );
  item.contextValue = finding.isSafe ? "fixableFinding" : "finding";
  item.command = {
    command: "vscode.open",
    title: vscode.l10n.t("Go to the finding"),
    arguments: [vscode.Uri.parse(finding.uri), { selection: rangeOf(finding) }],
  };
  return item;
}

function familyName(family: Family): string {
  const { t } = vscode.l10n;
  const names: Record<Family, string> = {
    engine: t("Files and comments"),
    device: t("Devices"),
    parallel: t("Parallel training"),
    precision: t("Mixed precision"),
    layout: t("Memory layout"),
    api: t("PyTorch APIs"),
    library: t("Libraries and extensions"),
    fused: t("Fused operators"),
    shapes: t("Dynamic shapes"),
    launch: t("Launch and environment"),
    own: t("Rules of the project"),
  };
  return names[family];
}

function rangeOf({ line, column }: Finding): vscode.Range {
  return new vscode.Range(line, column, line, column);
}

/** The file is shown, so that what has changed can be seen and undone. */
async function fixFile({ group }: Branch): Promise<void> {
  if (group.kind === "file") {
    const uri = vscode.Uri.parse(group.uri);
    await vscode.window.showTextDocument(uri, { preview: false });
    await vscode.commands.executeCommand(MIGRATE_FILE, group.uri);
  }
}

async function fixFinding({ finding }: Leaf): Promise<void> {
  const uri = vscode.Uri.parse(finding.uri);
  const range = rangeOf(finding);
  await vscode.window.showTextDocument(uri, { preview: false, selection: range });
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    uri,
    range,
    vscode.CodeActionKind.QuickFix.value,
    MOST_ACTIONS,
  );
  const isOfFinding = (each: vscode.Diagnostic): boolean =>
    each.message === finding.message && each.range.start.isEqual(range.start);
  const fix = actions.find(
    ({ isPreferred, diagnostics }) => isPreferred === true && diagnostics?.some(isOfFinding),
  );
  if (fix?.edit !== undefined) {
    await vscode.workspace.applyEdit(fix.edit);
  }
}

/** How many actions are completed with their edits; there are few in one place. */
const MOST_ACTIONS = 20;
