/** The server of this window: finds it, starts it, and starts it again when it has crashed. */

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { CrashHistory } from "./backoff";
import { launcherOf, readBundle } from "./bundle";
import { settingsForStart } from "./configuration";
import { candidates } from "./interpreter";
import { describe, explain, tellOfCrashes, tellOfProblem } from "./messages";
import { probesIn } from "./probe";
import type { Program } from "./reportRun";
import { selectedInterpreter } from "./pythonExtension";
import {
  chooseServer,
  isServer,
  launchVariables,
  type Problem,
  type ServerChoice,
} from "./serverChoice";

/** `waiting` for the next start after a crash. */
export type State = "starting" | "running" | "waiting" | "failed";

export class Session implements vscode.Disposable {
  state: State = "starting";
  server: ServerChoice | undefined;
  problem: Problem | undefined;
  /** The commands that the server has, none while it does not run. */
  private commands: readonly string[] = [];

  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly crashes = new CrashHistory();
  private client: LanguageClient | undefined;
  private timer: NodeJS.Timeout | undefined;
  private work: Promise<void> = Promise.resolve();
  private isDisposed = false;

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
  ) {}

  /** Whether the server runs and has a command. */
  has(command: string): boolean {
    return this.commands.includes(command);
  }

  /** How other commands of npulens are started, with what the server is started with. */
  program(): Program | undefined {
    if (this.server === undefined) {
      return undefined;
    }
    const { command, program } = this.server;
    const { cwd, env } = this.options(this.server);
    const own = { NPULENS_LANGUAGE: vscode.env.language, PYTHONUTF8: "1" };
    return { command, args: program, cwd, env: { ...env, ...own } };
  }

  /** Ask the running server, without what users see of its commands; `undefined` if it cannot. */
  async ask(command: string, ...args: unknown[]): Promise<unknown> {
    if (this.client === undefined || !this.has(command)) {
      return undefined;
    }
    const answer: unknown = await this.client.sendRequest("workspace/executeCommand", {
      command,
      arguments: args,
    });
    return answer;
  }

  /** Start the server, after the one that runs has ended; what went wrong before is forgotten. */
  restart(): Promise<void> {
    this.crashes.forget();
    return this.startSoon();
  }

  /** Start anew if another interpreter counts now. */
  async interpreterChanged(): Promise<void> {
    const { server, problem } = await this.choose();
    if (problem !== undefined || server?.command !== this.server?.command) {
      await this.restart();
    }
  }

  /** Stop the server for good; the editor waits for it when the extension is deactivated. */
  async stop(): Promise<void> {
    this.isDisposed = true;
    clearTimeout(this.timer);
    await this.work;
    await this.stopClient();
  }

  dispose(): void {
    this.changed.dispose();
    void this.stop();
  }

  private startSoon(): Promise<void> {
    clearTimeout(this.timer);
    this.work = this.work.then(() => this.start());
    return this.work;
  }

  private async start(): Promise<void> {
    await this.stopClient();
    if (this.isDisposed) {
      return;
    }
    this.become("starting");
    const { server, problem } = await this.choose();
    this.server = server;
    this.problem = problem;
    if (server === undefined) {
      this.become("failed");
      if (problem !== undefined) {
        this.log.error(explain(problem));
        void tellOfProblem(problem);
      }
      return;
    }
    this.log.info(describe(server));
    this.log.debug(`${server.command} ${server.args.join(" ")}`);
    await this.run(server);
  }

  private async choose(): Promise<{ server?: ServerChoice; problem?: Problem }> {
    const folder = this.context.extensionPath;
    const settings = settingsForStart();
    const bundle = readBundle(folder);
    const launcher = launcherOf(folder);
    const selected =
      settings.interpreter === "" && settings.path === ""
        ? await selectedInterpreter(vscode.workspace.workspaceFolders?.[0]?.uri)
        : undefined;
    const interpreters = candidates(settings.interpreter, selected, process.platform);
    const wishes = { ...settings, bundle, launcher };
    const found = await chooseServer(wishes, interpreters, probesIn(folder));
    return isServer(found) ? { server: found } : { problem: found };
  }

  private async run(server: ServerChoice): Promise<void> {
    let isLost = false;
    const lost = (): void => {
      if (!isLost && this.client === client) {
        isLost = true;
        this.crashed();
      }
    };
    // Loaded only now: nothing of it is needed for the activation of the extension.
    const { createClient } = await import("./client");
    const { command, args } = server;
    const options = this.options(server);
    const client = createClient({ command, args: [...args], options }, this.log, lost);
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.log.error(String(error));
      lost();
      return;
    }
    const capabilities = client.initializeResult?.capabilities;
    this.commands = capabilities?.executeCommandProvider?.commands ?? [];
    const version = client.initializeResult?.serverInfo?.version;
    this.server = { ...server, version: version ?? server.version };
    this.become("running");
  }

  private options(server: ServerChoice): { cwd: string; env: NodeJS.ProcessEnv } {
    const cache = vscode.Uri.joinPath(this.context.globalStorageUri, "pycache").fsPath;
    const env = { ...process.env, ...launchVariables(server, cache) };
    return { cwd: this.context.extensionPath, env };
  }

  private crashed(): void {
    const delay = this.crashes.crashed(Date.now());
    this.commands = [];
    if (delay === undefined) {
      this.become("failed");
      void tellOfCrashes();
      return;
    }
    this.log.warn(
      vscode.l10n.t("The server has ended. It is started again in {0} s.", delay / 1000),
    );
    this.become("waiting");
    this.timer = setTimeout(() => void this.startSoon(), delay);
  }

  private async stopClient(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.commands = [];
    try {
      await client?.dispose(2_000);
    } catch (error) {
      this.log.debug(String(error));
    }
  }

  private become(state: State): void {
    this.state = state;
    if (!this.isDisposed) {
      this.changed.fire();
    }
  }
}
