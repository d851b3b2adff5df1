/** The list of ranked dynamic shapes: each is shown as the choice moves over it. */

import * as vscode from "vscode";
import { kindOf, readShapes, type MarkKind, type RankedShape } from "./shapes";

/** Asks the server to rank; the arguments are those of its command. */
export type Ask = (args: unknown[]) => Promise<unknown>;

interface Choice extends vscode.QuickPickItem {
  readonly shape: RankedShape;
}

const ICONS: Record<MarkKind, string> = { dynamicShape: "symbol-array", hostSync: "watch" };

/** The list for a file or, without one, for the workspace. */
export async function pickShape(uri: string | undefined, ask: Ask): Promise<void> {
  const { t } = vscode.l10n;
  const pick = vscode.window.createQuickPick<Choice>();
  const workspace = {
    iconPath: new vscode.ThemeIcon("folder-opened"),
    tooltip: t("In the whole workspace"),
  };
  const before = vscode.window.activeTextEditor;
  const selection = before?.selection;
  let isOpen = true;
  let isChosen = false;
  let shown: Promise<unknown> = Promise.resolve();

  /** Shows one place after the other, so that what is wanted last is what stays. */
  const showNext = (turn: () => Thenable<unknown> | undefined): void => {
    shown = shown.then(turn, turn);
  };

  const load = async (scope: string | undefined): Promise<void> => {
    pick.title = scope === undefined ? t("Dynamic shapes in the workspace") : titleOf(scope);
    pick.buttons = scope === undefined ? [] : [workspace];
    pick.busy = true;
    const options = { quiet: true };
    try {
      const shapes = readShapes(await ask(scope === undefined ? [options] : [scope, options]));
      pick.items = shapes.map(choiceOf);
      pick.placeholder =
        shapes.length === 0
          ? t("No shape depends on data, and the host does not wait")
          : t("{0} places, the worst first; type to filter", shapes.length);
    } catch (error) {
      pick.hide();
      void vscode.window.showInformationMessage(String(error));
    } finally {
      pick.busy = false;
    }
  };

  pick.ignoreFocusOut = true; // a place that is shown may take the focus
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  pick.onDidTriggerButton(() => void load(undefined));
  pick.onDidChangeActive(([choice]) => {
    if (choice !== undefined) {
      showNext(() => (isOpen ? show(choice.shape, true) : undefined));
    }
  });
  pick.onDidAccept(() => {
    const [choice] = pick.activeItems;
    if (choice !== undefined) {
      isChosen = true;
      pick.hide();
      showNext(() => show(choice.shape, false));
    }
  });
  pick.onDidHide(() => {
    isOpen = false;
    pick.dispose();
    if (!isChosen && before !== undefined && selection !== undefined) {
      showNext(() => vscode.window.showTextDocument(before.document, { selection }));
    }
  });
  pick.show();
  await load(uri);
}

/** A range of the protocol as one of the editor. */
export function toRange({ range: { start, end } }: RankedShape): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

function titleOf(uri: string): string {
  const path = vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
  return vscode.l10n.t("Dynamic shapes in {0}", path);
}

function choiceOf(shape: RankedShape): Choice {
  const path = vscode.workspace.asRelativePath(vscode.Uri.parse(shape.uri));
  const { t } = vscode.l10n;
  const where = {
    training: t("in the training step"),
    evaluation: t("outside of training"),
    host: t("on the host"),
  };
  const parts = [
    shape.function,
    t("score {0}", shape.score),
    ...(shape.reached === "unknown" ? [] : [where[shape.reached]]),
  ];
  return {
    shape,
    label: `$(${ICONS[kindOf(shape)]}) ${path}:${shape.range.start.line + 1}`,
    description: parts.join(" · "),
    detail: `${shape.code} ${shape.message.replaceAll("`", "")}`,
  };
}

async function show(shape: RankedShape, isPreview: boolean): Promise<void> {
  const options = { selection: toRange(shape), preserveFocus: isPreview, preview: true };
  await vscode.window.showTextDocument(vscode.Uri.parse(shape.uri), options);
}
