#!/usr/bin/env bash
# Builds the container image of the debug binary and does the main job in it: a source is linked, a VDB provisioned
# and written to, the container killed, and in the next one the row is there. Then the programs of docs/testcontainers.md are run, on
# the image of a container that is a VDB of that engine.
#
# Needs root, podman with runc and a bridge, pip, mmdebstrap for a base image where none can be pulled, and for the program in Java Maven
# and a compiler. What is missing is said and left out; in CI nothing may be left out.
set -euo pipefail
cd "$(dirname "$0")/.."
left_out() { echo "left out: $*"; [ -z "${CI:-}" ]; exit; }
for program in podman runc mmdebstrap psql; do
  command -v $program >/dev/null || left_out "$program is missing (apt-get install podman runc containernetworking-plugins mmdebstrap postgresql python3-venv)"
done
[ "$(id -u)" = 0 ] || left_out "this needs root"

work=$(mktemp -d /var/tmp/oi-XXXXXX)
chmod 755 "$work"
name=offshoot-test-$$
server=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
export TMPDIR=$work
pod() { podman --runtime runc "$@"; }
as_postgres() { (cd "$work" && runuser -u postgres -- "$@"); }
service=
finish() {
  status=$?
  [ -z "$service" ] || kill "$service" 2>/dev/null || true
  pod rm --force --volumes "$name" >/dev/null 2>&1 || true
  as_postgres "$server/pg_ctl" -D "$work/source/data" -m immediate stop >/dev/null 2>&1 || true
  pod rmi --force "$name" "$name-vdb" "$name-base" >/dev/null 2>&1 || true
  rm -rf --one-file-system "$work"
  [ $status = 0 ] || echo "the images: FAILED (a machine that cannot run containers: OFFSHOOT_TEST_LACKS=containers)" >&2
  exit $status
}
trap finish EXIT

base=debian:12-slim
if ! timeout 60 podman pull --quiet "$base" >/dev/null 2>&1; then
  echo "$base cannot be pulled: made from packages"
  # What it mounts nobody else sees, also when it is killed.
  unshare --mount mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar" </dev/null
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
psql -qX "$source" -c "CREATE TABLE orders AS SELECT generate_series(1, 1000) AS n"

limit=$(ulimit -Hn)
start() {
  pod run --detach --name "$name" --net host --ulimit "nofile=$limit:$limit" --ulimit nproc=10000:10000 \
    --device /dev/fuse --cap-add SYS_ADMIN --volume "$work/pool:/var/lib/offshoot" --volume "$work/keys:/etc/offshoot/keys" \
    "$name" serve --pool /var/lib/offshoot/pool --listen "0.0.0.0:$((port + 1))" >/dev/null
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
[ "$(psql -qXAt "$uri" -c "CREATE TABLE mine AS SELECT 7 AS n" -c "SELECT count(*) FROM orders")" = 1000 ]
pod kill "$name" >/dev/null
pod rm --force "$name" >/dev/null
start
for _ in $(seq 150); do
  seen=$(psql -qXAt "$uri" -c "SELECT n FROM mine" 2>/dev/null) || true
  [ "$seen" != 7 ] || break
  sleep 0.2
done
[ "$seen" = 7 ] || { pod exec "$name" offshoot vdb show dev; echo "the row of before the kill is not there" >&2; exit 1; }

# The document's programs, with the address of this bridge for that of docker's.
scripts/image.sh --vdb --binary "${CARGO_TARGET_DIR:-target}/debug/offshoot" --tag "$name-vdb" \
  --build-arg BASE="$base" --network host --runtime "$(command -v runc)" --quiet
bridge=$(pod network inspect podman | grep -oE '"gateway": *"[0-9.]+"' | grep -oE '[0-9.]+' | tail -n 1)
program_in() { # LANGUAGE
  sed -n "/^\`\`\`$1/,/^\`\`\`$/{//d;p}" docs/testcontainers.md |
    sed "s/172.17.0.1\b/$bridge/; s|172.17.0.0/16|${bridge%.*.*}.0.0/16|; s/\"offshoot-vdb\"/\"localhost\/$name-vdb\"/"
}
program_in python >"$work/program.py"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet install testcontainers psycopg2-binary
program_in java >"$work/Orders.java"
cat >"$work/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>offshoot</groupId><artifactId>orders</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.testcontainers</groupId><artifactId>testcontainers</artifactId><version>1.21.4</version></dependency>
    <dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId><version>42.7.14</version></dependency>
  </dependencies>
</project>
END
cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=$limit:$limit", "nproc=10000:10000"]
[engine]
runtime = "runc"
exit_command_delay = 1
END
CONTAINERS_CONF=$work/containers.conf podman system service --time 300 "unix://$work/podman" </dev/null >/dev/null 2>&1 &
service=$!
pod exec "$name" offshoot user add tests --role operator >/dev/null
token=$(pod exec "$name" offshoot token create --user tests)
fingerprint=$(pod exec "$name" offshoot status | grep -oE 'sha256:[0-9a-f]{64}')
counts_by() { # LANGUAGE COMMAND…: its program prints how many orders there are, and leaves no VDB
  local language=$1 count vdbs
  shift
  count=$(env OFFSHOOT_SERVER="https://$bridge:$((port + 1))" OFFSHOOT_TOKEN="$token" OFFSHOOT_FINGERPRINT="$fingerprint" \
    DOCKER_HOST="unix://$work/podman" TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_CONNECTION_MODE=docker_host \
    timeout 120 "$@")
  [ "$count" = 1000 ] || { echo "the program in $language of docs/testcontainers.md printed '$count'" >&2; exit 1; }
  for _ in $(seq 150); do
    vdbs=$(pod exec "$name" offshoot vdb list)
    [ "$(wc -l <<<"$vdbs")" != 2 ] || return 0
    sleep 0.2
  done
  echo "the container of the program in $language left its VDB: $vdbs" >&2
  exit 1
}
counts_by Python "$work/venv/bin/python" "$work/program.py"
if command -v mvn >/dev/null && command -v javac >/dev/null; then
  mvn --quiet --batch-mode --file "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/classpath"
  counts_by Java java -cp "$(cat "$work/classpath")" "$work/Orders.java"
elif [ -n "${CI:-}" ]; then
  left_out "mvn or javac is missing (apt-get install maven default-jdk-headless)"
fi
echo "the images: ok"
