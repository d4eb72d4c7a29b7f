// SPDX-License-Identifier: MIT

// The program that the README shows, by the real time, over HTTP and HTTPS.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";
import { Server, startData } from "./server.mjs";

const limitMs = 30_000;

/** Runs a program beside this one to its end. */
function run(program, env) {
  const inherited = { ...process.env, ...env };
  delete inherited.NODE_TEST_CONTEXT; // so that a test program runs as if by hand
  const file = fileURLToPath(new URL(program, import.meta.url));
  return promisify(execFile)(process.execPath, [file], { env: inherited, timeout: limitMs });
}

async function runExample(t, scheme, trust) {
  const { address, certificate } = await startData(t);
  const { connection } = new Server(`${scheme}://${address}`);
  const { stdout } = await run("example.mjs", { MAYFLY_CONNECTION: connection, ...trust(certificate) });
  assert.match(stdout, /^now: \{\s+id: '1',\s+customer: 'ada',\s+goods: \[ 'tea' \],/);
  assert.match(stdout, /\nsix seconds later: 404\n$/);
}

test("examples", { concurrency: true }, async (t) => {
  await Promise.all([
    t.test("the example over HTTP", (t) => runExample(t, "http", () => ({}))),
    t.test("the example over HTTPS", (t) =>
      runExample(t, "https", (certificate) => ({ NODE_EXTRA_CA_CERTS: certificate })),
    ),
    t.test("the tests of items over HTTPS", async (t) => {
      const { address, certificate } = await startData(t);
      const { stdout } = await run("items.test.mjs", {
        MAYFLY_ENDPOINT: `https://${address}`,
        NODE_EXTRA_CA_CERTS: certificate,
      });
      assert.match(stdout, /^# pass [1-9]\d*\n# fail 0$/m, stdout);
    }),
  ]);
});
