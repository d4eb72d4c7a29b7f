// SPDX-License-Identifier: MIT

// Making and dropping databases and containers.

import { ask, el, labelled, seconds, ticked } from "./dom.js";
import * as api from "./api.js";

/** Reads a default TTL as a person writes it: off, -1 or a duration; undefined for off. */
export function ttlGiven(text) {
  const given = text.trim();
  if (given === "off") return undefined;
  if (given === "-1") return -1;
  const n = seconds(given);
  if (!(n >= 1)) throw new Error(`${given || "This"} is no duration. Give one such as 90s, 5m, 1h or 3d.`);
  return n;
}

/** The headers for the throughput of a container that is made. @param {string} kind @param {string} units @returns {Record<string, string>} */
function throughputHeaders(kind, units) {
  if (kind === "none") return {};
  return kind === "manual"
    ? { "x-ms-offer-throughput": units }
    : { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: Number(units) }) };
}

/** Resolves to the name of a new database. */
export function askDatabase() {
  const id = el("input", { required: true, maxLength: 255 });
  return ask({
    title: "New database",
    ok: "Create",
    body: labelled("Name", id),
    submit: async () => {
      await api.send("POST", "dbs", { body: { id: id.value } });
      return id.value;
    },
  });
}

/** Resolves to the name of a new container. */
export function askContainer(db) {
  const id = el("input", { required: true, maxLength: 255 });
  const key = el("input", {
    required: true,
    value: "/id",
    pattern: "(/[^,]+)(\\s*,\\s*/[^,]+){0,2}",
    title: "A path begins with a slash, as in /customer.", // which browsers say if it does not match
  });
  const ttl = el("input", { value: "1h" });
  const on = ticked("Items expire", { checked: true });
  on.box.addEventListener("change", () => {
    ttl.disabled = !on.box.checked;
  });
  const kind = el(
    "select",
    {},
    [
      ["none", "none: no limit"],
      ["manual", "a fixed rate"],
      ["auto", "up to a rate (autoscale)"],
    ].map(([value, text]) => el("option", { value }, text)),
  );
  const units = el("input", { type: "number", min: 100, step: 100, value: 400, disabled: true });
  kind.addEventListener("change", () => {
    units.disabled = kind.value === "none";
    units.value = kind.value === "auto" ? 1000 : 400;
  });
  return ask({
    title: `New container in ${db}`,
    ok: "Create",
    body: [
      labelled("Name", id),
      labelled("Partition key", key, "A path such as /customer; up to three, with commas, for a hierarchical key."),
      on.label,
      labelled("Default time to live", ttl, "Such as 90s, 5m, 1h or 3d; empty if only items with a ttl of their own expire."),
      labelled("Throughput", kind),
      labelled("Request units a second", units),
    ],
    submit: async () => {
      const paths = key.value.split(",").map(p => p.trim());
      const body = { id: id.value, partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 } };
      if (on.box.checked) body.defaultTtl = ttl.value.trim() === "" ? -1 : ttlGiven(ttl.value);
      await api.send("POST", api.dbPath(db) + "/colls", { body, headers: throughputHeaders(kind.value, units.value) });
      return id.value;
    },
  });
}

/** Drops a database after its name was typed. Resolves to true if it is gone. */
export function askDropDatabase(db, containers) {
  const name = el("input", { required: true });
  return ask({
    title: `Delete database ${db}`,
    ok: "Delete",
    danger: true,
    body: [
      el("p", {}, `The database, its ${containers} containers and all their items will be gone.`),
      labelled(`Type ${db} to delete it`, name),
    ],
    submit: async () => {
      if (name.value !== db) throw new Error("This is not the database's name.");
      await api.send("DELETE", api.dbPath(db));
      return true;
    },
  });
}
