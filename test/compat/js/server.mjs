// SPDX-License-Identifier: MIT

// Starting and stopping the real binary, for the tests beside. MAYFLY_BINARY
// names it; test/compat/run builds it. MAYFLY_ENDPOINT names a server that runs
// already, with the well-known key, for the tests that need no other.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { CosmosClient } from "@azure/cosmos";

export const wellKnownKey =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const binary = process.env.MAYFLY_BINARY;
const startLimitMs = 20_000;

/** A running server. */
export class Server {
  constructor(endpoint) {
    this.endpoint = endpoint;
  }

  get connection() {
    return `AccountEndpoint=${this.endpoint}/;AccountKey=${wellKnownKey};`;
  }

  /** Returns the SDK's client, which the test gives back at its end. */
  client(t) {
    const client = new CosmosClient(this.connection);
    t.after(() => client.dispose());
    return client;
  }

  /** Creates a database that no other test has. */
  async database(t) {
    const { database } = await this.client(t).databases.create({ id: `js-${randomUUID()}` });
    return database;
  }

  /** Creates the container "c" in a new database. */
  async container(t, definition = {}) {
    const database = await this.database(t);
    const { container } = await database.containers.create({
      id: "c",
      partitionKey: { paths: ["/pk"], version: 2 },
      ...definition,
    });
    return container;
  }

  /** Moves the time, for example {advance: "5s"}. */
  async clock(move) {
    await this.command("clock", move);
  }

  /** Has expired items stay where they are, so that they can come back. */
  async pausePurge() {
    await this.command("ttl/pause");
  }

  async command(page, body) {
    const res = await fetch(`${this.endpoint}/_mayfly/${page}`, {
      method: "POST",
      headers: { authorization: `Bearer ${wellKnownKey}` },
      body: JSON.stringify(body),
    });
    assert.equal(res.status, 200, await res.text());
  }
}

/** Returns a server in memory, for the length of a test. */
export async function startMemory(t) {
  if (process.env.MAYFLY_ENDPOINT) {
    return new Server(process.env.MAYFLY_ENDPOINT.replace(/\/$/, ""));
  }
  return new Server(`http://${await start(t, ["--memory"])}`);
}

/** Returns a server in memory that is started with more flags. */
export async function startWith(t, ...flags) {
  return new Server(`http://${await start(t, ["--memory", ...flags])}`);
}

/** Returns a server in memory whose time stands still unless it is moved. */
export async function startFrozen(t) {
  const server = new Server(`http://${await start(t, ["--memory", "--test-clock"])}`);
  await server.clock({ freeze: true });
  return server;
}

/** Starts a server on a directory; returns its address and a file to trust. */
export async function startData(t) {
  const dir = await mkdtemp(join(tmpdir(), "mayfly-compat-"));
  const address = await start(t, ["--data", dir]);
  // Hooks run in the order of their registration: the server has stopped by then.
  t.after(() => rm(dir, { recursive: true }));
  const { stdout } = await promisify(execFile)(binary, ["cert", "--data", dir]);
  const certificate = join(dir, "client.pem");
  await writeFile(certificate, stdout);
  return { address, certificate };
}

/** Starts the binary on a free port, stops it after the test, returns host:port. */
async function start(t, flags) {
  assert.ok(binary, "MAYFLY_BINARY is not set: run test/compat/run, or build cmd/mayfly and set it");
  // Without an environment, so that no MAYFLY_ variable has a say.
  const child = spawn(binary, ["serve", "--listen", "127.0.0.1:0", ...flags], {
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (log += text));
  const ended = once(child, "exit");
  t.after(async () => {
    child.kill("SIGTERM");
    const [code, signal] = await ended;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, `the server is to stop in peace, but:\n${log}`);
  });
  const address = await listens(child);
  for (const deadline = Date.now() + startLimitMs; ; ) {
    const res = await fetch(`http://${address}/_mayfly/ready`);
    // A node that owns nothing, as those of test/compat/cluster, is not ready, but it answers.
    if (res.ok || (await res.text()).includes("is draining")) return address;
    assert.ok(Date.now() < deadline, "the server did not get ready");
  }
}

async function listens(child) {
  const limit = setTimeout(() => child.kill("SIGKILL"), startLimitMs);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const found = /^Mayfly listens on http:\/\/(\S+) and https:/.exec(line);
      if (found) return found[1];
    }
  } finally {
    clearTimeout(limit);
  }
  throw new Error("the server did not say where it listens");
}

/** Checks that a promise is refused by the server. */
export async function refused(promise, { status, substatus = 0, code, text = "" }) {
  let failure;
  try {
    await promise;
  } catch (err) {
    failure = err;
  }
  assert.ok(failure, `it succeeded, and is to fail with ${status}`);
  assert.equal(failure.code, status, `${failure.message}`);
  assert.equal(Number(failure.substatus ?? 0), substatus, `the sub-status of: ${failure.message}`);
  assert.equal(failure.body?.code, code, `the code of: ${JSON.stringify(failure.body)}`);
  assert.ok(failure.body.message.includes(text), `"${failure.body.message}" lacks "${text}"`);
}

export const notFound = { status: 404, code: "NotFound", text: "Resource Not Found" };
export const conflict = { status: 409, code: "Conflict", text: "already exists" };
export const precondition = { status: 412, code: "PreconditionFailed", text: "pre-condition is not met" };
