"use strict";
// The forms of /docs send a request of the API as it is written there, and show the answer. Without scripts no form is shown.

const key = document.getElementById("key");
key.parentElement.hidden = false;
for (const form of document.querySelectorAll("form[data-path]")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
}

async function send(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    show(form, await answerTo(form));
  } catch (error) {
    show(form, `no answer from ${location.origin}: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

async function answerTo(form) {
  const headers = key.value ? { Authorization: `Bearer ${key.value}` } : {};
  for (const field of filled(form, "header")) headers[field.name] = field.value;
  const body = form.querySelector("textarea")?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const path = pathOf(form);
  const response = await fetch(path, { method: form.dataset.method, headers, body, cache: "no-store" });
  const text = await response.text();
  const told = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return `${form.dataset.method} ${path}\n\n${response.status} ${response.statusText}\n${told}\n\n${readable(text)}`;
}

function pathOf(form) {
  let path = form.dataset.path;
  // A parameter that is itself a path keeps its slashes.
  const escaped = (field) => (field.dataset.format === "path" ? field.value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(field.value));
  for (const field of filled(form, "path")) path = path.replace(`{${field.name}}`, () => escaped(field));
  const query = new URLSearchParams(filled(form, "query").map((field) => [field.name, field.value]));
  return query.size ? `${path}?${query}` : path;
}

function filled(form, place) {
  return [...form.querySelectorAll(`input[data-in="${place}"]`)].filter((field) => field.value);
}

function readable(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return text;
  }
  hand(found);
  return JSON.stringify(found, null, 2);
}

// An id in the answer is what the reader asks for next: it goes into the empty fields of its name.
function hand(found) {
  for (const [name, value] of Object.entries(found ?? {})) {
    if (typeof value === "object") hand(value);
    else if (name.endsWith("_id")) {
      for (const field of document.querySelectorAll(`input[data-in="path"][name="${name}"]`)) field.value ||= value;
    }
  }
}

function show(form, text) {
  const answer = form.querySelector("pre");
  answer.textContent = text;
  answer.hidden = false;
}
