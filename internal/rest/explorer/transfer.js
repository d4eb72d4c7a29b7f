// SPDX-License-Identifier: MIT

// Import and export of a container's items, as files of the browser.

import { el, count, doing, download, labelled, ticked, toast } from "./dom.js";
import * as api from "./api.js";
import { isSystem } from "./items.js";

const AT_ONCE = 8;            // writes under way
const MOST_WHOLE = 256 << 20; // bytes of a file that is read as a whole
const MOST_REJECTED = 100_000;

/** Reads the rows of a CSV file. Values that are JSON are taken as such. */
export function* csvRows(text) {
  let row = [], cell = "", quoted = false, wasQuoted = false, heads = null;
  const value = () => { if (wasQuoted || cell === "") return cell; try { return JSON.parse(cell); } catch { return cell; } };
  const endCell = () => { row.push(heads === null ? cell : value()); cell = ""; wasQuoted = false; };
  const endRow = function* () {
    endCell();
    if (heads === null) heads = row;
    else if (row.length > 1 || row[0] !== "") yield Object.fromEntries(heads.map((h, i) => [h, row[i]]).filter(([, v]) => v !== undefined && v !== ""));
    row = [];
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += '"'; i++; } else if (c === '"') quoted = false; else cell += c;
    } else if (c === '"') quoted = wasQuoted = true;
    else if (c === ",") endCell();
    else if (c === "\n") yield* endRow();
    else if (c !== "\r") cell += c;
  }
  if (cell !== "" || row.length > 0) yield* endRow();
}

/** Reads the items of a file: lines of JSON as they come, an array of JSON or CSV as a whole. */
async function* itemsOf(file) {
  const whole = async () => {
    if (file.size > MOST_WHOLE) throw new Error("The file is too large to be read as a whole. Make it one with an item on each line.");
    return file.text();
  };
  if (/\.csv$/i.test(file.name)) { yield* csvRows(await whole()); return; }
  const start = (await file.slice(0, 1024).text()).trimStart();
  if (start.startsWith("[")) { yield* JSON.parse(await whole()); return; }
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim() !== "") yield line;
  }
  if (rest.trim() !== "") yield rest;
}

export async function transferView(main, { db, container, session, signal }) {
  main.replaceChildren(exportCard(), session.readOnly ? "" : importCard());

  function exportCard() {
    const form = el("select", {}, el("option", { value: "jsonl" }, "JSONL, an item on each line"), el("option", { value: "json" }, "JSON, one array"));
    const ttl = el("select", {}, el("option", { value: "full" }, "as it is"), el("option", { value: "left" }, "what is left of it"), el("option", { value: "none" }, "left out"));
    const system = ticked("With system properties");
    const says = el("p", { role: "status" });
    let run = null;
    const stop = el("button", { disabled: true, onclick: () => run?.abort() }, "Cancel");
    const go = el("button", { class: "primary", onclick: doing(async () => {
      run = new AbortController();
      signal.addEventListener("abort", () => run?.abort());
      stop.disabled = false;
      const parts = [], json = form.value === "json";
      let n = 0, continuation;
      try {
        do {
          const page = await api.query(db, container.id, "SELECT * FROM c", { continuation, max: 1000, signal: run.signal });
          const lines = page.rows.map(item => JSON.stringify(written(item, ttl.value, system.box.checked)));
          // A page is one part of the file, so that the browser can keep it out of memory.
          if (lines.length > 0) parts.push(new Blob([json ? (n === 0 ? "[\n" : ",\n") + lines.join(",\n") : lines.join("\n") + "\n"]));
          n += lines.length;
          continuation = page.continuation;
          says.textContent = `${count(n)} items read`;
        } while (continuation);
        if (json) parts.push(n === 0 ? "[]\n" : "\n]\n");
        download(`${container.id}.${form.value}`, "application/octet-stream", parts);
        says.textContent = `${count(n)} items exported.`;
      } catch (err) {
        if (err.name !== "AbortError") throw err;
        says.textContent = "Cancelled.";
      } finally { stop.disabled = true; run = null; }
    }) }, "Export");
    return el("section", { class: "card" }, el("h2", {}, "Export"),
      el("div", { class: "bar" }, labelled("As", form), labelled("The ttl of items", ttl), system.label), el("div", { class: "bar" }, go, stop), says);
  }

  /** An item as it is written to a file. */
  function written(item, ttl, system) {
    const out = Object.fromEntries(Object.entries(item).filter(([name]) => system || !isSystem(name)));
    if (ttl === "none") delete out.ttl;
    const life = item.ttl ?? container.defaultTtl;
    if (ttl === "left" && container.defaultTtl !== undefined && life > 0) out.ttl = Math.max(1, Math.ceil(item._ts + life - api.now() / 1000));
    return out;
  }

  function importCard() {
    const file = el("input", { type: "file", accept: ".jsonl,.ndjson,.json,.csv", "aria-label": "File to import" });
    const way = el("select", {}, el("option", { value: "create" }, "reject it"), el("option", { value: "upsert" }, "replace it"));
    const ttl = el("select", {}, el("option", { value: "keep" }, "keep"), el("option", { value: "drop" }, "leave out"));
    const says = el("p", { role: "status" }), bar = el("progress", { hidden: true, max: 1, value: 0, "aria-label": "Progress" });
    let state = null, running = false;
    const go = el("button", { class: "primary", onclick: doing(run) }, "Import");
    const stop = el("button", { disabled: true, onclick: () => { running = false; } }, "Pause");
    const rejected = el("button", { hidden: true, onclick: () => download(`${container.id}-rejected.jsonl`, "application/x-ndjson", state.rejected.map(r => JSON.stringify(r) + "\n")) }, "Save what was rejected");
    file.addEventListener("change", () => { state = null; go.textContent = "Import"; says.textContent = ""; rejected.hidden = true; });
    signal.addEventListener("abort", () => { running = false; });

    async function run() {
      if (!file.files?.[0]) throw new Error("Choose a file first.");
      if (state?.ended) state = null;
      state ??= { rows: itemsOf(file.files[0]), done: 0, read: 0, rejected: [], ended: false };
      running = true;
      stop.disabled = false;
      bar.hidden = false;
      // Rows are taken one after the other, so that a pause loses none and writes none twice.
      let turn = Promise.resolve();
      const next = () => { const mine = turn.then(async () => running && !state.ended ? state.rows.next() : { done: true, value: undefined, stopped: true }); turn = mine.catch(() => {}); return mine; };
      const worker = async () => {
        for (;;) {
          const { done, value, stopped } = await next();
          if (done) { if (!stopped) state.ended = true; return; }
          state.read++;
          await write(value);
          show();
        }
      };
      try {
        await Promise.all(Array.from({ length: AT_ONCE }, worker));
      } finally {
        running = false;
        stop.disabled = true;
        rejected.hidden = state.rejected.length === 0;
      }
      go.textContent = state.ended ? "Import" : "Resume";
      bar.hidden = state.ended;
      if (state.ended) toast(`${count(state.done)} items imported, ${count(state.rejected.length)} rejected.`, state.rejected.length > 0);
      show();
    }

    function show() {
      bar.removeAttribute("value");
      says.textContent = `${count(state.done)} items imported, ${count(state.rejected.length)} rejected${state.rejected.length ? `. The last: ${state.rejected.at(-1).error}` : ""}`;
    }

    async function write(row) {
      try {
        const item = typeof row === "string" ? JSON.parse(row) : row;
        if (item === null || typeof item !== "object" || Array.isArray(item)) throw new Error("An item is a JSON object.");
        if (typeof item.id === "number") item.id = String(item.id);
        item.id ??= crypto.randomUUID?.() ?? `${Date.now()}-${state.read}`;
        for (const name of Object.keys(item)) if (isSystem(name) || name === "ttl" && ttl.value === "drop") delete item[name];
        await send(item);
        state.done++;
      } catch (err) {
        if (err.status === 401 || signal.aborted) { running = false; return; }
        if (state.rejected.length < MOST_REJECTED) state.rejected.push({ error: err.status === 409 ? "there is an item with this id" : err.message, row });
        else running = false;
      }
    }

    /** Writes an item, and waits where the server asks for it. */
    async function send(item) {
      for (let attempt = 0; ; attempt++) {
        try {
          return await api.send("POST", api.collPath(db, container.id) + "/docs", {
            headers: { ...api.keyHeader(container, item), ...(way.value === "upsert" ? { "x-ms-documentdb-is-upsert": "true" } : {}), Prefer: "return=minimal" }, body: item,
          });
        } catch (err) {
          if (err.status !== 429 || attempt === 9) throw err;
          await new Promise(done => { setTimeout(done, 100 * 2 ** attempt); });
        }
      }
    }
    return el("section", { class: "card" }, el("h2", {}, "Import"),
      el("p", { class: "faint" }, "JSONL, a JSON array, or CSV with a line of names."),
      el("div", { class: "bar" }, file, labelled("If there is an item with its id", way), labelled("The ttl of items", ttl)), el("div", { class: "bar" }, go, stop, bar, rejected), says);
  }
}
