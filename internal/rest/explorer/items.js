// SPDX-License-Identifier: MIT

// The items of a container, each with its countdown, and what can be done to them.

import { ask, complain, count, doing, download, el, labelled, seconds, span, stored, store, table, ticked, toast } from "./dom.js";
import * as api from "./api.js";
import { codeEditor } from "./code.js";
import { keyed, signal } from "./core.js";
import { difference, isSystem, patched, pick } from "./diff.js";
import { editItem, newItem } from "./editor.js";
import { cellText } from "./formats.js";
import { pathsOf } from "./language.js";
import { baseFor, COVERED, MOST_ROWS, Pages } from "./pages.js";

const ROW = 34; // the height of a row, in pixels, as in the style sheet
const SPARE = 12; // rows drawn above and below what is visible
const AHEAD = 60; // rows read before they are visible
const AT_ONCE = 4; // requests at the same time
const FADE = 3000; // how long an expired item stays visible, in milliseconds
const SOON = 10_000; // a countdown below this is marked
const STILL = 150; // after which time a list stands still, in milliseconds
const MOST_SAMPLED = 200;
const MOST_SELECTED = 10_000;
const PREVIEWED = 10;
const LONGEST_CELL = 300; // characters that are shown of a value

export async function itemsView(main, ctx) {
  const { db, container, session, params } = ctx;
  const columnsKey = `columns/${db}/${container.id}`;
  let scrolling = 0,
    lookingUp = 0,
    actionsDrawn = "";
  let charge = 0,
    columns = stored(columnsKey, null),
    loading = true,
    active = 0,
    base = 0, // the row that the list begins with
    firstShown = 0,
    round = 0;
  let ending = new AbortController(); // of the requests for the list as it is filtered now
  /** @type {Pages<any>} */
  let pages;
  const selected = new Map(); // items by _rid
  const known = new Map(); // what is known of deadlines, by _rid
  const shown = signal(/** @type {any[]} */ ([]));
  ctx.signal.addEventListener("abort", () => ending.abort());

  const filter = el("input", {
    id: "filter",
    type: "search",
    placeholder: "a part of an id, or a condition such as c.price > 5",
    "aria-label": "Filter",
    autocomplete: "off",
    value: params.get("filter") ?? "",
    list: "filter-paths",
    onkeydown: e => {
      if (e.key === "Enter") load().catch(complain);
    },
  });
  const offers = el("datalist", { id: "filter-paths" });
  const status = el("span", { class: "faint", role: "status" }),
    problem = el("p", { class: "error", role: "alert", hidden: true });
  const above = el("tbody", { class: "pad", "aria-hidden": "true" }),
    body = el("tbody", {}),
    below = el("tbody", { class: "pad", "aria-hidden": "true" }),
    head = el("tr", {});
  const grid = el("table", { class: "rows" }, el("thead", {}, head), above, body, below);
  const list = el(
    "div",
    {
      class: "scroll list",
      tabIndex: 0,
      role: "region",
      "aria-label": "Items",
      onscroll: scrolled,
      onkeydown: moved,
    },
    grid,
  );
  const actions = el("div", { class: "bar actions", hidden: true });
  const empty = el("div", { class: "empty", hidden: true });

  main.replaceChildren(
    el(
      "div",
      { class: "bar" },
      el("span", { class: "grow" }, filter, offers),
      el("button", { onclick: doing(load) }, "Filter"),
      el("button", { onclick: () => chooseColumns() }, "Columns"),
      el("button", { onclick: doing(load) }, "Refresh"),
      !session.readOnly &&
        el(
          "button",
          {
            class: "primary",
            onclick: doing(async () => {
              if (await newItem(ctx)) await load();
            }),
          },
          "New item",
        ),
    ),
    problem,
    actions,
    list,
    empty,
    el("div", { class: "bar" }, status),
  );

  keyed(
    body,
    () => shown.value,
    item => item,
    row,
    { until: ctx.signal },
  );
  const timer = setInterval(tick, 200);
  ctx.signal.addEventListener("abort", () => clearInterval(timer));
  addEventListener("resize", () => render(), { signal: ctx.signal });
  await load();
  if (params.get("id") !== null) await open({ id: params.get("id"), key: params.get("key") ?? "[]" });

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
    ending.abort();
    ending = new AbortController();
    if (ctx.signal.aborted) return;
    const { text, parameters } = filterQuery(),
      signal = ending.signal;
    pages = new Pages(async (continuation, max) => {
      const page = await api.query(db, container.id, text, { parameters, continuation, max, signal });
      charge += page.charge;
      return page;
    });
    round++;
    charge = 0;
    active = 0;
    loading = true;
    selected.clear();
    known.clear();
    shown.value = [];
    base = 0;
    list.scrollTop = 0;
    problem.hidden = true;
    if (round > 1) ctx.remember(filter.value === "" ? {} : { filter: filter.value });
    try {
      await pages.ensure(0, 1);
    } catch (err) {
      if (signal.aborted) return;
      problem.textContent = err.message;
      problem.hidden = false;
    }
    loading = false;
    if (pages.length > 0) columns ??= firstColumns();
    offers.replaceChildren(
      ...pathsOf(pages.kept().slice(0, MOST_SAMPLED))
        .filter(p => !p.includes("[]"))
        .map(p => el("option", { value: `c${p} ` })),
    );
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
    return [
      ...new Set([
        ...(columns ?? []),
        ...pages
          .kept()
          .slice(0, MOST_SAMPLED)
          .flatMap(item => Object.keys(item)),
      ]),
    ].filter(n => n !== "id");
  }

  function drawHead() {
    const all = el("input", {
      type: "checkbox",
      "aria-label": "Select all loaded items",
      onchange: e => {
        selected.clear();
        if (e.target.checked) for (const item of pages.kept().slice(0, MOST_SELECTED)) selected.set(item._rid, item);
        redraw();
      },
    });
    head.replaceChildren(
      ...[session.readOnly ? el("span", { class: "hidden-text" }, "Selection") : all, "id", "expires in", ...(columns ?? [])].map(c =>
        el("th", { scope: "col" }, c),
      ),
    );
  }

  function redraw() {
    shown.value = [];
    render();
  }

  /** Draws the rows in view. @param {number} [top] where that is to begin, in pixels from the base */
  function render(top = list.scrollTop) {
    if (ctx.signal.aborted) return;
    const total = pages.length,
      room = Math.max(list.clientHeight, ROW);
    const stood = list.scrollTop,
      next = baseFor(base, base + Math.floor(top / ROW), total);
    top += (base - next) * ROW;
    base = next;
    const covered = Math.min(total, base + COVERED);
    const first = base + Math.max(0, Math.floor(top / ROW) - SPARE),
      last = Math.min(covered, base + Math.ceil((top + room) / ROW) + SPARE);
    firstShown = first;
    const now = [];
    for (let i = first; i < last; i++) now.push(pages.at(i) ?? { missing: i });
    const focused = document.activeElement,
      inside = focused instanceof HTMLElement && body.contains(focused);
    above.style.height = `${(first - base) * ROW}px`;
    below.style.height = `${Math.max(0, covered - last) * ROW}px`;
    // A page that is read is another list of objects, but a place that is missing is no object of its own.
    const before = new Map(
      shown
        .peek()
        .filter(r => r.missing !== undefined)
        .map(r => [r.missing, r]),
    );
    shown.value = now.map(r => (r.missing === undefined ? r : (before.get(r.missing) ?? r)));
    if (top !== stood) list.scrollTop = top; // now that the rows are there
    if (inside && !body.contains(focused)) list.focus({ preventScroll: true });
    grid.setAttribute("aria-rowcount", pages.more ? "-1" : String(total + 1));
    empty.hidden = total > 0 || loading;
    list.hidden = total === 0;
    empty.replaceChildren(filter.value ? "No item matches." : "There are no items here.");
    status.textContent = `${count(total)}${pages.more ? "+" : ""} items, ${charge.toFixed(2)} RU${total >= MOST_ROWS ? ". The list ends here; filter it to see others." : ""}`;
    drawActions();
    lookUp();
    const mine = round;
    if (!loading && ((last + AHEAD > total && pages.more) || now.some(r => r.missing !== undefined))) {
      pages
        .ensure(first, last + AHEAD)
        .then(read => {
          if (read && mine === round) render();
        })
        .catch(err => {
          if (!ctx.signal.aborted && mine === round) complain(err);
        });
    }
  }

  function row(item) {
    if (item.missing !== undefined) return el("tr", {}, el("td", { class: "faint", colspan: 3 + (columns?.length ?? 0) }, "…"));
    const box = el("input", {
      type: "checkbox",
      tabIndex: -1,
      "aria-label": `Select ${item.id}`,
      checked: selected.has(item._rid),
      onchange: () => select(item, box.checked),
    });
    const left = el("span", { class: "count" }),
      badge = el("span", { class: "badge" });
    const tr = el(
      "tr",
      {},
      el("td", {}, session.readOnly ? "" : box),
      el(
        "td",
        {},
        el(
          "button",
          {
            class: "link",
            tabIndex: -1,
            onclick: doing(() => open({ id: item.id, key: api.keyOf(container, item) })),
            onfocus: () => {
              active = indexOf(item);
            },
          },
          item.id,
        ),
      ),
      el("td", {}, left, " ", badge),
      (columns ?? []).map(c => el("td", {}, cellText(item[c]).slice(0, LONGEST_CELL))),
    );
    Object.assign(tr, { item, left, badge, box });
    countDown(item, tr);
    return tr;
  }

  function indexOf(item) {
    const i = shown.peek().indexOf(item);
    return i < 0 ? active : firstShown + i;
  }

  function select(item, on) {
    if (on) selected.set(item._rid, item);
    else selected.delete(item._rid);
    drawActions();
  }

  /** Draws what has come into view. Deadlines are asked for when the list stands still. */
  function scrolled() {
    clearTimeout(scrolling);
    scrolling = setTimeout(() => {
      scrolling = 0;
      lookUp();
    }, STILL);
    requestAnimationFrame(() => render());
  }

  /** Arrows go from item to item, the space bar selects, Enter opens. */
  function moved(e) {
    const inRow = body.contains(e.target),
      page = Math.max(1, Math.floor(list.clientHeight / ROW) - 2);
    const steps = { ArrowDown: inRow ? 1 : 0, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (e.key === " " && inRow && !session.readOnly && e.target.tagName === "BUTTON") {
      e.preventDefault();
      const tr = e.target.closest("tr");
      tr.box.checked = !tr.box.checked;
      select(tr.item, tr.box.checked);
      return;
    }
    if (!(e.key in steps) || e.ctrlKey || e.metaKey || e.altKey || pages.length === 0) return;
    e.preventDefault();
    active = Math.min(pages.length - 1, Math.max(0, active + steps[e.key]));
    let view = list.scrollTop;
    if (active < base || active >= base + COVERED) base = Math.max(0, active - COVERED / 2);
    const top = (active - base) * ROW,
      head = ROW;
    if (top < view) view = top;
    else if (top + ROW > view + list.clientHeight - head) view = top + ROW + head - list.clientHeight;
    render(view);
    const item = pages.at(active);
    [...body.children]
      .find(tr => tr.item === item && item)
      ?.querySelector("button")
      ?.focus({ preventScroll: true });
  }

  async function open(place) {
    ctx.remember({ ...(filter.value ? { filter: filter.value } : {}), id: place.id, key: place.key });
    const changed = await editItem(ctx, place);
    if (ctx.signal.aborted) return;
    ctx.remember(filter.value ? { filter: filter.value } : {});
    if (changed) await load();
    // Back to where the keyboard was.
    else
      [...body.children]
        .find(tr => tr.item?.id === place.id)
        ?.querySelector("button")
        ?.focus({ preventScroll: true });
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
  function countDown(item, tr) {
    const d = deadline(item);
    const left = d.ms === null ? Infinity : d.ms === undefined ? NaN : d.ms - api.now();
    const text =
      left === Infinity
        ? ""
        : Number.isNaN(left)
          ? "…"
          : left <= 0
            ? "expired"
            : left < SOON
              ? `${(left / 1000).toFixed(1)} s`
              : span(left / 1000);
    if (tr.badge.textContent !== d.source) tr.badge.textContent = d.source;
    if (tr.left.textContent !== text) tr.left.textContent = text;
    tr.left.classList.toggle("soon", left < SOON);
    if (left > 0 || Number.isNaN(left) || d.gone) return;
    if (!d.exact) {
      lookUp();
      return;
    }
    d.gone = true;
    known.set(item._rid, d);
    confirmGone(item, tr).catch(err => {
      if (!ctx.signal.aborted) complain(err);
    });
  }

  /** Asks the server whether an item is gone, whose countdown may have been restarted. */
  async function confirmGone(item, tr) {
    const mine = round,
      e = await api.explain(db, container, item.id, api.keyOf(container, item), ctx.signal);
    if (e && !e.expired && !e.purged) {
      known.set(item._rid, learned(e));
      return;
    }
    tr.classList.add("gone");
    selected.delete(item._rid);
    setTimeout(() => {
      if (ctx.signal.aborted || mine !== round) return;
      pages.remove(item);
      render();
    }, FADE);
  }

  function learned(e) {
    const source = e.expiresAtMs === null ? "never" : e.source === "container" ? "default" : "own";
    return { exact: true, ms: e.expiresAtMs, source, reason: e.reason };
  }

  function tick() {
    for (const tr of body.children) if (tr.item && !tr.classList.contains("gone")) countDown(tr.item, tr);
  }

  /** Asks the server for the exact deadlines of the rows that are drawn. */
  function lookUp() {
    if (scrolling) return;
    while (lookingUp < AT_ONCE) {
      const item = shown.peek().find(i => i.missing === undefined && !known.has(i._rid) && !deadline(i).exact);
      if (!item || ctx.signal.aborted) return;
      lookingUp++;
      known.set(item._rid, { ...deadline(item), exact: false });
      api
        .explain(db, container, item.id, api.keyOf(container, item), ctx.signal)
        .then(e => known.set(item._rid, e && !e.purged ? learned(e) : { exact: true, ms: 0, source: "own" }))
        .catch(err => {
          if (!ctx.signal.aborted) complain(err);
        })
        .finally(() => {
          lookingUp--;
          lookUp();
        });
    }
  }

  // What can be done to several items.

  function drawActions() {
    const n = selected.size,
      expires = container.defaultTtl !== undefined;
    const state = `${n} ${pages.more || pages.length > n}`;
    if (actionsDrawn === state) return;
    actionsDrawn = state;
    actions.hidden = n === 0;
    actions.replaceChildren(
      ...[
        el("strong", {}, `${count(n)} selected`),
        pages.length > n || pages.more ? el("button", { onclick: doing(selectAll) }, "Select all that match") : null,
        expires && el("button", { onclick: doing(extend) }, "Extend…"),
        expires && el("button", { onclick: doing(() => patchTTL(-1)) }, "Never expire"),
        el("button", { onclick: doing(patchSeveral) }, "Patch…"),
        el(
          "button",
          {
            onclick: () =>
              download(
                `${container.id}.jsonl`,
                "application/x-ndjson",
                [...selected.values()].map(i => JSON.stringify(i) + "\n"),
              ),
          },
          "Save as JSONL",
        ),
        el("button", { class: "danger", onclick: doing(deleteSeveral) }, "Delete…"),
      ].filter(Boolean),
    );
  }

  async function selectAll() {
    const { text, parameters } = filterQuery();
    let continuation;
    do {
      const page = await api.query(db, container.id, text, { parameters, continuation, max: 1000, signal: ctx.signal });
      for (const item of page.rows) if (selected.size < MOST_SELECTED) selected.set(item._rid, item);
      continuation = page.continuation;
    } while (continuation && selected.size < MOST_SELECTED);
    if (continuation) toast(`The first ${count(MOST_SELECTED)} items are selected: more cannot be done at once.`);
    redraw();
  }

  /** Shows what something does to the first of the selected items. */
  function preview(what = item => cellText(api.keyOf(container, item))) {
    const rows = [...selected.values()].slice(0, PREVIEWED).map(item => [item.id, what(item)]);
    return [
      el("div", { class: "scroll diff", tabIndex: 0, role: "region", "aria-label": "Preview" }, table(["id", "preview"], rows)),
      selected.size > PREVIEWED && el("p", { class: "faint" }, `and ${count(selected.size - PREVIEWED)} more`),
    ];
  }

  async function extend() {
    const time = el("input", { value: "1h", required: true });
    const n = await ask({
      title: `Extend ${count(selected.size)} items`,
      ok: "Extend",
      body: [
        labelled("They expire after", time, "From now on: a duration such as 90s, 5m, 1h or 3d."),
        preview(item => {
          const d = deadline(item);
          return d.ms ? `expires in ${span((d.ms - api.now()) / 1000)}` : "never expires";
        }),
      ],
      submit: () => {
        const n = seconds(time.value);
        if (!(n >= 1)) throw new Error("This is no duration.");
        return n;
      },
    });
    if (n) await patchTTL(n);
  }

  /** Gives the selected items n seconds from now on; -1 for ever. */
  function patchTTL(n) {
    return each("changed", item => patch(item, api.lifeOperations(container, item, n)));
  }

  function patch(item, operations) {
    return api.send("PATCH", api.itemPath(db, container.id, item.id), {
      headers: { ...api.keyHeader(container, item), "If-Match": item._etag },
      body: { operations },
    });
  }

  async function patchSeveral() {
    const makes = el("div", { role: "status" });
    const paths = pathsOf([...selected.values()].slice(0, MOST_SAMPLED).map(item => pick(item, false)));
    const show = () => {
      try {
        const operations = JSON.parse(code.value);
        makes.replaceChildren(
          ...preview(item => {
            try {
              return difference(item, patched(item, operations)).join("\n") || "no change";
            } catch (err) {
              return err.message;
            }
          }).filter(Boolean),
        );
      } catch (err) {
        makes.replaceChildren(el("p", { class: "faint" }, err.message));
      }
    };
    const code = codeEditor({
      value: '[\n  {"op": "set", "path": "/name", "value": 1}\n]',
      label: "Operations",
      language: "json",
      rows: 6,
      onchange: show,
    });
    show();
    const operations = await ask({
      title: `Patch ${count(selected.size)} items`,
      ok: "Patch",
      body: [
        el(
          "p",
          { class: "faint" },
          "add, set, replace, remove, incr and move, as in the service. ",
          paths.length > 0 &&
            `Paths here: ${paths
              .filter(p => !p.includes("["))
              .slice(0, 12)
              .map(p => p.replaceAll(".", "/"))
              .join(" ")}`,
        ),
        code.element,
        makes,
      ],
      submit: () => code.json(),
    });
    if (operations) await each("patched", item => patch(item, operations));
  }

  async function deleteSeveral() {
    const sure = await ask({ title: `Delete ${count(selected.size)} items`, ok: "Delete", danger: true, body: preview() });
    if (sure)
      await each("deleted", item =>
        api.send("DELETE", api.itemPath(db, container.id, item.id), {
          headers: { ...api.keyHeader(container, item), "If-Match": item._etag },
        }),
      );
  }

  /** Does something to each selected item, several at a time, and says how many failed. */
  async function each(done, work) {
    const queue = [...selected.values()],
      failures = [];
    let n = 0;
    const worker = async () => {
      for (let item = queue.shift(); item; item = queue.shift()) {
        try {
          await work(item);
          n++;
        } catch (err) {
          if (ctx.signal.aborted) return;
          failures.push(`${item.id}: ${err.status === 412 ? "it was changed meanwhile" : err.status === 404 ? "it is gone" : err.message}`);
        }
        status.textContent = `${count(n)} ${done}, ${count(queue.length)} to go`;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    toast(`${count(n)} ${done}${failures.length ? `, ${count(failures.length)} failed. ${failures[0]}` : "."}`, failures.length > 0);
    await load();
  }

  function chooseColumns() {
    const boxes = names().map(name => ({ name, ...ticked(name, { checked: columns?.includes(name) }) }));
    ask({
      title: "Columns",
      body: el(
        "div",
        { class: "choices" },
        boxes.map(b => b.label),
      ),
      submit: () => {
        columns = boxes.filter(b => b.box.checked).map(b => b.name);
        store(columnsKey, columns);
        drawHead();
        redraw();
        return true;
      },
    }).catch(complain);
  }
}
