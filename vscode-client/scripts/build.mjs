// Bundles the extension into dist/, or with --tests the tests into build/test/. The client of the
// language server, most of the code, is a file of its own: it is read after the activation.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const tests = process.argv.includes("--tests");
const common = {
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  logLevel: "warning",
};

const clientApart = {
  name: "client-apart",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/client$/ }, ({ importer }) =>
      importer.endsWith("session.ts") ? { path: "./client.js", external: true } : undefined,
    );
  },
};

await build(
  tests
    ? {
        ...common,
        entryPoints: readdirSync("test")
          .filter((name) => name.endsWith(".test.ts"))
          .map((name) => `test/${name}`),
        outdir: "build/test",
        sourcemap: "inline",
      }
    : {
        ...common,
        entryPoints: ["src/extension.ts", "src/client.ts"],
        outdir: "dist",
        plugins: [clientApart],
        external: ["vscode"],
        minify: true,
        legalComments: "eof",
      },
);
