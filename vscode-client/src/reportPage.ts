/** The page of `npulens report` made fit for a webview, without anything of the editor. */

/** What a webview adds to the page. */
export interface Additions {
  /** A style sheet, which hands the colours of the editor to the page. */
  readonly style: string;
  /** A script, which tells the editor what is clicked. */
  readonly script: string;
}

/** A place in a file that a link of the page leads to. */
export interface Place {
  readonly path: string;
  /** From 1. */
  readonly line: number;
}

const META = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/;
const DIGEST = "'sha256-[A-Za-z0-9+/]{43}='";
const POLICY = new RegExp(
  `^default-src 'none'; script-src (${DIGEST}); style-src (${DIGEST}); base-uri 'none'; form-action 'none'$`,
);
const LINK = /^vscode:\/\/file(\/[^?#]+):(\d+)$/;

/**
 * The page with what a webview adds to it. Its policy allows the one script and the one style sheet
 * of the page by their digests, and of anything else only what has the nonce.
 *
 * @param page As `npulens report` writes it.
 * @param nonce Letters and digits that nobody can guess, new for each page.
 * @throws Error The page has not the policy that is expected, so that it cannot be trusted.
 */
export function forWebview(page: string, nonce: string, additions: Additions): string {
  const [meta, escaped = ""] = META.exec(page) ?? [];
  const [, script, style] = POLICY.exec(escaped.replaceAll("&#39;", "'")) ?? [];
  if (meta === undefined || script === undefined || style === undefined) {
    throw new Error("The page of the report has no policy that is known here.");
  }
  const policy = [
    "default-src 'none'",
    `script-src ${script} 'nonce-${nonce}'`,
    `style-src ${style} 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  // Replacements are functions, as what stands after a dollar sign is not meant for `replace`.
  return page
    .replace(meta, () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace("</head>", () => `<style nonce="${nonce}">${additions.style}</style></head>`)
    .replace(
      /<\/body>\s*<\/html>\s*$/,
      () => `<script nonce="${nonce}">${additions.script}</script></body></html>`,
    );
}

/** Where a link of the page leads, `undefined` if not to a place in a file. */
export function placeOf(link: unknown): Place | undefined {
  const [, path, line] = typeof link === "string" ? (LINK.exec(link) ?? []) : [];
  if (path === undefined) {
    return undefined;
  }
  try {
    return { path: decodeURIComponent(path), line: Number(line) };
  } catch {
    return undefined; // the name of the file is no text
  }
}
