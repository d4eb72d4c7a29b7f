// SPDX-License-Identifier: MIT

// A stored procedure, a trigger and a user-defined function.

import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient(process.env.MAYFLY_CONNECTION);
const { database: shop } = await client.databases.createIfNotExists({ id: "shop" });
const { container: stock } = await shop.containers.createIfNotExists({ id: "stock", partitionKey: { paths: ["/shelf"], version: 2 } });

/** Moves some of one item to another, both or neither. */
function move(from, to, n) {
  const all = getContext().getCollection();
  const read = (id, then) =>
    all.readDocument(`${all.getAltLink()}/docs/${id}`, (err, item) => {
      if (err) throw err;
      then(item);
    });
  const write = (item) =>
    all.replaceDocument(item._self, item, (err) => {
      if (err) throw err;
    });
  read(from, (a) =>
    read(to, (b) => {
      if (a.n < n) throw new Error(`there are only ${a.n}`);
      a.n -= n;
      b.n += n;
      write(a);
      write(b);
      getContext().getResponse().setBody({ from: a.n, to: b.n });
    }),
  );
}

/** Counts how often an item was written. */
function count() {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.writes = (item.writes ?? 0) + 1;
  request.setBody(item);
}

const { scripts } = stock;
await scripts.storedProcedures.create({ id: "move", body: move });
await scripts.triggers.create({ id: "count", body: count, triggerType: "Pre", triggerOperation: "All" });
await scripts.userDefinedFunctions.create({ id: "price", body: (n) => (n > 5 ? n * 9 : n * 10) });

await stock.items.create({ id: "tea", shelf: "a", n: 9 }, { preTriggerInclude: ["count"] });
await stock.items.create({ id: "cup", shelf: "a", n: 1 }, { preTriggerInclude: ["count"] });
const { resource: moved } = await scripts.storedProcedure("move").execute("a", ["tea", "cup", 2]);
console.log("moved:", moved);
await scripts
  .storedProcedure("move")
  .execute("a", ["tea", "cup", 100])
  .catch((err) => console.log("refused:", err.code, err.message.includes("there are only 7")));

const { resources } = await stock.items.query("SELECT c.id, c.n, c.writes, udf.price(c.n) AS price FROM c").fetchAll();
console.log(resources);
