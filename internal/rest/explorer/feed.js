// SPDX-License-Identifier: MIT

// The change feed of a container, as it goes on.

import { el, complain, doing, labelled } from "./dom.js";
import * as api from "./api.js";
import { difference } from "./diff.js";

const EVERY = 1000; // how often the feed is asked, in milliseconds
const MOST_ROWS = 1000; // changes that are shown
const MOST_KNOWN = 10_000; // versions that are remembered, to compare the next with

export async function feedView(main, { db, container, signal }) {
  let run = /** @type {AbortController | null} */ (null),
    positions = /** @type {{id: string, headers: Record<string, string>}[] | null} */ (null);
  const known = new Map();
  const mode = el(
    "select",
    {},
    el("option", { value: "latest" }, "latest versions"),
    el("option", { value: "all" }, "all versions and deletes"),
  );
  const from = el(
    "select",
    {},
    [
      ["start", "the start"],
      ["now", "now"],
      ["time", "a time"],
    ].map(([value, text]) => el("option", { value }, text)),
  );
  const time = el("input", { placeholder: "2030-01-01T00:00:00Z", disabled: true });
  const toggle = el(
    "button",
    {
      class: "primary",
      onclick: doing(async () => {
        if (run) stop();
        else follow().catch(complain);
      }),
    },
    "Follow",
  );
  const again = el(
    "button",
    {
      onclick: () => {
        stop();
        positions = null;
        known.clear();
        rows.replaceChildren();
        state.textContent = "";
        toggle.textContent = "Follow";
      },
    },
    "Begin anew",
  );
  const state = el("span", { class: "faint", role: "status" }),
    problem = el("p", { class: "error", role: "alert", hidden: true });
  const rows = el("tbody", {});
  from.addEventListener("change", () => {
    time.disabled = from.value !== "time";
  });
  for (const s of [mode, from]) s.addEventListener("change", () => again.click());
  signal.addEventListener("abort", stop);
  main.replaceChildren(
    el("div", { class: "bar" }, labelled("Show", mode), labelled("From", from), labelled("Time, in UTC", time), toggle, again, state),
    problem,
    el(
      "div",
      { class: "scroll list", tabIndex: 0, role: "region", "aria-label": "Changes" },
      el(
        "table",
        { class: "diff" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["at", "what", "id", "changed"].map(t => el("th", { scope: "col" }, t)),
          ),
        ),
        rows,
      ),
    ),
  );

  function stop() {
    run?.abort();
    run = null;
    toggle.textContent = positions ? "Resume" : "Follow";
    if (positions) state.textContent = "Paused. Nothing will be missed.";
  }

  /** @returns {Record<string, string>} */
  function startHeaders() {
    if (from.value === "now") return { "If-None-Match": "*" };
    if (from.value === "start") return {};
    const at = new Date(time.value);
    if (Number.isNaN(at.getTime())) throw new Error("Give a time such as 2030-01-01T00:00:00Z.");
    return { "If-Modified-Since": at.toUTCString() };
  }

  async function follow() {
    const mine = (run = new AbortController());
    toggle.textContent = "Pause";
    state.textContent = "Following.";
    problem.hidden = true;
    try {
      if (!positions) {
        const ranges = await api.listAll(api.collPath(db, container.id) + "/pkranges", "PartitionKeyRanges");
        const start = startHeaders();
        positions = ranges.map(r => ({ id: r.id, headers: start }));
      }
      while (!mine.signal.aborted) {
        let got = 0;
        for (const p of positions) got += await read(p, mine.signal);
        if (got === 0)
          await new Promise(done => {
            setTimeout(done, EVERY);
          });
      }
    } catch (err) {
      if (err.name === "AbortError") return;
      positions = null;
      problem.textContent = err.message;
      problem.hidden = false;
      if (run === mine) stop();
    }
  }

  /** Reads a page of a partition, and returns how many changes it had. */
  async function read(p, abort) {
    const all = mode.value === "all";
    const { status, headers, body } = await api.send("GET", api.collPath(db, container.id) + "/docs", {
      signal: abort,
      headers: {
        ...p.headers,
        "x-ms-documentdb-partitionkeyrangeid": p.id,
        "x-ms-max-item-count": "100",
        "A-IM": all ? "Full-Fidelity Feed" : "Incremental feed",
        ...(all ? { "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15" } : {}),
      },
    });
    const etag = headers.get("etag");
    if (etag) p.headers = { "If-None-Match": etag };
    if (status === 304 || !body) return 0;
    for (const change of body.Documents) add(all ? change : { current: change });
    return body.Documents.length;
  }

  function add({ current, previous, metadata }) {
    const item = current?.id === undefined ? (previous ?? {}) : current;
    const name = item._rid ?? metadata?.id ?? "";
    const before = previous ?? known.get(name);
    const what = metadata?.timeToLiveExpired ? "expired" : (metadata?.operationType ?? (before ? "write" : "write, first seen"));
    const gone = what === "expired" || what === "delete";
    const seconds = item._ts ?? metadata?.crts;
    const lines = gone ? [] : difference(before, item);
    if (gone) known.delete(name);
    else known.set(name, item);
    if (known.size > MOST_KNOWN) known.delete(known.keys().next().value);
    rows.prepend(
      el(
        "tr",
        {},
        el("td", {}, seconds ? new Date(seconds * 1000).toISOString().slice(0, 19) + "Z" : ""),
        el("td", {}, el("span", { class: gone ? "badge on" : "badge" }, what)),
        el("td", {}, item.id ?? metadata?.id ?? ""),
        el("td", {}, lines.join("\n")),
      ),
    );
    while (rows.children.length > MOST_ROWS) rows.lastChild.remove();
  }
}
