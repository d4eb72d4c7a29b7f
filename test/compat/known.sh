# What the suites of others came to, held against KNOWN.md: sourced by their
# recipes.

# compare RESULTS ENDING LEAST compares a run with the rows of KNOWN.md, | file |
# test | why |, whose file ends with ENDING. It fails if a test failed that is not
# listed, or if less than LEAST percent passed. RESULTS has a line for each test
# that ran or was left out, of fields between tabs: passed, failed, or why it was
# left out; the file; the test; the message.
compare() {
  awk -v ending="$2" -v least="$3" '
    function cell(s) { gsub(/^ +| +$|`/, "", s); return s }
    FILENAME == ARGV[1] {
      if (split($0, cells, "|") == 5 && index(cell(cells[2]) "\n", ending "\n")) listed[cell(cells[2]) ": " cell(cells[3])] = 1
      next
    }
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
  ' "$(dirname "${BASH_SOURCE[0]}")/KNOWN.md" FS='\t' "$1"
}
