// SPDX-License-Identifier: MIT

// Starts Mayfly for a test, as the binary or in a container, and moves its clock.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

// startLimit is how long a server may take until it is ready, in milliseconds.
const startLimit = 60_000;
// maxOutput bounds what is kept of a server's output, for its error.
const maxOutput = 64 << 10;

/** start starts a server, with its data in memory and a clock that can be moved. */
export async function start(options = {}) {
  const { binary = process.env.MAYFLY_BINARY ?? "mayfly", image, args = [], env = {} } = options;
  const flags = ["serve", "--memory", "--test-clock", ...args];
  return image ? inContainer(image, flags, env) : asProcess(binary, flags, env);
}

async function asProcess(binary, flags, env) {
  const child = spawn(binary, [...flags, "--listen=127.0.0.1:0"], {
    env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise((resolve) => child.once("close", resolve));
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill); // a test that fails leaves no server behind
  const connectionString = await new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`mayfly has not started: ${why}\n${output}`));
    const timer = setTimeout(() => { kill(); fail("it took too long"); }, startLimit);
    child.once("error", (err) => {
      clearTimeout(timer);
      fail(err.code === "ENOENT" ? `there is no program ${binary}: install it, or name it with MAYFLY_BINARY` : err.message);
    });
    const read = (chunk) => {
      output = (output + chunk).slice(-maxOutput);
      const found = /^Connection string: (.*)\n/m.exec(output);
      if (found) { clearTimeout(timer); resolve(found[1]); }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    ended.then((code) => { clearTimeout(timer); fail(`it ended with ${code}`); });
  });
  const [, endpoint, key] = /^AccountEndpoint=([^;]*);AccountKey=([^;]*);/.exec(connectionString);
  const known = key === "<your key>" ? (env.MAYFLY_KEY ?? process.env.MAYFLY_KEY) : key;
  if (!known) { kill(); throw new Error("a server with a key of its own needs it in env.MAYFLY_KEY"); }
  return new Server(endpoint, known, async () => {
    process.removeListener("exit", kill);
    child.kill("SIGTERM");
    await ended;
  });
}

async function inContainer(image, flags, env) {
  const key = randomBytes(64).toString("base64");
  const variables = Object.entries({ ...env, MAYFLY_KEY: key }).map(([name, value]) => `--env=${name}=${value}`);
  const { stdout } = await run("docker", ["run", "--detach", "--rm", "--publish=127.0.0.1::8081", ...variables, image, ...flags, "--listen=0.0.0.0:8081"]);
  const id = stdout.trim();
  const remove = () => run("docker", ["rm", "--force", id]);
  try {
    const { stdout: at } = await run("docker", ["port", id, "8081/tcp"]);
    const server = new Server(`http://${at.trim().split("\n")[0]}/`, key, remove);
    await server.ready();
    return server;
  } catch (err) {
    await remove().catch(() => {});
    throw err;
  }
}

/** connect returns a server that runs already. */
export function connect(connectionString) {
  const found = /AccountEndpoint=([^;]*);.*AccountKey=([^;]*)/.exec(connectionString);
  if (!found) { throw new Error("the connection string must have AccountEndpoint and AccountKey"); }
  return new Server(found[1], found[2], async () => {});
}

/** Server is a running server. */
export class Server {
  #stop;
  #files;

  constructor(endpoint, key, stop) {
    this.endpoint = endpoint.endsWith("/") ? endpoint : endpoint + "/";
    this.key = key;
    this.connectionString = `AccountEndpoint=${this.endpoint};AccountKey=${key};`;
    this.clock = new Clock(this);
    this.#stop = stop;
  }

  /** certificate returns the certificate to trust for HTTPS, in PEM. */
  async certificate() {
    const answer = await fetch(new URL("_explorer/emulator.pem", this.endpoint));
    if (!answer.ok) { throw new Error(`the certificate: status ${answer.status}`); }
    return answer.text();
  }

  /** certificateFile writes it to a file, for NODE_EXTRA_CA_CERTS of another process. */
  async certificateFile() {
    this.#files ??= await mkdtemp(join(tmpdir(), "mayfly-"));
    const name = join(this.#files, "mayfly.pem");
    await writeFile(name, await this.certificate());
    return name;
  }

  /** ready waits until the server answers. */
  async ready() {
    for (const until = Date.now() + startLimit; ; await new Promise((done) => setTimeout(done, 50))) {
      const answer = await fetch(new URL("_mayfly/ready", this.endpoint)).catch((err) => err);
      if (answer.ok) { return; }
      if (Date.now() > until) { throw new Error(`mayfly at ${this.endpoint} is not ready: ${answer.status ?? answer.message}`); }
    }
  }

  /** stop stops the server. */
  async stop() {
    await this.#stop();
    if (this.#files) { await rm(this.#files, { recursive: true, force: true }); }
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() { await this.stop(); }
}

/** Clock is the time of a server. */
export class Clock {
  #server;

  constructor(server) { this.#server = server; }

  /** now returns the server's time. */
  async now() { return new Date((await this.#send()).nowMs); }

  /** advance moves the time ahead, by a duration such as "90s" or "3d", or by seconds. */
  async advance(duration) { await this.#send({ advance: String(duration) }); }

  /** set moves the time ahead to a moment. */
  async set(moment) { await this.#send({ set: new Date(moment).toISOString() }); }

  /** freeze stops the time, and release lets it go on. */
  async freeze() { await this.#send({ freeze: true }); }

  async release() { await this.#send({ release: true }); }

  async #send(change) {
    const answer = await fetch(new URL("_mayfly/clock", this.#server.endpoint), {
      method: change ? "POST" : "GET",
      headers: { authorization: `Bearer ${this.#server.key}` },
      body: change && JSON.stringify(change),
    });
    if (!answer.ok) { throw new Error(`the clock: status ${answer.status}: ${await answer.text()}`); }
    return answer.json();
  }
}
