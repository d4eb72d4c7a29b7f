// SPDX-License-Identifier: MIT

// Partition keys: hierarchical ones and their prefixes, deletes by key, and reads of
// many items at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { refused, startFrozen, startMemory } from "./server.mjs";

const paths = ["/tenant", "/user", "/session"];
const incomplete = { status: 400, substatus: 1001, code: "BadRequest", text: "Partition key provided" };
const ids = (list) => list.map(({ id }) => id).toSorted();
const rows = async (c, query, options) => (await c.items.query(query, options).fetchAll()).resources;

/** Creates a container with a hierarchical key and eight items, x1s to y2t. */
async function hierarchy(t, server, definition = {}) {
  const c = await server.container(t, { partitionKey: { paths, kind: "MultiHash", version: 2 }, throughput: 21_000, ...definition });
  for (const tenant of ["x", "y"]) {
    for (const user of [1, 2]) {
      for (const session of ["s", "t"]) await c.items.create({ id: `${tenant}${user}${session}`, tenant, user, session });
    }
  }
  return c;
}

test("an item is found by its whole key", async (t) => {
  const c = await hierarchy(t, await startMemory(t));
  assert.equal((await c.item("x1s", ["x", 1, "s"]).read()).resource.id, "x1s");
  assert.equal((await c.item("x1s", ["x", 1, "t"]).read()).statusCode, 404);
  await refused(c.item("x1s", ["x", 1]).read(), incomplete);
  await c.items.create({ id: "none", tenant: "x" });
  assert.equal((await c.item("none", ["x", undefined, undefined]).read()).resource.id, "none");
});

test("a prefix of a key is a set of items", async (t) => {
  const server = await startFrozen(t);
  const c = await hierarchy(t, server, { defaultTtl: -1 });
  for (const [partitionKey, want] of [
    [["x"], ["x1s", "x1t", "x2s", "x2t"]],
    [["y", 2], ["y2s", "y2t"]],
    [["y", 2, "t"], ["y2t"]],
    [["z"], []],
  ]) {
    assert.deepEqual(ids(await rows(c, "SELECT * FROM c", { partitionKey })), want);
    assert.deepEqual(ids((await c.items.readAll({ partitionKey }).fetchAll()).resources), want);
    assert.deepEqual(await rows(c, "SELECT VALUE c.id FROM c ORDER BY c.id DESC", { partitionKey }), want.toReversed());
    assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c", { partitionKey }), [want.length]);
    const paged = [];
    for await (const { resources } of c.items.query("SELECT * FROM c", { partitionKey, maxItemCount: 1 }).getAsyncIterator()) {
      paged.push(...resources);
    }
    assert.deepEqual(ids(paged), want);
  }
  assert.deepEqual(ids(await rows(c, "SELECT * FROM c WHERE c.tenant = 'y' AND c.user = 1")), ["y1s", "y1t"]);
  await c.items.upsert({ id: "x1s", tenant: "x", user: 1, session: "s", ttl: 1 });
  await server.clock({ advance: "1s" });
  assert.deepEqual(ids(await rows(c, "SELECT * FROM c", { partitionKey: ["x", 1] })), ["x1t"]);
});

test("all items with a key are deleted at once", async (t) => {
  const server = await startMemory(t);
  const c = await hierarchy(t, server);
  const { statusCode } = await c.deleteAllItemsForPartitionKey(["x", 1, "s"]);
  assert.equal(statusCode, 200);
  assert.equal((await c.item("x1s", ["x", 1, "s"]).read()).statusCode, 404);
  assert.equal((await rows(c, "SELECT * FROM c")).length, 7);
  await refused(c.deleteAllItemsForPartitionKey(["x"]), incomplete);

  const plain = await server.container(t, { throughput: 21_000 });
  const bodies = Array.from({ length: 200 }, (_, n) => ({ id: `i${n}`, pk: n % 2 ? "odd" : "even" }));
  await Promise.all(bodies.map((body) => plain.items.create(body)));
  await plain.deleteAllItemsForPartitionKey("odd");
  assert.deepEqual(await rows(plain, "SELECT DISTINCT VALUE c.pk FROM c"), ["even"]);
  assert.deepEqual(await rows(plain, "SELECT VALUE COUNT(1) FROM c"), [100]);
  await plain.items.create({ id: "i1", pk: "odd" });
});

test("many items are read by key and id", async (t) => {
  const c = await (await startMemory(t)).container(t, { throughput: 21_000 });
  const bodies = Array.from({ length: 300 }, (_, n) => ({ id: `i${n}`, pk: `k${n % 50}` }));
  await Promise.all(bodies.map((body) => c.items.create(body)));
  // As the SDKs for Go, Python, Java and .NET ask for them.
  const wanted = bodies.filter((_, n) => n % 3 === 0);
  const parameters = wanted.flatMap(({ id, pk }, n) => [
    { name: `@id${n}`, value: id },
    { name: `@pk${n}`, value: pk },
  ]);
  const some = wanted.map((_, n) => `( c.id = @id${n} AND c.pk = @pk${n} )`).join(" OR ");
  const response = await c.items.query({ query: `SELECT * FROM c WHERE ( ${some} )`, parameters }, { populateQueryMetrics: true }).fetchAll();
  assert.deepEqual(ids(response.resources), ids(wanted));
});
