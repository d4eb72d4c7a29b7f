// SPDX-License-Identifier: MIT

// Editing one item. A save names the version that was read, so that nothing is overwritten
// unseen.

import { el, ask, confirmed, doing, toast } from "./dom.js";
import * as api from "./api.js";
import { isSystem } from "./items.js";

const pick = (item, system) => Object.fromEntries(Object.entries(item).filter(([name]) => isSystem(name) === system));
const pretty = v => JSON.stringify(v, null, 2);

function editor(text, label) {
  return el("textarea", { rows: 16, value: text, spellcheck: false, "aria-label": label, autocomplete: "off" });
}

function parsed(text) {
  const v = JSON.parse(text);
  if (v === null || typeof v !== "object" || Array.isArray(v)) throw new Error("An item is a JSON object.");
  return v;
}

/** Writes a new item. Resolves to true if there is one. */
export function newItem({ db, container }) {
  const draft = { id: crypto.randomUUID?.() ?? String(Date.now()) };
  for (const path of container.partitionKey.paths) {
    const parts = path.slice(1).split("/");
    let at = draft;
    for (const name of parts.slice(0, -1)) at = at[name] ??= {};
    at[parts.at(-1)] ??= "";
  }
  const text = editor(pretty(draft), "Item as JSON");
  return ask({
    title: `New item in ${container.id}`, ok: "Create",
    body: [text, container.defaultTtl === undefined ? el("p", { class: "faint" }, "In this container nothing expires: its settings have no TTL.")
      : el("p", { class: "faint" }, "A property ttl, in seconds, gives the item a life of its own; -1 means that it never expires.")],
    submit: async () => {
      const item = parsed(text.value);
      await api.send("POST", api.collPath(db, container.id) + "/docs", { headers: api.keyHeader(container, item), body: text.value });
      return true;
    },
  });
}

/** Opens an item. Resolves to true if it was changed, or is gone. */
export async function editItem(ctx, listed) {
  const { db, container, session } = ctx;
  const path = api.itemPath(db, container.id, listed.id), key = api.keyHeader(container, listed);
  const why = await api.explain(db, container, listed);
  let base;
  try {
    // Looking at an item here must not restart its countdown.
    base = (await api.send("GET", path, { headers: { ...key, "x-mayfly-sliding-ttl": "off" } })).body;
  } catch (err) {
    if (err.status !== 404) throw err;
    toast(gone(why), true);
    return true;
  }
  const text = editor(pretty(pick(base, false)), `Item ${base.id} as JSON`);
  text.readOnly = session.readOnly;
  let changed = false;
  const save = async () => {
    const item = parsed(text.value);
    try {
      await api.send("PUT", path, { headers: { ...key, "If-Match": base._etag }, body: text.value });
      return true;
    } catch (err) {
      if (err.status === 404) throw new Error(gone(await api.explain(db, container, listed)));
      if (err.status !== 412) throw err;
      const theirs = (await api.send("GET", path, { headers: { ...key, "x-mayfly-sliding-ttl": "off" } })).body;
      const merged = await resolve(pick(base, false), item, pick(theirs, false));
      if (merged === undefined) return false;
      base = theirs;
      text.value = pretty(merged);
      return save();
    }
  };
  const remove = el("button", { type: "button", class: "danger", onclick: doing(async event => {
    const dialog = event.currentTarget.closest("dialog");
    if (!await confirmed(`Delete ${base.id}`, "The item will be gone.", "Delete")) return;
    await api.send("DELETE", path, { headers: { ...key, "If-Match": base._etag } });
    changed = true;
    dialog.close();
  }) }, "Delete…");
  const saved = await ask({
    title: base.id, ok: session.readOnly ? "Close" : "Save", extra: session.readOnly ? [] : [remove],
    body: [text, why && el("p", { class: "notice" }, why.reason, why.expiresAt ? ` It expires at ${why.expiresAt}.` : ""),
      el("pre", { class: "system", "aria-label": "System properties" }, pretty(pick(base, true)))],
    submit: session.readOnly ? () => true : save,
  });
  return changed || saved === true && !session.readOnly;
}

/** Why an item is no longer there. */
function gone(why) {
  if (why?.expired || why?.purged) return `The item expired${why.expiresAt ? ` at ${why.expiresAt}` : ""} while it was open here.`;
  return "The item was deleted while it was open here.";
}

/** Shows what it was, what was written here, and what was written elsewhere, property by property. */
async function resolve(base, mine, theirs) {
  const names = [...new Set([...Object.keys(base), ...Object.keys(mine), ...Object.keys(theirs)])];
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const show = v => v === undefined ? "(absent)" : pretty(v);
  const choice = new Map();
  const rows = names.map(name => {
    const iChanged = !same(base[name], mine[name]), theyChanged = !same(base[name], theirs[name]);
    choice.set(name, theyChanged && !iChanged ? "theirs" : "mine");
    const conflict = iChanged && theyChanged && !same(mine[name], theirs[name]);
    const select = el("select", { "aria-label": `Keep ${name}`, onchange: () => choice.set(name, select.value) },
      el("option", { value: "mine", selected: choice.get(name) === "mine" }, "yours"), el("option", { value: "theirs", selected: choice.get(name) === "theirs" }, "theirs"));
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, show(base[name])), el("td", { class: iChanged ? "changed" : "" }, show(mine[name])),
      el("td", { class: theyChanged ? "changed" : "" }, show(theirs[name])), el("td", {}, iChanged || theyChanged ? select : "", conflict ? " both" : ""));
  });
  return ask({
    title: "The item was changed meanwhile", ok: "Save these",
    body: el("div", { class: "scroll diff" }, el("table", {}, el("thead", {}, el("tr", {}, ["", "before", "yours", "theirs", "keep"].map(t => el("th", { scope: "col" }, t)))), el("tbody", {}, rows))),
    submit: () => Object.fromEntries(names.map(n => [n, choice.get(n) === "mine" ? mine[n] : theirs[n]]).filter(([, v]) => v !== undefined)),
  });
}
