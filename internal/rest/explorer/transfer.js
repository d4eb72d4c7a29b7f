// SPDX-License-Identifier: MIT

// Import and export of a container's items, as files of the browser, read and written bit by
// bit.

import { count, doing, download, el, labelled, size, span, ticked, toast } from "./dom.js";
import * as api from "./api.js";
import { isSystem } from "./diff.js";
import { BadRow, csvHead, csvLine, csvRows, elements, lines } from "./formats.js";

const AT_ONCE = 8; // writes under way
const PAGE = 1000; // items that an export reads at once
const MOST_REJECTED = 100_000;
const MOST_ATTEMPTS = 10; // of a write that the server asks to repeat
const MOST_COLUMNS = 1000; // of a file of CSV
const SHOW_EVERY = 200; // how often progress is drawn, in milliseconds

/** Reads the items of a file by its name and its beginning. noted is told of the bytes that were read. */
async function* itemsOf(file, noted) {
  async function* texts() {
    const reader = file
      .stream()
      .pipeThrough(
        new TransformStream({
          transform(chunk, to) {
            noted(chunk.byteLength);
            to.enqueue(chunk);
          },
        }),
      )
      .pipeThrough(new TextDecoderStream())
      .getReader();
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
    } finally {
      reader.cancel().catch(() => {});
    }
  }
  if (/\.csv$/i.test(file.name)) {
    yield* csvRows(texts());
    return;
  }
  const start = (await file.slice(0, 1024).text()).replace(/^\ufeff/, "").trimStart();
  yield* start.startsWith("[") ? elements(texts()) : lines(texts());
}

/** Shows how far something long is, at most so often. */
function progress() {
  const bar = el("progress", { hidden: true, max: 1, "aria-label": "Progress" }),
    says = el("p", { role: "status" });
  let began = 0,
    last = 0;
  return {
    bar,
    says,
    begin() {
      began = performance.now();
      last = 0;
      bar.hidden = false;
    },
    /** @param {string} text @param {number} part between 0 and 1; NaN if nobody knows @param {number} done units since the beginning @param {boolean} [end] */
    show(text, part, done, end = false) {
      const now = performance.now();
      if (!end && now - last < SHOW_EVERY) return;
      last = now;
      const seconds = (now - began) / 1000,
        rate = seconds > 1 ? done / seconds : 0;
      if (Number.isNaN(part)) bar.removeAttribute("value");
      else bar.value = part;
      const left = !end && part > 0.01 && seconds > 2 ? `, about ${span((seconds / part) * (1 - part))} left` : "";
      says.textContent = `${text}${rate > 0 && !end ? `, ${count(Math.round(rate))} a second` : ""}${left}`;
    },
    end() {
      bar.hidden = true;
    },
  };
}

export async function transferView(main, { db, container, session, signal }) {
  main.replaceChildren(exportCard(), session.readOnly ? "" : importCard());

  function exportCard() {
    const form = el(
      "select",
      {},
      el("option", { value: "jsonl" }, "JSONL, an item on each line"),
      el("option", { value: "json" }, "JSON, one array"),
      el("option", { value: "csv" }, "CSV, for spreadsheets"),
    );
    const ttl = el(
      "select",
      {},
      el("option", { value: "full" }, "as it is"),
      el("option", { value: "left" }, "what is left of it"),
      el("option", { value: "none" }, "left out"),
    );
    const system = ticked("With system properties");
    const shown = progress();
    /** What was read so far, so that a pause loses nothing. @type {any} */
    let state = null;
    let run = /** @type {AbortController | null} */ (null);
    const pause = el("button", { disabled: true, onclick: () => run?.abort() }, "Pause");
    const drop = el(
      "button",
      {
        hidden: true,
        onclick: () => {
          state = null;
          drop.hidden = true;
          go.textContent = "Export";
          shown.end();
          shown.says.textContent = "Cancelled.";
        },
      },
      "Cancel",
    );
    signal.addEventListener("abort", () => run?.abort());
    for (const field of [form, ttl, system.box])
      field.addEventListener("change", () => {
        if (state) drop.click();
      });
    const go = el(
      "button",
      {
        class: "primary",
        onclick: doing(async () => {
          const { signal: paused } = (run = new AbortController());
          pause.disabled = false;
          drop.hidden = true;
          shown.begin();
          const before = state?.n ?? 0;
          try {
            state ??= {
              parts: [],
              n: 0,
              continuation: undefined,
              all: (await api.send("GET", api.ttlPath("status", db, container.id), { signal: paused })).body.containers[0].live.items,
              heads: form.value === "csv" ? await columns(paused) : null,
            };
            do {
              const page = await api.query(db, container.id, "SELECT * FROM c", {
                continuation: state.continuation,
                max: PAGE,
                signal: paused,
              });
              const items = page.rows.map(item => written(item, ttl.value, system.box.checked));
              // A page is one part of the file, so that the browser can keep it out of memory.
              if (items.length > 0) state.parts.push(new Blob([text(form.value, items, state)]));
              state.n += items.length;
              state.continuation = page.continuation;
              shown.show(`${count(state.n)} items read`, Math.min(1, state.n / Math.max(1, state.all)), state.n - before);
            } while (state.continuation);
            if (form.value === "json") state.parts.push(state.n === 0 ? "[]\n" : "\n]\n");
            download(`${container.id}.${form.value}`, "application/octet-stream", state.parts);
            shown.end();
            shown.show(`${count(state.n)} items exported.`, 1, 0, true);
            state = null;
          } catch (err) {
            if (err.name !== "AbortError") throw err;
            shown.show(state ? `${count(state.n)} items read. Paused.` : "Cancelled, before anything was read.", NaN, 0, true);
          } finally {
            pause.disabled = true;
            run = null;
            go.textContent = state ? "Resume the export" : "Export";
            drop.hidden = !state;
          }
        }),
      },
      "Export",
    );
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Export"),
      el("div", { class: "bar" }, labelled("As", form), labelled("The ttl of items", ttl), system.label),
      el("div", { class: "bar" }, go, pause, drop, shown.bar),
      shown.says,
    );

    /** The columns of a table of all items: they are read once for their names. */
    async function columns(abort) {
      const names = new Set();
      let continuation;
      do {
        const page = await api.query(db, container.id, "SELECT * FROM c", { continuation, max: PAGE, signal: abort });
        for (const item of page.rows) for (const name of Object.keys(written(item, ttl.value, system.box.checked))) names.add(name);
        if (names.size > MOST_COLUMNS)
          throw new Error(
            `The items have more than ${count(MOST_COLUMNS)} properties, which is too much for one table. Export them as JSONL.`,
          );
        shown.show("Reading the names of the columns", NaN, 0);
        continuation = page.continuation;
      } while (continuation);
      return [...names];
    }
  }

  /** Items as a part of a file. */
  function text(form, items, state) {
    if (form === "csv") {
      const rows = items.map(i =>
        csvLine(
          state.heads.map(h => i[h]),
          state.heads,
        ),
      );
      return (state.n === 0 ? csvHead(state.heads) : "") + rows.join("");
    }
    const all = items.map(i => JSON.stringify(i));
    return form === "json" ? (state.n === 0 ? "[\n" : ",\n") + all.join(",\n") : all.join("\n") + "\n";
  }

  /** An item as it is written to a file. */
  function written(item, ttl, system) {
    const out = Object.fromEntries(Object.entries(item).filter(([name]) => system || !isSystem(name)));
    if (ttl === "none") delete out.ttl;
    const life = item.ttl ?? container.defaultTtl;
    if (ttl === "left" && container.defaultTtl !== undefined && life > 0)
      out.ttl = Math.max(1, Math.ceil(item._ts + life - api.now() / 1000));
    return out;
  }

  function importCard() {
    const file = el("input", { type: "file", accept: ".jsonl,.ndjson,.json,.csv", "aria-label": "File to import" });
    const way = el("select", {}, el("option", { value: "create" }, "reject it"), el("option", { value: "upsert" }, "replace it"));
    const ttl = el("select", {}, el("option", { value: "keep" }, "keep"), el("option", { value: "drop" }, "leave out"));
    const shown = progress();
    /** @type {any} */
    let state = null;
    let running = false,
      began = 0;
    const go = el("button", { class: "primary", onclick: doing(run) }, "Import");
    const stop = el(
      "button",
      {
        disabled: true,
        onclick: () => {
          running = false;
        },
      },
      "Pause the import",
    );
    const drop = el(
      "button",
      {
        hidden: true,
        onclick: () => {
          end();
          shown.says.textContent = `Cancelled, after ${count(state.done)} items.`;
        },
      },
      "Cancel",
    );
    const rejected = el(
      "button",
      {
        hidden: true,
        onclick: () =>
          download(
            `${container.id}-rejected.jsonl`,
            "application/x-ndjson",
            state.rejected.map(r => JSON.stringify(r) + "\n"),
          ),
      },
      "Save what was rejected",
    );
    file.addEventListener("change", () => {
      end();
      state = null;
      shown.says.textContent = "";
      rejected.hidden = true;
    });
    signal.addEventListener("abort", () => {
      running = false;
    });

    function end() {
      running = false;
      if (state && !state.ended) {
        state.ended = true;
        state.rows.return?.().catch(() => {});
      }
      go.textContent = "Import";
      drop.hidden = true;
      shown.end();
    }

    async function run() {
      if (!file.files?.[0]) throw new Error("Choose a file first.");
      if (!state || state.ended) {
        state = { done: 0, read: 0, bytes: 0, size: file.files[0].size, rejected: [], ended: false };
        const mine = state;
        state.rows = itemsOf(file.files[0], n => {
          mine.bytes += n;
        });
      }
      running = true;
      began = state.done;
      stop.disabled = false;
      drop.hidden = rejected.hidden = true;
      shown.begin();
      // Rows are taken one after the other, so that a pause loses none and writes none twice.
      let turn = Promise.resolve();
      const next = () => {
        const mine = turn.then(async () => (running && !state.ended ? state.rows.next() : { done: true, value: undefined, stopped: true }));
        turn = mine.catch(() => {});
        return mine;
      };
      const worker = async () => {
        for (;;) {
          const { done, value, stopped } = await next();
          if (done) {
            if (!stopped) state.ended = true;
            return;
          }
          state.read++;
          await write(value);
          show();
        }
      };
      try {
        // What is under way ends before the items are counted, also if the file has a fault.
        const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
        for (const end of ends) if (end.status === "rejected") throw end.reason;
      } catch (err) {
        // of the file
        state.ended = true;
        throw err;
      } finally {
        running = false;
        stop.disabled = true;
        rejected.hidden = state.rejected.length === 0;
        drop.hidden = state.ended;
        go.textContent = state.ended ? "Import" : "Resume the import";
        if (state.ended) shown.end();
        show(true);
      }
      if (state.ended) toast(`${count(state.done)} items imported, ${count(state.rejected.length)} rejected.`, state.rejected.length > 0);
    }

    function show(end = false) {
      const why = state.rejected.length ? `. The last: ${state.rejected.at(-1).error}` : "";
      shown.show(
        `${count(state.done)} items imported, ${count(state.rejected.length)} rejected${why}${state.ended ? "" : `; ${size(state.bytes)} of ${size(state.size)} read`}`,
        state.size > 0 ? state.bytes / state.size : NaN,
        state.done - began,
        end,
      );
    }

    async function write(row) {
      try {
        if (row instanceof BadRow) throw new Error(row.why);
        const item = typeof row === "string" ? JSON.parse(row) : row;
        if (item === null || typeof item !== "object" || Array.isArray(item)) throw new Error("An item is a JSON object.");
        if (typeof item.id === "number") item.id = String(item.id);
        item.id ??= crypto.randomUUID?.() ?? `${Date.now()}-${state.read}`;
        for (const name of Object.keys(item)) if (isSystem(name) || (name === "ttl" && ttl.value === "drop")) delete item[name];
        await send(item);
        state.done++;
      } catch (err) {
        if (err.status === 401 || signal.aborted) {
          running = false;
          return;
        }
        // Without an answer nobody knows whether the item was written, so the import stops where it is.
        if (state.rejected.length < MOST_REJECTED)
          state.rejected.push({
            error: err.status === 409 ? "there is an item with this id" : err.message,
            row: row instanceof BadRow ? row.cells : row,
          });
        if (state.rejected.length >= MOST_REJECTED || err instanceof TypeError) running = false;
      }
    }

    /** Writes an item, and waits where the server asks for it. */
    async function send(item) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await api.send("POST", api.collPath(db, container.id) + "/docs", {
            headers: {
              ...api.keyHeader(container, item),
              ...(way.value === "upsert" ? { "x-ms-documentdb-is-upsert": "true" } : {}),
              Prefer: "return=minimal",
            },
            body: item,
          });
        } catch (err) {
          if (err.status !== 429 || attempt === MOST_ATTEMPTS) throw err;
          await new Promise(done => {
            setTimeout(done, 50 * 2 ** attempt);
          });
        }
      }
    }
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Import"),
      el("p", { class: "faint" }, "JSONL, a JSON array, or CSV with a line of names."),
      el("div", { class: "bar" }, file, labelled("If there is an item with its id", way), labelled("The ttl of items", ttl)),
      el("div", { class: "bar" }, go, stop, drop, shown.bar, rejected),
      shown.says,
    );
  }
}
