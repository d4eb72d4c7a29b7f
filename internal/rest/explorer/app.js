// SPDX-License-Identifier: MIT

// The frame around all views: signing in, the tree, addresses of views, the test clock.

import { el, toast, ask, complain, confirmed, doing, labelled, ticked, seconds, span } from "./dom.js";
import * as api from "./api.js";
import { overview } from "./overview.js";
import { itemsView } from "./items.js";
import { queryView } from "./query.js";
import { ttlView } from "./ttl.js";
import { feedView } from "./feed.js";
import { transferView } from "./transfer.js";
import { scriptsView } from "./scripts.js";
import { settingsView } from "./settings.js";

const views = {
  items: ["Items", itemsView], query: ["Query", queryView], ttl: ["Time to live", ttlView], feed: ["Change feed", feedView],
  transfer: ["Import and export", transferView], scripts: ["Scripts", scriptsView], settings: ["Settings", settingsView],
};

const app = document.getElementById("app");
let session, databases = [], leave = new AbortController();
let tree, main, banner;

applyTheme(localStorage.getItem("theme") ?? "");
api.events.signedOut = () => { if (session?.signedIn) { session = { ...session, signedIn: false }; toast("The session has ended.", true); signInPage(); } };
start().catch(complain);

async function start() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname); // a code works once, and is not kept
    try { session = await api.session("POST", { code }); } catch (err) { complain(err); }
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
  return el("select", { "aria-label": "Colours", onchange: e => { localStorage.setItem("theme", e.target.value); applyTheme(e.target.value); } },
    [["", "Colours of the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, text]) =>
      el("option", { value, selected: (localStorage.getItem("theme") ?? "") === value }, text)));
}

// Signing in.

function signInPage() {
  leave.abort();
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
  app.replaceChildren(el("main", { class: "card sign", id: "main" },
    el("img", { src: "icon.svg", alt: "" }), el("h1", {}, "Mayfly"), el("p", { class: "faint" }, "A document database that forgets on time."),
    session.oneClick && el("div", {},
      el("button", { class: "primary", id: "one-click", onclick: doing(() => signIn({ oneClick: true })) }, "Open this server"),
      el("p", { class: "faint" }, "It has the well-known key of the emulators, so there is nothing to type.")),
    el("form", { onsubmit: e => { e.preventDefault(); signIn({ key: key.value }); } },
      labelled(session.oneClick ? "Or sign in with another key of this server" : "A key of this server", key, "The key is sent to the server once, and stored nowhere. On the server's machine, mayfly explorer prints a link that needs no key."),
      problem, el("button", { class: session.oneClick ? "" : "primary", type: "submit" }, "Sign in"))));
}

// The frame.

async function enter() {
  tree = el("nav", { class: "tree", "aria-label": "Databases and containers" });
  main = el("main", { class: "main", id: "main", tabIndex: -1 });
  banner = el("section", { class: "banner", "aria-label": "Test clock", hidden: true });
  const shell = el("div", { class: "shell" },
    el("header", { class: "top" },
      el("button", { class: "menu", "aria-expanded": "false", onclick: e => {
        e.currentTarget.setAttribute("aria-expanded", String(shell.classList.toggle("open")));
      } }, "Menu"),
      el("a", { class: "brand", href: "#/" }, el("img", { src: "icon.svg", alt: "" }), "Mayfly"),
      el("span", { class: "faint wide" }, location.host), session.readOnly && el("span", { class: "badge on" }, "read-only"),
      el("span", { class: "space" }), el("span", { class: "wide" }, themeSwitch()),
      el("button", { onclick: doing(async () => { await api.session("DELETE"); session = await api.session(); signInPage(); }) }, "Sign out")),
    banner, tree, main);
  app.replaceChildren(shell);
  shell.addEventListener("click", e => { if (e.target.closest?.(".tree a")) shell.classList.remove("open"); });
  await showClock();
  await loadTree();
  await show();
}

async function loadTree() {
  const list = await api.listAll("dbs", "Databases");
  databases = await Promise.all(list.map(async d => ({ ...d, containers: await api.listAll(api.dbPath(d.id) + "/colls", "DocumentCollections") })));
  drawTree();
}

const address = (db, coll, view) => `#/${[db, coll, view].map(encodeURIComponent).join("/")}`;

function drawTree() {
  const [db, coll, view] = place();
  tree.replaceChildren(
    el("div", { class: "row" }, el("a", { href: "#/", "aria-current": db === undefined ? "page" : undefined }, "Overview")),
    el("ul", {}, databases.map(d => el("li", {}, el("details", { open: true },
      el("summary", {}, d.id),
      el("ul", {},
        d.containers.map(c => el("li", {}, el("a", {
          href: address(d.id, c.id, d.id === db ? view : "items"), "aria-current": d.id === db && c.id === coll ? "page" : undefined,
        }, c.id))),
        !session.readOnly && el("li", {}, el("button", { class: "plain", onclick: () => newContainer(d.id) }, "+ New container"),
          el("button", { class: "plain", "aria-label": `Delete database ${d.id}`, onclick: doing(() => dropDatabase(d.id)) }, "Delete"))))))),
    !session.readOnly && el("button", { onclick: newDatabase }, "+ New database"));
}

/** The parts of the address: database, container and view. */
function place() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  return parts.length < 2 ? [] : [parts[0], parts[1], views[parts[2]] ? parts[2] : "items"];
}

async function show() {
  leave.abort(); // the requests and timers of the view before
  leave = new AbortController();
  const signal = leave.signal;
  const [db, coll, view] = place();
  drawTree();
  main.replaceChildren();
  const ctx = { session, signal, databases, reload: async () => { await loadTree(); await show(); }, newDatabase, newContainer };
  try {
    if (db === undefined) {
      document.title = "Mayfly";
      return await overview(main, ctx);
    }
    const container = databases.find(d => d.id === db)?.containers.find(c => c.id === coll);
    if (!container) return main.replaceChildren(el("p", { class: "empty" }, `There is no container '${coll}' in a database '${db}'.`));
    document.title = `${coll} – Mayfly`;
    const body = el("div", {});
    main.replaceChildren(
      el("h1", {}, el("span", { class: "faint" }, db, " / "), coll),
      el("nav", { class: "tabs", "aria-label": "Views of the container" }, Object.entries(views).map(([name, [title]]) =>
        el("a", { href: address(db, coll, name), "aria-current": name === view ? "page" : undefined }, title))),
      body);
    await views[view][1](body, { ...ctx, db, container });
  } catch (err) {
    if (signal.aborted || err.status === 401) return;
    main.append(el("p", { class: "error", role: "alert" }, err.message));
  }
}

addEventListener("hashchange", () => { if (session?.signedIn) show(); });
addEventListener("keydown", e => {
  if (e.key === "k" && (e.ctrlKey || e.metaKey) && session?.signedIn && !document.querySelector("dialog")) { e.preventDefault(); palette(); return; }
  if (e.key === "?" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "") && !document.querySelector("dialog")) { e.preventDefault(); help(); return; }
  if (e.key !== "/" || e.ctrlKey || e.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) return;
  const filter = document.getElementById("filter");
  if (filter) { e.preventDefault(); filter.focus(); }
});

/** Goes to a container by a part of its name. */
function palette() {
  const name = el("input", { list: "places", required: true, autocomplete: "off" });
  const places = databases.flatMap(d => d.containers.flatMap(c => Object.entries(views).map(([view, [title]]) => [`${d.id} / ${c.id}: ${title}`, address(d.id, c.id, view)])));
  ask({
    title: "Go to", ok: "Go", body: [labelled("Container and view", name), el("datalist", { id: "places" }, places.map(([text]) => el("option", { value: text })))],
    submit: () => {
      const text = name.value.toLowerCase();
      const found = places.find(([p]) => p.toLowerCase() === text) ?? places.find(([p]) => p.toLowerCase().includes(text));
      if (!found) throw new Error("There is no such container.");
      location.hash = found[1];
      return true;
    },
  }).catch(complain);
}

function help() {
  const keys = [["Ctrl+K", "go to a container"], ["/", "filter the items"], ["Ctrl+Enter", "run the query"], ["Ctrl+Space", "take the first completion"], ["Esc", "close a dialog"], ["?", "this help"]];
  ask({ title: "Keys", ok: "Close", body: el("table", {}, el("tbody", {}, keys.map(([key, what]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, what))))) }).catch(complain);
}

// Making and dropping.

async function newDatabase() {
  const id = el("input", { required: true, maxLength: 255 });
  const made = await ask({
    title: "New database", ok: "Create", body: labelled("Name", id),
    submit: async () => { await api.send("POST", "dbs", { body: { id: id.value } }); return id.value; },
  });
  if (!made) return;
  await loadTree();
  await newContainer(made);
}

async function newContainer(db) {
  const id = el("input", { required: true, maxLength: 255 });
  const key = el("input", { required: true, value: "/id", pattern: "(/[^,]+)(\\s*,\\s*/[^,]+){0,2}" });
  const ttl = el("input", { value: "1h" });
  const on = ticked("Items expire", { checked: true });
  on.box.addEventListener("change", () => { ttl.disabled = !on.box.checked; });
  const made = await ask({
    title: `New container in ${db}`, ok: "Create",
    body: [
      labelled("Name", id), labelled("Partition key", key, "A path such as /customer; up to three, with commas, for a hierarchical key."),
      on.label, labelled("Default time to live", ttl, "Such as 90s, 5m, 1h or 3d; empty if only items with a ttl of their own expire."),
    ],
    submit: async () => {
      const paths = key.value.split(",").map(p => p.trim());
      const body = { id: id.value, partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 } };
      if (on.box.checked) {
        body.defaultTtl = ttl.value.trim() === "" ? -1 : seconds(ttl.value);
        if (Number.isNaN(body.defaultTtl)) throw new Error(`${ttl.value} is no duration. Give one such as 90s, 5m, 1h or 3d.`);
      }
      await api.send("POST", api.dbPath(db) + "/colls", { body });
      return id.value;
    },
  });
  if (!made) return drawTree();
  await loadTree();
  location.hash = address(db, made, "items");
}

async function dropDatabase(db) {
  const n = databases.find(d => d.id === db)?.containers.length ?? 0;
  const name = el("input", { required: true });
  const done = await ask({
    title: `Delete database ${db}`, ok: "Delete", danger: true,
    body: [el("p", {}, `The database, its ${n} containers and all their items will be gone.`), labelled(`Type ${db} to delete it`, name)],
    submit: async () => {
      if (name.value !== db) throw new Error("This is not the database's name.");
      await api.send("DELETE", api.dbPath(db));
      return true;
    },
  });
  if (!done) return;
  await loadTree();
  if (place()[0] === db) location.hash = "#/";
}

// The test clock.

async function showClock() {
  const status = await api.readClock();
  const { test, frozen } = api.clockState();
  if (!test) {
    banner.hidden = !status.reason;
    banner.replaceChildren(status.reason ?? "");
  } else {
    banner.hidden = false;
    const time = el("strong", { class: "count" });
    const tick = () => { time.textContent = new Date(api.now()).toISOString().replace("T", " ").slice(0, 19) + " UTC"; };
    tick();
    clearInterval(showClock.timer);
    showClock.timer = setInterval(tick, 250);
    const move = (text, change, step) => el("button", { onclick: doing(async () => {
      if (step && !await previewed(step, text)) return;
      await api.moveClock(change);
      await showClock();
      await show();
    }) }, text);
    banner.replaceChildren("Test clock:", time, ...(session.readOnly ? [] : [
      frozen ? move("Release", { release: true }) : move("Freeze", { freeze: true }),
      move("+1 m", { advance: "1m" }, 60), move("+1 h", { advance: "1h" }, 3600), move("+1 d", { advance: "24h" }, 86400),
      el("button", { onclick: doing(setClock) }, "Set…")]));
  }
}

/** Says what a step of the clock would expire, and asks whether to take it if it is something. */
async function previewed(step, text) {
  const expiring = [];
  for (const d of databases) {
    for (const c of d.containers.filter(c => c.defaultTtl !== undefined)) {
      const { body } = await api.send("GET", api.ttlPath("forecast", d.id, c.id, { interval: `${step}s`, count: "1" }));
      if (body.intervals[0].items > 0) expiring.push(`${d.id}/${c.id}: ${body.intervals[0].items}`);
    }
  }
  return expiring.length === 0 || confirmed(`Move the clock by ${text}`, `These items will expire – ${expiring.join(", ")}. The time never goes back.`, "Move it");
}

async function setClock() {
  const to = el("input", { required: true, value: new Date(api.now()).toISOString() });
  const done = await ask({
    title: "Set the test clock", ok: "Set", body: labelled("Time, in UTC", to, "The time never goes back."),
    submit: async () => {
      const step = Math.ceil((Date.parse(to.value) - api.now()) / 1000);
      if (Number.isNaN(step)) throw new Error("This is no time. Give one such as 2030-01-01T00:00:00Z.");
      if (step > 0 && !await previewed(step, span(step))) return false;
      await api.moveClock({ set: to.value });
      return true;
    },
  });
  if (!done) return;
  await showClock();
  await show();
}

setInterval(() => { if (session?.signedIn && !document.hidden) api.readClock().catch(() => {}); }, 10_000);
