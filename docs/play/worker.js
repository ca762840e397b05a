// Runs Python in a Web Worker: the page sends {id, call}, the worker answers {id, answer}. Both are what demo.play.entry documents.
"use strict";

const COMPRESSED = "pyodide.asm.wasm";
const SITE = "/play-modules";
const runtime = new URL("runtime/", self.location.href);
const fetched = self.fetch.bind(self);

let loadedBytes = 0;
let call = null;

function counted(body) {
  return body.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      loadedBytes += chunk.byteLength;
      self.postMessage({progress: {bytes: loadedBytes}});
      controller.enqueue(chunk);
    },
  }));
}

async function opened(url) {
  const answer = await fetched(url);
  if (!answer.ok) throw new Error(`${url.pathname.split("/").pop()} cannot be loaded: ${answer.status}`);
  return answer;
}

// Pyodide asks for its files by fetch. One is compressed, and all are counted.
self.fetch = async (address, options) => {
  const url = new URL(typeof address === "string" ? address : address.url ?? address, runtime);
  if (!url.href.startsWith(runtime.href)) return fetched(address, options);
  if (!url.pathname.endsWith(COMPRESSED)) {
    const answer = await opened(url);
    return new Response(counted(answer.body), {headers: answer.headers});
  }
  const packed = await opened(new URL(`${COMPRESSED}.bin`, runtime));
  const stream = counted(packed.body).pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream, {headers: {"Content-Type": "application/wasm"}});
};

async function loaded() {
  const {loadPyodide} = await import(new URL("pyodide.mjs", runtime).href);
  return loadPyodide({indexURL: runtime.href, lockFileURL: new URL("pyodide-lock.json", runtime).href});
}

async function start() {
  const archive = self.fetch(new URL("modules.zip", runtime).href).then((answer) => answer.arrayBuffer());
  const [modules, python] = await Promise.all([archive, loaded()]);
  self.postMessage({progress: {stage: "python"}});
  python.unpackArchive(modules, "zip", {extractDir: SITE});
  self.postMessage({progress: {stage: "broker"}});
  python.runPython(`import sys; sys.path.insert(0, "${SITE}"); from demo.play import entry`);
  // Called from runPython alone: the event loop of the page is then not running for Python.
  call = (text) => {
    python.globals.set("text_of_call", text);
    return python.runPython("entry.call(text_of_call)");
  };
}

self.onmessage = async ({data}) => {
  try {
    if (call === null) await start();
    const answer = JSON.parse(call(JSON.stringify(data.call)));
    self.postMessage({id: data.id, answer});
  } catch (error) {
    // What ends here is no answer of Python's: the worker cannot go on.
    self.postMessage({died: String(error.message || error).trim().split("\n").pop()});
    self.close();
  }
};
