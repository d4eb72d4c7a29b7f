// SPDX-License-Identifier: MIT

// The first page: all containers, and what lives in them.

import { complain, count, el, size, span, ttlText } from "./dom.js";
import * as api from "./api.js";
import { effect } from "./core.js";

const MOST_SHOWN = 1000;

export async function overview(main, ctx) {
  const { session, signal, newDatabase, params, remember } = ctx;
  const seen = ctx.moves.peek();
  const stop = effect(() => {
    // the test clock was moved
    if (ctx.moves.value === seen) return;
    queueMicrotask(() => {
      stop();
      overview(main, ctx).catch(complain);
    });
  }, signal);
  const { body } = await api.send("GET", api.ttlPath("status"), { signal });
  api.heard(body);
  const all = body.containers,
    rows = el("tbody", {}),
    said = el("p", { class: "faint", role: "status" });
  const filter = el("input", {
    id: "filter",
    type: "search",
    "aria-label": "Filter",
    placeholder: "a part of a name",
    value: params.get("filter") ?? "",
    oninput: () => {
      remember(filter.value ? { filter: filter.value } : {});
      draw();
    },
  });
  const heads = ["Container", "Default TTL", "Live items", "Size", "Expired, not purged", "Purge is behind"];
  const sum = of => all.reduce((n, c) => n + of(c), 0);
  const card = (title, figure, note) =>
    el(
      "div",
      { class: "card" },
      el("div", { class: "faint" }, title),
      el("div", { class: "figure" }, figure),
      el("div", { class: "faint" }, note),
    );
  main.replaceChildren(
    el("h1", {}, "Overview"),
    ...(all.length === 0
      ? [
          el(
            "div",
            { class: "card empty" },
            el("p", {}, "There is no container yet."),
            !session.readOnly && el("button", { class: "primary", onclick: newDatabase }, "Create a database and a container"),
          ),
          el("p", {}, "Programs connect as the page ", el("a", { href: "#/connect" }, "Connect"), " shows."),
        ]
      : [
          el(
            "div",
            { class: "cards" },
            card("Containers", count(all.length), ""),
            card("Live items", count(sum(c => c.live.items)), size(sum(c => c.live.bytes))),
            card("Expired, not purged", count(sum(c => c.expiredPending.items)), size(sum(c => c.expiredPending.bytes))),
          ),
          all.length > 8 ? el("div", { class: "bar" }, el("span", { class: "grow" }, filter)) : "",
          el(
            "div",
            { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Containers" },
            el(
              "table",
              {},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  heads.map((t, i) => el("th", { scope: "col", class: i > 1 ? "number" : undefined }, t)),
                ),
              ),
              rows,
            ),
          ),
          said,
        ]),
  );
  draw();

  function draw() {
    const cell = (text, number) => el("td", { class: number ? "number" : undefined }, text),
      wanted = filter.value.toLowerCase();
    const fits = all.filter(c => `${c.database}/${c.container}`.toLowerCase().includes(wanted));
    rows.replaceChildren(
      ...fits
        .slice(0, MOST_SHOWN)
        .map(c =>
          el(
            "tr",
            {},
            el(
              "td",
              {},
              el(
                "a",
                { href: `#/${encodeURIComponent(c.database)}/${encodeURIComponent(c.container)}/items` },
                `${c.database} / ${c.container}`,
              ),
            ),
            cell(ttlText(c.defaultTtl)),
            cell(count(c.live.items), true),
            cell(size(c.live.bytes), true),
            cell(count(c.expiredPending.items), true),
            cell(c.purge.paused ? "paused" : span(c.purge.lagSeconds), true),
          ),
        ),
    );
    said.textContent =
      fits.length > MOST_SHOWN
        ? `The first ${count(MOST_SHOWN)} of ${count(fits.length)} are shown.`
        : wanted
          ? `${count(fits.length)} of ${count(all.length)}`
          : "";
  }
}
