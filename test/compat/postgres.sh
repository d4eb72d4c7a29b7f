# PostgreSQL, for the recipes that need one: sourced by them. It ends with the shell that
# sourced it, and leaves nothing behind.

# find_postgres leaves the directory of the server's programs in $postgres; it fails if there
# is none. Debian and Ubuntu keep them out of the path.
find_postgres() {
  local initdb
  initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1)
  [ -n "$initdb" ] || return 1
  postgres=$(dirname "$(readlink -f "$initdb")")
}

# start_postgres starts a server that listens on a socket in $sockets.
start_postgres() {
  postgres_as=()
  sockets=$(mktemp -d)
  if [ "$(id -u)" = 0 ]; then # it refuses to run as root
    postgres_as=(runuser -u postgres --)
    chown postgres "$sockets"
  fi
  "${postgres_as[@]}" "$postgres/initdb" -D "$sockets/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$sockets.log" 2>&1 || {
    cat "$sockets.log"
    return 1
  }
  "${postgres_as[@]}" "$postgres/pg_ctl" -D "$sockets/data" -l "$sockets/log" -w -s -o \
    "-k $sockets -c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=300 -c shared_buffers=128MB" start
  stop_postgres() {
    "${postgres_as[@]}" "$postgres/pg_ctl" -D "$sockets/data" -m immediate -s stop || true
    rm -rf "$sockets" "$sockets.log"
  }
}
