"use strict";
// Updates the live part of the page: the server sends the whole part first, then the changed lines.
// Without scripts the page is not updated.

const part = document.querySelector("[data-live]");
if (part) follow(part);

// On a phone the navigation is one long line: scroll to the current screen.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

function follow(part) {
  const state = document.getElementById("live-state");
  const pause = document.getElementById("live-pause");
  let source = null;
  let lines = [];
  let isPressed = false;
  let isHeld = false;

  const update = () => { isHeld = isPressed; if (!isHeld) put(part, lines.join("\n")); };
  const show = () => { state.textContent = state.dataset.wordLive; update(); };
  // A button that is replaced between press and release would lose its click.
  part.addEventListener("pointerdown", () => { isPressed = true; });
  const release = () => { if (isPressed) setTimeout(() => { isPressed = false; if (isHeld) update(); }); };
  addEventListener("pointerup", release);
  addEventListener("pointercancel", release);
  const listen = () => {
    source = new EventSource(part.dataset.live);
    source.addEventListener("part", (event) => { lines = event.data.split("\n"); show(); });
    source.addEventListener("changes", (event) => {
      for (const [begin, end, fresh] of JSON.parse(event.data).reverse()) lines.splice(begin, end - begin, ...fresh);
      show();
    });
    source.onerror = () => { state.textContent = state.dataset.wordSilent; };
    pause.textContent = pause.dataset.wordPause;
  };
  pause.addEventListener("click", () => {
    if (source) {
      source.close();
      source = null;
      state.textContent = state.dataset.wordPaused;
      pause.textContent = pause.dataset.wordGoOn;
    } else {
      listen();
    }
  });
  pause.hidden = false;
  listen();
  addEventListener("pagehide", () => source && source.close());
}

function put(part, html) {
  if (isSelecting(part)) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const focused = document.activeElement && part.contains(document.activeElement) ? document.activeElement.id : "";
  // Keep what the visitor has typed into a form, and keep open details open.
  for (const form of fresh.content.querySelectorAll("[data-keep]")) {
    const kept = document.getElementById(form.id);
    if (kept) form.replaceWith(kept);
  }
  for (const details of fresh.content.querySelectorAll("details[id]")) {
    const shown = document.getElementById(details.id);
    if (shown) details.open = shown.open;
  }
  const scrolled = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  part.replaceChildren(fresh.content);
  part.querySelectorAll(".scroll").forEach((box, index) => { box.scrollLeft = scrolled[index] || 0; });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function isSelecting(part) {
  const selection = getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}
