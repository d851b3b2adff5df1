/** Reads the settings of npulens from the editor. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  START_SETTINGS,
  projectSettings,
  serverSettings,
  startSettings,
  type StartSettings,
} from "./settings";

export const SECTION = "npulens";

/** The settings of the server for a folder or file. */
export function settingsForServer(scope?: vscode.Uri): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope ?? null);
  return serverSettings((key) => configuration.get(key));
}

/** The language that the user asks for, empty for none, and the settings that a report needs. */
export function settingsForReport(scope: vscode.Uri): {
  language: string;
  settings: Record<string, unknown>;
} {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope);
  return {
    language: configuration.get<string | null>("language", null) ?? "",
    settings: projectSettings((key) => configuration.get(key)),
  };
}

/** Whether hotspots are marked beside the lines of a file. */
export function hasHotspotMarks(scope: vscode.Uri): boolean {
  return vscode.workspace.getConfiguration(SECTION, scope).get("hotspotMarks", true);
}

/** How to start the server. */
export function settingsForStart(): StartSettings {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const configuration = vscode.workspace.getConfiguration(SECTION, folder ?? null);
  return startSettings((key) => configuration.get(key), {
    workspaceFolder: folder?.fsPath,
    userHome: homedir(),
    ...environmentVariables(),
  });
}

/** Whether the server has to be started anew. */
export function concernsStart(event: vscode.ConfigurationChangeEvent): boolean {
  return START_SETTINGS.some((key) => event.affectsConfiguration(`${SECTION}.${key}`));
}

function environmentVariables(): Record<string, string | undefined> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.map(([name, value]) => [`env:${name}`, value]));
}
