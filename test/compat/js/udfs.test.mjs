// SPDX-License-Identifier: MIT

// User-defined functions: kept by clients, called by queries.

import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound, refused, startFrozen, startMemory } from "./server.mjs";

const twice = { id: "twice", body: "function (x) { return 2 * x; }" };

const bad = (text) => ({ status: 400, code: "BadRequest", text });
const compileError = { ...bad("Encountered exception while compiling Javascript."), substatus: 65535 };

const rows = async (c, query) => (await c.items.query(query).fetchAll()).resources;

test("user-defined functions are kept", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const functions = c.scripts.userDefinedFunctions;
  const { resource: made, statusCode } = await functions.create(twice);
  assert.equal(statusCode, 201);
  assert.equal(made.body, twice.body);
  assert.ok(made._rid && made._self && made._etag && made._ts);
  await refused(functions.create(twice), conflict);

  assert.deepEqual((await c.scripts.userDefinedFunction("twice").read()).resource, made);
  assert.deepEqual((await functions.readAll().fetchAll()).resources, [made]);
  const named = { query: "SELECT * FROM f WHERE f.id = @id", parameters: [{ name: "@id", value: "twice" }] };
  assert.deepEqual((await functions.query(named).fetchAll()).resources, [made]);

  const replaced = await c.scripts.userDefinedFunction("twice").replace({ id: "twice", body: "x => x + x" });
  assert.equal(replaced.resource.body, "x => x + x");
  assert.equal(replaced.resource._rid, made._rid);

  assert.equal((await c.scripts.userDefinedFunction("twice").delete()).statusCode, 204);
  await refused(c.scripts.userDefinedFunction("twice").read(), notFound);
  assert.deepEqual((await functions.readAll().fetchAll()).resources, []);
});

test("what is no function is refused", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const functions = c.scripts.userDefinedFunctions;
  for (const body of ["function (", "1", "function () {} function () {}"]) {
    await refused(functions.create({ id: "f", body }), compileError);
  }
  await refused(functions.create({ id: "f" }), bad("the required properties - 'body; ' - are missing"));
});

test("queries call user-defined functions", async (t) => {
  const c = await (await startMemory(t)).container(t, { throughput: 21_000 });
  await Promise.all([1, 2, 3, 4].map((n) => c.items.create({ id: `i${n}`, pk: `key${n}`, n, tags: ["a", "b"].slice(0, n % 3) })));
  await c.scripts.userDefinedFunctions.create(twice);
  await c.scripts.userDefinedFunctions.create({
    id: "label",
    body: "function (item, prefix) { return prefix + item.id + (item.tags.length ? ':' + item.tags.join('+') : ''); }",
  });
  await c.scripts.userDefinedFunctions.create({ id: "fail", body: "function () { throw new Error('no ' + arguments[0]); }" });

  assert.deepEqual(await rows(c, "SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n"), [2, 4, 6, 8]);
  assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c WHERE udf.twice(c.n) = 6"), [3]);
  assert.deepEqual(
    await rows(c, "SELECT udf.label(c, 'x-') AS label FROM c WHERE c.n IN (1, 2, 3) ORDER BY c.n"),
    [{ label: "x-i1:a" }, { label: "x-i2:a+b" }, { label: "x-i3" }],
  );
  await refused(rows(c, "SELECT VALUE udf.fail(c.n) FROM c WHERE c.n = 3"), bad("Error: no 3"));
  await refused(rows(c, "SELECT VALUE udf.unknown(c.n) FROM c"), bad("udf.unknown"));

  await c.scripts.userDefinedFunction("twice").replace({ id: "twice", body: "function (x) { return x * 20; }" });
  assert.deepEqual(await rows(c, "SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n"), [20, 40, 60, 80]);
});

test("a function that does not end is stopped", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await c.items.create({ id: "1", pk: "a" });
  await c.scripts.userDefinedFunctions.create({ id: "spin", body: "function () { for (;;); }" });
  await refused(rows(c, "SELECT VALUE udf.spin() FROM c"), { status: 408, code: "RequestTimeout", text: "took too long" });
});

test("functions see the database's time, and no expired item", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { defaultTtl: 60 });
  await c.scripts.userDefinedFunctions.create({ id: "age", body: "function (ts) { return Math.floor(Date.now() / 1000) - ts; }" });
  await c.items.create({ id: "1", pk: "a" });
  await server.clock({ advance: "59s" });
  assert.deepEqual(await rows(c, "SELECT VALUE udf.age(c._ts) FROM c"), [59]);
  await server.clock({ advance: "1s" });
  assert.deepEqual(await rows(c, "SELECT VALUE udf.age(c._ts) FROM c"), []);
});
