// SPDX-License-Identifier: MIT

// Random queries over random items, twice: over four physical partitions, where the
// SDK merges what each answers, and over one partition key, where the server does
// it all. Both must say the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startMemory } from "./server.mjs";

const items = 120;
const queries = Number(process.env.MAYFLY_QUERIES ?? 150);
const seed = Number(process.env.MAYFLY_SEED ?? 1);

/** A random sequence (mulberry32): the same seed gives the same. */
function random(state) {
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { below, one: (list) => list[below(list.length)], chance: (p) => next() < p };
}

function makeItem(r, n) {
  const item = { id: `i${n}`, n, kind: r.one(["bird", "cat", "dog"]), tags: Array.from({ length: r.below(4) }, () => r.below(5)) };
  if (r.chance(0.8)) item.a = r.below(20) - 5;
  if (r.chance(0.8)) item.s = r.one(["", "a", "ab", "b", "Ä", "z\u{1f600}"]);
  if (r.chance(0.9)) item.mixed = r.one([null, true, false, 1, 2.5, "1", "x", [1], { x: 1 }]);
  if (r.chance(0.5)) item.nested = { flag: r.chance(0.5), deep: { v: r.below(3) } };
  return item;
}

const scalars = ["null", "true", "1", "2.5", "-3", '"1"', '"a"', '"x"'];
const paths = ["c.a", "c.s", "c.mixed", "c.n", "c.kind", "c.nested.flag", "c.nested.deep.v", "c.tags[0]", "c.missing"];

function condition(r, depth = 2) {
  if (depth > 0 && r.chance(0.5)) {
    const [x, y] = [condition(r, depth - 1), condition(r, depth - 1)];
    return r.one([`(${x} AND ${y})`, `(${x} OR ${y})`, `NOT (${x})`]);
  }
  const path = r.one(paths);
  return r.one([
    () => `${path} ${r.one(["=", "!=", "<", "<=", ">", ">="])} ${r.one(scalars)}`,
    () => `${path} IN (${r.one(scalars)}, ${r.one(scalars)}, ${r.below(20)})`,
    () => `c.n BETWEEN ${r.below(60)} AND ${r.below(120)}`,
    () => `${r.one(["IS_DEFINED", "IS_NUMBER", "IS_STRING", "IS_NULL"])}(${path})`,
    () => `STARTSWITH(c.s, "a")`,
    () => `ARRAY_CONTAINS(c.tags, ${r.below(5)})`,
    () => `EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t > ${r.below(5)})`,
    () => `c.kind LIKE "%${r.one(["a", "d", "i"])}%"`,
  ])();
}

/**
 * Makes a query, and says what the order of its rows is by, if by anything. The SDK
 * itself refuses to merge orders of mixed types, and loses distinct rows that
 * JavaScript takes for false: there are none of these.
 */
function makeQuery(r) {
  const filter = condition(r);
  const where = r.chance(0.8) ? `WHERE ${filter}` : "";
  const direction = r.one(["", "ASC", "DESC"]);
  const path = r.one(["c.a", "c.s", "c.mixed", "c.n", "c.nested.deep.v"]);
  const [key, type] = r.one([["c.a", "IS_NUMBER"], ["c.s", "IS_STRING"], ["c.mixed", "IS_NUMBER"], ["c.mixed", "IS_STRING"]]);
  return r.one([
    () => ({ text: `SELECT VALUE c.id FROM c ${where}` }),
    () => ({ text: `SELECT c.id, c.mixed, c.nested FROM c ${where}` }),
    () => ({ text: `SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags ${where}` }),
    () => ({ text: `SELECT VALUE {k: ${key}, id: c.id} FROM c WHERE ${type}(${key}) AND (${filter}) ORDER BY ${key} ${direction}`, by: (row) => row.k }),
    () => ({ text: `SELECT VALUE c.n FROM c ${where} ORDER BY c.n ${direction} OFFSET ${r.below(40)} LIMIT ${r.below(40)}`, by: (row) => row }),
    () => ({ text: `SELECT TOP ${1 + r.below(30)} VALUE c.n FROM c ${where} ORDER BY c.n ${direction}`, by: (row) => row }),
    () => ({ text: `SELECT DISTINCT ${path} AS v FROM c ${where}` }),
    () => ({ text: `SELECT DISTINCT c.kind, c.tags[0] AS t FROM c ${where}` }),
    () => ({ text: `SELECT DISTINCT VALUE c.kind FROM c ${where} ORDER BY c.kind ${direction}`, by: (row) => row }),
    () => ({ text: `SELECT VALUE ${r.one(["COUNT(1)", "COUNT(c.a)", "SUM(c.n)", "MIN(c.n)", "MAX(c.n)", "AVG(c.n)"])} FROM c ${where}` }),
    () => ({ text: `SELECT COUNT(1) AS k, MIN(c.n) AS l, MAX(c.n) AS m FROM c ${where}` }),
    () => ({ text: `SELECT c.kind, COUNT(1) AS k, SUM(c.n) AS s, MAX(c.n) AS m FROM c ${where} GROUP BY c.kind` }),
    () => ({ text: `SELECT c.kind, c.nested.flag AS f, COUNT(1) AS k FROM c ${where} GROUP BY c.kind, c.nested.flag` }),
    () => ({ text: `SELECT c.kind, COUNT(1) AS k, SUM(c.n) AS s FROM c ${where} GROUP BY c.kind ORDER BY c.kind ${direction}`, by: (row) => row.kind }),
    () => ({ text: `SELECT TOP ${1 + r.below(6)} ${key} AS v FROM c WHERE ${type}(${key}) AND (${filter}) GROUP BY ${key} ORDER BY ${key} ${direction}`, by: (row) => row.v }),
    () => ({ text: `SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags ${where}` }),
  ])();
}

// What the SDK leaves undefined is not there.
const canonical = (v) =>
  v !== null && typeof v === "object" && !Array.isArray(v)
    ? `{${Object.keys(v).filter((k) => v[k] !== undefined).sort().map((k) => `${k}:${canonical(v[k])}`).join()}}`
    : Array.isArray(v)
      ? `[${v.map(canonical).join()}]`
      : (JSON.stringify(v) ?? "undefined");
const bag = (rows) => rows.map(canonical).sort();

test("four partitions answer like one partition key", async (t) => {
  const server = await startMemory(t);
  const r = random(seed);
  const four = await server.container(t, { throughput: 21_000 });
  const one = await server.container(t);
  for (let n = 0; n < items; n++) {
    const item = makeItem(r, n);
    await four.items.create({ ...item, pk: `key${n}` });
    await one.items.create({ ...item, pk: "all" });
  }
  const { resources: ranges } = await four.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 4);

  let filled = 0;
  for (let i = 0; i < queries; i++) {
    const { text, by } = makeQuery(r);
    const says = `seed ${seed}, query ${i}: ${text}`;
    const expected = (await one.items.query(text, { partitionKey: "all" }).fetchAll()).resources;
    for (const maxItemCount of [1 + r.below(10), 1000]) {
      const got = (await four.items.query(text, { maxItemCount }).fetchAll()).resources;
      assert.deepEqual(bag(got), bag(expected), says);
      if (by) assert.deepEqual(got.map(by).map(canonical), expected.map(by).map(canonical), `the order of ${says}`);
    }
    if (expected.length > 0) filled++;
  }
  assert.ok(filled > queries / 2, `only ${filled} of ${queries} queries have rows: they compare too little`);
});
