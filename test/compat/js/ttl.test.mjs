// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, refused, startFrozen } from "./server.mjs";

/** Starts a server with one container, and returns what the tests below do. */
async function begin(t, defaultTtl) {
  const server = await startFrozen(t);
  const c = await server.container(t, { defaultTtl });
  const status = async (id) => (await c.item(id, "a").read()).statusCode;
  return {
    c,
    upsert: (id, ttl) => c.items.upsert({ id, pk: "a", ...(ttl && { ttl }) }),
    advance: (advance) => server.clock({ advance }),
    pausePurge: () => server.pausePurge(),
    alive: async (id) => assert.equal(await status(id), 200, `${id} is to be there`),
    gone: async (id) => assert.equal(await status(id), 404, `${id} is to be gone`),
    setDefault: async (defaultTtl) => {
      const { resource } = await c.read();
      await c.replace({ ...resource, defaultTtl });
    },
  };
}

test("items expire on the millisecond", async (t) => {
  const x = await begin(t, 5);
  await x.upsert("inherits");
  await x.upsert("shorter", 2);
  await x.upsert("longer", 8);
  await x.upsert("never", -1);
  await x.advance("1999ms");
  await x.alive("shorter");
  await x.advance("1ms");
  await x.gone("shorter");
  await x.advance("2999ms");
  await x.alive("inherits");
  await x.advance("1ms");
  await x.gone("inherits");
  await x.advance("2999ms");
  await x.alive("longer");
  await x.advance("1ms");
  await x.gone("longer");
  await x.advance("24000h");
  await x.alive("never");
});

test("a write begins the life anew, a read does not", async (t) => {
  const x = await begin(t, 5);
  await x.upsert("1");
  await x.advance("4s");
  await x.alive("1");
  await x.c.item("1", "a").replace({ id: "1", pk: "a" });
  await x.advance("4s");
  await x.alive("1");
  await x.advance("1s");
  await x.gone("1");
});

test("an expired item is as good as deleted", async (t) => {
  const x = await begin(t, 5);
  const old = await x.upsert("1");
  await x.advance("5s");
  await refused(x.c.item("1", "a").replace({ id: "1", pk: "a" }), notFound);
  await refused(x.c.item("1", "a").delete(), notFound);
  const created = await x.c.items.create({ id: "1", pk: "a" });
  assert.equal(created.statusCode, 201);
  assert.notEqual(created.etag, old.etag);
  assert.notEqual(created.resource._rid, old.resource._rid);
  await x.advance("5s");
  assert.equal((await x.upsert("1")).statusCode, 201);
});

test("a container without a default ignores ttl", async (t) => {
  const x = await begin(t, undefined);
  await x.upsert("1", 1);
  await x.advance("1h");
  await x.alive("1");
  await x.setDefault(-1);
  await x.gone("1");
});

test("a new default holds for old items at once", async (t) => {
  const x = await begin(t, 3600);
  await x.pausePurge();
  await x.upsert("inherits");
  await x.upsert("own", 60);
  await x.advance("10s");
  await x.setDefault(5);
  await x.gone("inherits");
  await x.alive("own");
  await x.setDefault(20);
  await x.alive("inherits");
  await x.advance("10s");
  await x.gone("inherits");
  await x.setDefault(undefined);
  await x.alive("inherits");
});
