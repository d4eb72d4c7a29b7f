// SPDX-License-Identifier: MIT

// How the JavaScript SDK's public suite is run: its own settings but for the
// reporters and the time limits, which are twenty minutes there.

import { defineConfig } from "vitest/config";

const limitMs = 90_000;

export default defineConfig({
  test: {
    include: ["test/public/**/*.spec.ts"],
    testTimeout: limitMs,
    hookTimeout: limitMs,
    // The tests delete each other's databases.
    fileParallelism: false,
    fakeTimers: { toFake: ["setTimeout", "Date"] },
    watch: false,
    silent: true,
    reporters: ["dot", "json"],
    outputFile: { json: "results.json" },
  },
});
