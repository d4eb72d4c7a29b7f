// SPDX-License-Identifier: MIT

// Follows the change feed by its continuation, for ../go/split: see there.

import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedStartFrom, CosmosClient, StatusCodes } from "@azure/cosmos";

const betweenMs = 50; // looks, when nothing is new

const client = new CosmosClient({ endpoint: process.env.MAYFLY_ENDPOINT, key: process.env.MAYFLY_KEY });
const container = client.database("split").container("c");
let over = false;
let reads = 0;
process.stdin.on("end", () => (over = true)).resume();

try {
  const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount: 7 });
  while (!over) {
    const page = await feed.readNext();
    reads++;
    if (page.statusCode === StatusCodes.NotModified) {
      await sleep(betweenMs);
      continue;
    }
    for (const item of page.result) console.log("change", item.id, item.v);
  }
} catch (err) {
  console.log(0, reads, 1, `${err.code} ${err.substatus ?? ""} ${err.message}`.replace(/\s+/g, " "));
}
client.dispose();
