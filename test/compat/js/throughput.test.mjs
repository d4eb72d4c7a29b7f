// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { precondition, refused, startMemory } from "./server.mjs";

const partitionKey = { paths: ["/pk"], version: 2 };

test("a container's throughput is read and replaced", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const client = c.database.client;
  const { resource, offer } = await c.readOffer();
  assert.equal(resource.content.offerThroughput, 400);
  assert.equal(resource.offerVersion, "V2");
  assert.deepEqual((await offer.read()).resource, resource);

  resource.content.offerThroughput = 50_000;
  const replaced = await offer.replace(resource);
  assert.equal(replaced.statusCode, 200);
  assert.equal(replaced.resource.content.offerThroughput, 50_000);
  assert.equal(replaced.headers["x-ms-cosmos-min-throughput"], "500");
  // Partitions are split until each carries 10,000 RU/s.
  assert.equal(replaced.headers["x-ms-offer-replace-pending"], "true");
  let read = await client.offer(offer.id).read();
  for (const began = Date.now(); read.resource.content.isOfferReplacePending && Date.now() - began < 30_000; ) {
    await sleep(20);
    read = await client.offer(offer.id).read();
  }
  assert.equal(read.headers["x-ms-offer-replace-pending"], "false");
  assert.equal(read.resource.content.offerThroughput, 50_000);
  assert.equal((await c.readPartitionKeyRanges().fetchAll()).resources.length, 5);

  resource.content.offerThroughput = 400;
  await refused(offer.replace(resource), {
    status: 400,
    code: "BadRequest",
    text: "Requested throughput 400 is less than required minimum throughput 500",
  });
  const stale = { accessCondition: { type: "IfMatch", condition: resource._etag } };
  resource.content.offerThroughput = 600;
  await refused(offer.replace(resource, stale), precondition);
});

test("from manual to autoscale and back", async (t) => {
  const c = await (await startMemory(t)).container(t, { throughput: 500 });
  const { resource, offer } = await c.readOffer();
  assert.equal(resource.content.offerThroughput, 500);
  resource.content.offerAutopilotSettings = { maxThroughput: 4000 };
  const autoscale = (await offer.replace(resource)).resource;
  assert.equal(autoscale.content.offerAutopilotSettings.maxThroughput, 4000);
  // A client sends back what it has read, with another maximum.
  autoscale.content.offerAutopilotSettings.maxThroughput = 5000;
  const raised = (await offer.replace(autoscale)).resource;
  assert.equal(raised.content.offerAutopilotSettings.maxThroughput, 5000);
  delete raised.content.offerAutopilotSettings;
  raised.content.offerThroughput = 800;
  const manual = (await offer.replace(raised)).resource;
  assert.equal(manual.content.offerThroughput, 800);
  assert.equal(manual.content.offerAutopilotSettings, undefined);
});

test("a database's throughput is shared", async (t) => {
  const client = (await startMemory(t)).client(t);
  const { database } = await client.databases.create({ id: "shared", maxThroughput: 4000 });
  const { resource, offer } = await database.readOffer();
  assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 4000);
  resource.content.offerAutopilotSettings.maxThroughput = 3000;
  assert.equal((await offer.replace(resource)).resource.content.offerAutopilotSettings.maxThroughput, 3000);

  const { container: shares } = await database.containers.create({ id: "shares", partitionKey });
  assert.equal((await shares.readOffer()).resource, undefined);
  const { container: own } = await database.containers.create({ id: "own", partitionKey, throughput: 500 });
  assert.equal((await own.readOffer()).resource.content.offerThroughput, 500);

  const { resources } = await client.offers.readAll().fetchAll();
  assert.equal(resources.length, 2);
  const { resources: found } = await client.offers
    .query({
      query: "SELECT * FROM root r WHERE r.resource = @link",
      parameters: [{ name: "@link", value: resource.resource }],
    })
    .fetchAll();
  assert.deepEqual(found.map(({ id }) => id), [offer.id]);
  await database.delete();
  assert.deepEqual((await client.offers.readAll().fetchAll()).resources, []);
});
