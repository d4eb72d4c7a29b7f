// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, precondition, refused, startFrozen, startMemory } from "./server.mjs";

const statuses = (response) => response.map((r) => r.statusCode);

test("a batch does all of its operations", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await c.items.create({ id: "1", pk: "a", n: 1 });
  await c.items.create({ id: "2", pk: "a" });
  const { code, result, headers } = await c.items.batch(
    [
      { operationType: "Create", resourceBody: { id: "3", pk: "a" } },
      { operationType: "Read", id: "1" },
      { operationType: "Replace", id: "1", resourceBody: { id: "1", pk: "a", n: 2 } },
      { operationType: "Upsert", resourceBody: { id: "4", pk: "a", é: "ü" } },
      { operationType: "Delete", id: "2" },
      {
        operationType: "Patch",
        id: "1",
        resourceBody: { condition: "from c where c.n = 2", operations: [{ op: "incr", path: "/n", value: 1 }] },
      },
    ],
    "a",
  );
  assert.equal(code, 200);
  assert.deepEqual(statuses(result), [201, 200, 200, 201, 204, 200]);
  assert.deepEqual([result[1].resourceBody.n, result[2].resourceBody.n, result[5].resourceBody.n], [1, 2, 3]);
  assert.equal(result[5].eTag, result[5].resourceBody._etag);
  assert.equal(result[4].resourceBody, undefined);
  const sum = result.reduce((all, r) => all + r.requestCharge, 0);
  const charge = Number(headers["x-ms-request-charge"]);
  assert.ok(Math.abs(sum - charge) < 0.05, `${sum} of ${charge}`);
  assert.equal((await c.item("1", "a").read()).resource.n, 3);
  assert.equal((await c.item("2", "a").read()).statusCode, 404);
});

test("a batch that fails does nothing", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await c.items.create({ id: "1", pk: "a" });
  const { code, result } = await c.items.batch(
    [
      { operationType: "Delete", id: "1" },
      { operationType: "Create", resourceBody: { id: "2", pk: "a" } },
      { operationType: "Create", resourceBody: { id: "2", pk: "a" } },
      { operationType: "Read", id: "1" },
    ],
    "a",
  );
  assert.equal(code, 207);
  assert.deepEqual(statuses(result), [424, 424, 409, 424]);
  assert.equal((await c.item("1", "a").read()).statusCode, 200);
  assert.equal((await c.item("2", "a").read()).statusCode, 404);
});

const bulkOf = (n) =>
  Array.from({ length: n }, (_, i) => ({
    operationType: "Create",
    resourceBody: { id: `${i}`, pk: `key ${i % 37}` },
    partitionKey: `key ${i % 37}`,
  }));

for (const [name, throughput] of [["one partition", 400], ["four partitions", 21_000]]) {
  test(`bulk in ${name}`, async (t) => {
    const c = await (await startMemory(t)).container(t, { throughput });
    const n = 90;
    const created = await c.items.bulk(bulkOf(n), { continueOnError: true });
    assert.deepEqual(new Set(statuses(created)), new Set([201]));
    const mixed = [
      { operationType: "Read", id: "3", partitionKey: "key 3" },
      { operationType: "Create", resourceBody: { id: "4", pk: "key 4" }, partitionKey: "key 4" },
      { operationType: "Upsert", resourceBody: { id: "5", pk: "key 5", n: 1 }, partitionKey: "key 5" },
      { operationType: "Delete", id: "6", partitionKey: "key 6" },
      { operationType: "Replace", id: "none", resourceBody: { id: "none", pk: "key 7" }, partitionKey: "key 7" },
      {
        operationType: "Patch",
        id: "8",
        partitionKey: "key 8",
        resourceBody: { operations: [{ op: "add", path: "/n", value: 1 }] },
      },
    ];
    const results = await c.items.bulk(mixed, { continueOnError: true });
    assert.deepEqual(statuses(results), [200, 409, 200, 204, 404, 200]);
    assert.equal(results[5].resourceBody.n, 1);
    const { resources } = await c.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
    assert.deepEqual(resources, [n - 1]);
  });

  test(`executeBulkOperations in ${name}`, async (t) => {
    const c = await (await startMemory(t)).container(t, { throughput });
    const n = 250; // more than one request takes
    const created = await c.items.executeBulkOperations(bulkOf(n));
    assert.deepEqual(new Set(created.map((r) => r.response?.statusCode)), new Set([201]));
    const again = await c.items.executeBulkOperations([
      ...bulkOf(3),
      { operationType: "Read", id: "40", partitionKey: "key 3" },
    ]);
    assert.deepEqual(again.map((r) => r.error?.code ?? r.response.statusCode), [409, 409, 409, 200]);
    assert.equal(again[3].response.resourceBody.id, "40");
  });
}

test("a bulk that is told to stops at the first failure", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const op = (id) => ({ operationType: "Create", resourceBody: { id, pk: "a" }, partitionKey: "a" });
  assert.deepEqual(statuses(await c.items.bulk([op("1"), op("1"), op("2")], { continueOnError: false })), [201, 409, 424]);
  assert.deepEqual(statuses(await c.items.bulk([op("1"), op("2")])), [409, 201]);
});

test("an item is patched", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { etag } = await c.items.create({ id: "1", pk: "a", n: 1, list: [1], o: { p: 1 }, gone: 1 });
  const item = c.item("1", "a");
  const patched = await item.patch([
    { op: "add", path: "/list/0", value: 0 },
    { op: "add", path: "/list/-", value: 2 },
    { op: "set", path: "/o/q", value: null },
    { op: "replace", path: "/o/p", value: { deep: true } },
    { op: "remove", path: "/gone" },
    { op: "incr", path: "/n", value: 1.5 },
    { op: "move", from: "/o/q", path: "/moved" },
  ]);
  assert.equal(patched.statusCode, 200);
  const { _rid, _self, _etag, _attachments, _ts, ...own } = patched.resource;
  assert.deepEqual(own, { id: "1", pk: "a", n: 2.5, list: [0, 1, 2], o: { p: { deep: true } }, moved: null });
  assert.notEqual(patched.etag, etag);
  const incr = { operations: [{ op: "incr", path: "/n", value: 1 }] };
  assert.equal((await item.patch({ ...incr, condition: "from c where c.n > 2" })).resource.n, 3.5);
  await refused(item.patch({ ...incr, condition: "from c where c.n > 5" }), { ...precondition, substatus: 1110 });
  await refused(item.patch(incr, { accessCondition: { type: "IfMatch", condition: etag } }), precondition);
  await refused(c.item("none", "a").patch(incr), notFound);
  await assert.rejects(item.patch([{ op: "set", path: "/id", value: "2" }]), { code: 400 });
  await assert.rejects(item.patch([{ op: "remove", path: "/none" }]), { code: 400, message: /For Operation\(1\)/ });
});

test("patches at once are all done", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await c.items.create({ id: "1", pk: "a" });
  const patch = () => c.item("1", "a").patch([{ op: "incr", path: "/n", value: 1 }]);
  await Promise.all(Array.from({ length: 50 }, patch));
  assert.equal((await c.item("1", "a").read()).resource.n, 50);
});

test("a patch restarts the countdown, and nothing finds what has expired", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { defaultTtl: 10 });
  await c.items.create({ id: "1", pk: "a" });
  await c.items.create({ id: "2", pk: "a" });
  await server.clock({ advance: "9s" });
  await c.item("1", "a").patch([{ op: "set", path: "/ttl", value: 5 }]);
  await server.clock({ advance: "1s" });
  await refused(c.item("2", "a").patch([{ op: "set", path: "/n", value: 1 }]), notFound);
  const { result } = await c.items.batch([{ operationType: "Delete", id: "1" }, { operationType: "Delete", id: "2" }], "a");
  assert.deepEqual(statuses(result), [424, 404]);
  await server.clock({ advance: "4s" });
  assert.equal((await c.item("1", "a").read()).statusCode, 404);
});
