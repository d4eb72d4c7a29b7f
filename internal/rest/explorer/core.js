// SPDX-License-Identifier: MIT

// The reactive core: values that tell their readers when they change, and lists of elements
// that follow lists of data. It knows nothing of the rest of the explorer.

/** @typedef {{run: () => void, sources: Set<Set<Reader>>}} Reader */

/** @type {Reader | null} the reader that runs, which subscribes to what it reads */
let reading = null;
/** @type {Set<Reader> | null} readers that wait for the end of a batch */
let waiting = null;

/** @template T */
export class Signal {
  /** @type {Set<Reader>} */
  #readers = new Set();
  /** @type {T} */
  #value;

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  /** The value. Who reads it in an effect runs again when it changes. */
  get value() {
    if (reading) {
      this.#readers.add(reading);
      reading.sources.add(this.#readers);
    }
    return this.#value;
  }

  set value(value) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    batch(() => {
      for (const reader of this.#readers) waiting?.add(reader);
    });
  }

  /** The value, without being told of changes. */
  peek() {
    return this.#value;
  }

  /** Tells the readers of a value that was changed in place. */
  touch() {
    batch(() => {
      for (const reader of this.#readers) waiting?.add(reader);
    });
  }
}

/**
 * Makes a value that tells of its changes.
 * @template T
 * @param {T} value
 * @returns {Signal<T>}
 */
export const signal = value => new Signal(value);

/**
 * Runs work now, and again whenever a signal that it read has changed. It ends with the
 * returned function, or with the abort signal.
 * @param {() => void} work
 * @param {AbortSignal} [until]
 */
export function effect(work, until) {
  /** @type {Reader} */
  const reader = { sources: new Set(), run };
  const stop = () => {
    reader.run = () => {};
    for (const readers of reader.sources) readers.delete(reader);
    reader.sources.clear();
  };
  function run() {
    for (const readers of reader.sources) readers.delete(reader);
    reader.sources.clear();
    const outer = reading;
    reading = reader;
    try {
      work();
    } finally {
      reading = outer;
    }
  }
  if (until?.aborted) return stop;
  until?.addEventListener("abort", stop, { once: true });
  run();
  return stop;
}

/**
 * A signal that follows others.
 * @template T
 * @param {() => T} work
 * @param {AbortSignal} [until]
 */
export function computed(work, until) {
  /** @type {Signal<any>} */
  const result = signal(undefined);
  effect(() => {
    result.value = work();
  }, until);
  return /** @type {Signal<T>} */ (result);
}

/** How often readers may set off one another before it is taken for an endless loop. */
const MOST_ROUNDS = 100;

/**
 * Changes several signals. Each reader runs once, at the end.
 * @param {() => void} work
 */
export function batch(work) {
  if (waiting) {
    work();
    return;
  }
  waiting = new Set();
  try {
    work();
    for (let round = 0; waiting.size > 0; round++) {
      if (round === MOST_ROUNDS) throw new Error("These effects set off one another without end.");
      const now = waiting;
      waiting = new Set();
      for (const reader of now) reader.run();
    }
  } finally {
    waiting = null;
  }
}

/**
 * Keeps the children of an element in step with a list. An element lives as long as its key
 * is in the list, so it keeps its focus, its place and its state.
 * @template T
 * @param {Element} parent
 * @param {() => Iterable<T>} list read as in an effect
 * @param {(row: T) => any} key
 * @param {(row: T) => Element} make called once for each key
 * @param {{until?: AbortSignal, update?: (element: Element, row: T) => void}} [options]
 */
export function keyed(parent, list, key, make, { until, update } = {}) {
  /** @type {Map<any, Element>} */
  let elements = new Map();
  return effect(() => {
    /** @type {Map<any, Element>} */
    const next = new Map();
    for (const row of list()) {
      const k = key(row);
      if (next.has(k)) continue; // a key is there once
      const element = elements.get(k) ?? make(row);
      update?.(element, row);
      next.set(k, element);
    }
    for (const [k, element] of elements) if (!next.has(k)) element.remove();
    let at = parent.firstElementChild;
    for (const element of next.values()) {
      if (element === at) at = at.nextElementSibling;
      else parent.insertBefore(element, at);
    }
    elements = next;
  }, until);
}
