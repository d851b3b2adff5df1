/** The view of the migration guide: the points of each phase, ticked by the server and by users. */

import * as vscode from "vscode";
import {
  closed,
  contextOf,
  isOneLine,
  readGuide,
  shows,
  type Guide,
  type GuidePhase,
  type GuidePoint,
  type PointState,
} from "./guidePoints";
import { tellOfFailure } from "./messages";
import { GUIDE } from "./serverCommands";
import type { Session } from "./session";

const ICONS: Record<PointState, vscode.ThemeIcon> = {
  done: new vscode.ThemeIcon("pass-filled", new vscode.ThemeColor("testing.iconPassed")),
  skipped: new vscode.ThemeIcon("circle-slash"),
  "not-needed": new vscode.ThemeIcon("dash"),
  open: new vscode.ThemeIcon("circle-large-outline"),
};
const NEXT = new vscode.ThemeIcon("arrow-circle-right");

/** What a user does to a point, as the server calls it. */
type Tick = "done" | "skip" | "open";

interface FolderNode {
  readonly kind: "folder";
  readonly guide: Guide;
}

interface PhaseNode {
  readonly kind: "phase";
  readonly guide: Guide;
  readonly phase: GuidePhase;
}

interface PointNode {
  readonly kind: "point";
  readonly guide: Guide;
  readonly point: GuidePoint;
}

type Node = FolderNode | PhaseNode | PointNode;

export class GuideView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly parts: vscode.Disposable[];
  private guides: Guide[] = [];
  /** Whether what is shown is from before the server started anew. */
  private isOld = true;

  constructor(private readonly session: Session) {
    this.view = vscode.window.createTreeView("npulens.guide", { treeDataProvider: this });
    const { registerCommand } = vscode.commands;
    const tick = (name: string, how: Tick): vscode.Disposable =>
      registerCommand(name, (node: PointNode) => this.tick(node, how));
    this.parts = [
      this.view,
      this.view.onDidChangeVisibility(() => this.showIfOld()),
      session.onDidChange(() => {
        this.isOld = true;
        return this.showIfOld();
      }),
      registerCommand("npulens.refreshGuide", () => this.refresh()),
      registerCommand("npulens.typeGuideCommand", typeCommand),
      registerCommand("npulens.goToGuidePlace", goToPlace),
      tick("npulens.tickGuidePoint", "done"),
      tick("npulens.skipGuidePoint", "skip"),
      tick("npulens.openGuidePoint", "open"),
    ];
  }

  dispose(): void {
    this.changed.dispose();
    this.parts.forEach((part) => {
      part.dispose();
    });
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const [first, ...others] = this.guides;
      return first !== undefined && others.length === 0
        ? phasesOf(first)
        : this.guides.map((guide) => ({ kind: "folder", guide }));
    }
    switch (node.kind) {
      case "folder":
        return phasesOf(node.guide);
      case "phase":
        return node.phase.points.map((point) => ({ kind: "point", guide: node.guide, point }));
      case "point":
        return [];
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "folder":
        return folderItem(node.guide);
      case "phase":
        return phaseItem(node);
      case "point":
        return pointItem(node);
    }
  }

  private async showIfOld(): Promise<void> {
    if (this.isOld && this.view.visible && this.session.has(GUIDE)) {
      await this.refresh();
    }
  }

  private async refresh(): Promise<void> {
    this.isOld = false;
    await vscode.window.withProgress({ location: { viewId: "npulens.guide" } }, async () => {
      const folders = vscode.workspace.workspaceFolders ?? [];
      const local = folders.filter(({ uri }) => uri.scheme === "file");
      const found = await Promise.all(local.map(({ uri }) => this.ask(uri)));
      this.guides = found.filter((guide) => guide !== undefined);
      this.changed.fire();
    });
  }

  private async tick({ guide, point }: PointNode, how: Tick): Promise<void> {
    const found = await this.ask(vscode.Uri.file(guide.root), { [how]: [point.id] });
    if (found !== undefined) {
      this.guides = this.guides.map((each) => (each.root === guide.root ? found : each));
      this.changed.fire();
    }
  }

  private async ask(folder: vscode.Uri, ...ticks: unknown[]): Promise<Guide | undefined> {
    try {
      return readGuide(await this.session.ask(GUIDE, folder.toString(), ...ticks));
    } catch (error) {
      void tellOfFailure(error, false);
      return undefined;
    }
  }
}

function phasesOf(guide: Guide): PhaseNode[] {
  return guide.phases.map((phase) => ({ kind: "phase", guide, phase }));
}

function folderItem({ root }: Guide): vscode.TreeItem {
  const item = new vscode.TreeItem(vscode.Uri.file(root), vscode.TreeItemCollapsibleState.Expanded);
  item.id = root;
  return item;
}

/** The phase with the next point is open. */
function phaseItem({ guide, phase }: PhaseNode): vscode.TreeItem {
  const isNext = phase.points.some(({ id }) => id === guide.next);
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(phase.title, isNext ? Expanded : Collapsed);
  item.id = `${guide.root}#${phase.id}`;
  item.description = `${closed(phase)}/${phase.points.length}`;
  return item;
}

function pointItem(node: PointNode): vscode.TreeItem {
  const { guide, point } = node;
  const isNext = point.id === guide.next;
  const item = new vscode.TreeItem(point.title);
  item.id = `${guide.root}#${point.id}`;
  item.description = shows(point);
  item.iconPath = isNext ? NEXT : ICONS[point.state];
  item.contextValue = contextOf(point);
  item.tooltip = tooltip(point);
  const onClick = clickOn(point);
  if (onClick !== undefined) {
    item.command = { ...onClick, arguments: [node] };
  }
  return item;
}

/** What is open is worked on; of what is closed, users want to see why. */
function clickOn({ state, command, place }: GuidePoint): vscode.Command | undefined {
  const { t } = vscode.l10n;
  if (state === "open" && command !== null) {
    return { command: "npulens.typeGuideCommand", title: t("Type the command in a terminal") };
  }
  return place === null
    ? undefined
    : { command: "npulens.goToGuidePlace", title: t("Go to what shows it") };
}

function tooltip({ text, command, read, state }: GuidePoint): vscode.MarkdownString {
  const content = new vscode.MarkdownString(text);
  if (state === "open" && command !== null) {
    content.appendCodeblock(command, "shellscript");
  }
  if (read.length > 0) {
    content.appendText(vscode.l10n.t("Read on: {0}", read.join(", ")));
  }
  return content;
}

/** Put the command of a point into a terminal; the user reads it and presses Enter. */
function typeCommand({ guide, point }: PointNode): void {
  if (point.command === null || !isOneLine(point.command)) {
    return;
  }
  const name = "NPU Lens";
  const there = vscode.window.terminals.find(
    (each) =>
      each.name === name &&
      each.exitStatus === undefined &&
      (each.creationOptions as vscode.TerminalOptions).cwd === guide.root,
  );
  const terminal = there ?? vscode.window.createTerminal({ name, cwd: guide.root });
  terminal.show();
  terminal.sendText(point.command, false);
}

async function goToPlace({ point }: PointNode): Promise<void> {
  if (point.place !== null) {
    const line = point.place.line - 1;
    const selection = new vscode.Range(line, 0, line, 0);
    await vscode.window.showTextDocument(vscode.Uri.file(point.place.path), { selection });
  }
}
