// SPDX-License-Identifier: MIT

// A container's definition: its TTL, and all of it as JSON.

import { el, ask, doing, labelled, seconds, toast, ttlText } from "./dom.js";
import * as api from "./api.js";

export async function settingsView(main, { db, container, session, signal, reload }) {
  const path = api.collPath(db, container.id);
  const { body: definition } = await api.send("GET", path, { signal });
  const system = Object.keys(definition).filter(n => n.startsWith("_"));
  const text = el("textarea", { rows: 22, spellcheck: false, "aria-label": "Definition as JSON", readOnly: session.readOnly,
    value: JSON.stringify(Object.fromEntries(Object.entries(definition).filter(([n]) => !system.includes(n))), null, 2) });
  const ttl = el("input", { value: definition.defaultTtl === undefined ? "off" : definition.defaultTtl === -1 ? "-1" : String(definition.defaultTtl) });
  const replace = async body => { await api.send("PUT", path, { body, headers: { "If-Match": definition._etag } }); toast("Saved."); await reload(); };
  main.replaceChildren(
    el("section", { class: "card" }, el("h2", {}, "Default time to live"),
      el("p", {}, `Now: ${ttlText(definition.defaultTtl)}. What another value would do, before it is set, is on the page Time to live.`),
      !session.readOnly && el("div", { class: "bar" }, labelled("New value", ttl, "A duration such as 90s or 1h; -1: only items with a ttl of their own expire; off: nothing expires."),
        el("button", { class: "primary", onclick: doing(async () => {
          const body = JSON.parse(JSON.stringify(definition)), given = ttl.value.trim();
          delete body.defaultTtl;
          if (given !== "off") body.defaultTtl = given === "-1" ? -1 : seconds(given);
          if (Number.isNaN(body.defaultTtl)) throw new Error(`${given} is no duration.`);
          await replace(body);
        }) }, "Set"))),
    el("section", { class: "card" }, el("h2", {}, "Definition"),
      el("p", { class: "faint" }, "Indexes, change feed and the rest. The name and the partition key cannot be changed."), text,
      !session.readOnly && el("div", { class: "bar" }, el("button", { onclick: doing(() => replace(text.value)) }, "Save the definition"))),
    !session.readOnly && el("section", { class: "card" }, el("h2", {}, "Delete"),
      el("button", { class: "danger", onclick: doing(drop) }, "Delete this container…")));

  async function drop() {
    const name = el("input", { required: true });
    const done = await ask({
      title: `Delete container ${container.id}`, ok: "Delete", danger: true,
      body: [el("p", {}, "The container and all its items will be gone."), labelled(`Type ${container.id} to delete it`, name)],
      submit: async () => {
        if (name.value !== container.id) throw new Error("This is not the container's name.");
        await api.send("DELETE", path);
        return true;
      },
    });
    if (done) { location.hash = "#/"; await reload(); }
  }
}
