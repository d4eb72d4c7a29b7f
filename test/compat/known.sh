# What the suites of others came to, held against KNOWN.md: sourced by their
# recipes.

# listed ENDING prints the tests that KNOWN.md lists for files that end with ENDING.
listed() {
  awk -v ending="$1" '
    function cell(s) { gsub(/^ +| +$|`/, "", s); return s }
    split($0, cells, "|") == 5 && index(cell(cells[2]) "\n", ending "\n") { print cell(cells[2]) ": " cell(cells[3]) }
  ' "$(dirname "${BASH_SOURCE[0]}")/KNOWN.md"
}

# compare RESULTS ENDING LEAST compares a run with the rows of KNOWN.md, | file |
# test | why |, whose file ends with ENDING. It fails if a test failed that is not
# listed, or if less than LEAST percent passed. RESULTS has a line for each test
# that ran or was left out, of fields between tabs: passed, failed, or why it was
# left out; the file; the test; the message.
compare() {
  awk -v least="$3" '
    listing { listed[$0] = 1; next }
    { test = $2 ": " $3 }
    $1 == "passed" { passed++; next }
    $1 != "failed" { out[$1]++; next }
    { ran_and_failed[test] = 1 }
    test in listed { known++; next }
    { besides++; print "failed: " test "\n        " $4 }
    END {
      for (test in listed) if (!(test in ran_and_failed)) print "listed in KNOWN.md, and did not fail: " test
      ran = passed + known + besides
      share = ran ? 100 * passed / ran : 0
      printf "%d ran, %d passed (%.1f%%), %d failed as known, %d failed besides\n", ran, passed, share, known, besides
      for (why in out) printf "%d left out: %s\n", out[why], why
      exit besides > 0 || share < least
    }
  ' listing=1 FS='\n' - listing=0 FS='\t' "$1" < <(listed "$2")
}
