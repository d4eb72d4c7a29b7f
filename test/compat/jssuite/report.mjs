// SPDX-License-Identifier: MIT

// Writes what each test came to, as known.sh wants it: node report.mjs results.json.

import { readFileSync } from "node:fs";

const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const file of report.testResults) {
  const name = file.name.split("/test/public/")[1];
  // A file whose first hook fails reports its tests as skipped.
  const hook = file.status === "failed" && !file.assertionResults.some((r) => r.status === "failed");
  for (const r of file.assertionResults) {
    const failed = r.status === "failed" || hook;
    const outcome = failed ? "failed" : r.status === "passed" ? "passed" : "skipped by the suite";
    const why = failed ? (r.failureMessages[0] ?? file.message).split("\n")[0] : "";
    console.log([outcome, name, r.title, why].map((field) => field.replaceAll("\t", " ")).join("\t"));
  }
}
