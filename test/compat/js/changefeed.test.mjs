// SPDX-License-Identifier: MIT

// The change feed, as the SDK reads it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  StatusCodes,
} from "@azure/cosmos";
import { startFrozen, startMemory } from "./server.mjs";

const maxReads = 100;

/** Reads until nothing is new, and returns what was, with the last continuation. */
async function drain(iterator) {
  const items = [];
  for (let reads = 0; reads < maxReads; reads++) {
    const page = await iterator.readNext();
    if (page.statusCode === StatusCodes.NotModified) {
      return { items, continuation: page.continuationToken };
    }
    assert.equal(page.statusCode, StatusCodes.Ok);
    assert.equal(page.count, page.result.length);
    assert.ok(page.requestCharge > 0);
    items.push(...page.result);
  }
  assert.fail(`no end after ${maxReads} pages`);
}

const ids = (items) => items.map((item) => item.id).sort();

for (const [partitions, throughput] of [
  ["one physical partition", 400],
  ["four physical partitions", 21000],
]) {
  test(`the latest versions of ${partitions}`, async (t) => {
    const database = await (await startMemory(t)).database(t);
    const { container: c } = await database.containers.create({
      id: "c",
      partitionKey: { paths: ["/pk"], version: 2 },
      throughput,
    });
    for (let n = 0; n < 20; n++) {
      await c.items.create({ id: `i${n}`, pk: `p${n % 5}`, n });
    }
    const all = ids(Array.from({ length: 20 }, (_, n) => ({ id: `i${n}` })));

    await t.test("from the beginning, in pages of any size", async () => {
      for (const maxItemCount of [undefined, 1, 3, 1000]) {
        const read = await drain(
          c.items.getChangeFeedIterator({ maxItemCount, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() }),
        );
        assert.deepEqual(ids(read.items), all);
        assert.ok(read.items.every((item) => item._lsn > 0));
      }
    });

    await t.test("of a partition key, in the order of writes", async () => {
      const start = ChangeFeedStartFrom.Beginning("p2");
      const read = await drain(c.items.getChangeFeedIterator({ maxItemCount: 2, changeFeedStartFrom: start }));
      assert.deepEqual(
        read.items.map((item) => item.id),
        ["i2", "i7", "i12", "i17"],
      );
    });

    await t.test("of each feed range", async () => {
      const read = [];
      for (const range of await c.getFeedRanges()) {
        const start = ChangeFeedStartFrom.Beginning(range);
        read.push(...(await drain(c.items.getChangeFeedIterator({ changeFeedStartFrom: start }))).items);
      }
      assert.deepEqual(ids(read), all);
    });

    await t.test("from now, and on from a continuation", async () => {
      const iterator = c.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now() });
      assert.equal((await iterator.readNext()).statusCode, StatusCodes.NotModified);
      await c.item("i3", "p3").replace({ id: "i3", pk: "p3", n: 100 });
      await c.item("i4", "p4").delete();
      const first = await drain(iterator);
      assert.deepEqual(
        first.items.map(({ id, n }) => ({ id, n })),
        [{ id: "i3", n: 100 }],
      );
      await c.items.upsert({ id: "i5", pk: "p0", n: 200 });
      const start = ChangeFeedStartFrom.Continuation(first.continuation);
      const second = await drain(c.items.getChangeFeedIterator({ changeFeedStartFrom: start }));
      assert.deepEqual(ids(second.items), ["i5"]);
    });

    await t.test("by the older iterator", async () => {
      const read = [];
      for await (const page of c.items.changeFeed("p1", { startFromBeginning: true }).getAsyncIterator()) {
        read.push(...page.result);
      }
      assert.deepEqual(ids(read), ["i1", "i11", "i16", "i6"]);
    });
  });
}

test("what has expired is not in the feed", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { defaultTtl: 60 });
  await c.items.create({ id: "short", pk: "a", ttl: 5 });
  await c.items.create({ id: "default", pk: "a" });
  await c.items.create({ id: "kept", pk: "b", ttl: -1 });
  const beginning = async () =>
    ids((await drain(c.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() }))).items);
  assert.deepEqual(await beginning(), ["default", "kept", "short"]);
  await server.clock({ advance: "5s" });
  assert.deepEqual(await beginning(), ["default", "kept"]);
  await server.clock({ advance: "55s" });
  assert.deepEqual(await beginning(), ["kept"]);
});

test("from a time", async (t) => {
  const server = await startFrozen(t);
  await server.clock({ set: "2100-01-01T00:00:00Z" });
  const c = await server.container(t);
  await c.items.create({ id: "before", pk: "a" });
  await server.clock({ advance: "10s" });
  await c.items.create({ id: "after", pk: "a" });
  const start = ChangeFeedStartFrom.Time(new Date("2100-01-01T00:00:09Z"));
  const iterator = c.items.getChangeFeedIterator({ changeFeedStartFrom: start });
  assert.deepEqual(ids((await drain(iterator)).items), ["after"]);
  await c.item("before", "a").replace({ id: "before", pk: "a", n: 1 });
  assert.deepEqual(ids((await drain(iterator)).items), ["before"]);
});

const keepsVersions = { changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) };

/** Begins to read all versions of a container, now. */
async function allVersions(c, scope) {
  const iterator = c.items.getChangeFeedIterator({
    changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
    changeFeedStartFrom: ChangeFeedStartFrom.Now(scope),
    maxItemCount: 2,
  });
  assert.equal((await iterator.readNext()).statusCode, StatusCodes.NotModified);
  return iterator;
}

/** Tells what happened, without what differs from run to run. */
const story = (items) =>
  items.map(({ current, metadata }) => [
    metadata.operationType,
    current.id ?? metadata.id,
    current.n,
  ]);

test("all versions and deletes", async (t) => {
  const c = await (await startMemory(t)).container(t, keepsVersions);
  const iterator = await allVersions(c);
  const ofKey = await allVersions(c, "b");
  await c.items.create({ id: "1", pk: "a", n: 1 });
  await c.item("1", "a").replace({ id: "1", pk: "a", n: 2 });
  await c.items.upsert({ id: "2", pk: "b", n: 1 });
  await c.item("1", "a").delete();
  const { items, continuation } = await drain(iterator);
  assert.deepEqual(story(items), [
    ["create", "1", 1],
    ["replace", "1", 2],
    ["create", "2", 1],
    ["delete", "1", undefined],
  ]);
  const [created, replaced, , deleted] = items.map((item) => item.metadata);
  assert.equal(created.previousImageLSN, undefined);
  assert.equal(replaced.previousImageLSN, created.lsn);
  assert.equal(deleted.previousImageLSN, replaced.lsn);
  assert.equal(deleted.timeToLiveExpired, false);
  assert.deepEqual(deleted.partitionKey, { pk: "a" });
  assert.ok(items.every(({ metadata }) => metadata.lsn > 0 && metadata.crts > 0));
  assert.deepEqual(story((await drain(ofKey)).items), [["create", "2", 1]]);

  await c.items.upsert({ id: "2", pk: "b", n: 2 });
  const next = c.items.getChangeFeedIterator({
    changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
    changeFeedStartFrom: ChangeFeedStartFrom.Continuation(continuation),
  });
  assert.deepEqual(story((await drain(next)).items), [["replace", "2", 2]]);
});

test("an expiry among all versions", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { ...keepsVersions, defaultTtl: -1 });
  const iterator = await allVersions(c);
  await c.items.create({ id: "1", pk: "a", n: 1, ttl: 5 });
  await server.clock({ advance: "5s" });
  await c.items.create({ id: "1", pk: "a", n: 2 });
  const { items } = await drain(iterator);
  assert.deepEqual(story(items), [
    ["create", "1", 1],
    ["delete", "1", undefined],
    ["create", "1", 2],
  ]);
  assert.equal(items[1].metadata.timeToLiveExpired, true);
  assert.equal(items[1].metadata.previousImageLSN, items[0].metadata.lsn);
});

const fourPartitions = { throughput: 21000 };

/** Counts what happened to each item: "create expire" of an item that came and expired. */
function lives(items) {
  const told = {};
  for (const { current, metadata } of items) {
    const id = current.id ?? metadata.id;
    const what = metadata.timeToLiveExpired ? "expire" : metadata.operationType;
    told[id] = told[id] ? `${told[id]} ${what}` : what;
  }
  return told;
}

test("all versions of four physical partitions, read by one and by several", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { ...keepsVersions, ...fourPartitions, defaultTtl: -1 });
  const ranges = await c.getFeedRanges();
  assert.equal(ranges.length, 4);
  const one = await allVersions(c);
  const several = await Promise.all(ranges.map((range) => allVersions(c, range)));
  const expected = {};
  for (let n = 0; n < 24; n++) {
    const [id, pk] = [`i${n}`, `p${n}`];
    await c.items.create({ id, pk, n, ttl: n % 3 === 0 ? 5 : -1 });
    if (n % 2 === 0) await c.item(id, pk).patch([{ op: "incr", path: "/n", value: 100 }]);
    if (n % 3 === 1) await c.item(id, pk).delete();
    expected[id] = ["create", ...(n % 2 === 0 ? ["replace"] : []), ...[["expire"], ["delete"], []][n % 3]].join(" ");
  }
  await server.clock({ advance: "5s" });

  const all = await drain(one);
  assert.deepEqual(lives(all.items), expected);
  const shares = await Promise.all(several.map(drain));
  assert.ok(shares.every(({ items }) => items.length > 0 && items.length < all.items.length));
  assert.deepEqual(lives(shares.flatMap(({ items }) => items)), expected);
  for (const { items } of shares) {
    const lsns = items.map(({ metadata }) => metadata.lsn);
    assert.deepEqual(lsns, lsns.toSorted((a, b) => a - b));
  }

  // Each goes on from where it was, whoever it was told to.
  await c.items.create({ id: "next", pk: "p0", ttl: 5 });
  await server.clock({ advance: "5s" });
  const goesOn = async ({ continuation }) => {
    const start = ChangeFeedStartFrom.Continuation(continuation);
    const mode = ChangeFeedMode.AllVersionsAndDeletes;
    return (await drain(c.items.getChangeFeedIterator({ changeFeedMode: mode, changeFeedStartFrom: start }))).items;
  };
  assert.deepEqual(lives(await goesOn(all)), { next: "create expire" });
  assert.deepEqual(lives((await Promise.all(shares.map(goesOn))).flat()), { next: "create expire" });
});

test("the latest versions of four physical partitions, while items expire between pages", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { ...fourPartitions, defaultTtl: -1 });
  for (let n = 0; n < 24; n++) await c.items.create({ id: `i${n}`, pk: `p${n}`, ttl: n % 2 === 0 ? 5 : -1 });
  const iterator = c.items.getChangeFeedIterator({
    maxItemCount: 1,
    changeFeedStartFrom: ChangeFeedStartFrom.Beginning(),
  });
  const first = await iterator.readNext();
  assert.equal(first.result.length, 1);
  await server.clock({ advance: "5s" });
  const { items } = await drain(iterator);
  const kept = Array.from({ length: 12 }, (_, n) => `i${2 * n + 1}`);
  assert.deepEqual(ids([...items, ...first.result.filter(({ ttl }) => ttl === -1)]), kept.toSorted());
});

test("a reader of all versions who comes too late", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, keepsVersions);
  const iterator = await allVersions(c);
  await c.items.create({ id: "1", pk: "a" });
  await server.clock({ advance: "10m" });
  await assert.rejects(iterator.readNext(), { code: 400, message: /from within the retention period/ });
});

test("all versions of a container that does not keep them", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const iterator = c.items.getChangeFeedIterator({ changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes });
  await assert.rejects(iterator.readNext(), { code: 400, message: /changeFeedPolicy/ });
});
