// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { refused, startFrozen, startMemory } from "./server.mjs";

const count = 60;
const kinds = ["bird", "cat", "dog"];

/** Creates a container of four physical partitions with items in all of them. */
async function zoo(t, server, definition = {}) {
  const c = await server.container(t, { throughput: 21_000, ...definition });
  const bodies = Array.from({ length: count }, (_, n) => ({
    id: `i${n}`,
    pk: `key${n}`,
    n,
    kind: kinds[n % kinds.length],
    tags: [`t${n % 4}`, "all"],
    nested: { half: n / 2 },
  }));
  await Promise.all(bodies.map((body) => c.items.create(body)));
  return c;
}

const rows = async (c, query, options) => (await c.items.query(query, options).fetchAll()).resources;
const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const sorted = (list) => list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

test("queries over four partitions", async (t) => {
  const c = await zoo(t, await startMemory(t));
  const { resources: ranges } = await c.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 4);

  await t.test("filters and projections", async () => {
    assert.equal((await rows(c, "SELECT * FROM c")).length, count);
    assert.equal((await c.items.readAll().fetchAll()).resources.length, count);
    assert.deepEqual(sorted(await rows(c, "SELECT VALUE c.n FROM c WHERE c.n >= 57")), [57, 58, 59]);
    assert.deepEqual(await rows(c, "SELECT c.id, c.nested.half FROM c WHERE c.n = 7"), [{ id: "i7", half: 3.5 }]);
    assert.deepEqual(await rows(c, "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.pk = 'key5'"), ["t1", "all"]);
    assert.deepEqual(await rows(c, "SELECT * FROM c WHERE c.n = 1000"), []);
  });

  await t.test("ORDER BY", async () => {
    assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n"), numbers(0, count));
    assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC"), numbers(0, count).reverse());
    assert.deepEqual(
      (await rows(c, "SELECT c.id, c.n FROM c WHERE c.kind = 'cat' ORDER BY c.nested.half")).map(({ n }) => n),
      numbers(0, count).filter((n) => n % 3 === 1),
    );
    const whole = await rows(c, "SELECT * FROM c ORDER BY c._ts");
    assert.equal(new Set(whole.map(({ id }) => id)).size, count);
  });

  await t.test("TOP, OFFSET and LIMIT", async () => {
    assert.deepEqual(await rows(c, "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC"), [59, 58, 57, 56, 55]);
    assert.equal((await rows(c, "SELECT TOP 5 * FROM c")).length, 5);
    assert.equal((await rows(c, "SELECT TOP 1000 * FROM c")).length, count);
    assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 4"), numbers(10, 14));
    assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 58 LIMIT 10"), [58, 59]);
    assert.equal((await rows(c, "SELECT * FROM c OFFSET 50 LIMIT 20")).length, 10);
    assert.deepEqual(await rows(c, "SELECT * FROM c OFFSET 60 LIMIT 1"), []);
  });

  await t.test("DISTINCT", async () => {
    assert.deepEqual(sorted(await rows(c, "SELECT DISTINCT VALUE c.kind FROM c")), kinds);
    assert.deepEqual(await rows(c, "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC"), kinds.toReversed());
    assert.equal((await rows(c, "SELECT DISTINCT c.kind, c.tags FROM c")).length, 12);
    assert.equal((await rows(c, "SELECT DISTINCT TOP 2 c.kind FROM c")).length, 2);
  });

  await t.test("aggregates", async () => {
    assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c"), [count]);
    assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c WHERE c.n < 20"), [20]);
    assert.deepEqual(await rows(c, "SELECT VALUE SUM(c.n) FROM c"), [1770]);
    assert.deepEqual(await rows(c, "SELECT VALUE AVG(c.n) FROM c"), [29.5]);
    assert.deepEqual(await rows(c, "SELECT VALUE MIN(c.n) FROM c WHERE c.kind = 'dog'"), [2]);
    assert.deepEqual(await rows(c, "SELECT VALUE MAX(c.kind) FROM c"), ["dog"]);
    assert.deepEqual(await rows(c, "SELECT COUNT(1) AS k, MAX(c.n) AS most FROM c"), [{ k: count, most: 59 }]);
    assert.deepEqual(await rows(c, "SELECT VALUE COUNT(c.missing) FROM c"), [0]);
  });

  await t.test("GROUP BY", async () => {
    assert.deepEqual(sorted(await rows(c, "SELECT c.kind, COUNT(1) AS k, SUM(c.n) AS s, AVG(c.n) AS a, MIN(c.n) AS l FROM c GROUP BY c.kind")), [
      { kind: "bird", k: 20, s: 570, a: 28.5, l: 0 },
      { kind: "cat", k: 20, s: 590, a: 29.5, l: 1 },
      { kind: "dog", k: 20, s: 610, a: 30.5, l: 2 },
    ]);
    assert.equal((await rows(c, "SELECT c.kind, c.tags FROM c GROUP BY c.kind, c.tags")).length, 12);
    assert.deepEqual(sorted(await rows(c, "SELECT VALUE COUNT(1) FROM c GROUP BY c.tags[0]")), [15, 15, 15, 15]);
  });

  await t.test("parameters", async () => {
    const query = {
      query: "SELECT VALUE c.n FROM c WHERE c.kind = @kind AND ARRAY_CONTAINS(@list, c.n) ORDER BY c.n OFFSET @skip LIMIT @take",
      parameters: [
        { name: "@kind", value: "cat" },
        { name: "@list", value: [1, 2, 4, 7, 10] },
        { name: "@skip", value: 1 },
        { name: "@take", value: 2 },
      ],
    };
    assert.deepEqual(await rows(c, query), [4, 7]);
  });

  await t.test("pages", async () => {
    for (const text of ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c WHERE c.n >= 0"]) {
      for (const maxItemCount of [1, 7, 100]) {
        const seen = [];
        for await (const { resources } of c.items.query(text, { maxItemCount }).getAsyncIterator()) {
          assert.ok(resources.length <= maxItemCount, `${text}: a page of ${resources.length}, asked for ${maxItemCount}`);
          seen.push(...resources);
        }
        if (!text.includes("ORDER")) seen.sort((a, b) => a - b);
        assert.deepEqual(seen, numbers(0, count), `${text} in pages of ${maxItemCount}`);
      }
    }
  });

  await t.test("metrics and charges", async () => {
    const response = await c.items.query("SELECT * FROM c WHERE c.n < 10 ORDER BY c.n", { populateQueryMetrics: true }).fetchAll();
    assert.equal(response.resources.length, 10);
    assert.ok(response.requestCharge > 0);
    const metrics = Object.values(response.queryMetrics ?? {});
    assert.equal(metrics.reduce((sum, m) => sum + m.outputDocumentCount, 0), 10);
  });

  await t.test("what cannot be understood", async () => {
    const wrong = (text) => ({ status: 400, code: "BadRequest", text });
    await refused(rows(c, "SELEC * FROM c"), wrong("SC1001"));
    await refused(rows(c, "SELECT * FROM c WHERE x.n = 1"), wrong("Identifier 'x' could not be resolved."));
    await refused(rows(c, "SELECT * FROM c ORDER BY c.n, c.kind"), wrong("does not have a corresponding composite index"));
  });
});

test("queries of one partition key", async (t) => {
  const c = await (await startMemory(t)).container(t);
  for (const n of numbers(1, 8)) await c.items.create({ id: `i${n}`, pk: "a", n });
  await c.items.create({ id: "other", pk: "b", n: 100 });
  const partitionKey = "a";
  assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c", { partitionKey }), numbers(1, 8));
  assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", { partitionKey }), numbers(1, 8).reverse());
  assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c", { partitionKey }), [7]);
  assert.deepEqual(await rows(c, "SELECT VALUE SUM(c.n) FROM c WHERE c.pk = 'b'"), [100]);
  assert.deepEqual(await rows(c, "SELECT TOP 2 VALUE c.n FROM c", { partitionKey }), [1, 2]);

  // A client may go on later, with nothing but the continuation.
  const query = "SELECT VALUE c.n FROM c";
  const first = await c.items.query(query, { partitionKey, maxItemCount: 3 }).fetchNext();
  assert.deepEqual(first.resources, [1, 2, 3]);
  assert.ok(first.continuationToken);
  await c.item("i4", "a").delete();
  assert.deepEqual(await rows(c, query, { partitionKey, continuationToken: first.continuationToken }), [5, 6, 7]);
});

test("hierarchical partition keys and their prefixes", async (t) => {
  const paths = ["/tenant", "/user", "/session"];
  const c = await (await startMemory(t)).container(t, { partitionKey: { paths, kind: "MultiHash", version: 2 }, throughput: 21_000 });
  for (const tenant of ["x", "y"]) {
    for (const user of [1, 2]) {
      for (const session of ["s", "t"]) await c.items.create({ id: `${tenant}${user}${session}`, tenant, user, session });
    }
  }
  const ids = async (partitionKey) => sorted(await rows(c, "SELECT VALUE c.id FROM c", { partitionKey }));
  assert.deepEqual(await ids(["x", 1, "t"]), ["x1t"]);
  assert.deepEqual(await ids(["x", 1]), ["x1s", "x1t"]);
  assert.deepEqual(await ids(["y"]), ["y1s", "y1t", "y2s", "y2t"]);
  assert.deepEqual(await ids(["z"]), []);
  assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c", { partitionKey: ["y", 2] }), [2]);
});

test("several properties are ordered by a composite index", async (t) => {
  const indexingPolicy = {
    includedPaths: [{ path: "/*" }],
    compositeIndexes: [[{ path: "/kind", order: "ascending" }, { path: "/n", order: "descending" }]],
  };
  const c = await zoo(t, await startMemory(t), { indexingPolicy });
  const expected = kinds.flatMap((_, k) => numbers(0, count).filter((n) => n % 3 === k).reverse());
  assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.kind ASC, c.n DESC"), expected);
  assert.deepEqual(await rows(c, "SELECT VALUE c.n FROM c ORDER BY c.kind DESC, c.n ASC"), expected.toReversed());
});

test("queries do not see what has expired", async (t) => {
  const server = await startFrozen(t);
  const c = await zoo(t, server, { defaultTtl: 10 });
  await c.items.upsert({ id: "i0", pk: "key0", n: 0, kind: "bird", ttl: 20 });
  await server.clock({ advance: "9999ms" });
  assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c"), [count]);
  await server.clock({ advance: "1ms" });
  assert.deepEqual(await rows(c, "SELECT VALUE COUNT(1) FROM c"), [1]);
  assert.deepEqual(await rows(c, "SELECT VALUE c.id FROM c ORDER BY c.n"), ["i0"]);
  assert.deepEqual(await rows(c, "SELECT c.kind, COUNT(1) AS k FROM c GROUP BY c.kind"), [{ kind: "bird", k: 1 }]);
  await server.clock({ advance: "10s" });
  assert.deepEqual(await rows(c, "SELECT * FROM c"), []);
});

test("queries of databases and containers", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { client } = c.database;
  const byId = { query: "SELECT VALUE d.id FROM d WHERE d.id = @id", parameters: [{ name: "@id", value: c.database.id }] };
  assert.deepEqual((await client.databases.query(byId).fetchAll()).resources, [c.database.id]);
  const { resources } = await c.database.containers.query("SELECT * FROM c").fetchAll();
  assert.deepEqual(resources, [(await c.read()).resource]);
});

test("a negative weight turns a rank around", async (t) => {
  const texts = { a: "one two three bikes", b: "bikes bikes bikes", c: "nothing of the kind", d: "bikes and bikes" };
  const c = await (await startMemory(t)).container(t, {
    throughput: 21_000,
    fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] },
    indexingPolicy: { fullTextIndexes: [{ path: "/text" }], includedPaths: [{ path: "/*" }] },
  });
  for (const [id, text] of Object.entries(texts)) {
    await c.items.create({ id, pk: id, text });
  }
  const ranked = async (weights, top = "") => {
    const query = `SELECT ${top} c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'bikes'), FullTextScore(c.text, 'kind'), ${weights})`;
    return (await rows(c, query, { allowUnboundedNonStreamingQueries: true })).map(({ id }) => id);
  };
  const best = await ranked("[5, 0]");
  assert.deepEqual(best.slice(0, 2), ["b", "d"]);
  assert.deepEqual(await ranked("[-5, 0]"), best.toReversed());
  assert.deepEqual(await ranked("[-5, 0]", "TOP 1"), ["c"]);
});
