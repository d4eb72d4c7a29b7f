// SPDX-License-Identifier: MIT

// The tree of databases, containers and scripts. A thousand containers are a list that a
// filter shortens; closed databases draw nothing.

import { complain, el, stored, store } from "./dom.js";
import * as api from "./api.js";
import { effect, keyed, signal } from "./core.js";
import { scriptKinds } from "./scripts.js";

const MOST_SHOWN = 300; // containers of one database that are drawn at once
/** More containers than this, and databases are closed until they are opened. */
const MANY = 60;

/** The address of a view. An empty container is a page of the database. */
export const address = (db, coll, view, params = {}) => {
  const query = new URLSearchParams(params).toString();
  return `#/${[db, coll, view].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
};

/**
 * @param {import("./core.js").Signal<any[]>} databases
 * @param {import("./core.js").Signal<{db?: string, coll?: string, view?: string, page?: string}>} place
 * @param {{readOnly: boolean, newDatabase: () => any, newContainer: (db: string) => any, dropDatabase: (db: string) => any, pages: [string, string][], until: AbortSignal}} options
 */
export function treeView(databases, place, { readOnly, newDatabase, newContainer, dropDatabase, pages, until }) {
  const wanted = signal("");
  const opened = signal(new Set(stored("open", [])));
  const filter = el("input", {
    type: "search",
    "aria-label": "Find a container",
    placeholder: "Find a container",
    id: "find-container",
    autocomplete: "off",
    oninput: () => {
      wanted.value = filter.value.trim().toLowerCase();
    },
  });
  const list = el("ul", {}),
    server = el("ul", {}),
    said = el("p", { class: "faint", role: "status" });
  const element = el(
    "nav",
    { class: "tree", "aria-label": "Databases and containers", onkeydown: arrows },
    server,
    filter,
    list,
    said,
    !readOnly && el("button", { onclick: newDatabase }, "+ New database"),
  );

  const current = (a, is) => {
    if (is) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  };
  server.append(
    ...pages.map(([name, title]) => {
      const a = el("a", { href: `#/${name}` }, title);
      effect(() => current(a, place.value.db === undefined && (place.value.page ?? "") === name), until);
      return el("li", {}, a);
    }),
  );
  effect(() => {
    filter.hidden = databases.value.reduce((n, d) => n + d.containers.length, 0) < 8 && wanted.value === "";
  }, until);

  const fits = d => d.containers.filter(c => wanted.value === "" || `${d.id}/${c.id}`.toLowerCase().includes(wanted.value));
  effect(() => {
    const n = databases.value.reduce((sum, d) => sum + fits(d).length, 0);
    said.textContent = wanted.value === "" ? "" : n === 0 ? "No container has this name." : `${n} found`;
  }, until);
  keyed(
    list,
    () => databases.value.filter(d => wanted.value === "" || fits(d).length > 0),
    d => d.id,
    databaseNode,
    {
      until,
      update: (e, d) => {
        /** @type {any} */ (e).data.value = d;
      },
    },
  );

  function toggled(name, open) {
    const all = new Set(opened.peek());
    if (open) all.add(name);
    else all.delete(name);
    opened.value = all;
    store("open", [...all]);
  }

  function databaseNode(first) {
    const data = signal(first),
      inner = el("ul", {}),
      rest = el("p", { class: "faint" }),
      name = first.id,
      tools = el(
        "div",
        { class: "tools" },
        el("a", { href: address(name, "", "access") }, "Users and permissions"),
        !readOnly && el("button", { class: "plain", onclick: () => newContainer(name) }, "+ New container"),
        !readOnly &&
          el(
            "button",
            { class: "plain", "aria-label": `Delete database ${name}`, onclick: () => Promise.resolve(dropDatabase(name)).catch(complain) },
            "Delete",
          ),
      );
    const details = el(
      "details",
      {
        ontoggle: () => {
          if (details.open !== isOpen()) toggled((closes() ? "+" : "-") + name, closes() ? details.open : !details.open);
        },
      },
      el("summary", {}, name),
      inner,
      rest,
      tools,
    );
    const closes = () => databases.peek().reduce((n, d) => n + d.containers.length, 0) > MANY;
    const isOpen = () => {
      databases.value.length; // which decides whether they are closed at first
      return wanted.value !== "" || place.value.db === name || (closes() ? opened.value.has(`+${name}`) : !opened.value.has(`-${name}`));
    };
    effect(() => {
      details.open = isOpen();
    }, until);
    const shown = () => (isOpen() ? fits(data.value).slice(0, MOST_SHOWN) : []);
    keyed(
      inner,
      shown,
      c => c.id,
      c => containerNode(name, c.id),
      { until },
    );
    effect(() => {
      const n = fits(data.value).length - MOST_SHOWN;
      rest.textContent = isOpen() && n > 0 ? `and ${n} more: find them by name` : "";
    }, until);
    effect(() => current(tools.firstElementChild, place.value.db === name && place.value.coll === ""), until);
    return Object.assign(el("li", {}, details), { data });
  }

  function containerNode(db, coll) {
    const a = el("a", {}, coll),
      scripts = el("ul", {});
    const here = () => place.value.db === db && place.value.coll === coll;
    effect(() => {
      a.href = address(db, coll, (here() && place.value.view) || "items");
      current(a, here());
    }, until);
    // The scripts of the container that is open.
    let reading = new AbortController();
    effect(() => {
      reading.abort();
      if (!here()) {
        scripts.replaceChildren();
        return;
      }
      databases.value;
      reading = new AbortController();
      showScripts(db, coll, scripts, reading.signal).catch(err => {
        if (err.name !== "AbortError" && err.status !== 401 && err.status !== 404) complain(err);
      });
    }, until);
    return el("li", {}, a, scripts);
  }

  async function showScripts(db, coll, into, signal) {
    const base = api.collPath(db, coll);
    const all = await Promise.all(
      Object.entries(scriptKinds).map(async ([kind, k]) =>
        (await api.listAll(`${base}/${kind}`, k.list, signal)).map(s => ({ kind, id: s.id, one: k.one })),
      ),
    );
    if (signal.aborted) return;
    into.replaceChildren(
      ...all
        .flat()
        .map(s =>
          el(
            "li",
            {},
            el("a", { class: "script", title: s.one, href: address(db, coll, "scripts", { kind: s.kind, id: s.id }) }, `ƒ ${s.id}`),
          ),
        ),
    );
  }

  /** Arrows go from line to line. */
  function arrows(e) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step || (e.target === filter && step < 0)) return;
    const all = [...element.querySelectorAll("a, summary")].filter(x => x.checkVisibility());
    const next =
      e.target === filter
        ? all.find(x => filter.compareDocumentPosition(x) & Node.DOCUMENT_POSITION_FOLLOWING)
        : all[all.indexOf(e.target) + step];
    if (!next) return;
    e.preventDefault();
    next.focus();
  }
  return element;
}
