// SPDX-License-Identifier: MIT

// Keeps a cart for five seconds.

import { setTimeout as sleep } from "node:timers/promises";
import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient(process.env.MAYFLY_CONNECTION);
const { database: shop } = await client.databases.createIfNotExists({ id: "shop" });
const { container: carts } = await shop.containers.createIfNotExists({
  id: "carts",
  partitionKey: { paths: ["/customer"], version: 2 },
  defaultTtl: 5, // seconds
});

await carts.items.create({ id: "1", customer: "ada", goods: ["tea"] });
const { resource: cart } = await carts.item("1", "ada").read();
console.log("now:", cart);

await sleep(6000);
const { statusCode } = await carts.item("1", "ada").read();
console.log("six seconds later:", statusCode); // 404
