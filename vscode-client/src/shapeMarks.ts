/** Marks in the margin and the overview ruler where shapes depend on data or the host waits. */

import * as vscode from "vscode";
import { SECTION, hasHotspotMarks } from "./configuration";
import type { FindingStore } from "./findingStore";
import { RANK_SHAPES } from "./serverCommands";
import type { Session } from "./session";
import { toRange } from "./shapePick";
import { isAboutShapes, marksOf, readShapes, type MarkKind, type RankedShape } from "./shapes";

const KINDS: readonly MarkKind[] = ["dynamicShape", "hostSync"];
const NONE: Record<MarkKind, RankedShape[]> = { dynamicShape: [], hostSync: [] };

export class ShapeMarks implements vscode.Disposable {
  private readonly types: Record<MarkKind, vscode.TextEditorDecorationType>;
  private readonly parts: vscode.Disposable[];

  constructor(
    context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly store: FindingStore,
  ) {
    const icon = (name: string): vscode.Uri =>
      vscode.Uri.joinPath(context.extensionUri, "resources", "marks", `${name}.svg`);
    const typeOf = (kind: MarkKind): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        overviewRulerColor: new vscode.ThemeColor(`${SECTION}.${kind}`),
        overviewRulerLane: vscode.OverviewRulerLane.Center,
        gutterIconSize: "contain",
        light: { gutterIconPath: icon(`${kind}-light`) },
        dark: { gutterIconPath: icon(`${kind}-dark`) },
      });
    this.types = { dynamicShape: typeOf("dynamicShape"), hostSync: typeOf("hostSync") };
    const update = (): void => {
      vscode.window.visibleTextEditors.forEach((editor) => void this.update(editor));
    };
    this.parts = [
      ...Object.values(this.types),
      // The findings of a text come when it has been analysed; then the places are known, too.
      store.onDidChange(update),
      session.onDidChange(update),
      vscode.window.onDidChangeVisibleTextEditors(update),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.hotspotMarks`)) {
          update();
        }
      }),
    ];
  }

  dispose(): void {
    this.parts.forEach((part) => {
      part.dispose();
    });
  }

  private async update(editor: vscode.TextEditor): Promise<void> {
    const { uri, version } = editor.document;
    const told = this.store.of(uri).filter(({ code }) => isAboutShapes(code));
    let marks = NONE;
    if (told.length > 0 && hasHotspotMarks(uri)) {
      const key = uri.toString();
      try {
        const shapes = readShapes(await this.session.ask(RANK_SHAPES, key, { quiet: true }));
        marks = marksOf(shapes, key, told);
      } catch (error) {
        this.session.log.debug(String(error)); // the text is not open there any more
      }
    }
    if (editor.document.version === version) {
      for (const kind of KINDS) {
        editor.setDecorations(this.types[kind], marks[kind].map(toRange));
      }
    }
  }
}
