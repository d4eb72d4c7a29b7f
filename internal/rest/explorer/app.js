// SPDX-License-Identifier: MIT

// The frame around all views: signing in, addresses of views, the tree, keys.

import { complain, doing, el, labelled, store, stored, toast } from "./dom.js";
import * as api from "./api.js";
import { signal } from "./core.js";
import { accessView } from "./access.js";
import { clockBanner } from "./clock.js";
import { connectView } from "./connect.js";
import { askContainer, askDatabase, askDropDatabase } from "./containers.js";
import { feedView } from "./feed.js";
import { itemsView } from "./items.js";
import { overview } from "./overview.js";
import { keysHelp, palette } from "./palette.js";
import { queryView } from "./query.js";
import { scriptsView } from "./scripts.js";
import { metricsView, nodesView } from "./server.js";
import { settingsView } from "./settings.js";
import { transferView } from "./transfer.js";
import { address, treeView } from "./tree.js";
import { ttlView } from "./ttl.js";

/** The views of a container. @type {Record<string, [string, (main: any, ctx: any) => any]>} */
const views = {
  items: ["Items", itemsView],
  query: ["Query", queryView],
  ttl: ["Time to live", ttlView],
  feed: ["Change feed", feedView],
  transfer: ["Import and export", transferView],
  scripts: ["Scripts", scriptsView],
  settings: ["Settings", settingsView],
};
/** The pages of the server. @type {Record<string, [string, (main: any, ctx: any) => any]>} */
const pages = {
  "": ["Overview", overview],
  connect: ["Connect", connectView],
  metrics: ["Metrics", metricsView],
  nodes: ["Nodes and partitions", nodesView],
};
const READ_CLOCK = 10_000; // how often the server is asked for its time, in milliseconds
const AT_ONCE = 8;

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
/** @type {any} */
let session;
let leave = new AbortController();
/** @type {HTMLElement} */
let main;
/** @type {ReturnType<typeof clockBanner>} */
let banner;
/** Ends what belongs to the frame. */
let frame = new AbortController();
const databases = signal(/** @type {any[]} */ ([])),
  place = signal(placeOf(location.hash)),
  moves = signal(0);

applyTheme(stored("theme", ""));
api.events.signedOut = () => {
  if (session?.signedIn) {
    session = { ...session, signedIn: false };
    toast("The session has ended.", true);
    signInPage();
  }
};
start().catch(complain);

async function start() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname); // a code works once, and is not kept
    place.value = {};
    try {
      session = await api.session("POST", { code });
    } catch (err) {
      complain(err);
    }
  }
  session = session?.signedIn ? session : await api.session();
  if (!session.signedIn) return signInPage();
  return enter();
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function themeSwitch() {
  return el(
    "select",
    {
      "aria-label": "Colours",
      onchange: e => {
        store("theme", e.target.value);
        applyTheme(e.target.value);
      },
    },
    [
      ["", "Colours of the system"],
      ["light", "Light"],
      ["dark", "Dark"],
    ].map(([value, text]) => el("option", { value, selected: stored("theme", "") === value }, text)),
  );
}

// Signing in.

function signInPage() {
  leave.abort();
  document.title = "Mayfly";
  const key = el("input", { type: "password", name: "key", autocomplete: "current-password", required: true });
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const signIn = async body => {
    try {
      session = await api.session("POST", body);
      await enter();
    } catch (err) {
      problem.textContent = err.message;
      problem.hidden = false;
    }
  };
  app.replaceChildren(
    el(
      "main",
      { class: "card sign", id: "main" },
      el("img", { src: "icon.svg", alt: "" }),
      el("h1", {}, "Mayfly"),
      el("p", { class: "faint" }, "A document database that forgets on time."),
      session.oneClick &&
        el(
          "div",
          {},
          el("button", { class: "primary", id: "one-click", onclick: doing(() => signIn({ oneClick: true })) }, "Open this server"),
          el("p", { class: "faint" }, "It has the well-known key of the emulators, so there is nothing to type."),
        ),
      el(
        "form",
        {
          onsubmit: e => {
            e.preventDefault();
            signIn({ key: key.value });
          },
        },
        labelled(
          session.oneClick ? "Or sign in with another key of this server" : "A key of this server",
          key,
          "The key is sent to the server once, and stored nowhere. On the server's machine, mayfly explorer prints a link that needs no key.",
        ),
        problem,
        el("button", { class: session.oneClick ? "" : "primary", type: "submit" }, "Sign in"),
      ),
      el("p", {}, el("a", { href: "docs/" }, "Docs"), ", for which nobody need sign in"),
    ),
  );
}

// The frame.

async function enter() {
  frame.abort();
  frame = new AbortController();
  main = el("main", { class: "main", id: "main", tabIndex: -1 });
  banner = clockBanner({
    readOnly: session.readOnly,
    databases: () => databases.peek(),
    moved: () => {
      moves.value++;
    },
    until: frame.signal,
  });
  const tree = treeView(databases, place, {
    readOnly: session.readOnly,
    newDatabase,
    newContainer,
    dropDatabase,
    pages: Object.entries(pages).map(([name, [title]]) => [name, title]),
    until: frame.signal,
  });
  const shell = el(
    "div",
    { class: "shell" },
    el(
      "header",
      { class: "top" },
      el(
        "button",
        {
          class: "menu",
          "aria-expanded": "false",
          onclick: e => {
            e.currentTarget.setAttribute("aria-expanded", String(shell.classList.toggle("open")));
          },
        },
        "Menu",
      ),
      el("a", { class: "brand", href: "#/" }, el("img", { src: "icon.svg", alt: "" }), "Mayfly"),
      el("span", { class: "faint wide" }, location.host),
      session.readOnly && el("span", { class: "badge on" }, "read-only"),
      el("span", { class: "space" }),
      el("button", { class: "wide", onclick: goTo }, "Go to… ", el("kbd", {}, "Ctrl K")),
      el("a", { href: "docs/" }, "Docs"),
      el("button", { class: "wide", onclick: keysHelp, "aria-label": "Keys" }, "?"),
      el("span", { class: "wide" }, themeSwitch()),
      el(
        "button",
        {
          onclick: doing(async () => {
            await api.session("DELETE");
            session = await api.session();
            signInPage();
          }),
        },
        "Sign out",
      ),
    ),
    banner.element,
    tree,
    main,
  );
  app.replaceChildren(shell);
  shell.addEventListener("click", e => {
    if (e.target.closest?.(".tree a")) shell.classList.remove("open");
  });
  await banner.show();
  await loadTree();
  await show();
}

async function loadTree() {
  const list = await api.listAll("dbs", "Databases"),
    all = list.map(d => ({ ...d, containers: [] })),
    queue = [...all];
  const worker = async () => {
    for (let d = queue.shift(); d; d = queue.shift()) d.containers = await api.listAll(api.dbPath(d.id) + "/colls", "DocumentCollections");
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  databases.value = all;
}

/**
 * What an address is about: a page of the server, of a database or of a container. Names
 * cannot have a slash, and are not empty.
 * @param {string} hash
 * @returns {{db?: string, coll?: string, view?: string, page?: string, params?: URLSearchParams}}
 */
function placeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?"),
    params = new URLSearchParams(query ?? "");
  let parts;
  try {
    parts = path.split("/").map(decodeURIComponent);
  } catch {
    parts = [""];
  }
  if (parts.length < 2) return { page: pages[parts[0]] ? parts[0] : "", params };
  const [db, coll, view] = parts;
  return coll === "" ? { db, coll, view: "access", params } : { db, coll, view: views[view] ? view : "items", params };
}

/** Shows the view of the address. */
async function show() {
  leave.abort(); // the requests and timers of the view before
  leave = new AbortController();
  const { signal } = leave;
  place.value = placeOf(location.hash);
  const { db, coll, view = "", page = "", params = new URLSearchParams() } = place.value;
  main.replaceChildren();
  main.scrollTop = 0;
  const ctx = {
    session,
    signal,
    params,
    databases: databases.peek(),
    reload: async () => {
      await loadTree();
      if (!signal.aborted) await show(); // else somebody has gone on to another view
    },
    scriptsChanged: () => databases.touch(),
    moves,
    newDatabase,
    newContainer,
    db,
    /** Keeps what a view shows in its address, unless somebody is on the way to another. */
    remember: more => {
      const now = placeOf(location.hash);
      if (signal.aborted || now.db !== db || now.coll !== coll || (now.view ?? "") !== view || (now.page ?? "") !== page) return;
      const own = db === undefined ? `#/${page}` : address(db, coll ?? "", view);
      history.replaceState(null, "", own + (Object.keys(more).length > 0 ? `?${new URLSearchParams(more)}` : ""));
    },
  };
  try {
    if (db === undefined) {
      const [title, work] = pages[page];
      document.title = page === "" ? "Mayfly" : `${title} – Mayfly`;
      return await work(main, ctx);
    }
    const database = databases.peek().find(d => d.id === db);
    if (!database) return missing(`There is no database '${db}'.`);
    if (coll === "") {
      document.title = `${db} – Mayfly`;
      const body = el("div", {});
      main.replaceChildren(el("h1", {}, el("span", { class: "faint" }, db, " / "), "Users and permissions"), body);
      return await accessView(body, ctx);
    }
    const container = database.containers.find(c => c.id === coll);
    if (!container) return missing(`There is no container '${coll}' in the database '${db}'.`);
    document.title = `${coll} – Mayfly`;
    const body = el("div", {});
    main.replaceChildren(
      el("h1", {}, el("span", { class: "faint" }, db, " / "), coll),
      el(
        "nav",
        { class: "tabs", "aria-label": "Views of the container" },
        Object.entries(views).map(([name, [title]]) =>
          el("a", { href: address(db, coll, name), "aria-current": name === view ? "page" : undefined }, title),
        ),
      ),
      body,
    );
    await views[view][1](body, { ...ctx, container });
  } catch (err) {
    if (signal.aborted || err.status === 401) return;
    main.append(el("p", { class: "error", role: "alert" }, err.message));
  }
}

function missing(text) {
  main.replaceChildren(el("h1", {}, "Not here"), el("p", { class: "empty" }, text, " ", el("a", { href: "#/" }, "Overview")));
}

addEventListener("hashchange", () => {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close(); // it is about the page before
  if (session?.signedIn) show();
});
addEventListener("keydown", e => {
  if (!session?.signedIn || document.querySelector("dialog")) return;
  const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey)) {
    e.preventDefault();
    goTo();
    return;
  }
  if (writing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "?") {
    e.preventDefault();
    keysHelp();
    return;
  }
  if (e.key !== "/") return;
  const filter = document.getElementById("filter") ?? document.getElementById("find-container");
  if (filter?.checkVisibility()) {
    e.preventDefault();
    filter.focus();
  }
});

function goTo() {
  const go = hash => () => {
    location.hash = hash;
  };
  const here = place.peek();
  const of = (d, c) =>
    Object.entries(views).map(([view, [title]]) => ({ text: `${d.id} / ${c.id}: ${title}`, go: go(address(d.id, c.id, view)) }));
  const containers = databases.peek().flatMap(d => d.containers.map(c => [d, c]));
  // The container that is open comes first.
  containers.sort(
    ([d1, c1], [d2, c2]) => Number(d2.id === here.db && c2.id === here.coll) - Number(d1.id === here.db && c1.id === here.coll),
  );
  palette([
    ...containers.flatMap(([d, c]) => of(d, c)),
    ...Object.entries(pages).map(([name, [title]]) => ({ text: title, go: go(`#/${name}`) })),
    ...databases.peek().map(d => ({ text: `${d.id}: Users and permissions`, go: go(address(d.id, "", "access")) })),
  ]);
}

// Making and dropping.

async function newDatabase() {
  const made = await askDatabase();
  if (!made) return;
  await loadTree();
  await newContainer(made);
}

async function newContainer(db) {
  const made = await askContainer(db);
  if (!made) return;
  await loadTree();
  location.hash = address(db, made, "items");
}

async function dropDatabase(db) {
  if (!(await askDropDatabase(db, databases.peek().find(d => d.id === db)?.containers.length ?? 0))) return;
  await loadTree();
  if (place.peek().db === db) location.hash = "#/";
  else await show();
}

setInterval(() => {
  if (session?.signedIn && !document.hidden) api.readClock().catch(() => {});
}, READ_CLOCK);
