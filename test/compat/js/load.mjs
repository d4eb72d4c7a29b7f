// SPDX-License-Identifier: MIT

// Writes and reads items with the SDK until its standard input ends, as load does in ../go:
// see there. NODE_EXTRA_CA_CERTS names the certificate to trust.

import { CosmosClient } from "@azure/cosmos";

const workers = 4;
const reportMs = 200;

const client = new CosmosClient({
  endpoint: process.env.MAYFLY_ENDPOINT,
  key: process.env.MAYFLY_KEY,
  connectionPolicy: { preferredLocations: process.env.MAYFLY_REGIONS.split(",") },
});
const { database } = await client.databases.create({ id: "js" });
const { container } = await database.containers.create({
  id: "c",
  partitionKey: { paths: ["/pk"], version: 2 },
  throughput: 40000, // several partitions
});

const load = { writes: 0, reads: 0, errors: 0, last: "none" };
let over = false;
let lost = "";

function failed(what, err) {
  load.errors++;
  load.last = `${what}: ${err.code} ${err.substatus ?? ""} ${err.message}`.replace(/\s+/g, " ").slice(0, 500);
}

const print = () => console.log(load.writes, load.reads, load.errors, load.last);

async function work(id) {
  let told = 0; // the last that was acknowledged
  for (let n = 1; !over; n++) {
    try {
      await container.items.upsert({ id, pk: id, n });
      load.writes++;
      told = n;
    } catch (err) {
      failed("write", err);
    }
    if (told === 0) continue;
    try {
      const { resource, statusCode } = await container.item(id, id).read();
      if (!(resource?.n >= told)) {
        lost = `a read shows ${statusCode} ${JSON.stringify(resource)} after the write of ${told} was acknowledged`;
      }
      load.reads++;
    } catch (err) {
      failed("read", err);
    }
  }
}

process.stdin.on("end", () => (over = true)).resume();
const reports = setInterval(print, reportMs);
await Promise.all(Array.from({ length: workers }, (_, i) => work(String(i))));
clearInterval(reports);
print();
client.dispose();
if (lost) {
  console.error(lost);
  process.exit(1);
}
