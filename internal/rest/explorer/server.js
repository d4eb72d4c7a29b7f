// SPDX-License-Identifier: MIT

// Pages about the server: its metrics, and the nodes and partitions of a cluster.

import { ask, complain, count, doing, el, letGo, size, span, table } from "./dom.js";
import * as api from "./api.js";
import { plot } from "./plot.js";

const EVERY = 2000; // how often the page asks, in milliseconds
const MOST_POINTS = 150; // five minutes

/**
 * Reads metrics in Prometheus's text format.
 * @param {string} text
 * @returns {Map<string, {labels: Record<string, string>, value: number}[]>}
 */
export function samples(text) {
  const all = new Map();
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found || line.startsWith("#")) continue;
    const labels = Object.fromEntries(
      [...(found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(m => [
        m[1],
        m[2].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c)),
      ]),
    );
    if (!all.has(found[1])) all.set(found[1], []);
    all.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return all;
}

const sum = (all, name, fits = _ => true) => (all.get(name) ?? []).filter(s => fits(s.labels)).reduce((n, s) => n + s.value, 0);

/** The latency that a part of the requests between two readings stayed below, in seconds. */
export function quantile(before, after, part) {
  const name = "mayfly_request_duration_seconds_bucket",
    counts = new Map();
  const add = (all, sign) => {
    for (const s of all.get(name) ?? []) counts.set(s.labels.le, (counts.get(s.labels.le) ?? 0) + sign * s.value);
  };
  add(after, 1);
  add(before, -1);
  const bounds = [...counts].map(([le, n]) => [le === "+Inf" ? Infinity : Number(le), n]).sort((a, b) => a[0] - b[0]);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (total <= 0) return 0;
  let low = 0,
    below = 0;
  for (const [bound, n] of bounds) {
    if (n >= part * total) return bound === Infinity ? low : low + (bound - low) * (n > below ? (part * total - below) / (n - below) : 0);
    low = bound;
    below = n;
  }
  return low;
}

export async function metricsView(main, { signal }) {
  const kinds = [
    ["Requests a second", ""],
    ["Request units a second", " RU"],
    ["Latency, median", " ms"],
    ["Latency, 99 of 100", " ms"],
    ["Refused requests a second", ""],
    ["Heap", " MiB"],
  ];
  const plots = kinds.map(([label, unit]) => plot({ label, unit, kind: "line", height: 130, heads: "at" }));
  signal.addEventListener("abort", () => {
    for (const p of plots) p.stop();
  });
  const points = [],
    figures = el("div", { class: "cards" });
  const filter = el("input", {
    id: "filter",
    type: "search",
    "aria-label": "Filter",
    placeholder: "a part of a name, such as purge",
    oninput: () => drawAll(),
  });
  const all = el("div", { class: "scroll list", tabIndex: 0, role: "region", "aria-label": "All metrics" });
  main.replaceChildren(
    el("h1", {}, "Metrics"),
    figures,
    el(
      "div",
      { class: "plots" },
      plots.map(p => p.element),
    ),
    el("h2", {}, "All"),
    el("p", { class: "faint" }, "As Prometheus reads them from ", el("code", {}, "/_mayfly/metrics"), " with a key as the bearer token."),
    el("div", { class: "bar" }, el("span", { class: "grow" }, filter)),
    all,
  );
  let last = /** @type {ReturnType<typeof samples>} */ (new Map()),
    at = 0;
  const timer = setInterval(() => {
    if (!document.hidden)
      read().catch(err => {
        if (!signal.aborted && err.status !== 401) complain(err);
      });
  }, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  await read();

  async function read() {
    const { body } = await api.send("GET", "_mayfly/metrics", { signal, plain: true });
    const now = samples(body),
      time = performance.now();
    if (last.size > 0) {
      const rate = (name, fits) => Math.max(0, (sum(now, name, fits) - sum(last, name, fits)) / ((time - at) / 1000));
      points.push({
        at: new Date(api.now()).toISOString().slice(11, 19),
        values: [
          rate("mayfly_requests_total"),
          rate("mayfly_request_units_total"),
          quantile(last, now, 0.5) * 1000,
          quantile(last, now, 0.99) * 1000,
          rate("mayfly_requests_total", l => !/^[23]|^404$|^304$/.test(l.status ?? l.code ?? "200")),
          sum(now, "go_memstats_heap_inuse_bytes") / 2 ** 20,
        ],
      });
      if (points.length > MOST_POINTS) points.shift();
    }
    last = now;
    at = time;
    const card = (title, figure, note = "") =>
      el(
        "div",
        { class: "card" },
        el("div", { class: "faint" }, title),
        el("div", { class: "figure" }, figure),
        el("div", { class: "faint" }, note),
      );
    figures.replaceChildren(
      card("Requests", count(sum(now, "mayfly_requests_total")), "since the start"),
      card("On disk", size(sum(now, "mayfly_engine_disk_bytes"))),
      card("Memory of requests", size(sum(now, "mayfly_memory_bytes")), `of ${size(sum(now, "mayfly_memory_limit_bytes"))}`),
      card("Heap", size(sum(now, "go_memstats_heap_inuse_bytes"))),
      card("Goroutines", count(sum(now, "go_goroutines"))),
    );
    const names = points.map(p => p.at),
      ticks = names.length > 1 ? [names[0], names.at(-1)] : names;
    plots.forEach((p, i) => {
      p.update({ names, ticks, series: [{ name: kinds[i][0].toLowerCase(), values: points.map(v => v.values[i]) }] });
    });
    if (!all.contains(document.activeElement)) drawAll();
  }

  function drawAll() {
    const rows = [];
    for (const [name, list] of last) {
      if (name.endsWith("_bucket") || !name.includes(filter.value.trim())) continue;
      for (const s of list)
        if (s.value !== 0 || filter.value !== "")
          rows.push([
            name,
            Object.entries(s.labels)
              .map(([n, v]) => `${n}=${v}`)
              .join(" "),
            s.value.toLocaleString("en", { maximumFractionDigits: 6 }),
          ]);
    }
    const scrolled = all.scrollTop;
    all.replaceChildren(table(["name", "labels", "value"], rows.slice(0, 2000), [2]));
    all.scrollTop = scrolled;
  }
}

export async function nodesView(main, { session, signal, databases }) {
  const nodes = el("div", {}),
    partitions = el("div", {});
  main.replaceChildren(el("h1", {}, "Nodes and partitions"), nodes, el("h2", {}, "Partitions of containers"), partitions);
  const quietly = () => {
    if (!document.hidden && !document.querySelector("dialog") && !nodes.contains(document.activeElement))
      drawNodes().catch(err => {
        if (!signal.aborted && err.status !== 401) complain(err);
      });
  };
  const timer = setInterval(quietly, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  await drawNodes();
  const all = databases.flatMap(d => d.containers.map(c => ({ db: d.id, coll: c.id })));
  const choose = el(
    "select",
    { "aria-label": "Container", onchange: () => drawPartitions().catch(complain) },
    all.map((c, i) => el("option", { value: i }, `${c.db} / ${c.coll}`)),
  );
  const list = el("div", {});
  if (all.length === 0) {
    partitions.replaceChildren(el("p", { class: "empty" }, "There is no container."));
    return;
  }
  partitions.replaceChildren(el("div", { class: "bar" }, choose), list);
  await drawPartitions();

  async function drawNodes() {
    let status;
    try {
      status = (await api.send("GET", "_mayfly/cluster", { signal })).body;
    } catch (err) {
      if (err.status !== 404) throw err;
      clearInterval(timer);
      nodes.replaceChildren(el("p", { class: "card" }, err.message, " It has all partitions itself."));
      return;
    }
    nodes.replaceChildren(
      el(
        "p",
        {},
        `${status.nodes.length} nodes and ${count(status.partitions)} partitions, of which ${count(status.unowned)} have no node at the moment: they are claimed when they are next used. This page is answered by ${status.node}.`,
      ),
      el(
        "div",
        { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Nodes" },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["node", "state", "address", "region", "partitions", "claims", "losses", "last beat", "actions"].map((t, i) =>
                el("th", { scope: "col", class: i >= 4 && i < 8 ? "number" : undefined }, t),
              ),
            ),
          ),
          el(
            "tbody",
            {},
            status.nodes.map(n =>
              el(
                "tr",
                {},
                el("td", {}, n.name, n.self ? " (this one)" : ""),
                el(
                  "td",
                  {},
                  el("span", { class: n.state === "serving" ? "badge on" : "badge" }, n.state),
                  n.answers ? "" : " does not answer",
                ),
                el("td", {}, n.address),
                el("td", {}, n.region ?? ""),
                [n.partitions, n.claims, n.losses].map(v => el("td", { class: "number" }, n.answers ? count(v) : "?")),
                el("td", { class: "number" }, `${span(n.quietSeconds)} ago`),
                el(
                  "td",
                  {},
                  !session.readOnly && n.state === "serving"
                    ? el("button", { "aria-label": `Drain ${n.name}`, onclick: doing(() => drain(n.name)) }, "Drain…")
                    : "",
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  async function drain(name) {
    const done = await ask({
      title: `Drain ${name}`,
      ok: "Drain",
      danger: true,
      body: el("p", {}, "Its partitions go to the other nodes, and it takes no more. Then it can be stopped without anybody noticing."),
      submit: async () => {
        await api.send("POST", "_mayfly/cluster", { body: { drain: name } });
        return true;
      },
    });
    letGo();
    if (done) await drawNodes();
  }

  async function drawPartitions() {
    const { db, coll } = all[Number(choose.value)];
    const ranges = await api.listAll(`${api.collPath(db, coll)}/pkranges`, "PartitionKeyRanges", signal);
    list.replaceChildren(
      el(
        "div",
        { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Partitions" },
        table(
          ["partition", "from the hash", "below the hash", "share of the throughput"],
          ranges.map(r => [
            r.id,
            r.minInclusive || "(first)",
            r.maxExclusive === "FF" ? "(last)" : r.maxExclusive,
            `${(r.throughputFraction * 100).toFixed(1)} %`,
          ]),
          [3],
        ),
      ),
    );
  }
}
