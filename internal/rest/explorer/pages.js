// SPDX-License-Identifier: MIT

// A long list that is read in pages. Only the pages around the view are kept; the others are
// read again by their continuation when they are looked at.

/** Rows of a page: few at first, so that the list is there at once, and then more. */
const SIZES = [100, 100, 500];
/** How many pages are kept. */
const KEPT = 24;
/** The most rows that a list shows. What is known of its pages takes memory. */
export const MOST_ROWS = 10_000_000;
/**
 * How many rows a list covers at once, from a base on: browsers draw nothing that is higher than
 * some millions of pixels.
 */
export const COVERED = 400_000;
/** Nearer to an end of what is covered than this, the base moves by half of that. */
const NEAR = COVERED / 10;

/**
 * The base of a list, moved where the view comes near an end of the rows that it covers.
 * @param {number} base
 * @param {number} top the first row in view
 * @param {number} total
 */
export function baseFor(base, top, total) {
  if (top - base > COVERED - NEAR && total > base + COVERED) return base + COVERED / 2;
  if (top - base < NEAR && base > 0) return Math.max(0, base - COVERED / 2);
  return base;
}

/**
 * @template T
 * @typedef {{rows: T[], continuation: string | null | undefined}} Page
 */

/**
 * A page that is known; its rows are null while they are not kept.
 * @template T
 * @typedef {{continuation: string | undefined, start: number, length: number, size: number, rows: T[] | null, used: number}} Known
 */

/** @template T */
export class Pages {
  /** @type {Known<T>[]} */
  #pages = [];
  /** @type {string | null | undefined} of the page after the last one that is known */
  #next = undefined;
  #begun = false;
  #uses = 0;
  /** @type {Promise<void> | null} */
  #under = null;

  /** @param {(continuation: string | undefined, most: number) => Promise<Page<T>>} read */
  constructor(read) {
    this.read = read;
  }

  /** How many rows are known. */
  get length() {
    const last = this.#pages.at(-1);
    return last ? last.start + last.length : 0;
  }

  /** Whether there is more than is known. */
  get more() {
    return !this.#begun || (Boolean(this.#next) && this.length < MOST_ROWS);
  }

  /** The rows that are kept. */
  kept() {
    return this.#pages.flatMap(p => p.rows ?? []);
  }

  /** The page with a row. @param {number} i */
  #pageOf(i) {
    let low = 0,
      high = this.#pages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#pages[middle].start <= i) low = middle;
      else high = middle - 1;
    }
    return this.#pages[low];
  }

  /** A row, or undefined if its page is not kept. @param {number} i @returns {T | undefined} */
  at(i) {
    if (i < 0 || i >= this.length) return undefined;
    const page = this.#pageOf(i);
    page.used = ++this.#uses;
    return page.rows?.[i - page.start];
  }

  /**
   * Reads what is missing of some rows, one page after the other. Resolves to true if
   * something was read.
   * @param {number} first
   * @param {number} last
   */
  async ensure(first, last) {
    let read = false;
    while (this.#under) await this.#under;
    for (;;) {
      const missing = this.#pages.find(p => p.rows === null && p.length > 0 && p.start < last && p.start + p.length > first);
      if (!missing && (last < this.length || !this.more)) return read;
      const work = missing ? this.#again(missing) : this.#further();
      this.#under = work.finally(() => {
        this.#under = null;
      });
      await this.#under;
      read = true;
    }
  }

  async #further() {
    const size = SIZES[Math.min(this.#pages.length, SIZES.length - 1)],
      continuation = this.#next ?? undefined;
    const { rows, continuation: next } = await this.read(continuation, size);
    this.#begun = true;
    this.#next = next;
    if (rows.length === 0) return; // a page may be empty where the query goes on
    this.#pages.push({ continuation, start: this.length, length: rows.length, size, rows, used: ++this.#uses });
    this.#forget();
  }

  /** Reads a page again. What was written or has expired since may make it longer or shorter. @param {Known<T>} page */
  async #again(page) {
    const { rows } = await this.read(page.continuation, page.size);
    page.rows = rows.slice(0, page.size);
    page.length = page.rows.length;
    page.used = ++this.#uses;
    this.#renumber();
    this.#forget();
  }

  #forget() {
    const kept = this.#pages.filter(p => p.rows);
    if (kept.length <= KEPT) return;
    kept.sort((a, b) => a.used - b.used);
    for (const page of kept.slice(0, kept.length - KEPT)) page.rows = null;
  }

  #renumber() {
    let start = 0;
    for (const page of this.#pages) {
      page.start = start;
      start += page.length;
    }
  }

  /** Removes a row. @param {T} row */
  remove(row) {
    for (const page of this.#pages) {
      const i = page.rows?.indexOf(row) ?? -1;
      if (i < 0) continue;
      page.rows?.splice(i, 1);
      page.length--;
      this.#renumber();
      return;
    }
  }
}
