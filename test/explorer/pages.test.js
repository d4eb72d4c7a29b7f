// SPDX-License-Identifier: MIT

import { test } from "node:test";
import assert from "node:assert/strict";
import { baseFor, COVERED, Pages } from "../../internal/rest/explorer/pages.js";

test("the base of a list follows the view to both ends, and not back and forth", () => {
  const total = 3 * COVERED + 7;
  let base = 0,
    moves = 0;
  const at = top => {
    const next = baseFor(base, top, total);
    if (next !== base) moves++;
    base = next;
    assert.ok(base >= 0 && base <= top && top < base + COVERED, `row ${top} is outside of what the base ${base} covers`);
    assert.equal(baseFor(base, top, total), base, "a view that stands still moves the base again");
  };
  for (let top = 0; top < total; top += 1000) at(top);
  assert.equal(total - base <= COVERED, true, "the end is not covered");
  const forth = moves;
  assert.ok(forth >= 4 && forth <= 6, `the base moved ${forth} times`);
  for (let top = total - 1; top >= 0; top -= 1000) at(top);
  at(0);
  assert.equal(base, 0);
  assert.equal(baseFor(0, COVERED - 1, COVERED), 0, "a list that is covered has one base");
});

test("pages that are not kept are read again, also far down", async () => {
  const all = 30_000,
    asked = [];
  const pages = new Pages(async (continuation, most) => {
    const from = Number(continuation ?? 0),
      rows = Array.from({ length: Math.min(most, all - from) }, (_, n) => from + n);
    asked.push(from);
    return { rows, continuation: from + rows.length < all ? String(from + rows.length) : null };
  });
  while (pages.more) await pages.ensure(pages.length, pages.length + 1);
  assert.equal(pages.length, all);
  assert.equal(pages.at(10), undefined);
  asked.length = 0;
  await pages.ensure(0, 20);
  assert.deepEqual(asked, [0]);
  assert.equal(pages.at(10), 10);
});
