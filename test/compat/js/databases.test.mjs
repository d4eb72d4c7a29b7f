// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { conflict, notFound, precondition, refused, startMemory } from "./server.mjs";

const shop = { id: "shop" };

test("a database is created once, read, listed and deleted", async (t) => {
  const client = (await startMemory(t)).client(t);
  const created = await client.databases.createIfNotExists(shop);
  assert.equal(created.statusCode, 201);
  const again = await client.databases.createIfNotExists(shop);
  assert.equal(again.statusCode, 200);
  assert.equal(again.resource._rid, created.resource._rid);
  await refused(client.databases.create(shop), conflict);

  const read = await client.database("shop").read();
  assert.deepEqual(read.resource, created.resource);
  assert.ok(read.requestCharge > 0);
  const { resources } = await client.databases.readAll().fetchAll();
  assert.deepEqual(resources, [created.resource]);

  const stale = { accessCondition: { type: "IfMatch", condition: '"another"' } };
  await refused(client.database("shop").delete(stale), precondition);
  assert.equal((await client.database("shop").delete()).statusCode, 204);
  await refused(client.database("shop").read(), notFound);
  assert.deepEqual((await client.databases.readAll().fetchAll()).resources, []);
});

test("lists come in pages", async (t) => {
  const client = (await startMemory(t)).client(t);
  const ids = ["a", "b", "c", "d", "e"];
  for (const id of ids) await client.databases.create({ id });
  const pages = [];
  for await (const { resources } of client.databases.readAll({ maxItemCount: 2 }).getAsyncIterator()) {
    pages.push(resources.map(({ id }) => id));
  }
  assert.deepEqual(pages, [["a", "b"], ["c", "d"], ["e"]]);
});

test("the account says where it is", async (t) => {
  const server = await startMemory(t);
  const { resource } = await server.client(t).getDatabaseAccount();
  assert.equal(resource.writableLocations[0].databaseAccountEndpoint, `${server.endpoint}/`);
  assert.equal(resource.consistencyPolicy, "Session");
});

test("another key is refused", async (t) => {
  const { endpoint } = await startMemory(t);
  const client = new CosmosClient({ endpoint, key: "bm90IHRoZSBrZXk=" });
  t.after(() => client.dispose());
  await refused(client.databases.create(shop), {
    status: 401,
    code: "Unauthorized",
    text: "The input authorization token can't serve the request.",
  });
});
