// SPDX-License-Identifier: MIT

// A container's settings: its TTL, throughput and indexes, and all of it as JSON.

import { ask, doing, el, labelled, table, toast, ttlText } from "./dom.js";
import * as api from "./api.js";
import { codeEditor } from "./code.js";
import { ttlGiven } from "./containers.js";

export async function settingsView(main, ctx) {
  const { db, container, session, signal, reload } = ctx;
  const path = api.collPath(db, container.id);
  const [{ body: definition }, offers] = await Promise.all([api.send("GET", path, { signal }), api.listAll("offers", "Offers", signal)]);
  const { body: database } = await api.send("GET", api.dbPath(db), { signal });
  const own = Object.fromEntries(Object.entries(definition).filter(([n]) => !n.startsWith("_")));
  const code = codeEditor({
    value: JSON.stringify(own, null, 2),
    label: "Definition as JSON",
    language: "json",
    rows: 22,
    readOnly: session.readOnly,
  });
  const replace = async body => {
    await api.send("PUT", path, { body, headers: { "If-Match": definition._etag } });
    toast("Saved.");
    await reload();
  };
  main.replaceChildren(
    ttlCard(),
    throughputCard(),
    indexCard(),
    el(
      "section",
      { class: "card" },
      el("h2", {}, "Definition"),
      el("p", { class: "faint" }, "All of it. The name and the partition key cannot be changed."),
      code.element,
      !session.readOnly && el("div", { class: "bar" }, el("button", { onclick: doing(() => replace(code.json())) }, "Save the definition")),
    ),
    session.readOnly
      ? ""
      : el(
          "section",
          { class: "card" },
          el("h2", {}, "Delete"),
          el("button", { class: "danger", onclick: doing(drop) }, "Delete this container…"),
        ),
  );

  function ttlCard() {
    const ttl = el("input", { value: definition.defaultTtl === undefined ? "off" : String(definition.defaultTtl) });
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Default time to live"),
      el("p", {}, `Now: ${ttlText(definition.defaultTtl)}. What another value would do, before it is set, is on the page Time to live.`),
      !session.readOnly &&
        el(
          "div",
          { class: "bar" },
          labelled("New value", ttl, "A duration such as 90s or 1h; -1: only items with a ttl of their own expire; off: nothing expires."),
          el(
            "button",
            {
              class: "primary",
              onclick: doing(async () => {
                const body = { ...definition, defaultTtl: ttlGiven(ttl.value) };
                await replace(body);
              }),
            },
            "Set",
          ),
        ),
    );
  }

  function throughputCard() {
    const offer = offers.find(o => o.offerResourceId === definition._rid) ?? offers.find(o => o.offerResourceId === database._rid);
    const shared = offer && offer.offerResourceId !== definition._rid;
    if (!offer) {
      return el(
        "section",
        { class: "card" },
        el("h2", {}, "Throughput"),
        el(
          "p",
          {},
          "No throughput was set when the container was made, so requests are not limited. A container is made with a limit or without.",
        ),
      );
    }
    const auto = offer.content.offerAutopilotSettings;
    const kind = el(
      "select",
      {},
      el("option", { value: "manual", selected: !auto }, "a fixed rate"),
      el("option", { value: "auto", selected: Boolean(auto) }, "up to a rate (autoscale)"),
    );
    const units = el("input", { type: "number", min: 100, step: 100, value: auto?.maxThroughput ?? offer.content.offerThroughput });
    const set = async () => {
      const wanted = kind.value === "auto",
        n = Number(units.value),
        changes = wanted !== Boolean(auto);
      const content = wanted ? { ...offer.content, offerAutopilotSettings: { maxThroughput: n } } : { offerThroughput: n };
      const headers = changes
        ? { [wanted ? "x-ms-cosmos-migrate-offer-to-autopilot" : "x-ms-cosmos-migrate-offer-to-manual-throughput"]: "true" }
        : {};
      const { body } = await api.send("PUT", `offers/${encodeURIComponent(offer._rid)}`, {
        body: changes ? offer : { ...offer, content },
        headers,
      });
      // A change of the kind chooses the rate by itself.
      if (changes)
        await api.send("PUT", `offers/${encodeURIComponent(offer._rid)}`, {
          body: {
            ...body,
            content: wanted ? { ...body.content, offerAutopilotSettings: { maxThroughput: n } } : { ...body.content, offerThroughput: n },
          },
        });
      toast("The throughput is set.");
      await settingsView(main, ctx);
    };
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Throughput"),
      el(
        "p",
        {},
        auto ? `Up to ${auto.maxThroughput} request units a second.` : `${offer.content.offerThroughput} request units a second.`,
        shared ? " They are shared by the containers of the database." : "",
      ),
      !session.readOnly &&
        el(
          "div",
          { class: "bar" },
          labelled("Kind", kind),
          labelled("Request units a second", units),
          el("button", { class: "primary", onclick: doing(set) }, "Set the throughput"),
        ),
    );
  }

  function indexCard() {
    const policy = definition.indexingPolicy ?? {},
      rows = [];
    const spec = i => (i.indexes?.length ? JSON.stringify(i.indexes) : "");
    for (const i of policy.includedPaths ?? []) rows.push([i.path, "indexed", spec(i)]);
    for (const i of policy.excludedPaths ?? []) rows.push([i.path, "left out", ""]);
    for (const c of policy.compositeIndexes ?? [])
      rows.push([c.map(p => `${p.path} ${p.order === "descending" ? "DESC" : "ASC"}`).join(", "), "composite", ""]);
    for (const i of policy.spatialIndexes ?? []) rows.push([i.path, "spatial", (i.types ?? []).join(", ")]);
    for (const i of policy.vectorIndexes ?? []) rows.push([i.path, `vector, ${i.type}`, ""]);
    for (const i of policy.fullTextIndexes ?? []) rows.push([i.path, "full text", ""]);
    const where = el("input", { placeholder: "/address/city/?" }),
      how = el(
        "select",
        {},
        [
          ["includedPaths", "index it"],
          ["excludedPaths", "leave it out"],
        ].map(([value, text]) => el("option", { value }, text)),
      );
    const change = async work => {
      const body = structuredClone(definition);
      work(body.indexingPolicy);
      await replace(body);
    };
    const none = policy.indexingMode === "none";
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Indexes"),
      el(
        "p",
        {},
        none
          ? "Nothing is indexed: queries read all items."
          : "Each query says on its tab Indexes which of these it used, and which would help.",
      ),
      rows.length > 0 &&
        el("div", { class: "scroll diff", tabIndex: 0, role: "region", "aria-label": "Indexes" }, table(["path", "is", "how"], rows)),
      !session.readOnly &&
        !none &&
        el(
          "div",
          { class: "bar" },
          labelled("Path", where, "With /? for the value itself, /* for all below it."),
          labelled("What", how),
          el(
            "button",
            {
              onclick: doing(() =>
                change(p => {
                  if (!where.value.startsWith("/")) throw new Error("Give a path such as /address/city/?");
                  for (const list of ["includedPaths", "excludedPaths"]) p[list] = (p[list] ?? []).filter(i => i.path !== where.value);
                  p[how.value].push({ path: where.value });
                }),
              ),
            },
            "Set the path",
          ),
        ),
    );
  }

  async function drop() {
    const name = el("input", { required: true });
    const done = await ask({
      title: `Delete container ${container.id}`,
      ok: "Delete",
      danger: true,
      body: [el("p", {}, "The container and all its items will be gone."), labelled(`Type ${container.id} to delete it`, name)],
      submit: async () => {
        if (name.value !== container.id) throw new Error("This is not the container's name.");
        await api.send("DELETE", path);
        return true;
      },
    });
    if (done) {
      location.hash = "#/";
      await reload();
    }
  }
}
