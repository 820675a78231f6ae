// Builds the console into dist/: one script, one style sheet and the page that names them. File names carry a digest of
// their contents, so that browsers may keep them for ever.
//
//   node build.mjs            the release form
//   node build.mjs --watch    again after each change; a debug build of the engine serves it at once
//   node build.mjs --types    only src/schema.ts, the types of the API
import { context, build } from "esbuild";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { typesOf } from "./types.mjs";

const api = JSON.parse(await readFile("../openapi/offshoot.json", "utf8"));
await writeFile("src/schema.ts", typesOf(api));
if (process.argv.includes("--types")) process.exit(0);

const watch = process.argv.includes("--watch");

/** Writes the page once its files are known, and removes those of earlier builds. */
const page = {
  name: "page",
  setup(build) {
    build.onEnd(async (result) => {
      if (result.errors.length > 0) return;
      const made = Object.keys(result.metafile.outputs).map((file) => basename(file));
      const named = (end) => made.find((file) => file.endsWith(end));
      const html = (await readFile("src/index.html", "utf8"))
        .replace("STYLE", `/console/${named(".css")}`)
        .replace("SCRIPT", `/console/${named(".js")}`)
        .replace("ICON", `/console/${named(".svg")}`);
      const keep = new Set([...made, ".gitignore"]);
      for (const file of await readdir("dist")) {
        if (!keep.has(file)) await rm(`dist/${file}`);
      }
      await writeFile("dist/index.html", html);
      const bytes = Object.values(result.metafile.outputs).reduce((sum, one) => sum + one.bytes, html.length);
      console.log(`console: ${made.length + 1} files, ${Math.ceil(bytes / 1000)} kB`);
    });
  },
};

const options = {
  entryPoints: ["src/main.tsx", "src/icon.svg"],
  bundle: true,
  minify: !watch,
  metafile: true,
  format: "esm",
  target: "es2021",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "copy" },
  entryNames: "[name]-[hash]",
  outdir: "dist",
  legalComments: "none",
  logLevel: "warning",
  plugins: [page],
};
if (watch) await (await context(options)).watch();
else await build(options);
