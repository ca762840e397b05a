// The page of the broker: it sends buttons to worker.js, and draws the state that comes back. Its address is seed and buttons.
"use strict";

(() => {
  const language = document.documentElement.lang;
  const words = WORDS[language];
  const SILENCE_S = 30;
  const COMMAND = "make site\n.venv/bin/python -m http.server --bind 127.0.0.1 --directory build/site 8000";
  const TABLES = ["orders", "credits", "balances", "inbox", "pending", "log", "queues"];
  const byId = (id) => document.getElementById(id);

  // Small tools

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") made.addEventListener("click", value);
      else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  function shown(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "boolean") return value ? words.yes : words.no;
    if (Array.isArray(value)) return value.join(", ");
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  function copyButton(label, text) {
    const button = element("button", {type: "button", class: "quiet", onclick: async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = words.copied;
      setTimeout(() => { button.textContent = label; }, 2000);
    }}, label);
    return button;
  }

  // The address: seed, buttons and, beside them, the round that is shown

  function address() {
    const parts = new URLSearchParams(location.hash.replace(/^#/, "").replaceAll("+", "%2B"));
    const seed = Number.parseInt(parts.get("seed") ?? "7", 10);
    const pressed = (parts.get("do") ?? "").split(",").filter(Boolean);
    return {seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : 7, words: pressed, round: parts.get("round"), replayed: parts.get("replay")};
  }

  const hashOf = (seed, pressed) => `#seed=${seed}${pressed.length ? `&do=${pressed.join(",")}` : ""}`;

  const hashOfShop = () => hashOf(session.state.seed, session.state.words) + (session.round ? `&round=${session.round}` : "");

  function keepAddress() {
    const replayed = session.replayed && `#replay=${session.replayed}`;
    history.replaceState(null, "", replayed ?? hashOfShop());
    byId("to-shop").hash = hashOfShop();
    const other = document.querySelector("a.language");
    other.hash = location.hash;
  }

  // Python reads the words of an address, and writes those of the state.

  const playOf = (word) => ({do: "play", words: [word]});

  // The worker

  const session = {round: null, replayed: null, state: null, rounds: [], record: null};
  let worker = null;
  let waiting = new Map();
  let calls = 0;
  let queue = Promise.resolve();

  function ask(call) {
    return new Promise((resolve, reject) => {
      const id = ++calls;
      const silence = setTimeout(() => trouble(words.silent(SILENCE_S)), SILENCE_S * 1000);
      waiting.set(id, {resolve, reject, silence});
      worker.postMessage({id, call});
    });
  }

  async function result(call) {
    const answer = await ask(call);
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.result;
  }

  function createWorker() {
    worker?.terminate();
    waiting.forEach(({silence}) => clearTimeout(silence));
    waiting = new Map();
    worker = new Worker("worker.js", {type: "module"});
    const mine = worker;
    worker.onmessage = ({data}) => { if (worker === mine) received(data); };
    worker.onerror = (event) => { event.preventDefault(); if (worker === mine) died(event.message || "worker.js"); };
    worker.onmessageerror = () => { if (worker === mine) died("message"); };
  }

  function received(data) {
    if (data.progress) return progressed(data.progress);
    if (data.died !== undefined) return died(data.died);
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    clearTimeout(asked?.silence);
    return asked?.resolve(data.answer);
  }

  function died(why) {
    waiting.forEach(({silence, reject}) => { clearTimeout(silence); reject(new Stopped()); });
    waiting = new Map();
    worker.terminate();
    worker = null;
    byId("progress").hidden = true;
    byId("start").disabled = true;
    byId("play").inert = true;
    trouble(words.died(why));
  }

  class Stopped extends Error {}

  function trouble(text) {
    byId("trouble").replaceChildren(
      element("p", {}, text),
      element("p", {}, element("button", {type: "button", id: "again", onclick: () => begin()}, words.startAgain)),
    );
    byId("trouble").hidden = false;
  }

  // Start

  let loadBytes = 0;

  function progressed({bytes, stage}) {
    const bar = document.querySelector("#progress progress");
    if (bytes !== undefined) {
      bar.value = Math.min(bytes / loadBytes, 1);
      byId("stage").textContent = words.stages.load(Math.round(bar.value * 100));
    } else {
      bar.removeAttribute("value");
      byId("stage").textContent = words.stages[stage];
    }
  }

  async function offer() {
    if (location.protocol === "file:") {
      byId("size").textContent = "";
      byId("begin").append(element("p", {class: "trouble"}, words.fromFile), element("pre", {}, COMMAND));
      return;
    }
    const answer = await fetch("runtime/manifest.json").catch(() => null);
    if (!answer?.ok) {
      byId("begin").append(element("p", {class: "trouble"}, words.notBuilt));
      return;
    }
    const {bytes, files} = await answer.json();
    // Modules are imported: nothing counts them while they load.
    loadBytes = Object.entries(files).reduce((sum, [name, size]) => (name.endsWith(".mjs") ? sum : sum + size), 0);
    byId("size").textContent = words.size((bytes / 1e6).toFixed(1));
    byId("start").disabled = false;
    byId("start").addEventListener("click", () => begin());
  }

  function begin() {
    queue = begun().catch((error) => { if (!(error instanceof Stopped)) trouble(error.message); });
    return queue;
  }

  async function begun() {
    byId("start").disabled = true;
    byId("trouble").hidden = true;
    byId("progress").hidden = false;
    byId("play").inert = false;
    createWorker();
    const isFirst = byId("play").hidden;
    session.rounds = await result({do: "rounds", language});
    const wanted = address();
    await replay(wanted);
    await showReplayed(wanted.replayed);
    byId("begin").hidden = true;
    if (isFirst) byId("main").focus({preventScroll: true});
  }

  async function replay({seed, words: wanted, round}) {
    Object.assign(session, {round: session.rounds.some(({name}) => name === round) ? round : null, record: null});
    await result({do: "start", seed});
    session.state = await result({do: "state", language});
    if (byId("play").hidden) frame();
    for (const [position, word] of wanted.entries()) {
      byId("stage").textContent = words.stages.replay(position + 1, wanted.length);
      await result(playOf(word)).catch((error) => { throw error instanceof Stopped ? error : new Error(`${word}: ${error.message}`); });
    }
    if (wanted.length) session.state = await result({do: "state", language});
    keepAddress();
    draw();
  }

  // The other view: Apache's check() beside this broker's. No name means the shop.

  async function showReplayed(name) {
    const found = name === null ? null : await result({do: "replay", history: name, language});
    session.replayed = found?.history ?? null;
    byId("play").classList.toggle("is-replayed", found !== null);
    for (const [id, isCurrent] of [["to-shop", found === null], ["to-replayed", found !== null]]) {
      if (isCurrent) byId(id).setAttribute("aria-current", "page");
      else byId(id).removeAttribute("aria-current");
    }
    byId("replayed").replaceChildren(...(found ? [element("h2", {tabindex: "-1"}, words.replayed), ...harmless(found.html).childNodes] : []));
    keepAddress();
    byId("replayed").querySelector("h2")?.focus({preventScroll: true});
  }

  // One press at a time, in the order of the clicks

  function press(pressing, label) {
    queue = queue.then(async () => {
      const began = performance.now();
      byId("play").setAttribute("aria-busy", "true");
      try {
        for (const call of pressing) await result(call);
        byId("trouble").hidden = true;
        byId("status").textContent = words.done(label, Math.round(performance.now() - began));
      } catch (error) {
        if (error instanceof Stopped) return;
        byId("status").textContent = error.message;
      }
      session.state = await result({do: "state", language});
      session.record = null;
      keepAddress();
      draw();
    }).catch(() => undefined).finally(() => byId("play").removeAttribute("aria-busy"));
    return queue;
  }

  // The frame, drawn once

  function frame() {
    const groups = Map.groupBy(session.state.buttons, ({group}) => group);
    const actions = [...groups].map(([group, list]) => element("fieldset", {class: "group"}, element("legend", {}, words.groups[group]), ...list.map(buttonRow)));
    const panel = (name, ...content) =>
      element("section", {class: "panel", id: `panel-${name}`, "aria-labelledby": `title-${name}`}, element("h2", {id: `title-${name}`}, words.panels[name]), ...content);
    byId("play").replaceChildren(
      element("nav", {"aria-label": words.views}, element("ul", {},
        element("li", {}, element("a", {id: "to-shop", href: hashOf(session.state.seed, [])}, words.shop)),
        element("li", {}, element("a", {id: "to-replayed", href: "#replay="}, words.replayed)))),
      element("section", {id: "replayed", "aria-labelledby": "to-replayed"}),
      element("div", {class: "summary"},
        element("p", {id: "clock", class: "faint"}),
        panel("verdict", element("div", {id: "verdict", "aria-live": "polite"})),
        element("p", {id: "status", class: "faint", role: "status"}),
      ),
      element("div", {class: "left"},
        element("details", {id: "rounds", open: session.round !== null}, element("summary", {}, words.rounds(session.rounds.length)), element("ol", {})),
        element("div", {id: "round"}),
        element("h2", {}, words.actions), ...actions,
        element("p", {}, element("button", {type: "button", class: "quiet", id: "fresh", onclick: () => fresh()}, words.fresh)),
      ),
      element("div", {class: "right"},
        panel("diagram", element("div", {id: "diagram"})),
        element("div", {class: "beside"}, panel("orders", element("div", {id: "orders"})), panel("credits", element("div", {id: "credits"}), element("div", {id: "balances"}))),
        element("div", {class: "beside"}, panel("inbox", element("div", {id: "inbox"})), panel("pending", element("div", {id: "pending"}))),
        panel("events", element("div", {id: "events"})),
        panel("log", element("div", {id: "log"}), element("div", {id: "record"})),
        panel("queues", element("div", {id: "queues"})),
        panel("link", element("div", {id: "link"}), element("div", {id: "test"})),
      ),
    );
    byId("play").hidden = false;
  }

  function buttonRow(button) {
    const fields = Object.entries(button.arguments).map(([name, value]) =>
      element("label", {}, `${words.columns[name] ?? (name === "amount" ? words.columns.total_cents : name)} `,
        element("input", {name, value, "data-of": button.name, size: "8", ...(typeof value === "number" ? {type: "number", min: "1"} : {maxlength: "40"})})));
    const act = element("button", {type: "button", "data-button": button.name, onclick: () => {
      const current = session.state.buttons.find(({name}) => name === button.name);
      if (!current?.is_enabled) return;
      const fields = document.querySelectorAll(`input[data-of="${button.name}"]`);
      const given = Object.fromEntries([...fields].map(({name, type, value}) => [name, type === "number" ? Number(value) : value]));
      press([{do: "press", button: button.name, arguments: given}], current.label);
    }});
    return element("div", {class: "action"}, act, ...fields);
  }

  function fresh() {
    queue = queue.then(() => replay({seed: session.state.seed, words: [], round: session.round})).catch(() => undefined);
  }

  // Drawing

  function draw() {
    const {state} = session;
    for (const button of state.buttons) drawButton(button);
    byId("clock").textContent = [words.clock(state.now), state.is_running ? words.running : words.stopped].join(" · ");
    drawVerdict(state.verdict);
    drawDiagram(state.diagram);
    drawEvents(state.events);
    for (const name of TABLES) byId(name).replaceChildren(table(name, state[name]));
    drawRecord();
    drawLink();
    drawRounds();
    byId("trouble").hidden = true;
  }

  function drawButton(button) {
    const drawn = document.querySelector(`button[data-button="${button.name}"]`);
    if (!drawn) return;
    drawn.textContent = button.label + (button.is_on ? ` (${words.on})` : "");
    drawn.classList.toggle("is-on", Boolean(button.is_on));
    // Not "disabled": the button that was pressed keeps the keyboard's focus.
    if (button.is_enabled) drawn.removeAttribute("aria-disabled");
    else drawn.setAttribute("aria-disabled", "true");
  }

  function drawVerdict(verdict) {
    const problems = verdict.orders.map((one) => element("li", {}, element("span", {class: "id"}, one.order_id), ` ${one.problem}`));
    byId("verdict").replaceChildren(element("div", {class: verdict.is_consistent ? "well" : "trouble"},
      element("p", {}, `${verdict.is_consistent ? "✓" : "✗"} ${verdict.text}`), problems.length ? element("ul", {}, ...problems) : null));
  }

  const HARMLESS = new Set(["svg", "g", "line", "rect", "text", "tspan", "path", "title", "circle", "polyline", "div", "p", "h2", "a",
    "strong", "table", "thead", "tbody", "tr", "th", "td"]);

  function harmless(markup) {
    const {body} = new DOMParser().parseFromString(markup || "", "text/html");
    for (const part of body.querySelectorAll("*")) {
      if (!HARMLESS.has(part.localName)) part.remove();
      else for (const {name, value} of [...part.attributes]) if (/^on|href/i.test(name) && !/^#replay=[\w-]+$/.test(value)) part.removeAttribute(name);
    }
    return body;
  }

  function drawDiagram(drawing) {
    const svg = harmless(drawing).querySelector("svg");
    if (!svg) return byId("diagram").replaceChildren(element("p", {class: "empty"}, words.none.diagram));
    return byId("diagram").replaceChildren(element("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": words.panels.diagram}, svg));
  }

  function drawEvents(events) {
    const rows = events.map((event) => element("li", {class: event.kind === "fault" ? "bad" : ""},
      element("span", {class: "faint"}, `${event.at_s.toFixed(3)} s`), " ", element("strong", {}, event.who), ` ${event.text}`));
    const list = element("ol", {class: "events", tabindex: "0", "aria-label": words.panels.events}, ...rows);
    byId("events").replaceChildren(rows.length ? list : element("p", {class: "empty"}, words.none.events));
    list.scrollTop = list.scrollHeight;
  }

  function table(name, rows) {
    if (!rows.length) return element("p", {class: "empty"}, words.none[name]);
    const keys = [...new Set(rows.flatMap(Object.keys))];
    const isNumber = (key) => rows.every((row) => row[key] === null || typeof row[key] === "number");
    const cell = (row, key) => {
      const content = name === "log" && key === "offset" ? element("button", {
        type: "button", class: "quiet", "aria-label": words.openRecord(row.offset), onclick: () => openRecord(row.offset),
      }, String(row.offset)) : shown(row[key]);
      return element("td", {title: typeof content === "string" && content.length > 20 ? content : null, class: isNumber(key) ? "number" : key === "body" ? "id" : "", "data-label": words.columns[key] ?? key}, content);
    };
    return element("div", {class: "scroll", tabindex: "0", role: "group", "aria-labelledby": `title-${name}`}, element("table", {class: "stacked"},
      element("thead", {}, element("tr", {}, ...keys.map((key) => element("th", {class: isNumber(key) ? "number" : ""}, words.columns[key] ?? key)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...keys.map((key) => cell(row, key)))))));
  }

  function openRecord(offset) {
    queue = queue.then(async () => {
      session.record = await result({do: "record", offset});
      drawRecord();
      byId("record").querySelector("h3").focus();
    }).catch((error) => { if (!(error instanceof Stopped)) byId("status").textContent = error.message; });
  }

  function drawRecord() {
    const {record} = session;
    if (!record) return byId("record").replaceChildren();
    const close = element("button", {type: "button", class: "quiet", onclick: () => {
      session.record = null;
      drawRecord();
      byId("log").querySelector("button")?.focus();
    }}, words.close);
    const rows = record.fields.map((field) => element("tr", {},
      element("td", {}, element("span", {class: `mark${field.mark}`}, field.name)), element("td", {class: "number"}, shown(field.begin)),
      element("td", {class: "text id"}, field.hex), element("td", {class: "text id"}, shown(field.value))));
    return byId("record").replaceChildren(
      element("h3", {tabindex: "-1"}, `${words.panels.record} ${record.offset}`), close,
      element("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": words.panels.record}, element("table", {class: "hex"},
        element("thead", {}, element("tr", {}, ...["name", "begin", "hex", "value"].map((key) => element("th", {}, words.columns[key])))),
        element("tbody", {}, ...rows))));
  }

  function drawLink() {
    const {state} = session;
    byId("link").replaceChildren(
      element("p", {}, words.hash(state.log_bytes), " ", element("code", {id: "sha256", class: "id"}, state.sha256)),
      element("p", {class: "faint"}, words.linkText),
      element("p", {}, element("a", {id: "address", href: hashOf(state.seed, state.words)}, hashOf(state.seed, state.words))),
      element("p", {}, copyButton(words.copyLink, () => location.href), " ",
        element("button", {type: "button", id: "show-test", class: "quiet", onclick: () => showTest()}, words.test)),
    );
    byId("test").replaceChildren();
  }

  function showTest() {
    queue = queue.then(async () => {
      const source = await result({do: "test"});
      byId("test").replaceChildren(element("pre", {class: "body", tabindex: "0", "aria-label": words.test}, source), copyButton(words.copyTest, () => source));
    }).catch((error) => { if (!(error instanceof Stopped)) byId("status").textContent = error.message; });
  }

  function drawRounds() {
    const list = byId("rounds").querySelector("ol");
    list.replaceChildren(...session.rounds.map((round) => element("li", {}, element("a", {
      href: `${hashOf(round.seed, [])}&round=${round.name}`, "aria-current": session.round === round.name ? "true" : null,
    }, round.title))));
    const round = session.rounds.find(({name}) => name === session.round);
    if (!round) return byId("round").replaceChildren();
    const steps = round.steps.map((step, position) => element("li", {},
      `${step.text} `, element("button", {type: "button", class: "quiet", "data-step": position, onclick: () => press(step.words.map(playOf), words.step)}, words.step)));
    return byId("round").replaceChildren(
      element("h3", {}, round.title), element("p", {}, round.text), element("ol", {class: "steps"}, ...steps),
      element("p", {}, element("strong", {}, round.question)),
      element("details", {}, element("summary", {}, words.answer), element("p", {}, round.answer)),
      element("p", {}, element("a", {href: hashOf(round.seed, round.words)}, words.allSteps)),
    );
  }

  window.addEventListener("hashchange", () => {
    if (!worker || location.hash === "#main") return;
    // A press that is still being answered will write the address of its own state.
    const wanted = address();
    queue = queue.then(() => (wanted.replayed === null && location.hash !== hashOfShop() ? replay(wanted) : null)).then(() => showReplayed(wanted.replayed)).catch((error) => { if (!(error instanceof Stopped)) trouble(error.message); });
  });

  offer();
})();
