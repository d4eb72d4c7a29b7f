// SPDX-License-Identifier: MIT

// What the editor knows of languages: the words of a text, the brackets that match, and what
// may come next in a query. Nothing here touches the page.

const keywords =
  "SELECT FROM WHERE ORDER BY GROUP VALUE DISTINCT TOP OFFSET LIMIT JOIN IN AND OR NOT BETWEEN LIKE ESCAPE EXISTS ARRAY AS ASC DESC NULL TRUE FALSE UNDEFINED RANK".split(
    " ",
  );
const functions = (
  "COUNT COUNTIF SUM AVG MIN MAX ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 PI POWER RADIANS RAND ROUND SIGN SIN SQRT SQUARE TAN TRUNC NUMBERBIN " +
  "ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN ARRAY_MIN ARRAY_SLICE ARRAY_SUM SETDIFFERENCE SETEQUAL SETINTERSECT SETUNION " +
  "CONCAT CONTAINS ENDSWITH INDEX_OF LASTINDEXOF LASTSUBSTRINGAFTER LASTSUBSTRINGBEFORE LEFT LENGTH LOWER LTRIM REPLACE REPLICATE REVERSE RIGHT RTRIM STARTSWITH STRINGEQUALS STRINGJOIN STRINGSPLIT " +
  "SUBSTRING SUBSTRINGAFTER SUBSTRINGBEFORE TOSTRING TRIM UPPER REGEXMATCH REGEXEXTRACT REGEXEXTRACTALL STRINGTOARRAY STRINGTOBOOLEAN STRINGTONULL STRINGTONUMBER STRINGTOOBJECT OBJECTTOARRAY " +
  "IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING IIF CHOOSE " +
  "DATETIMEADD DATETIMEBIN DATETIMEDIFF DATETIMEFORMAT DATETIMEFROMPARTS DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP GETCURRENTDATETIME GETCURRENTDATETIMESTATIC GETCURRENTTICKS GETCURRENTTICKSSTATIC " +
  "GETCURRENTTIMESTAMP GETCURRENTTIMESTAMPSTATIC TICKSTODATETIME TIMESTAMPTODATETIME DOCUMENTID ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN " +
  "VECTORDISTANCE FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE RRF HASH"
).split(" ");
const keywordSet = new Set(keywords),
  functionSet = new Set(functions);
const scriptWords = new Set(
  "function var let const return if else for while do break continue new typeof throw try catch finally true false null undefined in of switch case default this".split(
    " ",
  ),
);

/** The queries' functions, by name. */
export const queryFunctions = functions;

const patterns = {
  sql: /(?<comment>--[^\n]*)|(?<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(?<parameter>@\w*)|(?<number>\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|(?<word>[A-Za-z_]\w*)|(?<bracket>[()[\]{}])|(?<space>\s+)|(?<other>[\s\S])/giy,
  json: /(?<string>"(?:[^"\\\n]|\\.)*"?)|(?<number>-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|(?<word>[A-Za-z_]\w*)|(?<bracket>[[\]{}])|(?<space>\s+)|(?<other>[\s\S])/giy,
  script:
    /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(?<number>\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|(?<word>[A-Za-z_$][\w$]*)|(?<bracket>[()[\]{}])|(?<space>\s+)|(?<other>[\s\S])/giy,
};

/** @typedef {"sql" | "json" | "script"} Language */
/** @typedef {{kind: string, text: string, start: number}} Token */

/**
 * The words of a text, in order and without gaps.
 * @param {string} text
 * @param {Language} language
 * @returns {Token[]}
 */
export function tokens(text, language) {
  const pattern = new RegExp(patterns[language].source, "giy");
  /** @type {Token[]} */
  const all = [];
  for (const match of text.matchAll(pattern)) {
    const [kind, word] = Object.entries(match.groups ?? {}).find(([, t]) => t !== undefined) ?? ["other", match[0]];
    all.push({ kind: kind === "word" ? kindOf(word, language, text, match.index) : kind, text: match[0], start: match.index });
  }
  if (language === "json") {
    for (let i = 0; i < all.length; i++) {
      // a string before a colon is a name
      if (all[i].kind !== "string") continue;
      const next = all[i + 1]?.kind === "space" ? all[i + 2] : all[i + 1];
      if (next?.text === ":") all[i].kind = "name";
    }
  }
  return all;
}

/** @param {string} word @param {Language} language @param {string} text @param {number} at */
function kindOf(word, language, text, at) {
  if (language === "json") return /^(true|false|null)$/.test(word) ? "keyword" : "wrong";
  if (language === "script") return scriptWords.has(word) ? "keyword" : "plain";
  if (text[at - 1] === ".") return "plain"; // a property may have the name of a word
  const upper = word.toUpperCase();
  if (functionSet.has(upper) && /^\s*\(/.test(text.slice(at + word.length))) return "function";
  return keywordSet.has(upper) ? "keyword" : "plain";
}

const pairs = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/**
 * The places of the bracket beside a place and of its partner, or null.
 * @param {Token[]} words
 * @param {number} at
 * @returns {[number, number] | null}
 */
export function matching(words, at) {
  /** @type {Token[]} */
  const open = [];
  for (const word of words) {
    if (word.kind !== "bracket") continue;
    if (pairs.has(word.text)) {
      open.push(word);
      continue;
    }
    const first = open.pop();
    if (!first) return null;
    if ([first.start, first.start + 1, word.start, word.start + 1].includes(at) && pairs.get(first.text) === word.text)
      return [first.start, word.start];
  }
  return null;
}

const MOST_DEPTH = 6,
  MOST_PATHS = 500;

/**
 * The paths that items have, such as .address.city and .tags[].name.
 * @param {any[]} items
 */
export function pathsOf(items) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {any} v @param {string} path @param {number} depth */
  const walk = (v, path, depth) => {
    if (v === null || typeof v !== "object" || depth > MOST_DEPTH || found.size > MOST_PATHS) return;
    if (Array.isArray(v)) {
      for (const inner of v.slice(0, 5)) walk(inner, `${path}[]`, depth + 1);
      return;
    }
    for (const [name, inner] of Object.entries(v)) {
      const next = path + (/^[A-Za-z_]\w*$/.test(name) && !keywordSet.has(name.toUpperCase()) ? `.${name}` : `[${JSON.stringify(name)}]`);
      found.add(next);
      walk(inner, next, depth + 1);
    }
  };
  for (const item of items) walk(item, "", 0);
  return [...found];
}

/**
 * The names that a query gives to items and to elements of their arrays, with their paths.
 * @param {string} text
 * @returns {Map<string, string>}
 */
export function aliases(text) {
  const all = new Map();
  const words = tokens(text, "sql").filter(t => t.kind !== "space" && t.kind !== "comment");
  const is = (/** @type {number} */ i, /** @type {string} */ word) => words[i]?.kind === "keyword" && words[i].text.toUpperCase() === word;
  /** The path that begins at word i, and what comes after it. @param {number} i @returns {[string, number]} */
  const path = i => {
    let text = words[i]?.kind === "plain" ? words[i].text : "";
    for (i++; text !== "" && (words[i]?.text === "." || words[i]?.text === "["); ) {
      if (words[i].text === ".") {
        text += `.${words[i + 1]?.text ?? ""}`;
        i += 2;
      } else {
        text += `[${words[i + 1]?.text ?? ""}]`;
        i += 3;
      }
    }
    return [text, i];
  };
  for (let i = 0; i < words.length; i++) {
    if (!is(i, "FROM") && !is(i, "JOIN")) continue;
    if (is(i + 2, "IN")) {
      const [source] = path(i + 3),
        root = /^\w+/.exec(source)?.[0] ?? "";
      all.set(words[i + 1].text, `${all.get(root) ?? ""}${source.slice(root.length)}[]`);
      continue;
    }
    const [source, next] = path(i + 1),
      name = is(next, "AS") ? words[next + 1] : words[next];
    if (source !== "") all.set(name?.kind === "plain" ? name.text : source, "");
  }
  if (all.size === 0) all.set("c", "");
  return all;
}

/** @typedef {{text: string, kind: string}} Offer */
const MOST_OFFERS = 12;

/**
 * What may be written at a place of a query.
 * @param {string} text
 * @param {number} at
 * @param {{paths: string[], parameters: string[]}} known
 * @param {boolean} [asked] offers all there is where nothing is written yet
 * @returns {{from: number, offers: Offer[]}}
 */
export function completions(text, at, { paths, parameters }, asked = false) {
  const before = text.slice(0, at),
    inside = tokens(before, "sql").at(-1);
  const none = { from: at, offers: [] };
  if (inside?.kind === "comment") return none;
  const word = /@\w*$|[A-Za-z_][\w.[\]"]*$/.exec(before)?.[0] ?? "";
  if (inside?.kind === "string" && !word.includes("[")) return none;
  if (word === "" && !asked) return none;
  const from = at - word.length,
    lower = word.toLowerCase();
  /** @type {Offer[]} */
  const all = [];
  if (word.startsWith("@")) {
    const used = [...text.matchAll(/@\w+/g)].map(m => m[0]).filter(p => p !== word);
    for (const p of new Set([...parameters, ...used])) all.push({ text: p, kind: "parameter" });
  } else {
    for (const [name, path] of aliases(text)) {
      all.push({ text: name, kind: "item" });
      for (const p of paths)
        if (p.startsWith(path) && p.length > path.length && !p.slice(path.length).includes("[]"))
          all.push({ text: name + p.slice(path.length), kind: "path" });
    }
    for (const k of keywords) all.push({ text: k, kind: "keyword" });
    for (const f of functions) all.push({ text: `${f}(`, kind: "function" });
  }
  const fits = all.filter(o => o.text.toLowerCase().startsWith(lower) && o.text.toLowerCase() !== lower);
  // The parts of a path one after the other: the short ones first.
  fits.sort(
    (a, b) =>
      Number(b.kind === "path" || b.kind === "item") - Number(a.kind === "path" || a.kind === "item") ||
      (a.kind === "path" && b.kind === "path" ? a.text.split(/[.[]/).length - b.text.split(/[.[]/).length : 0),
  );
  return { from, offers: fits.slice(0, MOST_OFFERS) };
}

/**
 * Where JSON is wrong, by the browser's message, or null.
 * @param {string} message
 * @param {string} text
 */
export function jsonFault(message, text) {
  const place = /at position (\d+)/.exec(message);
  if (place) return { start: Number(place[1]), end: Number(place[1]) + 1 };
  const line = /line (\d+) column (\d+)/.exec(message);
  if (line) {
    const start =
      text
        .split("\n")
        .slice(0, Number(line[1]) - 1)
        .reduce((n, l) => n + l.length + 1, 0) +
      Number(line[2]) -
      1;
    return { start, end: start + 1 };
  }
  return /end of (JSON|data)|Unterminated/i.test(message)
    ? { start: Math.max(0, text.trimEnd().length - 1), end: text.trimEnd().length }
    : null;
}
