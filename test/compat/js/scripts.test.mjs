// SPDX-License-Identifier: MIT

// Stored procedures and triggers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound, refused, startFrozen, startMemory } from "./server.mjs";

const bad = (text, substatus = 0) => ({ status: 400, code: "BadRequest", substatus, text });

/** Creates items, as many as are accepted, and answers with how many that were. */
function bulkCreate(items) {
  const collection = getContext().getCollection();
  let count = 0;
  const next = () => {
    getContext().getResponse().setBody(count);
    if (count === items.length) return;
    const accepted = collection.createDocument(collection.getSelfLink(), items[count], (err) => {
      if (err) throw err;
      count++;
      next();
    });
    if (!accepted) getContext().getResponse().setBody(count);
  };
  next();
}

test("stored procedures are kept", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { storedProcedures } = c.scripts;
  const { resource: made, statusCode } = await storedProcedures.create({ id: "p", body: function () {} });
  assert.equal(statusCode, 201);
  await refused(storedProcedures.create({ id: "p", body: "function () {}" }), conflict);
  assert.deepEqual((await c.scripts.storedProcedure("p").read()).resource, made);
  assert.deepEqual((await storedProcedures.readAll().fetchAll()).resources, [made]);
  assert.deepEqual((await storedProcedures.query("SELECT * FROM p WHERE p.id = 'p'").fetchAll()).resources, [made]);
  const { resource: replaced } = await c.scripts.storedProcedure("p").replace({ id: "p", body: "function () { return 1 }" });
  assert.equal(replaced.body, "function () { return 1 }");
  assert.equal((await c.scripts.storedProcedure("p").delete()).statusCode, 204);
  await refused(c.scripts.storedProcedure("p").read(), notFound);
  await refused(c.scripts.storedProcedure("p").execute("a"), notFound);
});

test("stored procedures run in one partition key, as a whole", async (t) => {
  const c = await (await startMemory(t)).container(t, { throughput: 21_000 });
  await c.scripts.storedProcedures.create({ id: "create", body: bulkCreate });
  const procedure = c.scripts.storedProcedure("create");
  const items = (pk, n) => Array.from({ length: n }, (_, i) => ({ id: `${i}`, pk, n: i }));

  const { resource, statusCode, requestCharge } = await procedure.execute("a", [items("a", 50)]);
  assert.equal(resource, 50);
  assert.equal(statusCode, 200);
  assert.ok(requestCharge > 50);
  assert.equal((await c.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'").fetchAll()).resources[0], 50);
  assert.equal((await c.item("7", "a").read()).resource.n, 7);

  const taken = [{ id: "new", pk: "a" }, { id: "7", pk: "a" }];
  await refused(procedure.execute("a", [taken]), bad("already exists", 409));
  assert.equal((await c.item("new", "a").read()).statusCode, 404, "half of a procedure was done");
  await refused(procedure.execute("a", [items("b", 1)]), bad("cannot reference partition keys other than", 400));
});

test("answers, errors and logs of stored procedures", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { storedProcedures } = c.scripts;
  await storedProcedures.create({
    id: "echo",
    body: function (...args) {
      console.log("called with", args.length, "arguments: größer");
      getContext().getResponse().setBody(args);
    },
  });
  const args = [1, "é", null, { a: [true] }];
  const { resource, headers } = await c.scripts.storedProcedure("echo").execute("a", args, { enableScriptLogging: true });
  assert.deepEqual(resource, args);
  const log = decodeURIComponent(headers["x-ms-documentdb-script-log-results"]);
  assert.equal(log, "called with 4 arguments: größer");

  await storedProcedures.create({ id: "throw", body: "function () { throw new Error(404, 'nobody is here'); }" });
  await refused(c.scripts.storedProcedure("throw").execute("a"), bad("nobody is here", 404));
  await storedProcedures.create({ id: "x", body: "function (" });
  await refused(c.scripts.storedProcedure("x").execute("a"), bad("Encountered exception while compiling Javascript.", 65535));
});

test("a stored procedure that pages and deletes", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await Promise.all(Array.from({ length: 25 }, (_, n) => c.items.create({ id: `${n}`, pk: "a", n })));
  await c.scripts.storedProcedures.create({
    id: "bulkDelete",
    body: function (query) {
      const collection = getContext().getCollection();
      const response = getContext().getResponse();
      const result = { deleted: 0, continuation: true };
      tryQuery();
      function tryQuery(continuation) {
        const accepted = collection.queryDocuments(collection.getSelfLink(), query, { continuation, pageSize: 10 }, (err, docs, options) => {
          if (err) throw err;
          if (docs.length > 0) return tryDelete(docs);
          if (options.continuation) return tryQuery(options.continuation);
          result.continuation = false;
          response.setBody(result);
        });
        if (!accepted) response.setBody(result);
      }
      function tryDelete(docs) {
        if (docs.length === 0) return tryQuery();
        const accepted = collection.deleteDocument(docs[0]._self, {}, (err) => {
          if (err) throw err;
          result.deleted++;
          docs.shift();
          tryDelete(docs);
        });
        if (!accepted) response.setBody(result);
      }
    },
  });
  const { resource } = await c.scripts.storedProcedure("bulkDelete").execute("a", ["SELECT c._self FROM c WHERE c.n >= 5"]);
  assert.deepEqual(resource, { deleted: 20, continuation: false });
  assert.equal((await c.items.readAll().fetchAll()).resources.length, 5);
});

test("triggers", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { triggers } = c.scripts;
  const { resource: made } = await triggers.create({
    id: "stamp",
    triggerType: "Pre",
    triggerOperation: "All",
    body: function () {
      const request = getContext().getRequest();
      const item = request.getBody();
      item.stamp = "set";
      request.setBody(item);
    },
  });
  assert.equal(made.triggerType, "Pre");
  assert.deepEqual((await triggers.readAll().fetchAll()).resources, [made]);
  assert.deepEqual((await c.scripts.trigger("stamp").read()).resource, made);
  await triggers.create({
    id: "count",
    triggerType: "Post",
    triggerOperation: "Create",
    body: function () {
      const collection = getContext().getCollection();
      const { id, pk } = getContext().getResponse().getBody();
      if (id === "refused") throw new Error("not this one");
      collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c WHERE c.id = 'count'", (err, [count = { id: "count", pk, n: 0 }]) => {
        if (err) throw err;
        count.n++;
        if (!collection.upsertDocument(collection.getSelfLink(), count)) throw new Error("not accepted");
      });
    },
  });

  const both = { preTriggerInclude: "stamp", postTriggerInclude: "count" };
  const { resource: item } = await c.items.create({ id: "1", pk: "a" }, both);
  assert.equal(item.stamp, "set");
  assert.deepEqual((await c.item("1", "a").read()).resource, item);
  await c.items.create({ id: "2", pk: "a" }, both);
  assert.equal((await c.item("count", "a").read()).resource.n, 2);

  await refused(c.items.create({ id: "refused", pk: "a" }, both), bad("not this one"));
  assert.equal((await c.item("refused", "a").read()).statusCode, 404);
  assert.equal((await c.item("count", "a").read()).resource.n, 2);

  assert.equal((await c.item("1", "a").replace({ id: "1", pk: "a" }, { preTriggerInclude: "stamp" })).resource.stamp, "set");
  await refused(c.item("1", "a").replace({ id: "1", pk: "a" }, { postTriggerInclude: "count" }), bad("count"));
  const { resource: patched } = await c.item("1", "a").patch([{ op: "set", path: "/stamp", value: "gone" }, { op: "set", path: "/n", value: 1 }], { preTriggerInclude: "stamp" });
  assert.deepEqual([patched.stamp, patched.n], ["set", 1]);
  await refused(c.items.create({ id: "3", pk: "a" }, { preTriggerInclude: "none" }), bad("none"));
  assert.equal((await c.scripts.trigger("stamp").delete()).statusCode, 204);
});

test("scripts see no expired item", async (t) => {
  const server = await startFrozen(t);
  const c = await server.container(t, { defaultTtl: 60 });
  await c.scripts.storedProcedures.create({
    id: "ids",
    body: function (extra) {
      if (extra) __.createDocument(__.getSelfLink(), extra);
      __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.id FROM c ORDER BY c.id", (err, ids) => __.response.setBody([ids, Date.now()]));
    },
  });
  const ids = c.scripts.storedProcedure("ids");
  const [first, now] = (await ids.execute("a", [{ id: "short", pk: "a", ttl: 5 }])).resource;
  assert.deepEqual(first, ["short"]);
  await c.items.create({ id: "long", pk: "a" });
  await server.clock({ advance: "5s" });
  const [second, later] = (await ids.execute("a")).resource;
  assert.deepEqual(second, ["long"]);
  await server.clock({ advance: "55s" });
  const [third, last] = (await ids.execute("a")).resource;
  assert.deepEqual(third, []);
  // A script's clock begins at the moment of its run, and goes on from there.
  assert.ok(now < later && later < last);
});
