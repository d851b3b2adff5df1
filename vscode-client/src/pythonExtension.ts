/** The environment that the user has chosen in the Python extension, if that is installed. */

import * as vscode from "vscode";

export const PYTHON_EXTENSION = "ms-python.python";

/** The part of its interface that is needed here. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** The interpreter that is chosen, `undefined` if there is none to be had. */
export async function selectedInterpreter(
  resource: vscode.Uri | undefined,
): Promise<string | undefined> {
  const api = await pythonApi();
  if (api === undefined) {
    return undefined;
  }
  const { environments } = api;
  const chosen = environments.getActiveEnvironmentPath(resource);
  const environment = await environments.resolveEnvironment(chosen);
  return environment?.executable.uri?.fsPath;
}

/** Calls when another environment is chosen. */
export async function onDidSelectInterpreter(listener: () => void): Promise<vscode.Disposable> {
  const api = await pythonApi();
  return (
    api?.environments.onDidChangeActiveEnvironmentPath(listener) ??
    new vscode.Disposable(() => undefined)
  );
}

/** Its interface; in code that is not trusted no environment is asked for. */
async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>(PYTHON_EXTENSION);
  if (extension === undefined || !vscode.workspace.isTrusted) {
    return undefined;
  }
  try {
    return await extension.activate();
  } catch {
    return undefined;
  }
}
