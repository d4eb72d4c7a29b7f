// SPDX-License-Identifier: MIT

// Queries: writing them with completion, errors where they are, results in pages.

import { el, count, doing, download, labelled, table, toast } from "./dom.js";
import * as api from "./api.js";
import { isSystem } from "./items.js";

const words = ("SELECT FROM WHERE ORDER BY GROUP BY VALUE DISTINCT TOP OFFSET LIMIT JOIN IN AND OR NOT BETWEEN LIKE EXISTS AS ASC DESC NULL TRUE FALSE UNDEFINED "
  + "COUNT( SUM( AVG( MIN( MAX( CONTAINS( STARTSWITH( ENDSWITH( LOWER( UPPER( LENGTH( SUBSTRING( CONCAT( REPLACE( TRIM( ARRAY_CONTAINS( ARRAY_LENGTH( ARRAY_SLICE( "
  + "IS_DEFINED( IS_NULL( IS_STRING( IS_NUMBER( IS_ARRAY( IS_OBJECT( IS_BOOL( ABS( ROUND( FLOOR( CEILING( SQRT( POWER( REGEXMATCH( ST_DISTANCE( ST_WITHIN( "
  + "VECTORDISTANCE( FULLTEXTCONTAINS( GETCURRENTDATETIME( GETCURRENTTIMESTAMP( DATETIMEADD( DATETIMEDIFF( TOSTRING( STRINGTONUMBER( IIF(").split(" ");
const MOST_HISTORY = 30;
const historyKey = "queries";
const past = () => { try { return JSON.parse(localStorage.getItem(historyKey) ?? "[]"); } catch { return []; } };

const scalar = r => r === null || typeof r !== "object" || Array.isArray(r);
const clean = r => scalar(r) ? r : Object.fromEntries(Object.entries(r).filter(([n]) => !isSystem(n)));
const cell = v => v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v);

export async function queryView(main, { db, container, signal, session, reload }) {
  let run = null, rows = [], continuation, charge = 0, tab = "table", metrics = "", indexes = null, sampled = [];
  const text = el("textarea", { rows: 6, value: "SELECT * FROM c", spellcheck: false, "aria-label": "Query", autocomplete: "off" });
  const behind = el("pre", { "aria-hidden": "true" });
  const offers = el("ul", { class: "completions", "aria-label": "Completions" });
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const key = el("input", { placeholder: 'all, or a key such as "ada"', "aria-label": "Partition key" });
  const parameters = el("input", { placeholder: '{"@name": "ada"}', "aria-label": "Parameters" });
  const start = el("button", { class: "primary", onclick: doing(() => go(true)), title: "Ctrl+Enter" }, "Run");
  const cancel = el("button", { disabled: true, onclick: () => run?.abort() }, "Cancel");
  const more = el("button", { hidden: true, onclick: doing(() => go(false)) }, "Next page");
  const results = el("div", {}), status = el("span", { class: "faint", role: "status" });
  const history = el("select", { "aria-label": "Earlier queries", onchange: () => { if (history.value) { text.value = history.value; mark(); } history.value = ""; } });
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Results" });

  main.replaceChildren(
    el("div", { class: "code" }, behind, text), offers, problem,
    el("div", { class: "bar" }, start, cancel, labelled("Partition key", key), labelled("Parameters", parameters), labelled("Earlier", history)),
    tabs, results, el("div", { class: "bar" }, more, status));
  drawHistory(); drawTabs(); drawResults(); mark();

  text.addEventListener("input", () => { mark(); complete(); });
  text.addEventListener("scroll", () => { behind.scrollTop = text.scrollTop; });
  text.addEventListener("keydown", e => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); start.click(); }
    if (e.key === " " && e.ctrlKey) { e.preventDefault(); offers.querySelector("button")?.click(); }
  });
  signal.addEventListener("abort", () => run?.abort());
  api.query(db, container.id, "SELECT TOP 20 * FROM c", { max: 20, signal }).then(p => { sampled = paths(p.rows); }).catch(() => {});

  /** The paths that items have, as in c.address.city. */
  function paths(items) {
    const found = new Set();
    const walk = (v, path, depth) => {
      if (v === null || typeof v !== "object" || Array.isArray(v) || depth > 4) return;
      for (const [name, inner] of Object.entries(v)) {
        const next = /^[A-Za-z_]\w*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
        found.add(next);
        walk(inner, next, depth + 1);
      }
    };
    for (const item of items) walk(item, "c", 0);
    return [...found];
  }

  function complete() {
    const before = text.value.slice(0, text.selectionStart);
    const word = /[\w.@"[\]]+$/.exec(before)?.[0] ?? "";
    const fits = word.length < 1 ? [] : [...sampled.filter(p => p.startsWith(word) && p !== word), ...words.filter(w => w.toLowerCase().startsWith(word.toLowerCase()) && w !== word)].slice(0, 8);
    offers.replaceChildren(...fits.map(f => el("li", {}, el("button", { type: "button", tabIndex: -1, onclick: () => {
      const at = text.selectionStart;
      text.setRangeText(f, at - word.length, at, "end");
      text.focus();
      mark(); complete();
    } }, f))));
  }

  /** Underlines the error, at the place that the server named. */
  function mark(location) {
    if (!location) return behind.replaceChildren(text.value + "\n");
    const end = Math.max(location.end, location.start + 1);
    behind.replaceChildren(text.value.slice(0, location.start), el("mark", {}, text.value.slice(location.start, end) || " "), text.value.slice(end) + "\n");
  }

  async function go(first) {
    const query = text.value;
    if (first) { rows = []; continuation = undefined; charge = 0; metrics = ""; indexes = null; }
    run = new AbortController();
    cancel.disabled = false;
    problem.hidden = true;
    mark();
    const began = performance.now();
    try {
      const page = await api.query(db, container.id, query, { continuation, key: keyText(), parameters: parameterList(), metrics: true, max: 100, signal: run.signal });
      rows = rows.concat(page.rows);
      ({ continuation, metrics, indexes } = page);
      charge += page.charge;
      status.textContent = `${count(rows.length)} rows${continuation ? " so far" : ""}, ${charge.toFixed(2)} RU, ${Math.round(performance.now() - began)} ms`;
      if (first) remember(query);
    } catch (err) {
      if (signal.aborted) return;
      status.textContent = err.name === "AbortError" ? "Cancelled." : "";
      if (err.name !== "AbortError") {
        problem.textContent = err.message;
        problem.hidden = false;
        mark(err.location);
        if (err.location) { text.focus(); text.setSelectionRange(err.location.start, err.location.end); }
      }
    } finally { cancel.disabled = true; run = null; }
    more.hidden = !continuation;
    drawResults();
  }

  function keyText() {
    const given = key.value.trim();
    if (given === "") return undefined;
    let v = given;
    try { v = JSON.parse(given); } catch { /* plain text is a string */ }
    return api.headerJSON(Array.isArray(v) ? v : [v]);
  }

  function parameterList() {
    if (parameters.value.trim() === "") return [];
    return Object.entries(JSON.parse(parameters.value)).map(([name, value]) => ({ name: name.startsWith("@") ? name : "@" + name, value }));
  }

  function remember(query) {
    localStorage.setItem(historyKey, JSON.stringify([query, ...past().filter(q => q !== query)].slice(0, MOST_HISTORY)));
    drawHistory();
  }

  function drawHistory() {
    history.replaceChildren(el("option", { value: "" }, "…"), ...past().map(q => el("option", { value: q }, q.slice(0, 80))));
  }

  function drawTabs() {
    tabs.replaceChildren(...Object.entries({ table: "Table", json: "JSON", metrics: "Metrics", indexes: "Indexes" }).map(([name, title]) =>
      el("button", { role: "tab", "aria-selected": String(name === tab), onclick: () => { tab = name; drawTabs(); drawResults(); } }, title)));
  }

  function drawResults() {
    if (tab === "metrics") return results.replaceChildren(metricsTable());
    if (tab === "indexes") return results.replaceChildren(indexList());
    const body = tab === "json" || rows.some(scalar)
      ? el("pre", { class: "block" }, JSON.stringify(rows.map(clean), null, 2)) : rowsTable();
    results.replaceChildren(rows.length === 0 ? el("p", { class: "empty" }, "No rows.") : el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Rows" }, body),
      rows.length > 0 && el("div", { class: "bar" },
        el("button", { onclick: () => download(`${container.id}.jsonl`, "application/x-ndjson", rows.map(r => JSON.stringify(r) + "\n")) }, "Save as JSONL"),
        el("button", { onclick: () => download(`${container.id}.csv`, "text/csv", csv()) }, "Save as CSV")) || "");
  }

  function heads() { return [...new Set(rows.flatMap(r => Object.keys(clean(r))))]; }

  function rowsTable() {
    const names = heads();
    return table(names, rows.map(r => names.map(h => cell(r[h]))));
  }

  function csv() {
    const scalars = rows.some(scalar);
    // A cell that a spreadsheet would take for a formula gets an apostrophe.
    const quote = v => { const s = cell(v), safe = typeof v === "string" && /^[=+\-@\t\r]/.test(s) ? "'" + s : s; return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe; };
    const names = scalars ? ["value"] : heads();
    return [names, ...rows.map(r => scalars ? [r] : names.map(n => r[n]))].map(line => line.map(quote).join(",") + "\r\n");
  }

  function metricsTable() {
    if (!metrics) return el("p", { class: "empty" }, "Run a query first.");
    return el("div", { class: "scroll" }, table(["of the last page", ""], [["request charge", `${charge.toFixed(2)} RU`], ...metrics.split(";").map(m => m.split("="))], [1]));
  }

  function indexList() {
    if (!indexes) return el("p", { class: "empty" }, "Run a query first.");
    const list = (title, all, spec) => el("section", {}, el("h3", {}, title), all?.length ? el("ul", {}, all.map(i => el("li", {}, el("code", {}, spec(i))))) : el("p", { class: "faint" }, "none"));
    const single = i => i.IndexSpec, composite = i => i.IndexSpecs.join(", ");
    const possible = indexes.PotentialCompositeIndexes ?? [];
    return el("div", { class: "card" },
      list("Used", indexes.UtilizedSingleIndexes, single), list("Used composite indexes", indexes.UtilizedCompositeIndexes, composite),
      list("Possible", indexes.PotentialSingleIndexes, single), list("Possible composite indexes", possible, composite),
      !session.readOnly && possible.map(i => el("button", { onclick: doing(() => addComposite(i.IndexSpecs)) }, `Add this index: ${i.IndexSpecs.join(", ")}`)));
  }

  async function addComposite(specs) {
    const path = api.collPath(db, container.id);
    const { body } = await api.send("GET", path);
    const index = specs.map(s => { const [p, order] = s.split(" "); return { path: p, order: /desc/i.test(order ?? "") ? "descending" : "ascending" }; });
    body.indexingPolicy.compositeIndexes = [...(body.indexingPolicy.compositeIndexes ?? []), index];
    await api.send("PUT", path, { body });
    toast("The index is added.");
    await reload();
  }
}
