#!/bin/sh
# Provisions a VDB, forwards port 5432 to it, says that it is ready, and deletes it when it is told to end. What it is told by:
# docs/testcontainers.md.
set -eu
: "${OFFSHOOT_SERVER:?the address of the engine, as https://HOST:PORT}"
: "${OFFSHOOT_TOKEN:?the token of a user who may provision}"
: "${OFFSHOOT_FROM:?the dSource or VDB to make it from}"
name=${OFFSHOOT_NAME:-c-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')}
run=${OFFSHOOT_RUN_DIR:-/run/offshoot}
umask 077
mkdir -p "$run"
export HOME="$run" OFFSHOOT_TOKEN_FILE="$run/token"
printf %s "$OFFSHOOT_TOKEN" >"$run/token"
unset OFFSHOOT_TOKEN

forwarder='' renewer='' provisioned='' told_to_end=''
finish() {
  trap - EXIT
  for child in $forwarder $renewer; do kill "$child" 2>/dev/null || true; done
  [ -z "$provisioned" ] || offshoot vdb delete "$name" --yes --detach >/dev/null
}
trap finish EXIT
# Not in the middle of a provision: it is deleted if it was made, and only then, as another one may have that name.
trap 'told_to_end=yes' TERM INT

[ -z "${OFFSHOOT_FINGERPRINT:-}" ] || offshoot login "$OFFSHOOT_SERVER" --fingerprint "$OFFSHOOT_FINGERPRINT"
set -- --from "$OFFSHOOT_FROM" --expires "${OFFSHOOT_EXPIRES:-10min}" --label made-by=container
[ -z "${OFFSHOOT_AT:-}" ] || set -- "$@" --at "$OFFSHOOT_AT"
if [ -n "${OFFSHOOT_LISTEN:-}" ]; then
  # The VDB speaks TLS there, and so does whoever connects to this container.
  set -- "$@" --listen "$OFFSHOOT_LISTEN" --allow "${OFFSHOOT_ALLOW:?the networks of containers, as 172.17.0.0/16}"
  bind=0.0.0.0
else
  # Of the host's network: nobody else is to reach it in the clear.
  bind=127.0.0.1
fi
offshoot vdb provision "$name" "$@" >/dev/null
provisioned=yes
trap 'exit 0' TERM INT
[ -z "$told_to_end" ] || exit 0
offshoot vdb exec "$name" -- env >"$run/environment"
told() { sed -n "s/^$1=//p" "$run/environment"; }
printf %s "$(told PGUSER)" >"$run/user"
printf %s "$(told PGPASSWORD)" >"$run/password"
printf %s "$(told PGDATABASE)" >"$run/database"
socat "TCP-LISTEN:${OFFSHOOT_PORT:-5432},bind=$bind,fork,reuseaddr" \
  "TCP:${OFFSHOOT_LISTEN:-$(told PGHOST)}:$(told PGPORT)" &
forwarder=$!
# Nothing is ready before its port is.
until socat -u OPEN:/dev/null "TCP:127.0.0.1:${OFFSHOOT_PORT:-5432}" 2>/dev/null; do
  kill -0 "$forwarder"
  sleep 0.1
done
# Testcontainers kills its containers: of one that is gone nobody says any more that its VDB is to stay.
while sleep "${OFFSHOOT_RENEW_SECONDS:-180}"; do
  offshoot vdb set "$name" --expires "${OFFSHOOT_EXPIRES:-10min}" >/dev/null 2>&1 || true
done &
renewer=$!
echo "offshoot: $name is ready"
wait "$forwarder"
