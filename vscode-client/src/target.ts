/** Chooses what the code is migrated to: a PyTorch release, and the style of migrated code. */

import * as vscode from "vscode";
import { SECTION } from "./configuration";

const RELEASES = ["2.13", "2.12", "2.11", "2.10", "2.9", "2.8", "2.7", "2.6"];

interface Choice extends vscode.QuickPickItem {
  /** `null` to follow the project. */
  readonly value: string | null;
}

/** Ask for both, and keep them in the settings of the workspace. */
export async function selectTarget(): Promise<void> {
  const { t } = vscode.l10n;
  const folder = vscode.workspace.workspaceFolders?.[0];
  const configuration = vscode.workspace.getConfiguration(SECTION, folder?.uri ?? null);
  const version = await pick(
    t("Target (1/2): PyTorch release"),
    [
      { label: t("As the project requires"), value: null },
      ...RELEASES.map((value) => ({ label: `PyTorch ${value}`, value })),
    ],
    configuration.get<string | null>("torchVersion", null),
  );
  if (version === undefined) {
    return;
  }
  const style = await pick(
    t("Target (2/2): style of migrated code"),
    [
      { label: t("As the project says"), value: null },
      { label: "npu", description: t("torch.npu, with import torch_npu"), value: "npu" },
      {
        label: "device-agnostic",
        description: t("torch.accelerator, for any device"),
        value: "device-agnostic",
      },
      {
        label: "runtime-shim",
        description: t("keeps torch.cuda and imports transfer_to_npu"),
        value: "runtime-shim",
      },
    ],
    configuration.get<string | null>("migrationStyle", null),
  );
  if (style === undefined) {
    return;
  }
  const place =
    folder === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await configuration.update("torchVersion", version.value ?? undefined, place);
  await configuration.update("migrationStyle", style.value ?? undefined, place);
}

async function pick(
  title: string,
  choices: Choice[],
  current: string | null,
): Promise<Choice | undefined> {
  const chosen = vscode.l10n.t("now chosen");
  const marked = choices.map((choice) =>
    choice.value === current
      ? { ...choice, description: [choice.description, chosen].filter(Boolean).join(" · ") }
      : choice,
  );
  const placeHolder = vscode.l10n.t("npulens.toml and pyproject.toml come before this choice");
  return vscode.window.showQuickPick(marked, { title, placeHolder, matchOnDescription: true });
}
