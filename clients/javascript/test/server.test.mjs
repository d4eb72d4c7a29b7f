// SPDX-License-Identifier: MIT

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { promisify } from "node:util";

import { connect, start } from "../index.js";

// send sends a signed request of the protocol: the package itself needs no SDK.
async function send(server, method, path, kind, link, body, headers = {}) {
  const date = new Date().toUTCString();
  const text = `${method.toLowerCase()}\n${kind}\n${link}\n${date.toLowerCase()}\n\n`;
  const sig = createHmac("sha256", Buffer.from(server.key, "base64")).update(text).digest("base64");
  const answer = await fetch(new URL(path, server.endpoint), {
    method, body: body && JSON.stringify(body),
    headers: { ...headers, authorization: encodeURIComponent(`type=master&ver=1.0&sig=${sig}`), "x-ms-date": date, "x-ms-version": "2020-07-15" },
  });
  return answer.status;
}

test("an item expires when the clock is moved", async () => {
  const server = await start();
  try {
    assert.match(server.connectionString, /^AccountEndpoint=http:\/\/127\.0\.0\.1:\d+\/;AccountKey=.+;$/);
    assert.equal(await send(server, "POST", "dbs", "dbs", "", { id: "d" }), 201);
    const container = { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, defaultTtl: 3600 };
    assert.equal(await send(server, "POST", "dbs/d/colls", "colls", "dbs/d", container), 201);
    const key = { "x-ms-documentdb-partitionkey": '["a"]' };
    assert.equal(await send(server, "POST", "dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", { id: "1", pk: "a" }, key), 201);
    const read = () => send(server, "GET", "dbs/d/colls/c/docs/1", "docs", "dbs/d/colls/c/docs/1", undefined, key);
    assert.equal(await read(), 200);
    await server.clock.freeze();
    const before = await server.clock.now();
    await server.clock.advance("59m");
    assert.equal(await read(), 200);
    await server.clock.advance(61);
    assert.equal(await read(), 404);
    assert.equal((await server.clock.now()) - before, (59 * 60 + 61) * 1000);
    await server.clock.set("2100-01-01T00:00:00Z");
    assert.equal((await server.clock.now()).getUTCFullYear(), 2100);
    await server.clock.release();
    await assert.rejects(server.clock.advance("soon"), /status 400/);
    assert.ok((await connect(server.connectionString).clock.now()).getUTCFullYear() >= 2100);
  } finally {
    await server.stop();
  }
  await assert.rejects(server.clock.now());
});

test("its certificate is trusted over HTTPS", async () => {
  const server = await start();
  try {
    const file = await server.certificateFile();
    assert.match(await readFile(file, "utf8"), /^-----BEGIN CERTIFICATE-----/);
    const url = server.endpoint.replace("http:", "https:") + "_mayfly/health";
    const program = `fetch(${JSON.stringify(url)}).then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(2))`;
    const node = (env) => promisify(execFile)(process.execPath, ["-e", program], { env: { ...process.env, ...env } });
    await node({ NODE_EXTRA_CA_CERTS: file });
    await assert.rejects(node({}), { code: 2 });
  } finally {
    await server.stop();
  }
});

test("a server that cannot start says why", async () => {
  await assert.rejects(start({ binary: "no-such-program" }), /MAYFLY_BINARY/);
  await assert.rejects(start({ args: ["--no-such-flag"] }), /no-such-flag/);
  await assert.rejects(start({ env: { MAYFLY_KEY: "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE=" } }).then((s) => s.stop().then(() => { throw new Error("fine"); })), /fine/);
  assert.throws(() => connect("nothing"), /AccountEndpoint/);
});
