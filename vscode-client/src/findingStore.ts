/** The findings of npulens that the editor knows, kept up to date file by file. */

import * as vscode from "vscode";
import type { Finding, Severity } from "./findings";

const SOURCE = "npulens";
const SETTLE = 150;
const SEVERITIES: Record<vscode.DiagnosticSeverity, Severity> = {
  [vscode.DiagnosticSeverity.Error]: "error",
  [vscode.DiagnosticSeverity.Warning]: "warning",
  [vscode.DiagnosticSeverity.Information]: "information",
  [vscode.DiagnosticSeverity.Hint]: "hint",
};

export class FindingStore implements vscode.Disposable {
  private readonly byUri = new Map<string, Finding[]>();
  private readonly changed = new vscode.EventEmitter<void>();
  /** Fires once for changes in quick succession. */
  readonly onDidChange = this.changed.event;
  private readonly listener: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  constructor() {
    this.listener = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      uris.forEach((uri) => {
        this.take(uri, vscode.languages.getDiagnostics(uri));
      });
    });
    this.readAgain();
  }

  of(uri: vscode.Uri): readonly Finding[] {
    return this.byUri.get(uri.toString()) ?? [];
  }

  all(): Finding[] {
    return [...this.byUri.values()].flat();
  }

  readAgain(): void {
    this.byUri.clear();
    for (const [uri, diagnostics] of vscode.languages.getDiagnostics()) {
      this.take(uri, diagnostics);
    }
    this.tellSoon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listener.dispose();
    this.changed.dispose();
  }

  private take(uri: vscode.Uri, diagnostics: readonly vscode.Diagnostic[]): void {
    const key = uri.toString();
    const path = vscode.workspace.asRelativePath(uri);
    const ours = diagnostics.filter((each) => each.source === SOURCE);
    const isNews = ours.length > 0 || this.byUri.has(key);
    if (ours.length === 0) {
      this.byUri.delete(key);
    } else {
      this.byUri.set(
        key,
        ours.map((each) => toFinding(key, path, each)),
      );
    }
    if (isNews) {
      this.tellSoon();
    }
  }

  private tellSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.changed.fire();
    }, SETTLE);
  }
}

function toFinding(uri: string, path: string, diagnostic: vscode.Diagnostic): Finding {
  const { code, range, message, severity } = diagnostic;
  const data = serverData(diagnostic);
  return {
    uri,
    path,
    line: range.start.line,
    column: range.start.character,
    severity: SEVERITIES[severity],
    code: String(typeof code === "object" ? code.value : (code ?? "")),
    rule: typeof data["rule"] === "string" ? data["rule"] : "",
    message,
    isProblem: data["isProblem"] === true,
    isSafe: data["fix"] === "safe",
  };
}

/** What the server has attached to a diagnostic; the language client keeps it there. */
function serverData(diagnostic: vscode.Diagnostic): Record<string, unknown> {
  const { data } = diagnostic as { data?: unknown };
  return typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
}
