// SPDX-License-Identifier: MIT

// Compares a run of the suite with what is known to fail: node report.mjs
// results.json KNOWN.md. It fails if a test failed that is not listed, or if too
// few passed.

import { readFileSync } from "node:fs";

const leastPassed = 0.95;
const [results, known] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));

/** The rows of the tables in KNOWN.md: | file | test | why |. */
function* rows(text) {
  for (const line of text.split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim().replaceAll("`", ""));
    if (cells.length === 5 && cells[1].endsWith(".spec.ts")) yield `${cells[1]}: ${cells[2]}`;
  }
}

/** What every test came to: its name, whether it failed, and the message. */
function* outcomes(report) {
  for (const file of report.testResults) {
    const name = file.name.split("/test/public/")[1];
    // A file whose first hook fails reports its tests as skipped.
    const hook = file.status === "failed" && !file.assertionResults.some((r) => r.status === "failed");
    for (const r of file.assertionResults) {
      const failed = r.status === "failed" || hook;
      if (r.status !== "passed" && !failed) continue;
      yield { test: `${name}: ${r.title}`, failed, why: (r.failureMessages[0] ?? file.message).split("\n")[0] };
    }
  }
}

const listed = new Set(rows(known));
const ran = [...outcomes(JSON.parse(results))];
const failed = ran.filter((o) => o.failed);
const failures = new Set(failed.map((o) => o.test));
const surprises = failed.filter((o) => !listed.has(o.test));

for (const o of surprises) console.log(`failed: ${o.test}\n        ${o.why}`);
for (const test of listed) if (!failures.has(test)) console.log(`listed in KNOWN.md, and passed: ${test}`);

const share = (ran.length - failed.length) / ran.length;
console.log(
  `${ran.length} ran, ${ran.length - failed.length} passed (${(100 * share).toFixed(1)}%), ` +
    `${failed.length - surprises.length} failed as known, ${surprises.length} failed besides`,
);
if (surprises.length > 0 || share < leastPassed) process.exitCode = 1;
