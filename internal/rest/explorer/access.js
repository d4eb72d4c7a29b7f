// SPDX-License-Identifier: MIT

// Users of a database and their permissions. A permission gives tokens for one container,
// which are shown once and kept nowhere.

import { ask, confirmed, doing, el, labelled, toast } from "./dom.js";
import * as api from "./api.js";

const esc = encodeURIComponent;
/** How long a token works, in seconds, as the server allows it. */
const SHORTEST = 10,
  LONGEST = 86400,
  USUAL = 3600;

export async function accessView(main, ctx) {
  const { db, session, signal, databases } = ctx;
  const base = `${api.dbPath(db)}/users`,
    again = () => accessView(main, ctx);
  const containers = databases.find(d => d.id === db)?.containers ?? [];
  const users = await api.listAll(base, "Users", signal);
  const all = await Promise.all(users.map(u => api.listAll(`${base}/${esc(u.id)}/permissions`, "Permissions", signal)));
  if (signal.aborted) return;
  main.replaceChildren(
    el(
      "p",
      { class: "faint" },
      "A user's permission lets a program into one container, or one partition key of it, without a key of the server: it gets a token that works for a while.",
    ),
    ...users.map((u, i) => userCard(u, all[i])),
    users.length === 0 ? el("p", { class: "empty" }, "There are no users.") : "",
    session.readOnly ? "" : el("button", { class: "primary", onclick: doing(newUser) }, "New user"),
  );

  function userCard(user, permissions) {
    const tools = p =>
      session.readOnly
        ? ""
        : [
            el("button", { "aria-label": `Mint a token for ${p.id}`, onclick: doing(() => mint(user, p)) }, "Mint a token…"),
            " ",
            el(
              "button",
              {
                class: "danger",
                "aria-label": `Delete permission ${p.id}`,
                onclick: doing(() =>
                  drop(`${base}/${esc(user.id)}/permissions/${esc(p.id)}`, `permission ${p.id}`, "Its tokens stop working."),
                ),
              },
              "Delete…",
            ),
          ];
    return el(
      "section",
      { class: "card" },
      el("h2", {}, user.id),
      permissions.length === 0
        ? el("p", { class: "faint" }, "no permissions")
        : el(
            "div",
            { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Permissions of ${user.id}` },
            el(
              "table",
              {},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  ["permission", "container", "partition key", "may", "actions"].map(t => el("th", { scope: "col" }, t)),
                ),
              ),
              el(
                "tbody",
                {},
                permissions.map(p =>
                  el(
                    "tr",
                    {},
                    el("td", {}, p.id),
                    el("td", {}, nameOf(p.resource)),
                    el("td", {}, p.resourcePartitionKey ? JSON.stringify(p.resourcePartitionKey) : "all"),
                    el("td", {}, p.permissionMode === "All" ? "read and write" : "read"),
                    el("td", {}, tools(p)),
                  ),
                ),
              ),
            ),
          ),
      !session.readOnly &&
        el(
          "div",
          { class: "bar" },
          el("button", { onclick: doing(() => newPermission(user)) }, "New permission"),
          el(
            "button",
            {
              class: "danger",
              "aria-label": `Delete user ${user.id}`,
              onclick: doing(() =>
                drop(`${base}/${esc(user.id)}`, `user ${user.id}`, "The user's permissions will be gone, and their tokens stop working."),
              ),
            },
            "Delete user…",
          ),
        ),
    );
  }

  /** The container's name in the path or the rid of a resource. */
  function nameOf(resource) {
    const last = resource.replace(/\/$/, "").split("/").at(-1);
    return containers.find(c => c._rid === last)?.id ?? decodeURIComponent(last);
  }

  async function newUser() {
    const id = el("input", { required: true, maxLength: 255 });
    if (
      await ask({
        title: "New user",
        ok: "Create",
        body: labelled("Name", id),
        submit: async () => {
          await api.send("POST", base, { body: { id: id.value } });
          return true;
        },
      })
    )
      await again();
  }

  async function newPermission(user) {
    if (containers.length === 0) throw new Error("The database has no container that a permission could be for.");
    const id = el("input", { required: true, maxLength: 255 });
    const coll = el(
      "select",
      {},
      containers.map(c => el("option", {}, c.id)),
    );
    const mode = el("select", {}, el("option", { value: "Read" }, "read"), el("option", { value: "All" }, "read and write"));
    const key = el("input", { placeholder: 'all, or a key such as "ada"' });
    const made = await ask({
      title: `New permission of ${user.id}`,
      ok: "Create",
      body: [
        labelled("Name", id),
        labelled("Container", coll),
        labelled("May", mode),
        labelled("Partition key", key, "If it is for one logical partition only."),
      ],
      submit: async () => {
        const body = { id: id.value, permissionMode: mode.value, resource: api.collPath(db, coll.value) };
        if (key.value.trim() !== "") {
          let v = key.value;
          try {
            v = JSON.parse(v);
          } catch {
            /* plain text is a string */
          }
          body.resourcePartitionKey = Array.isArray(v) ? v : [v];
        }
        await api.send("POST", `${base}/${esc(user.id)}/permissions`, { body });
        return true;
      },
    });
    if (made) await again();
  }

  async function mint(user, permission) {
    const life = el("input", { type: "number", required: true, min: SHORTEST, max: LONGEST, value: USUAL });
    const token = await ask({
      title: `A token for ${permission.id}`,
      ok: "Mint",
      body: labelled("It works for, in seconds", life),
      submit: async () =>
        (
          await api.send("GET", `${base}/${esc(user.id)}/permissions/${esc(permission.id)}`, {
            headers: { "x-ms-documentdb-expiry-seconds": life.value },
          })
        ).body._token,
    });
    if (!token) return;
    const text = el("textarea", { rows: 4, readOnly: true, value: token, "aria-label": "Token" });
    await ask({
      title: "The token",
      ok: "Done",
      body: [el("p", {}, "Copy it now: it is shown once, and kept nowhere."), text],
      extra: [
        el(
          "button",
          {
            type: "button",
            onclick: doing(async () => {
              await navigator.clipboard.writeText(token);
              toast("Copied.");
            }),
          },
          "Copy",
        ),
      ],
    });
    text.value = "";
  }

  async function drop(path, what, loses) {
    if (!(await confirmed(`Delete ${what}`, loses, "Delete"))) return;
    await api.send("DELETE", path);
    await again();
  }
}
