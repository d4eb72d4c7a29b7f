// SPDX-License-Identifier: MIT

// Files of items: lines of JSON, an array of JSON, and CSV. They are read bit by bit, so that
// a file may be larger than the memory. Nothing here touches the page.

/** The longest text of one item, in characters: more than the server takes. */
const MOST_ITEM = 8 << 20;
const tooLong = () => new Error("The file has a row that is longer than an item can be. Is it of another format?");

/** @typedef {AsyncIterable<string> | Iterable<string>} Chunks */

/**
 * Lines that are not empty.
 * @param {Chunks} chunks
 */
export async function* lines(chunks) {
  let rest = "";
  for await (const chunk of chunks) {
    const all = (rest + chunk).split("\n");
    rest = all.pop() ?? "";
    if (rest.length > MOST_ITEM) throw tooLong();
    for (const line of all) if (line.trim() !== "") yield line;
  }
  if (rest.trim() !== "") yield rest;
}

/**
 * The elements of an array of JSON, as texts.
 * @param {Chunks} chunks
 */
export async function* elements(chunks) {
  let depth = 0,
    quoted = false,
    escaped = false,
    begun = false,
    ended = false,
    text = "";
  for await (const chunk of chunks) {
    let start = 0; // of what belongs to the element
    for (let i = 0; i < chunk.length; i++) {
      const c = chunk[i];
      if (quoted) {
        if (escaped) escaped = false;
        else if (c === "\\") escaped = true;
        else if (c === '"') quoted = false;
        continue;
      }
      if (c === '"') quoted = true;
      if (!begun) {
        if (c === "[") {
          begun = true;
          start = i + 1;
        } else if (c.trim() !== "" && c !== "\ufeff") throw new Error("The file is not an array of JSON.");
        continue;
      }
      if (ended) {
        if (c.trim() !== "") throw new Error("After the array there is more.");
        continue;
      }
      if (c === "{" || c === "[") depth++;
      else if ((c === "}" || c === "]") && depth > 0) depth--;
      else if (depth === 0 && (c === "," || c === "]")) {
        text += chunk.slice(start, i);
        if (text.trim() !== "") yield text.trim();
        text = "";
        start = i + 1;
        ended = c === "]";
      }
    }
    if (begun && !ended) text += chunk.slice(start);
    if (text.length > MOST_ITEM) throw tooLong();
  }
  if (!ended) throw new Error("The array has no end: the file is cut off.");
}

// CSV has the form of `mayfly export`: a cell that is JSON is read as JSON, and other text as
// text, but an id is text unless it is quoted as JSON. So a text that would be read as something
// else is written as JSON. So is one that a spreadsheet would take for a formula; a name gets an
// apostrophe for that.
const FORMULA = /^[=+\-@\t\r]/,
  GUARDED = /^'(?=[=+\-@\t\r])/;

/** What a cell means. @param {string} name @param {string} cell */
function meaning(name, cell) {
  if (cell === "") return undefined;
  if (name === "id" && !cell.startsWith('"')) return cell;
  try {
    return JSON.parse(cell);
  } catch {
    return cell;
  }
}

/** A row that cannot be an item. */
export class BadRow {
  /** @param {string} why @param {string[]} cells */
  constructor(why, cells) {
    this.why = why;
    this.cells = cells;
  }
}

/**
 * The rows of CSV as objects, by the names of the first line. An empty cell is left out.
 * @param {Chunks} chunks
 */
export async function* csvRows(chunks) {
  /** @type {string[] | null} */
  let heads = null;
  /** @type {string[]} */
  let row = [];
  let cell = "",
    quoted = false,
    quote = false,
    first = true;
  const endCell = () => {
    row.push(cell);
    cell = "";
  };
  const endRow = () => {
    endCell();
    const done = row;
    row = [];
    if (heads === null) {
      heads = done.map(name => name.replace(GUARDED, ""));
      return null;
    }
    if (done.length === 1 && done[0] === "") return null;
    if (done.length > heads.length) return new BadRow(`The row has ${done.length} cells for ${heads.length} names.`, done);
    const names = heads;
    return Object.fromEntries(done.map((c, i) => [names[i], meaning(names[i], c)]).filter(([, v]) => v !== undefined));
  };
  for await (let chunk of chunks) {
    if (first && chunk !== "") {
      chunk = chunk.replace(/^\ufeff/, "");
      first = false;
    }
    for (const c of chunk) {
      if (quote) {
        // a quote within quotes: one that is doubled, or the end
        quote = false;
        if (c === '"') {
          cell += '"';
          continue;
        }
        quoted = false;
      }
      if (quoted) {
        if (c === '"') quote = true;
        else if (cell.length > MOST_ITEM) throw tooLong();
        else cell += c;
      } else if (c === '"' && cell === "") quoted = true;
      else if (c === ",") endCell();
      else if (c === "\n") {
        const done = endRow();
        if (done) yield done;
      } else if (c !== "\r") cell += c;
    }
  }
  if (quoted && !quote) throw new Error("The file ends within a cell: a quote is not closed.");
  if (cell !== "" || row.length > 0) {
    const done = endRow();
    if (done) yield done;
  }
}

/** A value as a cell of a table. @param {any} v */
export const cellText = v => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v));

/** A line of cells. @param {string[]} cells */
const csvText = cells => cells.map(c => (/[",\r\n]/.test(c) ? `"${c.replaceAll('"', '""')}"` : c)).join(",") + "\r\n";

/** The first line of CSV. @param {string[]} names */
export const csvHead = names => csvText(names.map(name => (FORMULA.test(name) ? `'${name}` : name)));

/**
 * A line of CSV: values, by the names of the first line.
 * @param {any[]} values
 * @param {string[]} names
 */
export function csvLine(values, names) {
  return csvText(
    values.map((v, i) => {
      const text = cellText(v);
      return typeof v === "string" && (FORMULA.test(text) || meaning(names[i], text) !== v) ? JSON.stringify(v) : text;
    }),
  );
}
