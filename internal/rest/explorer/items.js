// SPDX-License-Identifier: MIT

// The items of a container, each with its countdown, and what can be done to them.

import { el, ask, complain, count, doing, download, labelled, seconds, span, ticked, toast } from "./dom.js";
import * as api from "./api.js";
import { editItem, newItem } from "./editor.js";

const ROW = 34;          // the height of a row, in pixels, as in the style sheet
const PAGE = 100;        // items read at once
const SPARE = 12;        // rows drawn above and below what is visible
const LOOKUPS = 4;       // deadlines asked for at the same time
const FADE = 3000;       // how long an expired item stays visible, in milliseconds
const SOON = 10_000;     // a countdown below this is marked
const MOST_SAMPLED = 200;

export const isSystem = name => ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"].includes(name);

export async function itemsView(main, ctx) {
  const { db, container, session, signal } = ctx;
  const path = api.collPath(db, container.id) + "/docs";
  let items = [], continuation, loading = false, charge = 0, columns = null;
  const selected = new Map(); // items by _rid
  const known = new Map();    // what is known of deadlines, by _rid
  const drawn = new Map();    // rows, by _rid

  const filter = el("input", { id: "filter", type: "search", placeholder: "an id, or a condition such as c.price > 5", "aria-label": "Filter", onkeydown: e => { if (e.key === "Enter") load(); } });
  const status = el("span", { class: "faint", role: "status" });
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const body = el("tbody", {}), head = el("tr", {});
  const list = el("div", { class: "scroll list", tabIndex: 0, role: "region", "aria-label": "Items", onscroll: () => requestAnimationFrame(render) },
    el("table", { class: "rows" }, el("thead", {}, head), body));
  const actions = el("div", { class: "bar", hidden: true });
  const empty = el("div", { class: "empty", hidden: true });

  main.replaceChildren(
    el("div", { class: "bar" },
      el("span", { class: "grow" }, filter), el("button", { onclick: doing(load) }, "Filter"),
      el("button", { onclick: chooseColumns }, "Columns"), el("button", { onclick: doing(load) }, "Refresh"),
      !session.readOnly && el("button", { class: "primary", onclick: doing(async () => { if (await newItem(ctx)) await load(); }) }, "New item")),
    problem, actions, list, empty, el("div", { class: "bar" }, status));

  const timer = setInterval(tick, 200);
  signal.addEventListener("abort", () => clearInterval(timer));
  addEventListener("resize", render, { signal });
  return load();

  /** The query of the filter bar. A plain word is looked for in ids. */
  function filterQuery() {
    const text = filter.value.trim();
    if (text === "") return { text: "SELECT * FROM c", parameters: [] };
    if (/^[\w\-.@ ]+$/.test(text) && !/^(true|false)$/i.test(text)) {
      return { text: "SELECT * FROM c WHERE CONTAINS(c.id, @text, true)", parameters: [{ name: "@text", value: text }] };
    }
    return { text: `SELECT * FROM c WHERE ${text}`, parameters: [] };
  }

  async function load() {
    items = []; continuation = undefined; charge = 0;
    selected.clear(); known.clear(); drawn.clear();
    list.scrollTop = 0;
    await more(true);
  }

  async function more(first = false) {
    if (loading || !first && !continuation) return;
    loading = true;
    problem.hidden = true;
    const { text, parameters } = filterQuery();
    try {
      do { // a page may be empty where the query goes on
        const page = await api.query(db, container.id, text, { parameters, continuation, max: PAGE, signal });
        for (const item of page.rows) items.push(item);
        charge += page.charge;
        continuation = page.continuation;
      } while (items.length === 0 && continuation);
      if (items.length > 0) columns ??= firstColumns();
    } catch (err) {
      if (signal.aborted) return;
      problem.textContent = err.message;
      problem.hidden = false;
    } finally { loading = false; }
    drawHead();
    render();
  }

  function firstColumns() {
    const keys = container.partitionKey.paths.map(p => p.slice(1)).filter(p => p !== "id" && !p.includes("/"));
    const others = names().filter(n => n !== "id" && n !== "ttl" && !keys.includes(n) && !isSystem(n));
    return [...keys, ...others.slice(0, 5)];
  }

  /** The names of properties that the first items have. */
  function names() {
    const all = new Set();
    for (const item of items.slice(0, MOST_SAMPLED)) for (const name of Object.keys(item)) all.add(name);
    return [...all];
  }

  function drawHead() {
    const all = el("input", { type: "checkbox", "aria-label": "Select all loaded items", checked: selected.size > 0 && selected.size === items.length, onchange: e => {
      selected.clear();
      if (e.target.checked) for (const item of items) selected.set(item._rid, item);
      drawn.clear();
      render();
    } });
    head.replaceChildren(...[session.readOnly ? "" : all, "id", "expires in", ...(columns ?? [])].map(c => el("th", { scope: "col" }, c)));
  }

  function render() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(items.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    const focused = document.activeElement;
    const pad = height => { const tr = el("tr", { class: "pad", "aria-hidden": "true" }, el("td", { colspan: 3 + (columns?.length ?? 0) })); tr.style.height = `${height}px`; return tr; };
    const shown = items.slice(first, last);
    for (const rid of drawn.keys()) if (!shown.some(i => i._rid === rid)) drawn.delete(rid);
    body.replaceChildren(pad(first * ROW), ...shown.map(row), pad((items.length - last) * ROW));
    if (focused instanceof HTMLElement && body.contains(focused)) focused.focus({ preventScroll: true });
    list.querySelector("table").setAttribute("aria-rowcount", continuation ? "-1" : String(items.length + 1));
    empty.hidden = items.length > 0 || loading;
    list.hidden = items.length === 0;
    empty.replaceChildren(filter.value ? "No item matches." : "There are no items here.");
    status.textContent = `${count(items.length)}${continuation ? "+" : ""} items, ${charge.toFixed(2)} RU`;
    drawActions();
    lookUp();
    if (last >= items.length - SPARE) more().catch(complain);
  }

  function row(item) {
    let tr = drawn.get(item._rid);
    if (tr) return tr;
    const box = el("input", { type: "checkbox", "aria-label": `Select ${item.id}`, checked: selected.has(item._rid), onchange: e => {
      if (e.target.checked) selected.set(item._rid, item); else selected.delete(item._rid);
      drawActions();
    } });
    const left = el("span", { class: "count" }), badge = el("span", { class: "badge" });
    tr = el("tr", {}, el("td", {}, session.readOnly ? "" : box),
      el("td", {}, el("button", { class: "link", onclick: doing(async () => { if (await editItem(ctx, item)) await load(); }) }, item.id)),
      el("td", {}, left, " ", badge),
      (columns ?? []).map(c => { const v = item[c]; return el("td", {}, v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v)); }));
    tr.item = item;
    tr.left = left;
    tr.badge = badge;
    drawn.set(item._rid, tr);
    count1(item, tr);
    return tr;
  }

  /** What is known of an item's deadline: what the server said, or what its TTL lets one expect. */
  function deadline(item) {
    const said = known.get(item._rid);
    if (said) return said;
    if (container.defaultTtl === undefined) return { exact: true, ms: null, source: "never" };
    if (container.expireAtPath && api.at(item, container.expireAtPath) != null) return { exact: false, ms: undefined, source: "own" };
    const ttl = item.ttl ?? container.defaultTtl;
    const source = ttl === -1 ? "never" : item.ttl === undefined ? "default" : "own";
    return ttl === -1 ? { exact: true, ms: null, source } : { exact: false, ms: (item._ts + ttl + 1) * 1000, source };
  }

  /** Draws the countdown of a row. */
  function count1(item, tr) {
    const d = deadline(item);
    const left = d.ms === null ? Infinity : d.ms === undefined ? NaN : d.ms - api.now();
    tr.badge.textContent = d.source;
    tr.left.textContent = left === Infinity ? "" : Number.isNaN(left) ? "…" : left <= 0 ? "expired" : left < SOON ? `${(left / 1000).toFixed(1)} s` : span(left / 1000);
    tr.left.classList.toggle("soon", left < SOON);
    if (left > 0 || Number.isNaN(left) || d.gone) return;
    if (!d.exact) { lookUp(); return; }
    d.gone = true;
    known.set(item._rid, d);
    confirmGone(item, tr).catch(complain);
  }

  /** Asks the server whether an item is gone, whose countdown may have been restarted. */
  async function confirmGone(item, tr) {
    const e = await api.explain(db, container, item, signal);
    if (e && !e.expired && !e.purged) { known.set(item._rid, learned(e)); return; }
    tr.classList.add("gone");
    selected.delete(item._rid);
    setTimeout(() => {
      if (signal.aborted) return;
      items = items.filter(i => i !== item);
      drawn.delete(item._rid);
      render();
    }, FADE);
  }

  function learned(e) {
    const source = e.expiresAtMs === null ? "never" : e.source === "container" ? "default" : "own";
    return { exact: true, ms: e.expiresAtMs, source, reason: e.reason };
  }

  function tick() {
    for (const tr of drawn.values()) if (!tr.classList.contains("gone")) count1(tr.item, tr);
  }

  /** Asks the server for the exact deadlines of the rows that are drawn. */
  function lookUp() {
    const due = () => [...drawn.values()].map(tr => tr.item).find(i => !known.has(i._rid) && !deadline(i).exact);
    lookUp.busy ??= 0;
    while (lookUp.busy < LOOKUPS) {
      const item = due();
      if (!item || signal.aborted) return;
      lookUp.busy++;
      known.set(item._rid, { ...deadline(item), exact: false, asked: true });
      api.explain(db, container, item, signal)
        .then(e => known.set(item._rid, e && !e.purged ? learned(e) : { exact: true, ms: 0, source: "own" }))
        .catch(err => { if (!signal.aborted) complain(err); })
        .finally(() => { lookUp.busy--; lookUp(); });
    }
  }

  // What can be done to several items.

  function drawActions() {
    actions.hidden = selected.size === 0;
    const expires = container.defaultTtl !== undefined;
    actions.replaceChildren(el("span", {}, `${selected.size} selected:`),
      expires && el("button", { onclick: doing(extend) }, "Extend…"),
      expires && el("button", { onclick: doing(() => patchTTL(-1)) }, "Never expire"),
      el("button", { onclick: doing(patchSeveral) }, "Patch…"),
      el("button", { onclick: () => download(`${container.id}.jsonl`, "application/x-ndjson", [...selected.values()].map(i => JSON.stringify(i) + "\n")) }, "Save as JSONL"),
      el("button", { class: "danger", onclick: doing(deleteSeveral) }, "Delete…"));
  }

  function preview() {
    return el("p", { class: "faint" }, [...selected.values()].slice(0, 10).map(i => i.id).join(", "), selected.size > 10 ? ` and ${selected.size - 10} more` : "");
  }

  async function extend() {
    const time = el("input", { value: "1h", required: true });
    const n = await ask({
      title: `Extend ${selected.size} items`, ok: "Extend", body: [preview(), labelled("They expire after", time, "From now on: a duration such as 90s, 5m, 1h or 3d.")],
      submit: () => { const n = seconds(time.value); if (!(n >= 1)) throw new Error("This is no duration."); return n; },
    });
    if (n) await patchTTL(n);
  }

  /** Gives the selected items n seconds from now on; -1 for ever. */
  function patchTTL(n) {
    const path = container.expireAtPath;
    return each("changed", item => patch(item, [path && api.at(item, path) != null
      ? { op: "set", path, value: n === -1 ? null : Math.ceil(api.now() / 1000) + n }
      : { op: "set", path: "/ttl", value: n }]));
  }

  function patch(item, operations) {
    return api.send("PATCH", api.itemPath(db, container.id, item.id), { headers: { ...api.keyHeader(container, item), "If-Match": item._etag }, body: { operations } });
  }

  async function patchSeveral() {
    const text = el("textarea", { rows: 6, value: '[{"op": "set", "path": "/name", "value": 1}]', spellcheck: false });
    const operations = await ask({
      title: `Patch ${selected.size} items`, ok: "Patch", body: [preview(), labelled("Operations", text, "add, set, replace, remove, incr and move, as in the service.")],
      submit: () => JSON.parse(text.value),
    });
    if (operations) await each("patched", item => patch(item, operations));
  }

  async function deleteSeveral() {
    const sure = await ask({ title: `Delete ${selected.size} items`, ok: "Delete", danger: true, body: preview() });
    if (sure) await each("deleted", item => api.send("DELETE", api.itemPath(db, container.id, item.id), { headers: api.keyHeader(container, item) }));
  }

  /** Does something to each selected item, four at a time, and says how many failed. */
  async function each(done, work) {
    const queue = [...selected.values()], failures = [];
    let n = 0;
    const worker = async () => {
      for (let item = queue.shift(); item; item = queue.shift()) {
        try { await work(item); n++; } catch (err) {
          if (signal.aborted) return;
          failures.push(`${item.id}: ${err.status === 412 ? "it was changed meanwhile" : err.status === 404 ? "it is gone" : err.message}`);
        }
        status.textContent = `${n} ${done}, ${queue.length} to go`;
      }
    };
    await Promise.all(Array.from({ length: LOOKUPS }, worker));
    toast(`${n} ${done}${failures.length ? `, ${failures.length} failed. ${failures[0]}` : "."}`, failures.length > 0);
    await load();
  }

  function chooseColumns() {
    const boxes = names().filter(n => n !== "id").map(name => ({ name, ...ticked(name, { checked: columns?.includes(name) }) }));
    ask({ title: "Columns", body: boxes.map(b => b.label), submit: () => {
      columns = boxes.filter(b => b.box.checked).map(b => b.name);
      drawn.clear();
      drawHead();
      render();
      return true;
    } }).catch(complain);
  }
}
