// SPDX-License-Identifier: MIT

// Users, permissions and what clients can do with resource tokens, read-only keys and
// Entra tokens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CosmosClient, PermissionMode } from "@azure/cosmos";
import { conflict, notFound, refused, startMemory, startWith, wellKnownKey } from "./server.mjs";

const forbidden = { status: 403, code: "Forbidden", text: "Insufficient permissions" };
const unauthorized = { status: 401, code: "Unauthorized", text: "authorization token can't serve the request" };

/** Returns the container as a client with these credentials sees it. */
function as(t, server, container, credentials) {
  const client = new CosmosClient({ endpoint: server.endpoint, ...credentials });
  t.after(() => client.dispose());
  return client.database(container.database.id).container(container.id);
}

test("users are created, listed, queried, replaced and deleted", async (t) => {
  const db = await (await startMemory(t)).database(t);
  const { user, resource } = await db.users.create({ id: "new user" });
  assert.ok(resource._rid && resource._self && resource._etag && resource._ts > 0);
  await refused(db.users.create({ id: "new user" }), conflict);
  assert.equal((await db.users.upsert({ id: "second" })).statusCode, 201);
  assert.deepEqual((await db.users.readAll().fetchAll()).resources.map((u) => u.id), ["new user", "second"]);
  const found = await db.users.query({ query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "second" }] }).fetchAll();
  assert.deepEqual(found.resources.map((u) => u.id), ["second"]);
  const replaced = await user.replace({ ...resource, id: "replaced" });
  assert.equal(replaced.resource.id, "replaced");
  assert.equal(replaced.resource._rid, resource._rid);
  assert.equal((await db.user("replaced").read()).resource.id, "replaced");
  await db.user("replaced").delete();
  await refused(db.user("replaced").read(), notFound);
});

test("permissions are created, listed, queried, replaced and deleted", async (t) => {
  const c = await (await startMemory(t)).container(t);
  const { user } = await c.database.users.create({ id: "u" });
  const definition = { id: "p", permissionMode: PermissionMode.Read, resource: c.url };
  const { permission, resource } = await user.permissions.create(definition);
  assert.deepEqual([resource.id, resource.permissionMode, resource.resource], ["p", PermissionMode.Read, c.url]);
  assert.match(resource._token, /^type=resource&ver=1&sig=/);
  await refused(user.permissions.create(definition), conflict);
  assert.deepEqual((await user.permissions.readAll().fetchAll()).resources.map((p) => p.id), ["p"]);
  const found = await user.permissions.query("SELECT * FROM root r WHERE r.id='p'").fetchAll();
  assert.deepEqual(found.resources.map((p) => p.resource), [c.url]);
  const all = await permission.replace({ ...definition, permissionMode: PermissionMode.All });
  assert.equal(all.resource.permissionMode, PermissionMode.All);
  assert.equal((await user.permissions.upsert({ ...definition, id: "p2", resource: c.item("1").url })).statusCode, 201);
  await permission.delete();
  await refused(permission.read(), notFound);
});

test("a token opens what its permission is for", async (t) => {
  const server = await startMemory(t);
  const c = await server.container(t);
  await c.items.create({ id: "1", pk: "a" });
  await c.items.create({ id: "2", pk: "b" });
  const { container: other } = await c.database.containers.create({ id: "other", partitionKey: { paths: ["/pk"], version: 2 } });
  const { user } = await c.database.users.create({ id: "u" });
  const give = async (definition, options) => (await user.permissions.create(definition, options)).resource;

  const read = await give({ id: "read", permissionMode: PermissionMode.Read, resource: c.url }, { resourceTokenExpirySeconds: 60 });
  const reader = as(t, server, c, { permissionFeed: [read] });
  assert.equal((await reader.item("1", "a").read()).resource.id, "1");
  assert.equal((await reader.items.readAll().fetchAll()).resources.length, 2);
  assert.deepEqual((await reader.items.query("SELECT VALUE c.id FROM c ORDER BY c.id DESC").fetchAll()).resources, ["2", "1"]);
  await refused(reader.items.create({ id: "3", pk: "a" }), forbidden);
  await refused(reader.item("1", "a").delete(), forbidden);
  await refused(reader.delete(), forbidden);
  // The client has no token for the other container, and sends none.
  await refused(as(t, server, other, { resourceTokens: { [c.url]: read._token } }).read(), unauthorized);
  await refused(as(t, server, other, { resourceTokens: { [other.url]: read._token } }).read(), forbidden);

  const all = await give({ id: "all", permissionMode: PermissionMode.All, resource: other.url });
  const writer = as(t, server, other, { resourceTokens: { [other.url]: all._token } });
  await writer.items.create({ id: "1", pk: "a" });
  await writer.items.upsert({ id: "1", pk: "a", n: 1 });
  assert.equal((await writer.item("1", "a").read()).resource.n, 1);
  assert.equal((await writer.item("1", "a").delete()).statusCode, 204);

  const key = await give({ id: "key", permissionMode: PermissionMode.All, resource: c.url, resourcePartitionKey: ["a"] });
  const one = as(t, server, c, { resourceTokens: { [c.url]: key._token } });
  await one.items.create({ id: "3", pk: "a" });
  await refused(one.items.create({ id: "3", pk: "b" }), forbidden);
  await refused(one.item("2", "b").read(), forbidden);
  assert.deepEqual((await one.items.query("SELECT VALUE c.id FROM c", { partitionKey: "a" }).fetchAll()).resources, ["1", "3"]);
  await refused(one.items.query("SELECT * FROM c").fetchAll(), forbidden);

  const item = await give({ id: "item", permissionMode: PermissionMode.All, resource: c.item("2").url, resourcePartitionKey: ["b"] });
  const single = as(t, server, c, { resourceTokens: { [c.item("2").url]: item._token, [c.url]: item._token } });
  assert.equal((await single.item("2", "b").replace({ id: "2", pk: "b", n: 2 })).resource.n, 2);
  await refused(single.item("1", "a").read(), forbidden);

  await user.permission("all").delete();
  await refused(writer.read(), forbidden);
});

test("a read-only key reads", async (t) => {
  const readOnly = Buffer.from("a key that reads").toString("base64");
  const second = Buffer.from("a second key").toString("base64");
  const server = await startWith(t, "--read-only-key", readOnly, "--secondary-key", second);
  const c = await server.container(t);
  await as(t, server, c, { key: second }).items.create({ id: "1", pk: "a" });
  const reader = as(t, server, c, { key: readOnly });
  assert.equal((await reader.item("1", "a").read()).resource.id, "1");
  assert.equal((await reader.items.query("SELECT * FROM c").fetchAll()).resources.length, 1);
  await refused(reader.items.create({ id: "2", pk: "a" }), forbidden);
  await refused(reader.database.delete(), forbidden);
  await refused(as(t, server, c, { key: Buffer.from("no key").toString("base64") }).read(), unauthorized);
});

test("an Entra token opens items, and not the management of containers", async (t) => {
  const server = await startMemory(t);
  const c = await server.container(t);
  const part = (value) => Buffer.from(value).toString("base64url");
  // The SDK sends aadCredentials over HTTPS only; this is the header that it makes.
  const entra = (key, seconds) => ({
    tokenProvider: async () => {
      const exp = Math.floor(Date.now() / 1000) + seconds;
      const payload = { aud: "https://localhost.localhost", tid: "EmulatorFederation", nbf: exp - 7200, exp };
      const token = [part('{"typ":"JWT","alg":"RS256"}'), part(JSON.stringify(payload)), part(key)].join(".");
      return `type=aad&ver=1.0&sig=${token}`;
    },
  });
  const principal = as(t, server, c, entra(wellKnownKey, 3600));
  await principal.items.create({ id: "1", pk: "a" });
  assert.equal((await principal.item("1", "a").read()).resource.id, "1");
  assert.deepEqual((await principal.items.query("SELECT VALUE c.id FROM c").fetchAll()).resources, ["1"]);
  await refused(principal.delete(), { status: 403, substatus: 5300, code: "Forbidden", text: "cannot be authorized by AAD token in data plane" });
  await refused(as(t, server, c, entra("another", 3600)).read(), unauthorized);
  await refused(as(t, server, c, entra(wellKnownKey, -3600)).read(), { ...unauthorized, text: "not valid at the current time" });
});

test("the account names its regions, and clients use them", async (t) => {
  const server = await startWith(t, "--region", "West US", "--region", "East US");
  const client = new CosmosClient({ endpoint: server.endpoint, key: wellKnownKey, connectionPolicy: { preferredLocations: ["East US"] } });
  t.after(() => client.dispose());
  assert.match(await client.getReadEndpoint(), /^http:/);
  const { resource } = await client.getDatabaseAccount();
  assert.deepEqual(resource.readableLocations.map((l) => l.name), ["West US", "East US"]);
  assert.deepEqual(resource.writableLocations.map((l) => l.name), ["West US"]);
  await client.databases.create({ id: "d" });
  assert.equal((await client.database("d").read()).resource.id, "d");
});

test("conflicts are an empty list", async (t) => {
  const c = await (await startMemory(t)).container(t);
  assert.deepEqual((await c.conflicts.readAll().fetchAll()).resources, []);
  assert.deepEqual((await c.conflicts.query("SELECT * FROM c").fetchAll()).resources, []);
  await refused(c.conflict("x", "a").delete(), notFound);
});
