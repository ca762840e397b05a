// Runs a Python program in node's Pyodide: `node play_in_node.mjs PYODIDE FOLDER... < PROGRAM`. The folders become sys.path: /0, /1, ...
import fs from "node:fs";
import path from "node:path";

const [pyodide, ...folders] = process.argv.slice(2).map((folder) => path.resolve(folder));
try {
  const {loadPyodide} = await import(path.join(pyodide, "pyodide.mjs"));
  // Bytecode without columns is smaller. Tracebacks show them with the line of the source, which the page does not have.
  const env = {PYTHONNODEBUGRANGES: "1"};
  const python = await loadPyodide({indexURL: pyodide + path.sep, env, stdout: (line) => fs.writeSync(1, line + "\n"), stderr: () => {}});
  folders.forEach((folder, position) => {
    python.FS.mkdir(`/${position}`);
    python.FS.mount(python.FS.filesystems.NODEFS, {root: folder}, `/${position}`);
  });
  python.globals.set("folders", folders.map((_, position) => `/${position}`));
  python.runPython("import sys; sys.dont_write_bytecode = True; sys.path[:0] = [str(folder) for folder in folders]");
  python.runPython(fs.readFileSync(0, "utf8"));
} catch (error) {
  fs.writeSync(2, String(error.message).trim().split("\n").slice(-8).join("\n") + "\n");
  process.exitCode = 1;
}
process.exit();
