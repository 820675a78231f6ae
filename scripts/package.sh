#!/usr/bin/env bash
# Makes a Debian package of a binary, for Debian 12, Ubuntu 24.04 and later.
#
#   scripts/package.sh [BINARY] [DIRECTORY] [OPTION OF dpkg-deb…]
#
# BINARY is target/release/offshoot, and the package goes to target, unless others are named. Prints its path. The binary is put in as it
# is, without its records for debuggers. Manual and completions come from the binary itself.
#
# Its version ends in the time of the commit (UTC), so that a later one is an upgrade, and the same one gives the same package.
# SOURCE_DATE_EPOCH says another time; where there is no git it is that of BINARY.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/offshoot}
out=${2:-target}
shift $(($# < 2 ? $# : 2))
[ -x "$binary" ] || { echo "package: $binary is missing: make build" >&2; exit 1; }
binary=$(realpath "$binary")

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y "$binary")}
export SOURCE_DATE_EPOCH # read by dpkg-deb, too
version=$("$binary" --version | cut -d' ' -f2)-$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d "${TMPDIR:-/tmp}/offshoot-package-XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

install -D -m 755 "$binary" "$root/usr/bin/offshoot"
if command -v strip >/dev/null; then strip --strip-debug "$root/usr/bin/offshoot"; fi
install -D -m 644 -t "$root/usr/lib/systemd/system" packaging/offshoot.service packaging/offshoot-vdbs.service
install -D -m 644 packaging/offshoot.conf "$root/etc/offshoot/offshoot.conf"
install -D -m 644 packaging/debian/copyright "$root/usr/share/doc/offshoot/copyright"
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control.in)
{
  printf 'offshoot (%s) unstable; urgency=medium\n\n' "$version"
  printf '  * Built of the commit of this time. What is new stands in changelog/ of its source.\n\n'
  printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" -R)"
} | gzip -9n >"$root/usr/share/doc/offshoot/changelog.Debian.gz"
chmod 644 "$root/usr/share/doc/offshoot/changelog.Debian.gz"
install -d "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
  "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
"$binary" man "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
"$binary" completions bash >"$root/usr/share/bash-completion/completions/offshoot"
"$binary" completions zsh >"$root/usr/share/zsh/vendor-completions/_offshoot"
"$binary" completions fish >"$root/usr/share/fish/vendor_completions.d/offshoot.fish"

# The newest interface of the C library that it calls.
glibc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$binary" | sort -uV | tail -n 1)
# In KiB, as Debian's own tools count it: files rounded up, 1 for all else. What the disk took (du) differs from build to build, as an
# extent tree of a file in many pieces counts.
size=$(find "$root" -mindepth 1 -printf '%y %s\n' | awk '{ total += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print total }')
install -d "$root/DEBIAN"
sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/; s/@GLIBC@/${glibc#GLIBC_}/" \
  packaging/debian/control.in >"$root/DEBIAN/control"
echo /etc/offshoot/offshoot.conf >"$root/DEBIAN/conffiles"
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN"
package=$out/offshoot_${version}_${architecture}.deb
dpkg-deb --root-owner-group "$@" --build "$root" "$package" >/dev/null
printf '%s\n' "$package"
