#!/usr/bin/env bash
# Builds the container image of the debug binary and does the main job in it: a source is linked, a VDB provisioned
# and written to, the container killed, and in the next one the row is there.
#
# Needs root, podman with runc, and mmdebstrap for a base image where none can be pulled; says so where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in podman runc mmdebstrap psql; do
  command -v $program >/dev/null || { echo "left out: $program is missing (apt-get install podman runc mmdebstrap postgresql)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "left out: this needs root"; exit 0; }

work=$(mktemp -d /var/tmp/oi-XXXXXX)
chmod 755 "$work"
name=offshoot-test-$$
server=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
export TMPDIR=$work
pod() { podman --runtime runc "$@"; }
as_postgres() { (cd "$work" && runuser -u postgres -- "$@"); }
finish() {
  status=$?
  pod rm --force --volumes "$name" >/dev/null 2>&1 || true
  as_postgres "$server/pg_ctl" -D "$work/source/data" -m immediate stop >/dev/null 2>&1 || true
  pod rmi --force "$name" "$name-base" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $status
}
trap finish EXIT

base=debian:12-slim
if ! timeout 60 podman pull --quiet "$base" >/dev/null 2>&1; then
  echo "$base cannot be pulled: made from packages"
  mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar" </dev/null
  pod import --quiet "$work/base.tar" "$name-base" >/dev/null
  base=localhost/$name-base
fi
scripts/image.sh --binary "${CARGO_TARGET_DIR:-target}/debug/offshoot" --tag "$name" \
  --build-arg BASE="$base" --network host --runtime "$(command -v runc)" --quiet

install -d -o postgres "$work/source"
echo secret >"$work/password"
chmod 644 "$work/password"
as_postgres "$server/initdb" -D "$work/source/data" -A scram-sha-256 -U postgres --pwfile="$work/password" >/dev/null
port=$((20000 + RANDOM % 10000))
as_postgres "$server/pg_ctl" -D "$work/source/data" -o "-p $port -k $work/source" -l "$work/source/log" -w start >/dev/null
export PGPASSWORD=secret
source=postgresql://postgres@127.0.0.1:$port/postgres
psql -qX "$source" -c "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n"

limit=$(ulimit -Hn)
start() {
  pod run --detach --name "$name" --net host --ulimit "nofile=$limit:$limit" --ulimit nproc=10000:10000 \
    --device /dev/fuse --cap-add SYS_ADMIN --volume "$work/pool:/var/lib/offshoot" --volume "$work/keys:/etc/offshoot/keys" \
    "$name" serve --pool /var/lib/offshoot/pool --listen "127.0.0.1:$((port + 1))" >/dev/null
  for _ in $(seq 150); do
    ! pod exec "$name" offshoot status >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  pod logs "$name"
  return 1
}
mkdir -p "$work/pool" "$work/keys"
start
pod exec -e PGPASSWORD "$name" offshoot dsource link shop --source "$source"
uri=$(pod exec "$name" offshoot vdb provision dev --from shop --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["uri"])')
[ "$(psql -qXAt "$uri" -c "CREATE TABLE mine AS SELECT 7 AS n" -c "SELECT count(*) FROM kept")" = 1000 ]
pod kill "$name" >/dev/null
pod rm --force "$name" >/dev/null
start
for _ in $(seq 150); do
  [ "$(psql -qXAt "$uri" -c "SELECT n FROM mine" 2>/dev/null)" != 7 ] || { echo "the image: ok"; exit 0; }
  sleep 0.2
done
pod exec "$name" offshoot vdb show dev
echo "the row of before the kill is not there" >&2
exit 1
