# The server, for the recipes that bring a suite of someone else: sourced by
# them. It leaves nothing behind: what it starts is stopped, and what it writes
# is taken away, when the shell that sourced it ends.

scratch=$(mktemp -d)
server_pids=()
clean_up() {
  [ ${#server_pids[@]} -eq 0 ] || kill "${server_pids[@]}" 2>/dev/null || true
  [ ${#server_pids[@]} -eq 0 ] || wait "${server_pids[@]}" 2>/dev/null || true
  chmod -R u+w "$scratch"
  rm -rf "$scratch"
}
trap clean_up EXIT

# build_server leaves the binary's path in MAYFLY_BINARY, unless it is set.
build_server() {
  [ -n "${MAYFLY_BINARY:-}" ] && return
  export MAYFLY_BINARY="$scratch/mayfly"
  (cd "$(dirname "${BASH_SOURCE[0]}")/../.." && go build -o "$MAYFLY_BINARY" ./cmd/mayfly)
}

# start_server starts one on a port that is free, which it leaves in $port, with
# its data in $data. The word PORT in a flag stands for the port: some suites want
# to be told an address that depends on it.
start_server() {
  local attempts=10 pid log
  while ((attempts-- > 0)); do
    port=$((20000 + RANDOM % 10000))
    data=$(mktemp -d "$scratch/data.XXXX")
    log="$data.log"
    : >"$log" # the loop below may read it before the server writes it
    env -i "$MAYFLY_BINARY" serve --listen "127.0.0.1:$port" --data "$data" --sync=false \
      --log-level=warn "${@//PORT/$port}" >"$log" 2>&1 &
    pid=$!
    for _ in {1..100}; do
      kill -0 "$pid" 2>/dev/null || break
      if grep -q '^Mayfly listens' "$log"; then
        server_pids+=("$pid")
        return
      fi
      sleep 0.1
    done
    kill "$pid" 2>/dev/null || true
  done
  echo "the server does not start:" >&2
  cat "$log" >&2
  exit 1
}
