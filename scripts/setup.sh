#!/usr/bin/env bash
# Installs what Offshoot needs on Debian 12 and Ubuntu 24.04 and is not there yet.
#
#   scripts/setup.sh demo|test|bench
#
# As root apt is called directly, otherwise through sudo. It never creates or starts a database
# cluster: the packages' habit of doing so is switched off before a server is installed.
set -euo pipefail
purpose=${1:-demo}

as_root() { # COMMAND…: runs it as root; $needed says what for where that cannot be
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    command -v sudo >/dev/null || fail "$needed"
    sudo "$@"
  fi
}
say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

if ! command -v cargo >/dev/null; then
  # shellcheck disable=SC1091
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
fi
command -v cargo >/dev/null || fail "cargo is not on the PATH: install Rust with rustup, see https://rustup.rs"

# 1. Which packages are missing.
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v fusermount3 >/dev/null || missing+=(fuse3)
server_bin() { # the directory of a server of any supported version
  local bin
  for bin in /usr/lib/postgresql/*/bin; do
    if [ -x "$bin/postgres" ] && [ -x "$bin/pg_basebackup" ] && [ -x "$bin/pgbench" ]; then
      printf '%s\n' "$bin"
    fi
  done | sort -V | tail -n 1
}
[ -n "$(server_bin)" ] || missing+=(postgresql)
command -v psql >/dev/null || [ -n "$(server_bin)" ] || missing+=(postgresql-client)
if [ "$purpose" != bench ]; then
  # They build the console.
  command -v npm >/dev/null || missing+=(nodejs npm)
fi
if [ "$purpose" = test ]; then
  # It opens the console in a test. Ubuntu has it only as a snap, which needs what containers lack.
  if grep -qs '^ID=debian$' /etc/os-release; then
    command -v chromium >/dev/null || missing+=(chromium)
  fi
  command -v python3 >/dev/null || missing+=(python3)
  python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
  # A test of the Python package runs them.
  /usr/bin/python3 -c 'import pytest, psycopg2' 2>/dev/null || missing+=(python3-pytest python3-psycopg2)
  command -v ip >/dev/null || missing+=(iproute2)
  # The container that is a VDB forwards by it.
  command -v socat >/dev/null || missing+=(socat)
  command -v c++ >/dev/null || missing+=(g++)
  # They build images and run containers of them: scripts/test-image.sh, for root alone.
  if [ "$(id -u)" = 0 ]; then
    command -v podman >/dev/null || missing+=(podman)
    command -v runc >/dev/null || missing+=(runc)
    [ -x /usr/lib/cni/bridge ] || [ -x /usr/lib/podman/netavark ] || missing+=(containernetworking-plugins)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    # A program in Java is among them: left out where there is no Java, but in CI.
    [ -z "${CI:-}" ] || { command -v mvn && command -v javac; } >/dev/null || missing+=(maven default-jdk-headless)
  fi
  # scripts/test.sh links this rather than build it.
  [ -z "${CI:-}" ] || [ -e "/usr/lib/$(uname -m)-linux-gnu/libjemalloc_pic.a" ] || missing+=(libjemalloc-dev)
fi
if [ "$purpose" = bench ]; then
  command -v fio >/dev/null || missing+=(fio)
  # Without root no volume of these can be made, and what needs one is left out.
  if [ "$(id -u)" = 0 ]; then
    [ -x /sbin/mkfs.xfs ] || missing+=(xfsprogs)
    [ -x /sbin/mkfs.btrfs ] || missing+=(btrfs-progs)
  fi
fi

# 2. Install them.
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || fail "missing: ${missing[*]}; there is no apt here, install them by hand"
  needed="missing: ${missing[*]}; install them as root: apt-get install ${missing[*]}"
  say "installing by apt: ${missing[*]}"
  apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@"; }
  apt update >/dev/null || say "apt-get update failed; trying with the lists that are here"
  case " ${missing[*]} " in
    *" postgresql "*)
      # postgresql-common alone makes no cluster; its configuration decides what the server package does.
      apt install --no-install-recommends postgresql-common
      conf=/etc/postgresql-common/createcluster.conf
      say "setting create_main_cluster = false in $conf, so that no cluster is made or started"
      as_root sed -i -E '/^[#[:space:]]*create_main_cluster[[:space:]]*=/d' "$conf"
      printf 'create_main_cluster = false\n' | as_root tee -a "$conf" >/dev/null
      ;;
  esac
  apt install --no-install-recommends "${missing[@]}"
fi

# 3. What some small images leave out: fusermount3 unmounts for an ordinary user only what it finds there.
if [ ! -e /etc/mtab ]; then
  needed="/etc/mtab is missing: run 'ln -s /proc/self/mounts /etc/mtab' as root"
  say "making /etc/mtab, a link to /proc/self/mounts"
  as_root ln -sf /proc/self/mounts /etc/mtab
fi

# 4. What cannot be installed.
bin=$(server_bin)
[ -n "$bin" ] || fail "no PostgreSQL server under /usr/lib/postgresql after the installation"
if [ ! -e /dev/fuse ]; then
  fail "/dev/fuse is missing: load the module (modprobe fuse), or start the container with --device /dev/fuse --cap-add SYS_ADMIN"
fi
if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
  fail "/dev/fuse cannot be opened by $(id -un): chmod 0666 /dev/fuse as root"
fi
say "ready: $("$bin/postgres" --version), $(fusermount3 --version 2>&1 | head -n 1), $(cargo --version)"
