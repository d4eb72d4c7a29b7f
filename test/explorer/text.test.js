// SPDX-License-Identifier: MIT

import { test } from "node:test";
import assert from "node:assert/strict";
import { aliases, completions, jsonFault, matching, pathsOf, tokens } from "../../internal/rest/explorer/language.js";
import { csvHead, csvLine, csvRows, elements, lines } from "../../internal/rest/explorer/formats.js";
import { difference, patched, threeWay } from "../../internal/rest/explorer/diff.js";

test("words cover the text without gaps, whatever it is", () => {
  for (const language of ["sql", "json", "script"]) {
    for (const text of ["", "SELECT * FROM c", '{"a": [1, "b\\"", tru', "'unended", "/* unended", "\u0000\ud83d\ude00 ` @", '"a\nb"']) {
      assert.equal(
        tokens(text, language)
          .map(t => t.text)
          .join(""),
        text,
      );
    }
  }
});

test("words have their kinds", () => {
  const kinds = (text, language) =>
    tokens(text, language)
      .filter(t => t.kind !== "space")
      .map(t => t.kind)
      .join(" ");
  assert.equal(
    kinds("SELECT c.order, COUNT(1) FROM c WHERE c.x = @p -- why", "sql"),
    "keyword plain other plain other function bracket number bracket keyword plain keyword plain other plain other parameter comment",
  );
  assert.equal(kinds('{"a": "b", "c": nul}', "json"), "bracket name other string other name other wrong bracket");
});

test("brackets find their partners, but not in texts", () => {
  const at = (text, place) => matching(tokens(text, "json"), place);
  assert.deepEqual(at('{"a": "}"}', 0), [0, 9]);
  assert.deepEqual(at("[1, [2]]", 8), [0, 7]);
  assert.equal(at("[1", 0), null);
});

const known = {
  paths: pathsOf([{ price: 1, address: { city: "x", "post code": 2 }, tags: [{ name: "n" }], order: 3 }]),
  parameters: ["@low"],
};
const offered = (text, asked) => completions(text, text.length, known, asked).offers.map(o => o.text);

test("paths of sampled items are offered under the item's name", () => {
  assert.ok(offered("SELECT * FROM c WHERE c.pr").includes("c.price"));
  assert.ok(completions("SELECT o.ad FROM orders o", 11, known).offers.some(o => o.text === "o.address.city"));
  assert.ok(offered('SELECT c.address["po').includes('c.address["post code"]'));
  assert.deepEqual(offered("SELECT t.name FROM c JOIN t IN c.tags WHERE t.n"), ["t.name"]);
  assert.ok(known.paths.includes('["order"]')); // a keyword cannot follow a dot
});

test("keywords, functions and parameters are offered", () => {
  assert.ok(offered("sel").includes("SELECT"));
  assert.ok(offered("SELECT * FROM c WHERE STARTS").includes("STARTSWITH("));
  assert.deepEqual(offered("SELECT @p, @"), ["@low", "@p"]);
  assert.deepEqual(offered('SELECT "sel'), []);
  assert.deepEqual(offered("SELECT 1 -- sel"), []);
  assert.deepEqual(offered("SELECT "), []);
  assert.ok(offered("SELECT ", true).length > 0);
});

test("names of a query", () => {
  assert.deepEqual(
    [...aliases("SELECT * FROM root r JOIN t IN r.tags JOIN n IN t.names")],
    [
      ["r", ""],
      ["t", ".tags[]"],
      ["n", ".tags[].names[]"],
    ],
  );
  assert.deepEqual([...aliases("SELECT 1")], [["c", ""]]);
});

test("faults of JSON have a place", () => {
  const fault = text => {
    try {
      JSON.parse(text);
    } catch (err) {
      return jsonFault(err.message, text);
    }
    return null;
  };
  assert.deepEqual(fault('{"a": 1,\n "b" 2}'), { start: 14, end: 15 });
  assert.equal(fault("{}"), null);
  assert.ok(fault('{"a": '));
});

/** All ways to cut a text into two, and into single characters. */
function* cuts(text) {
  for (let i = 0; i <= text.length; i++) yield [text.slice(0, i), text.slice(i)];
  yield [...text];
}
const all = async rows => {
  const list = [];
  for await (const row of rows) list.push(row);
  return list;
};

test("files are read alike wherever they are cut", async () => {
  for (const parts of cuts('\n{"a":1}\n\n{"b":"\u00e9"}')) assert.deepEqual(await all(lines(parts)), ['{"a":1}', '{"b":"\u00e9"}']);
  for (const parts of cuts(' [ {"a": "]}\\"," }, [1, 2],\n3 ] \n'))
    assert.deepEqual(await all(elements(parts)), ['{"a": "]}\\"," }', "[1, 2]", "3"]);
  for (const parts of cuts('\ufeffid,n,note,deep\r\n1,2,"a, ""b""\nc","{""x"":1}"\r\n"3",,x\r\n')) {
    assert.deepEqual(await all(csvRows(parts)), [
      { id: "1", n: 2, note: 'a, "b"\nc', deep: { x: 1 } },
      { id: "3", note: "x" },
    ]);
  }
});

test("files that are no such files are refused", async () => {
  await assert.rejects(all(elements(['{"a":1}'])), /not an array/);
  await assert.rejects(all(elements(["[1, 2"])), /cut off/);
  await assert.rejects(all(elements(["[1] 2"])), /more/);
  await assert.rejects(all(lines(["x".repeat(5e6), "x".repeat(5e6)])), /longer/);
  await assert.rejects(all(elements(["[", "x".repeat(5e6), "x".repeat(5e6)])), /longer/);
});

test("what is written as CSV is read back, and is no formula", async () => {
  const row = { id: "007", flag: "true", n: 1.5, list: [1, "a"], text: 'x,"y"\n', none: null, empty: "", ends: "a\r\nb\rc", "@type": "-x" };
  for (const text of ["5", "-5", " 5 ", '"x"', '{"a":1}', "[", "null", "'x", "+49", "\t", "1e5", '"a" b']) row[text] = text; // as a name, too
  const names = Object.keys(row);
  for (const parts of cuts(csvHead(names) + csvLine(Object.values(row), names))) assert.deepEqual(await all(csvRows(parts)), [row]);
  for (const id of ["5", '"5"', "null", "=1", ""]) assert.deepEqual(await all(csvRows([csvHead(["id"]), csvLine([id], ["id"])])), [{ id }]);
  // TestReadsWhatTheExplorerWrites has the same rows.
  const written = { id: "7", "@type": "a", text: "=1+1", zip: "5", n: 5 };
  assert.equal(
    csvHead(Object.keys(written)) + csvLine(Object.values(written), Object.keys(written)),
    'id,\'@type,text,zip,n\r\n7,a,"""=1+1""","""5""",5\r\n',
  );
});

test("rows of CSV that are not what they seem are no items", async () => {
  const [good, bad] = await all(csvRows(["id,a\n1,2\n3,4,5\n"]));
  assert.deepEqual([good, bad.why, bad.cells], [{ id: "1", a: 2 }, "The row has 3 cells for 2 names.", ["3", "4", "5"]]);
  assert.deepEqual(await all(csvRows(['id,a\n1,5" pipe\n2,x\n'])), [
    { id: "1", a: '5" pipe' },
    { id: "2", a: "x" },
  ]);
  await assert.rejects(all(csvRows(['id,a\n1,"x\n2,y\n'])), /not closed/);
});

test("differences name what changed, and nothing of the system", () => {
  assert.deepEqual(difference({ a: 1, b: 2, _ts: 1 }, { a: 1, c: 3, _ts: 2 }), ["b: 2 → (absent)", "c: (absent) → 3"]);
  assert.deepEqual(difference(null, { a: "x" }), ['a: "x"']);
});

test("of three versions the changed one is kept", () => {
  const keep = threeWay({ a: 1, b: 1, c: 1 }, { a: 2, b: 1, c: 2 }, { a: 1, b: 2, c: 3 });
  assert.deepEqual(
    keep.map(k => [k.name, k.keep, k.conflict]),
    [
      ["a", "mine", false],
      ["b", "theirs", false],
      ["c", "mine", true],
    ],
  );
});

test("a patch is shown before it is made", () => {
  const item = { n: 1, list: [1, 2], deep: { x: 1 } };
  const after = patched(item, [
    { op: "incr", path: "/n", value: 2 },
    { op: "add", path: "/list/-", value: 3 },
    { op: "move", from: "/deep/x", path: "/y" },
    { op: "remove", path: "/list/0" },
  ]);
  assert.deepEqual(after, { n: 3, list: [2, 3], deep: {}, y: 1 });
  assert.deepEqual(item.list, [1, 2]);
  assert.throws(() => patched(item, [{ op: "remove", path: "/absent" }]), /no \/absent/);
  assert.throws(() => patched(item, [{ op: "drop", path: "/n" }]), /no operation/);
  assert.throws(() => patched(item, {}), /array/);
});
