#!/usr/bin/env bash
# Installs the package of the debug binary on a Debian 12 that systemd has booted, in a container, and does there what an operator does:
# start, kill, upgrade, reload, restart, reboot, stop, remove and purge, beside a client that writes into a VDB.
#
# Needs root, systemd-nspawn, mmdebstrap, /dev/fuse, and packages of Debian; says so where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in systemd-nspawn mmdebstrap nsenter dpkg-deb; do
  command -v $program >/dev/null || { echo "left out: $program is missing (apt-get install systemd-container mmdebstrap)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "left out: this needs root"; exit 0; }
[ -c /dev/fuse ] || { echo "left out: there is no /dev/fuse"; exit 0; }

work=$(mktemp -d /var/tmp/os-XXXXXX)
chmod 755 "$work"
export TMPDIR=$work
machine=$work/machine
nspawn=
finish() {
  status=$?
  trap - EXIT INT TERM
  [ "$status" = 0 ] || inside 'journalctl -u offshoot -u offshoot-vdbs -n 60 --no-pager -o cat; cat /root/client.log' 2>/dev/null || true
  power_off
  # Where no systemd runs, nobody removes the groups that were made for the machine; those in use stay.
  [ -d /run/systemd/system ] ||
    find /sys/fs/cgroup -depth -type d \( -path '*/payload*' -o -path '*/supervisor*' \) -exec rmdir {} + 2>/dev/null || true
  rm -rf --one-file-system "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() { echo "test-systemd: $*" >&2; exit 1; }

leader() { # the first process of the machine, as this host numbers it
  [ -n "$nspawn" ] && pgrep -P "$nspawn" | head -n 1
}

inside() { # SCRIPT: runs it in the machine, as its root
  timeout --kill-after=5 120 nsenter --target "$(leader)" --mount --uts --ipc --net --pid --cgroup --wdns=/ \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 bash -euo pipefail -c "$1" </dev/null
}

eventually() { # WHAT SCRIPT: waits until it succeeds in the machine
  for _ in $(seq 300); do
    ! inside "$2" >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  inside "$2" || true
  fail "$1"
}

options=(--quiet --directory="$machine" --register=no --private-network --bind=/dev/fuse)
# Where no systemd runs there is nobody to ask for a scope.
if [ -d /run/systemd/system ]; then options+=(--property='DeviceAllow=/dev/fuse rwm'); else options+=(--keep-unit); fi

boot() {
  systemd-nspawn "${options[@]}" --boot --kill-signal=SIGRTMIN+3 </dev/null >>"$work/console" 2>&1 &
  nspawn=$!
  eventually "the machine does not come up: $(tail -n 5 "$work/console")" 'systemctl is-active multi-user.target'
}

power_off() {
  [ -n "$nspawn" ] || return 0
  kill "$nspawn" 2>/dev/null || true
  for _ in $(seq 150); do
    kill -0 "$nspawn" 2>/dev/null || break
    sleep 0.2
  done
  kill -KILL "$nspawn" 2>/dev/null || true
  nspawn=
}

step() { printf '%4s s: %s\n' "$SECONDS" "$*"; }

mmdebstrap --quiet --variant=minbase --include=systemd-sysv,dbus,postgresql,fuse3,procps bookworm "$machine" </dev/null
systemd-nspawn "${options[@]}" /bin/true </dev/null >"$work/console" 2>&1 ||
  { echo "left out: systemd-nspawn cannot run here: $(tail -n 1 "$work/console")"; exit 0; }
# Of two commits, of which apt takes the later for newer.
now_s=$(date +%s)
package=$(SOURCE_DATE_EPOCH=$now_s scripts/package.sh "${CARGO_TARGET_DIR:-target}/debug/offshoot" "$work" -Zgzip -z1)
mv "$package" "$machine/root/offshoot.deb"
package=$(SOURCE_DATE_EPOCH=$((now_s + 1)) scripts/package.sh "${CARGO_TARGET_DIR:-target}/debug/offshoot" "$work" -Zgzip -z1)
mv "$package" "$machine/root/next.deb"
cat >"$machine/root/client.sh" <<'END'
# Writes a row ten times a second, all by one connection, until it is ended.
uri=$(offshoot vdb show dev --json | grep -oE '"uri": *"[^"]*' | cut -d'"' -f4)
{
  echo 'CREATE TABLE IF NOT EXISTS beats AS SELECT 0 AS n;'
  while sleep 0.1; do echo 'INSERT INTO beats SELECT max(n) + 1 FROM beats RETURNING n;'; done
} | psql -qXAt -v ON_ERROR_STOP=1 "$uri" >/root/beats 2>/root/client.log || echo "ended: $?" >>/root/client.log
END
boot

step 'installed: nothing is started or made'
inside 'apt-get -qq install /root/offshoot.deb >/dev/null 2>&1'
inside '! systemctl is-enabled -q offshoot && ! systemctl is-active -q offshoot && [ ! -e /var/lib/offshoot ]' ||
  fail 'installing it started or made something'

step 'started: it answers when systemctl returns'
inside 'systemctl enable --now offshoot 2>/dev/null && offshoot status >/dev/null && offshoot doctor'
limits=
if inside 'grep -qw memory /sys/fs/cgroup/system.slice/offshoot-vdbs.service/cgroup.controllers' 2>/dev/null; then
  limits=yes
  inside 'offshoot doctor | grep -q "^ok *limits of VDBs"' || fail 'it cannot limit VDBs'
else
  echo 'left out: limits of memory, as this host gives the machine no control groups of version 2 with memory'
fi
inside "
  su postgres -c \"psql -qX -c \\\"CREATE ROLE replicator LOGIN SUPERUSER PASSWORD 'secret'\\\" -c 'CREATE DATABASE shop'\"
  PGPASSWORD=secret offshoot dsource link shop --source postgresql://replicator@127.0.0.1:5432/shop >/dev/null 2>&1
  offshoot vdb provision dev --from shop --memory 256MiB >/dev/null 2>&1"
limited() {
  [ -z "$limits" ] || inside 'grep -qx 268435456 /sys/fs/cgroup/system.slice/offshoot-vdbs.service/offshoot-*/memory.max'
}
limited || fail 'the VDB is not limited'
client() {
  inside 'setsid bash /root/client.sh </dev/null >/dev/null 2>&1 &'
  eventually 'the client does not write' '[ -s /root/beats ]'
}
client_goes_on() { # AFTER_WHAT
  local before
  before=$(inside 'tail -n 1 /root/beats')
  eventually "the client does not go on after $1" "[ \"\$(tail -n 1 /root/beats)\" -gt $((before + 3)) ] && offshoot status"
  inside '[ ! -s /root/client.log ]' || fail "the client saw an error after $1"
  limited || fail "the VDB is not limited after $1"
}
main_pid() { inside 'systemctl show offshoot -p MainPID --value'; }
replaced() { # BEFORE AFTER_WHAT
  eventually "there is no engine after $2" "pid=\$(systemctl show offshoot -p MainPID --value); [ \$pid != 0 ] && [ \$pid != $1 ] && systemctl is-active offshoot"
}
client

step 'killed, more often than systemd puts up with by itself'
for _ in 1 2 3 4 5 6 7; do
  pid=$(main_pid)
  inside "kill -KILL $pid"
  replaced "$pid" 'a kill'
done
client_goes_on 'seven kills'

step 'upgraded: the engine goes on, and the next takes its place at a reload'
pid=$(main_pid)
inside 'apt-get -qq install /root/next.deb >/dev/null 2>&1'
[ "$(main_pid)" = "$pid" ] || fail 'the upgrade ended the engine'
inside '[ "$(dpkg-query -Wf "\${Version}" offshoot)" = "$(dpkg-deb -f /root/next.deb Version)" ]' || fail 'it was not upgraded'
inside 'systemctl reload offshoot'
replaced "$pid" 'a reload'
client_goes_on 'an upgrade'
inside '[ "$(readlink "/proc/$(systemctl show offshoot -p MainPID --value)/exe")" = /usr/bin/offshoot ]' || fail 'it is the old program'

running='offshoot vdb list | grep -qE "^dev +running"'
beats='psql -qXAtc "SELECT max(n) > 20 FROM beats" "$(offshoot vdb show dev --json | grep -oE "\"uri\": *\"[^\"]*" | cut -d\" -f4)" | grep -qx t'
step 'restarted, with lines of JSON as its log: VDBs are stopped and started'
inside "mkdir -p /etc/systemd/system/offshoot.service.d
  printf '[Service]\nEnvironment=OFFSHOOT_LOG_FORMAT=json\n' >/etc/systemd/system/offshoot.service.d/log.conf
  systemctl daemon-reload
  systemctl restart offshoot"
inside "$running && $beats" || fail 'the VDB does not run after a restart'
limited || fail 'the VDB is not limited after a restart'
inside 'grep -q "terminating connection due to administrator command" /root/client.log' || fail 'the client was told something else'
inside 'journalctl _PID="$(systemctl show offshoot -p MainPID --value)" -o cat >/root/log && grep -q "\"message\":\"ready\"" /root/log && ! grep -vE "^\{\"timestamp\":.*\}$" /root/log' ||
  fail 'the log is not of JSON'
inside 'rm -r /root/beats /etc/systemd/system/offshoot.service.d'

step 'rebooted: VDBs come back by themselves'
first=$(inside 'cat /proc/sys/kernel/random/boot_id /proc/1/stat | tail -n 1 | cut -d" " -f22')
inside 'systemctl reboot' || true
for _ in $(seq 300); do
  kill -0 "$nspawn" 2>/dev/null || { boot; break; }
  now=$(inside 'cut -d" " -f22 /proc/1/stat' 2>/dev/null) || now=$first
  [ "$now" = "$first" ] || break
  sleep 0.2
done
eventually 'the VDB does not run after a reboot' "systemctl is-active postgresql && $running && $beats"
eventually 'the source is not followed after a reboot' 'offshoot dsource list | grep -qE "^shop +active"'

ended='! pgrep -f "^postgres: offshoot|^/usr/bin/offshoot" && ! grep -q /var/lib/offshoot /proc/mounts'
step 'stopped, removed, installed again, purged: the pool and its key stay'
inside "systemctl stop offshoot && $ended" || fail 'it left something running'
inside "systemctl start offshoot && $running && dpkg --remove offshoot >/dev/null 2>&1 && $ended" || fail 'it was not removed'
inside '! systemctl list-units --all --no-legend "offshoot*" | grep -q .' || fail 'a unit is left'
inside "dpkg --install /root/next.deb >/dev/null 2>&1 && systemctl start offshoot && $running && $beats" || fail 'the VDB is gone'
inside "dpkg --purge offshoot >/root/purged 2>&1 && grep -q '/var/lib/offshoot is left' /root/purged && $ended" || fail 'it was not purged'
inside '[ -e /var/lib/offshoot/catalog.db ] && [ -e /etc/offshoot/keys ] && [ ! -e /etc/offshoot/offshoot.conf ]' || fail 'what is left is not as documented'
step 'the service: ok'
