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
  /** The script that starts the server. */
  readonly launcher: string;
}

/** The bundle of the extension, if it has one. */
export function readBundle(extensionPath: string): Bundle | undefined {
  const folder = join(extensionPath, "bundled");
  let text: string;
  try {
    text = readFileSync(join(folder, "bundle.json"), "utf8");
  } catch {
    return undefined;
  }
  const told = JSON.parse(text) as Omit<Bundle, "launcher">;
  return { ...told, launcher: join(folder, "npulens_server.py") };
}
