// Runs Python in a Web Worker: the page sends {id, call}, the worker answers {id, answer}. Both are what demo.play.entry documents.
"use strict";

const TYPES = {"pyodide.asm.mjs": "text/javascript", "pyodide.asm.wasm": "application/wasm"};
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

// Pyodide asks for its files by fetch. They are compressed, and counted.
self.fetch = async (address, options) => {
  const url = new URL(typeof address === "string" ? address : address.url ?? address, runtime);
  if (!url.href.startsWith(runtime.href)) return fetched(address, options);
  const packed = await opened(new URL(`${url.href}.bin`));
  const stream = counted(packed.body).pipeThrough(new DecompressionStream("gzip"));
  const type = TYPES[url.pathname.split("/").pop()];
  return new Response(stream, {headers: type ? {"Content-Type": type} : {}});
};

const file = (name) => self.fetch(new URL(name, runtime));

// An import is no fetch: what is compressed is imported from a blob.
async function imported(name) {
  const address = URL.createObjectURL(await (await file(name)).blob());
  return import(address).finally(() => URL.revokeObjectURL(address));
}

async function loaded() {
  const [{loadPyodide}, module] = await Promise.all([import(new URL("pyodide.mjs", runtime).href), imported("pyodide.asm.mjs")]);
  return loadPyodide({indexURL: runtime.href, createPyodideModule: module.default});
}

async function start() {
  const archive = file("modules.zip").then((answer) => answer.arrayBuffer());
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
