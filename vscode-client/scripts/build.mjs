// Bundles the extension into dist/extension.js, or with --tests the tests into build/test/.
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
        entryPoints: ["src/extension.ts"],
        outfile: "dist/extension.js",
        external: ["vscode"],
        minify: true,
        legalComments: "eof",
      },
);
