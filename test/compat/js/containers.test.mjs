// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound, refused, startMemory } from "./server.mjs";

const definition = {
  id: "c",
  partitionKey: { paths: ["/pk"] },
  defaultTtl: 300,
  indexingPolicy: { indexingMode: "consistent", includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/large/*" }] },
};

test("a container is created once, read, listed, replaced and deleted", async (t) => {
  const database = await (await startMemory(t)).database(t);
  const created = await database.containers.createIfNotExists(definition);
  assert.equal(created.statusCode, 201);
  assert.equal((await database.containers.createIfNotExists(definition)).statusCode, 200);
  await refused(database.containers.create(definition), conflict);

  const { resource } = await created.container.read();
  assert.deepEqual(resource, created.resource);
  assert.equal(resource.defaultTtl, 300);
  assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash" });
  assert.ok(resource.indexingPolicy.excludedPaths.some(({ path }) => path === "/large/*"));
  assert.deepEqual((await database.containers.readAll().fetchAll()).resources, [resource]);

  for (const defaultTtl of [120, -1, undefined]) {
    const replaced = await created.container.replace({ ...resource, defaultTtl });
    assert.equal(replaced.statusCode, 200);
    assert.equal(replaced.resource.defaultTtl, defaultTtl);
    assert.equal((await created.container.read()).resource.defaultTtl, defaultTtl);
  }
  await refused(created.container.replace({ ...resource, partitionKey: { paths: ["/other"] } }), {
    status: 400,
    code: "BadRequest",
    text: "artition key",
  });
  assert.equal((await created.container.delete()).statusCode, 204);
  await refused(created.container.read(), notFound);
});

test("a container without a partition key gets the SDK's own", async (t) => {
  const database = await (await startMemory(t)).database(t);
  const { container } = await database.containers.create({ id: "c", defaultTtl: 5 });
  assert.equal((await container.items.create({ id: "1" })).statusCode, 201);
  assert.equal((await container.item("1", undefined).read()).resource.id, "1");
});

test("bad definitions are refused", async (t) => {
  const database = await (await startMemory(t)).database(t);
  for (const bad of [
    { defaultTtl: 0 },
    { defaultTtl: -10 },
    { defaultTtl: 1.5 },
    { defaultTtl: "5" },
    { defaultTtl: 2 ** 31 },
    { indexingPolicy: { indexingMode: "none", automatic: false } }, // with a ttl
    { partitionKey: { paths: ["/a", "/b"], kind: "Hash" } },
    { partitionKey: { paths: ["/a/"] } },
  ]) {
    await refused(database.containers.create({ ...definition, ...bad }), { status: 400, code: "BadRequest" });
  }
});

test("the throughput decides the number of ranges", async (t) => {
  const database = await (await startMemory(t)).database(t);
  for (const [throughput, count] of [[400, 1], [11000, 2], [21000, 4]]) {
    const { container } = await database.containers.create({ ...definition, id: `c${throughput}`, throughput });
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, count, `ranges of ${throughput} RU/s`);
    assert.equal(resources[0].minInclusive, "");
    assert.equal(resources.at(-1).maxExclusive, "FF");
  }
});
