// SPDX-License-Identifier: MIT

// The mixed load of ../go/load/mixed.go with this SDK: see there.

import { setTimeout as sleep } from "node:timers/promises";
import { CosmosClient } from "@azure/cosmos";

const workers = 3;
const reportMs = 200;
const paceMs = 20;
const items = 24; // of a worker
const maxItemCount = 5; // of a page: a query takes several, so that a split comes between them

const client = new CosmosClient({ endpoint: process.env.MAYFLY_ENDPOINT, key: process.env.MAYFLY_KEY });
const container = client.database("split").container("c");

const load = { writes: 0, reads: 0, errors: 0, last: "none" };
const acknowledged = {};
let over = false;
let wrong = "";

const print = () => console.log(load.writes, load.reads, load.errors, load.last);

class Worker {
  told = {}; // the version of each item that was acknowledged

  constructor(by, first) {
    this.by = by;
    this.first = first; // of the kinds of queries
  }

  id = (n) => `${this.by}-${n % items}`;

  item(id, v) {
    return { id, pk: id, owner: this.by, v };
  }

  check(item) {
    if (item?.v !== this.told[item?.id]) {
      wrong ||= `it is shown ${JSON.stringify(item)} where ${this.told[item?.id]} was acknowledged last`;
    }
  }

  async write(n) {
    const id = this.id(n);
    const v = (this.told[id] ?? 0) + 1;
    if (v === 1) {
      await container.items.create(this.item(id, v));
    } else {
      await container.items.upsert(this.item(id, v));
    }
    this.told[id] = v;
    load.writes++;
  }

  /** Writes several items at once, which the SDK sorts by ranges. */
  async bulk() {
    const ids = Object.keys(this.told);
    const results = await container.items.executeBulkOperations(
      ids.map((id) => ({ operationType: "Upsert", partitionKey: id, resourceBody: this.item(id, this.told[id] + 1) })),
    );
    for (const [i, r] of results.entries()) {
      if (r.error) throw r.error;
      this.told[ids[i]]++;
    }
    load.writes += ids.length;
  }

  async read(n) {
    const { resource } = await container.item(this.id(n), this.id(n)).read();
    this.check(resource);
  }

  parameters = () => [{ name: "@by", value: this.by }];

  all(seen) {
    if (new Set(seen.map((i) => i.id)).size !== seen.length || seen.length !== Object.keys(this.told).length) {
      wrong ||= `a query shows ${seen.map((i) => i.id)} of ${Object.keys(this.told)}`;
    }
    seen.forEach((item) => this.check(item));
  }

  async query() {
    const query = { query: "SELECT c.id, c.v FROM c WHERE c.owner = @by", parameters: this.parameters() };
    const seen = [];
    for await (const page of container.items.query(query, { maxItemCount }).getAsyncIterator()) {
      seen.push(...page.resources);
    }
    this.all(seen);
  }

  /** Returns the rows of a query whose parts the SDK merges. */
  async merged(query) {
    const rows = [];
    const pages = container.items.query({ query, parameters: this.parameters() }, { maxItemCount });
    for (let n = 0; pages.hasMoreResults(); n++) {
      if (n > manyPages) throw new Error(`no end of a query after ${n} pages`);
      const { resources } = await pages.fetchNext();
      rows.push(...(resources ?? []));
    }
    return rows;
  }

  async ordered() {
    const seen = await this.merged("SELECT c.id, c.v FROM c WHERE c.owner = @by ORDER BY c.id");
    this.all(seen);
    const ids = seen.map((i) => i.id);
    if (ids.join() !== ids.toSorted().join()) wrong ||= `a query in the order of ids shows ${ids}`;
  }

  async distinct() {
    const owners = await this.merged("SELECT DISTINCT VALUE c.owner FROM c WHERE c.owner = @by");
    if (owners.join() !== this.by) wrong ||= `a query for the owners of the items of ${this.by} shows ${owners}`;
  }

  async latest() {
    const top = (await this.merged("SELECT TOP 7 VALUE c.v FROM c WHERE c.owner = @by ORDER BY c.v DESC")).join();
    const known = Object.values(this.told).toSorted((a, b) => b - a).slice(0, 7).join();
    if (top !== known) wrong ||= `a query for the latest versions shows ${top} and not ${known}`;
  }

  async count() {
    const [n] = await this.merged("SELECT VALUE COUNT(1) FROM c WHERE c.owner = @by");
    const known = Object.keys(this.told).length;
    if (n !== known) wrong ||= `a query counts ${n} items of ${known}`;
  }

  async work() {
    const queries = ["query", "ordered", "count", "bulk", "distinct", "latest"];
    for (let n = 0; !over; n++) {
      let step;
      try {
        await this.write(n);
        step = "read";
        await this.read(n >> 1);
        step = queries[(this.first + n) % queries.length];
        await this[step]();
        load.reads++;
      } catch (err) {
        load.errors++;
        load.last = `${step ?? "write"}: ${err.code} ${err.substatus ?? ""} ${err.message}`.replace(/\s+/g, " ").slice(0, 500);
      }
      await sleep(paceMs);
    }
  }
}

const manyPages = 1000; // more than any query has

process.stdin.on("end", () => (over = true)).resume();
const reports = setInterval(print, reportMs);
const all = Array.from({ length: workers }, (_, i) => new Worker(`js-${i}`, 2 * i));
await Promise.all(all.map((w) => w.work()));
clearInterval(reports);
print();
for (const w of all) console.log("acknowledged", JSON.stringify(w.told));
client.dispose();
if (wrong) {
  console.error(wrong);
  process.exit(1);
}
