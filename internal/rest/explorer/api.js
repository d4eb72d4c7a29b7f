// SPDX-License-Identifier: MIT

// Requests to the server, with the rights of the browser's session, and the server's time.

const base = "/_explorer/";

/** An answer that refuses a request. */
export class Refusal extends Error {
  /** @param {number} status @param {number} subStatus @param {string} message @param {{start: number, end: number}} [location] */
  constructor(status, subStatus, message, location) {
    super(message);
    this.status = status;
    this.subStatus = subStatus;
    this.location = location; // where in a query, or undefined
  }
}

/** Called when the session has ended. */
export const events = { signedOut: () => {} };

/**
 * Sends a request. The path is that of the protocol, or begins with _mayfly/. A plain answer
 * is text.
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, headers?: Record<string, string>, signal?: AbortSignal, plain?: boolean}} [options]
 * @returns {Promise<{status: number, headers: Headers, body: any}>}
 */
export async function send(method, path, { body, headers = {}, signal, plain = false } = {}) {
  const res = await fetch(base + "api/" + path, {
    method,
    signal,
    headers: { "X-Mayfly-Explorer": "1", ...headers },
    body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
  });
  if (!res.ok && res.status !== 304) throw await refused(res);
  const text = await res.text();
  return { status: res.status, headers: res.headers, body: plain ? text : text === "" ? null : JSON.parse(text) };
}

/** Opens an answer that is sent bit by bit. @param {string} path @param {AbortSignal} signal */
export async function stream(path, signal) {
  const res = await fetch(base + "api/" + path, { signal, headers: { "X-Mayfly-Explorer": "1" } });
  if (!res.ok) throw await refused(res);
  if (!res.body) throw new Refusal(res.status, 0, "The answer is empty.");
  return res.body.pipeThrough(new TextDecoderStream()).getReader();
}

/** @param {Response} res */
async function refused(res) {
  if (res.status === 401) events.signedOut();
  return refusal(res);
}

/** @param {Response} res */
async function refusal(res) {
  const text = await res.text();
  const subStatus = Number(res.headers.get("x-ms-substatus") ?? 0);
  let message = text,
    /** @type {any} */ location;
  try {
    const inner = JSON.parse(text).message;
    message = inner;
    const list = JSON.parse(inner.replace(/^Message: /, "").split("\r\n")[0]);
    const first = (list.Errors ?? list.errors)[0];
    message = typeof first === "string" ? first : first.message;
    location = first.location;
  } catch {
    /* the text as it is */
  }
  return new Refusal(res.status, subStatus, message || `The server answered ${res.status}.`, location);
}

/** Signs in, out, or asks whether someone is signed in. @param {string} [method] @param {any} [body] */
export async function session(method = "GET", body) {
  const res = await fetch(base + "session", {
    method,
    headers: { "X-Mayfly-Explorer": "1" },
    body: body && JSON.stringify(body),
  });
  if (!res.ok) throw await refusal(res);
  return res.json();
}

// The server's time. The browser only measures how long ago the server said it.

let known = { nowMs: 0, at: 0, frozen: false, test: false };

/** Notes what the server says about its time. @param {{nowMs: number, mode?: string}} status */
export function heard(status) {
  known = { ...known, nowMs: status.nowMs, at: performance.now() };
  if (status.mode !== undefined) {
    known.test = status.mode.startsWith("test");
    known.frozen = status.mode === "test frozen";
  }
}

/** The server's time in milliseconds. */
export const now = () => known.nowMs + (known.frozen ? 0 : performance.now() - known.at);
export const clockState = () => known;

/** Asks the server for its time. */
export async function readClock() {
  const { body } = await send("GET", "_mayfly/clock");
  heard(body);
  return body;
}

/** Moves the test clock. */
export async function moveClock(change) {
  const { body } = await send("POST", "_mayfly/clock", { body: change });
  heard(body);
  return body;
}

// Paths.

const esc = encodeURIComponent;
export const dbPath = db => `dbs/${esc(db)}`;
export const collPath = (db, coll) => `dbs/${esc(db)}/colls/${esc(coll)}`;
export const itemPath = (db, coll, id) => `${collPath(db, coll)}/docs/${esc(id)}`;
/** @param {string} page @param {string} [db] @param {string} [coll] @param {Record<string, string>} [more] */
export function ttlPath(page, db, coll, more = {}) {
  const q = new URLSearchParams({ ...(db === undefined ? {} : { database: db, container: coll ?? "" }), ...more });
  return `_mayfly/ttl/${page}?${q}`;
}

/** Reads all pages of a list of resources. @param {string} path @param {string} property @param {AbortSignal} [signal] */
export async function listAll(path, property, signal) {
  /** @type {any[]} */
  const all = [];
  /** @type {string | null | undefined} */
  let continuation;
  do {
    const { headers, body } = await send("GET", path, {
      signal,
      headers: { "x-ms-max-item-count": "1000", ...(continuation ? { "x-ms-continuation": continuation } : {}) },
    });
    all.push(...body[property]);
    continuation = headers.get("x-ms-continuation");
  } while (continuation);
  return all;
}

/** The value at a path such as /a/b of an item; undefined if there is none. */
export function at(item, path) {
  let v = item;
  for (const part of path.split("/").slice(1)) {
    const name = part.startsWith('"') ? JSON.parse(part) : part;
    if (v === null || typeof v !== "object") return undefined;
    v = v[name];
  }
  return v;
}

/** An item's partition key as the header has it. */
export function keyOf(container, item) {
  const parts = container.partitionKey.paths.map(path => at(item, path));
  return headerJSON(parts.map(v => (v === undefined ? {} : v)));
}

/** JSON in ASCII, as headers need it. */
export const headerJSON = v => JSON.stringify(v).replace(/[\u007f-\uffff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

export const keyHeader = (container, item) => ({ "x-ms-documentdb-partitionkey": keyOf(container, item) });

/** The operations that give an item n seconds from now on; -1 for ever. */
export function lifeOperations(container, item, n) {
  const path = container.expireAtPath;
  return [
    path && at(item, path) != null
      ? { op: "set", path, value: n === -1 ? null : Math.ceil(now() / 1000) + n }
      : { op: "set", path: "/ttl", value: n },
  ];
}

/**
 * Why an item expires, and when. null if the server knows nothing of it.
 * @param {string} db @param {any} container @param {string} id @param {string} key @param {AbortSignal} [signal]
 */
export async function explain(db, container, id, key, signal) {
  try {
    const { body } = await send("GET", ttlPath("explain", db, container.id, { id, partitionKey: key }), { signal });
    heard(body);
    return body;
  } catch (err) {
    if (err.status === 404) return null;
    throw err;
  }
}

/**
 * Runs a page of a query. The server merges the rows of several partitions where that is
 * needed.
 * @param {string} db
 * @param {string} coll
 * @param {string} text
 * @param {{parameters?: {name: string, value: any}[], continuation?: string | null, max?: number, key?: string, metrics?: boolean, signal?: AbortSignal}} [options]
 */
export async function query(db, coll, text, { parameters = [], continuation, max = 100, key, metrics = false, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
    "x-ms-max-item-count": String(max),
    "x-mayfly-merge": "true",
    ...(key ? { "x-ms-documentdb-partitionkey": key } : { "x-ms-documentdb-query-enablecrosspartition": "true" }),
    ...(continuation ? { "x-ms-continuation": continuation } : {}),
    ...(metrics ? { "x-ms-documentdb-populatequerymetrics": "true", "x-ms-cosmos-populateindexmetrics": "true" } : {}),
  };
  return page(await send("POST", collPath(db, coll) + "/docs", { headers, body: { query: text, parameters }, signal }));
}

function page({ headers, body }) {
  const utilization = headers.get("x-ms-cosmos-index-utilization");
  return {
    rows: body.Documents,
    continuation: headers.get("x-ms-continuation"),
    charge: Number(headers.get("x-ms-request-charge")),
    metrics: headers.get("x-ms-documentdb-query-metrics") ?? "",
    indexes: utilization ? JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(utilization), c => c.charCodeAt(0)))) : null,
  };
}
