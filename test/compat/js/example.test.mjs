// SPDX-License-Identifier: MIT

// The programs that the README and the docs show, by the real time.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";
import { Server, startData, startWith } from "./server.mjs";

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

/** Runs a program that a page shows, with what it prints. */
async function runShown(t, program, page) {
  const server = await startWith(t);
  const { stdout } = await run(program, { MAYFLY_CONNECTION: server.connection });
  const text = await readFile(new URL(`../../../docs/${page}`, import.meta.url), "utf8");
  const printed = /\nIt prints:\n\n```\n(.*?)\n```\n/s.exec(text)[1];
  assert.equal(stdout.replaceAll(/ +$/gm, "").trimEnd(), printed);
}

test("examples", { concurrency: true }, async (t) => {
  await Promise.all([
    t.test("the example over HTTP", (t) => runExample(t, "http", () => ({}))),
    t.test("the example over HTTPS", (t) =>
      runExample(t, "https", (certificate) => ({ NODE_EXTRA_CA_CERTS: certificate })),
    ),
    t.test("the change feed", (t) => runShown(t, "feed.mjs", "changefeed.md")),
    t.test("scripts", (t) => runShown(t, "script.mjs", "scripts.md")),
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
