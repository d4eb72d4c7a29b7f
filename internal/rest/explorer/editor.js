// SPDX-License-Identifier: MIT

// Editing one item. A save names the version that was read, so that nothing is overwritten
// unseen.

import { ask, confirmed, doing, el, labelled, seconds, span, toast } from "./dom.js";
import * as api from "./api.js";
import { codeEditor } from "./code.js";
import { pick, threeWay } from "./diff.js";

const pretty = v => JSON.stringify(v, null, 2);

function parsed(code) {
  const v = code.json();
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
  const code = codeEditor({ value: pretty(draft), label: "Item as JSON", language: "json" });
  return ask({
    title: `New item in ${container.id}`,
    ok: "Create",
    body: [
      code.element,
      container.defaultTtl === undefined
        ? el("p", { class: "faint" }, "In this container nothing expires: its settings have no TTL.")
        : el("p", { class: "faint" }, "A property ttl, in seconds, gives the item a life of its own; -1 means that it never expires."),
    ],
    submit: async () => {
      const item = parsed(code);
      await api.send("POST", api.collPath(db, container.id) + "/docs", { headers: api.keyHeader(container, item), body: code.value });
      return true;
    },
  });
}

/** Opens an item by its id and its partition key. Resolves to true if it was changed, or is gone. */
export async function editItem(ctx, { id, key: keyText }) {
  const { db, container, session } = ctx;
  const path = api.itemPath(db, container.id, id),
    key = { "x-ms-documentdb-partitionkey": keyText };
  // Looking at an item here must not restart its countdown.
  const read = async () => (await api.send("GET", path, { headers: { ...key, "x-mayfly-sliding-ttl": "off" } })).body;
  let why = await api.explain(db, container, id, keyText);
  let base;
  try {
    base = await read();
  } catch (err) {
    if (err.status !== 404) throw err;
    toast(gone(why), true);
    return true;
  }
  const code = codeEditor({
    value: pretty(pick(base, false)),
    label: `Item ${base.id} as JSON`,
    language: "json",
    readOnly: session.readOnly,
  });
  const system = el("pre", { class: "system", "aria-label": "System properties, which cannot be edited" }, pretty(pick(base, true)));
  let changed = false;
  const save = async () => {
    const item = parsed(code);
    try {
      await api.send("PUT", path, { headers: { ...key, "If-Match": base._etag }, body: code.value });
      return true;
    } catch (err) {
      if (err.status === 404) throw new Error(gone(await api.explain(db, container, id, keyText)));
      if (err.status !== 412) throw err;
      const theirs = await read();
      const merged = await resolve(pick(base, false), item, pick(theirs, false));
      if (merged === undefined) return false;
      base = theirs;
      code.value = pretty(merged);
      return save();
    }
  };
  const remove = el(
    "button",
    {
      type: "button",
      class: "danger",
      onclick: doing(async event => {
        const dialog = event.currentTarget.closest("dialog");
        if (!(await confirmed(`Delete ${base.id}`, "The item will be gone.", "Delete"))) return;
        await api.send("DELETE", path, { headers: { ...key, "If-Match": base._etag } });
        changed = true;
        dialog.close();
      }),
    },
    "Delete…",
  );

  // How long it has left. The rest of the sentence is read out; the seconds are not.
  const left = el("strong", { class: "count", "aria-hidden": "true" });
  const reason = el("p", { class: "notice" });
  const tick = () => {
    const ms = why?.expiresAtMs == null ? null : why.expiresAtMs - api.now();
    left.textContent = ms === null ? "" : ms > 0 ? ` ${span(ms / 1000)} left.` : " It has expired.";
  };
  const explained = () => {
    reason.replaceChildren(why ? why.reason : "", why?.expiresAt ? ` It expires at ${why.expiresAt}.` : "", left);
    reason.hidden = !why;
    tick();
  };
  explained();
  const timer = setInterval(tick, 250);
  /** Gives it another life, without what is written in the editor. */
  const live = async n => {
    base = (
      await api.send("PATCH", path, {
        headers: { ...key, "If-Match": base._etag },
        body: { operations: api.lifeOperations(container, base, n) },
      })
    ).body;
    const draft = parsed(code);
    if (base.ttl === undefined) delete draft.ttl;
    else draft.ttl = base.ttl;
    code.value = pretty(draft);
    system.textContent = pretty(pick(base, true));
    why = await api.explain(db, container, id, keyText);
    changed = true;
    explained();
  };
  const extend = async () => {
    const time = el("input", { value: "1h", required: true });
    const n = await ask({
      title: `Extend ${base.id}`,
      ok: "Extend",
      body: labelled("It expires after", time, "From now on: a duration such as 90s, 5m, 1h or 3d."),
      submit: () => {
        const n = seconds(time.value);
        if (!(n >= 1)) throw new Error("This is no duration.");
        return n;
      },
    });
    if (n) await live(n);
  };
  const lives =
    !session.readOnly &&
    container.defaultTtl !== undefined &&
    el(
      "div",
      { class: "bar" },
      el("button", { type: "button", onclick: doing(extend) }, "Extend…"),
      el("button", { type: "button", onclick: doing(() => live(-1)) }, "Never expire"),
    );
  try {
    const saved = await ask({
      title: base.id,
      ok: session.readOnly ? "Close" : "Save",
      extra: session.readOnly ? [] : [remove],
      body: [code.element, reason, lives, system],
      submit: session.readOnly ? () => true : save,
    });
    return changed || (saved === true && !session.readOnly);
  } finally {
    clearInterval(timer);
  }
}

/** Why an item is no longer there. */
function gone(why) {
  if (why?.expired || why?.purged) return `The item expired${why.expiresAt ? ` at ${why.expiresAt}` : ""} while it was open here.`;
  return "The item was deleted while it was open here.";
}

/** Shows what it was, what was written here, and what was written elsewhere, property by property. */
async function resolve(base, mine, theirs) {
  const show = v => (v === undefined ? "(absent)" : pretty(v));
  const rows = threeWay(base, mine, theirs);
  const lines = rows.map(r => {
    const select = el(
      "select",
      {
        "aria-label": `Keep ${r.name}`,
        onchange: () => {
          r.keep = select.value;
        },
      },
      el("option", { value: "mine", selected: r.keep === "mine" }, "yours"),
      el("option", { value: "theirs", selected: r.keep === "theirs" }, "theirs"),
    );
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, r.name),
      el("td", {}, show(r.base)),
      el("td", { class: r.iChanged ? "changed" : "" }, show(r.mine)),
      el("td", { class: r.theyChanged ? "changed" : "" }, show(r.theirs)),
      el("td", {}, r.iChanged || r.theyChanged ? select : "", r.conflict ? " both" : ""),
    );
  });
  return ask({
    title: "The item was changed meanwhile",
    ok: "Save these",
    body: el(
      "div",
      { class: "scroll diff", tabIndex: 0, role: "region", "aria-label": "Versions" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["property", "before", "yours", "theirs", "keep"].map(t => el("th", { scope: "col" }, t)),
          ),
        ),
        el("tbody", {}, lines),
      ),
    ),
    submit: () => Object.fromEntries(rows.map(r => [r.name, r.keep === "mine" ? r.mine : r.theirs]).filter(([, v]) => v !== undefined)),
  });
}
