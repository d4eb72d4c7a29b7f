// SPDX-License-Identifier: MIT

// What differs between versions of an item, and what a patch makes of one. Nothing here
// touches the page.

/** The properties that the server sets. @param {string} name */
export const isSystem = name => ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"].includes(name);

/** @typedef {Record<string, any>} Item */

/** The properties of an item that a person writes, or those of the server. @param {Item} item @param {boolean} system */
export const pick = (item, system) => Object.fromEntries(Object.entries(item).filter(([name]) => isSystem(name) === system));

/**
 * What differs between two versions, as lines.
 * @param {Item | null | undefined} before
 * @param {Item | null | undefined} after
 */
export function difference(before, after) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(n => !isSystem(n));
  /** @param {any} v */
  const text = v => (v === undefined ? "(absent)" : JSON.stringify(v));
  return names
    .filter(n => text(before?.[n]) !== text(after?.[n]))
    .map(n => (before ? `${n}: ${text(before[n])} → ${text(after?.[n])}` : `${n}: ${text(after?.[n])}`));
}

/**
 * The properties of three versions, and which version to keep if nobody chooses: the one
 * that changed, and mine where both did.
 * @param {Item} base
 * @param {Item} mine
 * @param {Item} theirs
 */
export function threeWay(base, mine, theirs) {
  /** @param {any} a @param {any} b */
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  return [...new Set([...Object.keys(base), ...Object.keys(mine), ...Object.keys(theirs)])].map(name => {
    const iChanged = !same(base[name], mine[name]),
      theyChanged = !same(base[name], theirs[name]);
    return {
      name,
      base: base[name],
      mine: mine[name],
      theirs: theirs[name],
      iChanged,
      theyChanged,
      conflict: iChanged && theyChanged && !same(mine[name], theirs[name]),
      keep: theyChanged && !iChanged ? "theirs" : "mine",
    };
  });
}

/**
 * What a patch would make of an item. The server decides; this is for a look before.
 * @param {Item} item
 * @param {{op: string, path: string, value?: any, from?: string}[]} operations
 * @returns {Item}
 */
export function patched(item, operations) {
  if (!Array.isArray(operations)) throw new Error("Operations are a JSON array.");
  const out = structuredClone(item);
  /** @param {string} path @returns {[any, string]} */
  const place = path => {
    if (typeof path !== "string" || !path.startsWith("/")) throw new Error(`A path such as /name is missing in ${JSON.stringify(path)}.`);
    const parts = path
        .slice(1)
        .split("/")
        .map(p => p.replaceAll("~1", "/").replaceAll("~0", "~")),
      last = parts.pop() ?? "";
    let at = out;
    for (const part of parts) {
      at = at?.[part];
      if (at === null || typeof at !== "object") throw new Error(`There is no ${path}.`);
    }
    return [at, last];
  };
  /** @param {string} path @param {any} value @param {boolean} add */
  const write = (path, value, add) => {
    const [at, name] = place(path);
    if (Array.isArray(at) && add) at.splice(name === "-" ? at.length : Number(name), 0, value);
    else at[name] = value;
  };
  /** @param {string} path */
  const take = path => {
    const [at, name] = place(path),
      value = at[name];
    if (value === undefined) throw new Error(`There is no ${path}.`);
    if (Array.isArray(at)) at.splice(Number(name), 1);
    else delete at[name];
    return value;
  };
  for (const { op, path, value, from } of operations) {
    if (op === "add") write(path, value, true);
    else if (op === "set") write(path, value, false);
    else if (op === "replace") {
      take(path);
      write(path, value, true);
    } else if (op === "remove") take(path);
    else if (op === "move") write(path, take(from ?? ""), true);
    else if (op === "incr") {
      const [at, name] = place(path);
      at[name] = (at[name] ?? 0) + value;
    } else throw new Error(`${JSON.stringify(op)} is no operation. There are add, set, replace, remove, incr and move.`);
  }
  return out;
}
