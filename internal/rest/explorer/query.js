// SPDX-License-Identifier: MIT

// Queries: writing them with completion, errors where they are, results in pages.

import { ask, complain, confirmed, count, doing, download, el, labelled, store, stored, table, toast } from "./dom.js";
import * as api from "./api.js";
import { codeEditor } from "./code.js";
import { isSystem } from "./diff.js";
import { cellText, csvHead, csvLine } from "./formats.js";
import { completions, pathsOf } from "./language.js";

const MOST_HISTORY = 30,
  MOST_SAVED = 200;
const PAGE = 100;
const MOST_DRAWN = 2000; // rows that the table shows
const SAMPLED = 50;

const scalar = r => r === null || typeof r !== "object" || Array.isArray(r);
const clean = r => (scalar(r) ? r : Object.fromEntries(Object.entries(r).filter(([n]) => !isSystem(n))));

export async function queryView(main, ctx) {
  const { db, container, signal, session, params } = ctx;
  const historyKey = `queries/${db}/${container.id}`,
    savedKey = `saved/${db}/${container.id}`;
  let run = /** @type {AbortController | null} */ (null),
    indexes = /** @type {any} */ (null);
  let rows = [],
    continuation,
    pages = [],
    tab = "table",
    metrics = "",
    sampled = [];
  const code = codeEditor({
    value: params.get("q") ?? stored(historyKey, [])[0] ?? "SELECT * FROM c",
    label: "Query",
    language: "sql",
    rows: 7,
    id: "query",
    onrun: () => start.click(),
    complete: (text, at, asked) => completions(text, at, { paths: sampled, parameters: parameterNames() }, asked),
  });
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const key = el("input", { placeholder: 'all, or a key such as "ada"', "aria-label": "Partition key" });
  const parameters = el("input", { placeholder: '{"@name": "ada"}', "aria-label": "Parameters" });
  const start = el("button", { class: "primary", onclick: doing(() => go(true)), title: "Ctrl+Enter" }, "Run");
  const cancel = el("button", { disabled: true, onclick: () => run?.abort() }, "Cancel");
  const more = el("button", { hidden: true, onclick: doing(() => go(false)) }, "Next page");
  const results = el("div", { role: "tabpanel", id: "results", "aria-label": "Results" }),
    status = el("span", { class: "faint", role: "status" });
  const earlier = el("select", { "aria-label": "Earlier and saved queries", onchange: () => pickQuery() });
  const save = el("button", { onclick: doing(saveQuery) }, "Save…"),
    forget = el("button", { onclick: doing(forgetQuery) }, "Forget…");
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Results", onkeydown: turn });

  main.replaceChildren(
    code.element,
    problem,
    el(
      "div",
      { class: "bar" },
      start,
      cancel,
      el("span", { class: "space" }),
      labelled("Partition key", key),
      labelled("Parameters", parameters),
      labelled("Earlier and saved", earlier),
      save,
      forget,
    ),
    tabs,
    results,
    el("div", { class: "bar" }, more, status),
  );
  drawEarlier();
  drawTabs();
  drawResults();
  signal.addEventListener("abort", () => run?.abort());
  api
    .query(db, container.id, `SELECT TOP ${SAMPLED} * FROM c`, { max: SAMPLED, signal })
    .then(p => {
      sampled = pathsOf(p.rows);
      code.offer();
    })
    .catch(() => {});

  async function go(first) {
    const query = code.value;
    if (first) {
      rows = [];
      continuation = undefined;
      pages = [];
      metrics = "";
      indexes = null;
      ctx.remember({ q: query });
    }
    problem.hidden = true;
    code.mark(null);
    try {
      await read(query);
      if (first) remember(query);
    } catch (err) {
      if (signal.aborted) return;
      status.textContent = err.name === "AbortError" ? "Cancelled." : "";
      if (err.name !== "AbortError") explainFault(err);
    }
    more.hidden = !continuation;
    drawResults();
  }

  /** Reads a page of the query. */
  async function read(query) {
    const mine = (run = new AbortController());
    cancel.disabled = false;
    const began = performance.now();
    try {
      const page = await api.query(db, container.id, query, {
        continuation,
        key: keyText(),
        parameters: parameterList(),
        metrics: true,
        max: PAGE,
        signal: mine.signal,
      });
      for (const row of page.rows) rows.push(row);
      ({ continuation, metrics, indexes } = page);
      pages.push({ rows: page.rows.length, charge: page.charge, ms: Math.round(performance.now() - began) });
      say();
    } finally {
      cancel.disabled = true;
      run = null;
    }
  }

  function total(name) {
    return pages.reduce((n, p) => n + p[name], 0);
  }
  function say() {
    status.textContent = `${count(rows.length)} rows${continuation ? " so far" : ""}, ${total("charge").toFixed(2)} RU, ${count(total("ms"))} ms`;
  }

  /** Shows what is wrong where it is, and what would mend it. */
  function explainFault(err) {
    problem.replaceChildren(err.message);
    problem.hidden = false;
    code.mark(err.location);
    const order = /composite index/i.test(err.message) && orderOf(code.value);
    if (order && !session.readOnly)
      problem.append(" ", el("button", { onclick: doing(() => addComposite(order)) }, `Add this index: ${order.join(", ")}`));
  }

  /** The composite index that an ORDER BY of several paths needs. */
  function orderOf(text) {
    const by = /\bORDER\s+BY\s+([\s\S]*?)(?:\bOFFSET\b|$)/i.exec(text)?.[1];
    const specs = (by ?? "").split(",").map(part => {
      const spec = /^\s*\w+((?:\.\w+)+)(?:\s+(ASC|DESC))?\s*$/i.exec(part);
      return spec ? `${spec[1].replaceAll(".", "/")} ${(spec[2] ?? "ASC").toUpperCase()}` : "";
    });
    return specs.length > 1 && !specs.includes("") ? specs : null;
  }

  function keyText() {
    const given = key.value.trim();
    if (given === "") return undefined;
    let v = given;
    try {
      v = JSON.parse(given);
    } catch {
      /* plain text is a string */
    }
    return api.headerJSON(Array.isArray(v) ? v : [v]);
  }

  function parameterList() {
    if (parameters.value.trim() === "") return [];
    let given;
    try {
      given = JSON.parse(parameters.value);
    } catch (err) {
      throw new Error(`The parameters are not JSON: ${err.message}`);
    }
    return Object.entries(given).map(([name, value]) => ({ name: name.startsWith("@") ? name : "@" + name, value }));
  }

  function parameterNames() {
    try {
      return parameterList().map(p => p.name);
    } catch {
      return [];
    }
  }

  // What was run before, and what was saved with a name.

  function remember(query) {
    store(historyKey, [query, ...stored(historyKey, []).filter(q => q !== query)].slice(0, MOST_HISTORY));
    drawEarlier();
  }

  function drawEarlier() {
    const saved = stored(savedKey, []),
      past = stored(historyKey, []);
    const group = (label, all) => all.length > 0 && el("optgroup", { label }, all);
    forget.hidden = saved.length + past.length === 0;
    earlier.replaceChildren(
      ...[
        el("option", { value: "" }, "…"),
        group(
          "Saved",
          saved.map((s, i) => el("option", { value: `s${i}` }, s.name)),
        ),
        group(
          "Earlier",
          past.map((q, i) => el("option", { value: `p${i}` }, q.replace(/\s+/g, " ").slice(0, 60))),
        ),
      ].filter(Boolean),
    );
  }

  function pickQuery() {
    const i = Number(earlier.value.slice(1)),
      from = earlier.value[0];
    earlier.value = "";
    const query = from === "s" ? stored(savedKey, [])[i]?.query : from === "p" ? stored(historyKey, [])[i] : undefined;
    if (query !== undefined) {
      code.value = query;
      code.text.focus();
    }
  }

  async function saveQuery() {
    const name = el("input", { required: true, maxLength: 100 });
    await ask({
      title: "Save the query",
      ok: "Save",
      body: [labelled("Name", name, "In this browser only. A name that exists is replaced."), el("pre", { class: "system" }, code.value)],
      submit: () => {
        store(
          savedKey,
          [{ name: name.value, query: code.value }, ...stored(savedKey, []).filter(s => s.name !== name.value)].slice(0, MOST_SAVED),
        );
        drawEarlier();
        return true;
      },
    });
  }

  async function forgetQuery() {
    if (
      !(await confirmed(
        "Forget queries",
        "All queries that this browser remembers for this container, also the saved ones, will be forgotten.",
        "Forget",
      ))
    )
      return;
    store(historyKey, []);
    store(savedKey, []);
    drawEarlier();
  }

  // Results.

  function drawTabs() {
    tabs.replaceChildren(
      ...Object.entries({ table: "Table", json: "JSON", charge: "Charge", metrics: "Metrics", indexes: "Indexes" }).map(([name, title]) =>
        el(
          "button",
          {
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(name === tab),
            "aria-controls": "results",
            tabIndex: name === tab ? 0 : -1,
            onclick: () => {
              tab = name;
              drawTabs();
              drawResults();
            },
          },
          title,
        ),
      ),
    );
  }

  function turn(e) {
    const all = [...tabs.children],
      at = all.indexOf(document.activeElement),
      step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step || at < 0) return;
    const next = all[(at + step + all.length) % all.length].id;
    document.getElementById(next)?.click();
    document.getElementById(next)?.focus();
  }

  function drawResults() {
    if (tab === "charge") return results.replaceChildren(chargeTable());
    if (tab === "metrics") return results.replaceChildren(metricsTable());
    if (tab === "indexes") return results.replaceChildren(indexList());
    if (rows.length === 0)
      return results.replaceChildren(el("p", { class: "empty" }, pages.length > 0 ? "No rows." : "Ctrl+Enter runs the query."));
    const drawn = rows.slice(0, MOST_DRAWN);
    const body =
      tab === "json" || rows.some(scalar) ? el("pre", { class: "block" }, JSON.stringify(drawn.map(clean), null, 2)) : rowsTable(drawn);
    results.replaceChildren(
      ...[
        el("div", { class: "scroll results", tabIndex: 0, role: "region", "aria-label": "Rows" }, body),
        rows.length > MOST_DRAWN && el("p", { class: "faint" }, `The first ${count(MOST_DRAWN)} rows are shown. A file has all of them.`),
        el(
          "div",
          { class: "bar" },
          el("button", { onclick: doing(() => saveAs("jsonl")) }, "Save as JSONL"),
          el("button", { onclick: doing(() => saveAs("csv")) }, "Save as CSV"),
          continuation ? el("button", { onclick: doing(readAll) }, "Read all pages") : null,
        ),
      ].filter(Boolean),
    );
  }

  /** Reads what is left of the query, so that a file has all of it. */
  async function readAll() {
    const query = code.value;
    try {
      while (continuation && !signal.aborted) await read(query);
    } catch (err) {
      if (err.name !== "AbortError") complain(err);
    }
    more.hidden = !continuation;
    drawResults();
  }

  function saveAs(form) {
    if (form === "jsonl")
      return download(
        `${container.id}.jsonl`,
        "application/x-ndjson",
        rows.map(r => JSON.stringify(r) + "\n"),
      );
    const scalars = rows.some(scalar),
      names = scalars ? ["value"] : heads(rows);
    const text = rows.map(r => csvLine(scalars ? [r] : names.map(n => r[n]), names));
    return download(`${container.id}.csv`, "text/csv", [csvHead(names), ...text]);
  }

  function heads(of) {
    return [...new Set(of.flatMap(r => Object.keys(clean(r))))];
  }

  function rowsTable(of) {
    const names = heads(of);
    return table(
      names,
      of.map(r => names.map(h => cellText(r[h]))),
    );
  }

  function chargeTable() {
    if (pages.length === 0) return el("p", { class: "empty" }, "Run a query first.");
    return el(
      "div",
      { class: "scroll results", tabIndex: 0, role: "region", "aria-label": "Charge" },
      table(
        ["page", "rows", "request units", "milliseconds"],
        [
          ...pages.map((p, i) => [String(i + 1), count(p.rows), p.charge.toFixed(2), count(p.ms)]),
          ["all", count(rows.length), total("charge").toFixed(2), count(total("ms"))],
        ],
        [1, 2, 3],
      ),
    );
  }

  function metricsTable() {
    if (!metrics) return el("p", { class: "empty" }, "Run a query first.");
    return el(
      "div",
      { class: "scroll results", tabIndex: 0, role: "region", "aria-label": "Metrics" },
      table(
        ["of the last page", "value"],
        metrics.split(";").map(m => m.split("=")),
        [1],
      ),
    );
  }

  function indexList() {
    if (!indexes) return el("p", { class: "empty" }, "Run a query first.");
    const list = (title, all, spec) =>
      el(
        "section",
        {},
        el("h2", {}, title),
        all?.length
          ? el(
              "ul",
              {},
              all.map(i => el("li", {}, el("code", {}, spec(i)))),
            )
          : el("p", { class: "faint" }, "none"),
      );
    const single = i => i.IndexSpec,
      composite = i => i.IndexSpecs.join(", ");
    const possible = indexes.PotentialSingleIndexes ?? [],
      several = indexes.PotentialCompositeIndexes ?? [];
    return el(
      "div",
      { class: "card" },
      list("Used", indexes.UtilizedSingleIndexes, single),
      list("Used composite indexes", indexes.UtilizedCompositeIndexes, composite),
      list("Possible", possible, single),
      list("Possible composite indexes", several, composite),
      !session.readOnly &&
        possible.map(i => el("button", { onclick: doing(() => addSingle(i.IndexSpec)) }, `Add this index: ${i.IndexSpec}`)),
      !session.readOnly &&
        several.map(i => el("button", { onclick: doing(() => addComposite(i.IndexSpecs)) }, `Add this index: ${i.IndexSpecs.join(", ")}`)),
    );
  }

  async function change(mend) {
    const path = api.collPath(db, container.id);
    const { body } = await api.send("GET", path);
    mend(body.indexingPolicy);
    await api.send("PUT", path, { body, headers: { "If-Match": body._etag } });
    problem.hidden = true;
    toast("The index is added.");
  }

  function addSingle(spec) {
    return change(policy => {
      policy.excludedPaths = (policy.excludedPaths ?? []).filter(p => p.path !== spec);
      policy.includedPaths = [...(policy.includedPaths ?? []).filter(p => p.path !== spec), { path: spec }];
    });
  }

  function addComposite(specs) {
    const index = specs.map(s => {
      const [p, order] = s.split(" ");
      return { path: p, order: /desc/i.test(order ?? "") ? "descending" : "ascending" };
    });
    return change(policy => {
      policy.compositeIndexes = [...(policy.compositeIndexes ?? []), index];
    });
  }
}
