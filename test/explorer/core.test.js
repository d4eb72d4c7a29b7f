// SPDX-License-Identifier: MIT

import { test } from "node:test";
import assert from "node:assert/strict";
import { batch, computed, effect, keyed, signal } from "../../internal/rest/explorer/core.js";

test("an effect runs again when what it read has changed, and only then", () => {
  const a = signal(1),
    b = signal(1),
    seen = [];
  effect(() => {
    seen.push(a.value);
  });
  a.value = 2;
  a.value = 2; // no change
  b.value = 2; // not read
  assert.deepEqual(seen, [1, 2]);
});

test("an effect forgets what it no longer reads", () => {
  const which = signal(true),
    a = signal("a"),
    b = signal("b"),
    seen = [];
  effect(() => {
    seen.push(which.value ? a.value : b.value);
  });
  which.value = false;
  a.value = "unread";
  b.value = "B";
  assert.deepEqual(seen, ["a", "b", "B"]);
});

test("several changes in a batch run a reader once", () => {
  const a = signal(1),
    b = signal(1),
    seen = [];
  effect(() => {
    seen.push(a.value + b.value);
  });
  batch(() => {
    a.value = 2;
    b.value = 2;
  });
  assert.deepEqual(seen, [2, 4]);
});

test("a stopped effect is silent, also by an abort signal", () => {
  const a = signal(1),
    until = new AbortController();
  let n = 0;
  const stop = effect(() => {
    a.value;
    n++;
  });
  effect(() => {
    a.value;
    n++;
  }, until.signal);
  stop();
  until.abort();
  a.value = 2;
  assert.equal(n, 2);
});

test("a computed value follows, and tells its own readers", () => {
  const a = signal(2),
    square = computed(() => a.value ** 2),
    seen = [];
  effect(() => {
    seen.push(square.value);
  });
  a.value = 3;
  a.value = -3; // the square is the same
  assert.deepEqual(seen, [4, 9]);
});

test("effects that set off one another without end are stopped", () => {
  const a = signal(0);
  assert.throws(
    () =>
      effect(() => {
        a.value = a.value + 1;
      }),
    /without end/,
  );
  const b = signal(0),
    seen = [];
  effect(() => {
    seen.push(b.value);
  });
  b.value = 1; // the core still works
  assert.deepEqual(seen, [0, 1]);
});

test("a signal tells of a value that was changed in place", () => {
  const list = signal([1]),
    seen = [];
  effect(() => {
    seen.push(list.value.length);
  });
  list.value.push(2);
  list.touch();
  assert.deepEqual(seen, [1, 2]);
});

// A parent of elements, as much of one as keyed uses.
class Parent {
  children = [];
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  insertBefore(child, before) {
    const at = this.children.indexOf(child);
    if (at >= 0) this.children.splice(at, 1);
    this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, child);
    child.parent = this;
    this.moves = (this.moves ?? 0) + 1;
  }
}
class Child {
  constructor(name) {
    this.name = name;
  }
  get nextElementSibling() {
    return this.parent.children[this.parent.children.indexOf(this) + 1] ?? null;
  }
  remove() {
    this.parent.children.splice(this.parent.children.indexOf(this), 1);
  }
}

test("a keyed list keeps elements, moves them and removes them", () => {
  const rows = signal(["a", "b", "c"]),
    parent = new Parent();
  let made = 0;
  keyed(
    parent,
    () => rows.value,
    r => r,
    r => {
      made++;
      return new Child(r);
    },
  );
  const names = () => parent.children.map(c => c.name).join("");
  const b = parent.children[1];
  assert.equal(names(), "abc");
  parent.moves = 0;
  rows.value = ["a", "b", "c", "d"];
  assert.equal(parent.moves, 1); // those that stay are not touched
  for (const next of ["cba", "b", "xbyb", "", "qwerty", "ytrewq"]) {
    rows.value = [...next];
    assert.equal(names(), [...new Set(next)].join(""));
    if (next.includes("b"))
      assert.equal(
        parent.children.find(c => c.name === "b"),
        b,
      );
  }
  assert.equal(made, 3 + 1 + 2 + 6);
});
