/** The server that is packed into the extension, if one is. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What `bundled/bundle.json` says. */
export interface Bundle {
  /** The version of npulens. */
  readonly version: string;
  /** The platform of its compiled packages, such as `linux-x64`; `universal` if it has none. */
  readonly platform: string;
  /** The Pythons that it has packages for, such as `cp311`; if not told, all that are new enough. */
  readonly pythons?: readonly string[];
}

/** The bundle of the extension, if it has one. */
export function readBundle(extensionPath: string): Bundle | undefined {
  try {
    return JSON.parse(
      readFileSync(join(extensionPath, "bundled", "bundle.json"), "utf8"),
    ) as Bundle;
  } catch {
    return undefined;
  }
}

/** The script that starts the server, the bundled one or that of the environment. */
export function launcherOf(extensionPath: string): string {
  return join(extensionPath, "launcher", "npulens_server.py");
}
