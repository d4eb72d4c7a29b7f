// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound, precondition, refused, startMemory } from "./server.mjs";

test("an item is created, read, replaced, upserted and deleted", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const body = { id: "1", pk: "a", n: 1, nested: { list: [1, null, "ü", 1e300] } };
  const created = await c.items.create(body);
  assert.equal(created.statusCode, 201);
  assert.ok(created.requestCharge > 0);
  assert.ok(created.activityId);
  const { _rid, _self, _etag, _attachments, _ts, ...own } = created.resource;
  assert.deepEqual(own, body);
  assert.equal(_etag, created.etag);
  assert.ok(_rid && _self && _attachments && _ts > 0);

  const item = c.item("1", "a");
  assert.deepEqual((await item.read()).resource, created.resource);
  await refused(c.items.create(body), conflict);
  const replaced = await item.replace({ ...body, n: 2 });
  assert.equal(replaced.statusCode, 200);
  assert.equal(replaced.resource.n, 2);
  assert.equal(replaced.resource._rid, _rid);
  assert.notEqual(replaced.etag, created.etag);
  assert.equal((await c.items.upsert({ ...body, n: 3 })).statusCode, 200);
  assert.equal((await c.items.upsert({ ...body, id: "2" })).statusCode, 201);
  assert.equal((await item.read()).resource.n, 3);

  assert.equal((await item.delete()).statusCode, 204);
  const gone = await item.read(); // the SDK makes an answer of a missing item
  assert.deepEqual([gone.statusCode, gone.resource], [404, undefined]);
  await refused(item.delete(), notFound);
  await refused(item.replace(body), notFound);
});

test("writes can be made conditional on the etag", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const body = { id: "1", pk: "a" };
  const item = c.item("1", "a");
  const first = await c.items.create(body);
  const ifFirst = { accessCondition: { type: "IfMatch", condition: first.etag } };
  const second = await item.replace(body, ifFirst);
  assert.equal(second.statusCode, 200);
  await refused(item.replace(body, ifFirst), precondition);
  await refused(c.items.upsert(body, ifFirst), precondition);
  await refused(item.delete(ifFirst), precondition);
  const known = await item.read({ accessCondition: { type: "IfNoneMatch", condition: second.etag } });
  assert.equal(known.statusCode, 304);
  assert.equal((await item.delete({ accessCondition: { type: "IfMatch", condition: second.etag } })).statusCode, 204);
});

test("partition keys of every type", async (t) => {
  const server = await startMemory(t);
  for (const version of [1, 2]) {
    const c = await server.container(t, { partitionKey: { paths: ["/pk"], version } });
    for (const pk of ["a", "", "zürich", "🦋", 'q"u\\ote', 0, -1.5, 1e21, 2 ** 53, true, false, null, undefined]) {
      const what = `version ${version}, key ${JSON.stringify(pk)}`;
      const body = pk === undefined ? { id: "1" } : { id: "1", pk };
      assert.equal((await c.items.create(body)).statusCode, 201, what);
      assert.equal((await c.item("1", pk).read()).resource?.pk, pk, what);
      assert.equal((await c.item("1", "elsewhere").read()).statusCode, 404, what);
      assert.equal((await c.item("1", pk).delete()).statusCode, 204, what);
    }
  }
});

test("hierarchical partition keys", async (t) => {
  const paths = ["/tenant", "/user/id", "/session"];
  const c = await (await startMemory(t)).container(t, { partitionKey: { paths, kind: "MultiHash", version: 2 } });
  const body = { id: "1", tenant: "contoso", user: { id: 7 }, session: null };
  assert.equal((await c.items.create(body)).statusCode, 201);
  assert.equal((await c.item("1", ["contoso", 7, null]).read()).resource.tenant, "contoso");
  assert.equal((await c.item("1", ["contoso", 8, null]).read()).statusCode, 404);
  assert.equal((await c.item("1", ["contoso", 7, null]).delete()).statusCode, 204);
});

test("special ids", async (t) => {
  const c = await (await startMemory(t)).container(t);
  for (const id of [
    "with space", " leading", "ünïcödé", "日本語", "🦋", "100%", "%20", "plus+", 'q"uote', "a&b=c", "semi;colon", "docs",
    "{}", "x".repeat(255), "x".repeat(1023),
  ]) {
    assert.equal((await c.items.create({ id, pk: "a" })).statusCode, 201, id);
    assert.equal((await c.item(id, "a").read()).resource?.id, id);
    assert.equal((await c.item(id, "a").replace({ id, pk: "a" })).statusCode, 200, id);
    assert.equal((await c.item(id, "a").delete()).statusCode, 204, id);
  }
});

test("items above 2 MB are refused", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const tooLarge = { status: 413, code: "RequestEntityTooLarge", text: "Request size is too large" };
  for (const bytes of [2 ** 21, 2 ** 21 + 100_000, 2 ** 24]) {
    await refused(c.items.create({ id: "1", pk: "a", fill: "x".repeat(bytes) }), tooLarge);
  }
  const fill = "x".repeat(2 ** 21 - 100);
  await c.items.create({ id: "1", pk: "a", fill });
  assert.equal((await c.item("1", "a").read()).resource.fill, fill);
});

test("a session sees its own writes", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { headers } = await c.items.create({ id: "1", pk: "a" });
  const sessionToken = headers["x-ms-session-token"];
  assert.match(sessionToken, /^0:-?\d+#\d+$/);
  const read = await c.item("1", "a").read({ sessionToken, consistencyLevel: "Session" });
  assert.equal(read.statusCode, 200);
});

test("items that are no items are refused", async (t) => {
  const c = await (await startMemory(t)).container(t, { defaultTtl: -1 });
  const bad = (text) => ({ status: 400, code: "BadRequest", text });
  await refused(c.items.create({ pk: "a" }, { disableAutomaticIdGeneration: true }), bad("'id; '"));
  await refused(c.items.create({ id: "x".repeat(1024), pk: "a" }), bad("'1024'"));
  for (const ttl of [0, null, -10, "5", 0.5, true, 2 ** 31]) {
    await refused(c.items.create({ id: "1", pk: "a", ttl }), bad("The input ttl"));
  }
  assert.equal((await c.item("1", "a").read()).statusCode, 404);
});
