// SPDX-License-Identifier: MIT

// What is not served yet says so at once: it neither hangs, nor looks like an
// empty result or like something that was done.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startMemory } from "./server.mjs";

const message = /Mayfly does not serve .* yet\. See .*"What it does not do yet.*" in the README\./;
const limitMs = 5_000;

test("what is not served yet", async (t) => {
  const c = await (await startMemory(t)).container(t);
  await c.items.create({ id: "1", pk: "a" });
  const requests = {
    "a trigger of a patch": () => c.item("1", "a").patch([{ op: "set", path: "/n", value: 1 }], { preTriggerInclude: "stamp" }),
  };
  for (const [name, request] of Object.entries(requests)) {
    await t.test(name, { timeout: limitMs }, () => assert.rejects(request, { message }));
  }
  assert.equal((await c.item("1", "a").read()).resource.n, undefined, "a refused patch was done");
});
