// SPDX-License-Identifier: MIT

// Reads what changed, goes on later from where it was, and sees how items went.

import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";

const client = new CosmosClient(process.env.MAYFLY_CONNECTION);
const { database: shop } = await client.databases.createIfNotExists({ id: "shop" });
const { container: carts } = await shop.containers.createIfNotExists({
  id: "feed",
  partitionKey: { paths: ["/customer"], version: 2 },
  defaultTtl: -1,
  changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(60)),
});

/** Shows what is new from a place on, and returns the place at which the next reader begins. */
async function show(title, options) {
  console.log(title);
  const iterator = carts.items.getChangeFeedIterator(options);
  for (;;) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) return page.continuationToken; // nothing new
    for (const change of page.result) {
      const { operationType = "is", id, timeToLiveExpired } = change.metadata ?? {};
      console.log(" ", operationType, id ?? change.current?.id ?? change.id, timeToLiveExpired ? "by its time to live" : "");
    }
  }
}

const allVersions = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
const now = await show("everything from now on", { ...allVersions, changeFeedStartFrom: ChangeFeedStartFrom.Now() });

await carts.items.create({ id: "1", customer: "ada", goods: ["tea"] });
await carts.items.create({ id: "2", customer: "ada", goods: [], ttl: 1 });
await carts.item("1", "ada").replace({ id: "1", customer: "ada", goods: ["tea", "cup"] });

const later = await show("latest versions", { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
await carts.items.create({ id: "3", customer: "bob", goods: [] });
await carts.item("1", "ada").delete();
await new Promise((done) => setTimeout(done, 2000)); // the item 2 expires
await show("latest versions since", { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(later) });
await show("all versions", { ...allVersions, changeFeedStartFrom: ChangeFeedStartFrom.Continuation(now) });
