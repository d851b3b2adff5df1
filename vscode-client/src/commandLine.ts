/** Arguments as people type them behind the name of a script. */

/**
 * The single arguments; quotes keep spaces, and nothing else has a meaning.
 *
 * @returns `undefined` if a quote is not closed.
 */
export function splitArguments(line: string): string[] | undefined {
  const found: string[] = [];
  let rest = line.trim();
  while (rest !== "") {
    const [all, word] = /^((?:[^\s"']|"[^"]*"|'[^']*')+)\s*/.exec(rest) ?? [];
    if (all === undefined || word === undefined) {
      return undefined;
    }
    found.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, a?: string, b?: string) => a ?? b ?? ""));
    rest = rest.slice(all.length);
  }
  return found;
}
