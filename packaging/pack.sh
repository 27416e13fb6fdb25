#!/usr/bin/env bash
# Packs `kanon` for this machine: builds it for release without symbols and puts it, with README.md, LICENSE and
# CHANGELOG.md, into dist/kanon-VERSION-TARGET.tar.gz, with its SHA-256 in a file beside it. The same files give the same
# bytes: their order, owner, permissions and time are fixed, the time to SOURCE_DATE_EPOCH or else that of the last commit.
#
#   bash packaging/pack.sh
#
# Needs Rust, GNU tar (or gtar), gzip, and sha256sum or shasum. Builds where cargo builds (CARGO_TARGET_DIR).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'pack.sh: %s\n' "$1" >&2
    exit 1
}

if [ $# -gt 0 ]; then fail "takes no arguments; see the head of this file"; fi
for tool in cargo rustc gzip sed mktemp; do
    command -v "$tool" >/dev/null || fail "needs $tool, which is not installed"
done
if tar --version 2>/dev/null | grep -q 'GNU tar'; then
    tar=tar
elif command -v gtar >/dev/null; then
    tar=gtar
else
    fail "needs GNU tar, as tar or gtar"
fi
if command -v sha256sum >/dev/null; then
    sum=(sha256sum)
elif command -v shasum >/dev/null; then
    sum=(shasum -a 256)
else
    fail "needs sha256sum or shasum"
fi

target=$(rustc -vV | sed -n 's/^host: //p')
[ -n "$target" ] || fail "rustc -vV does not name its host"
metadata=$(cargo metadata --format-version 1 --no-deps --locked)
version=$(sed -n 's/.*"name":"datafusion-kanon","version":"\([^"]*\)".*/\1/p' <<<"$metadata")
built=$(sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p' <<<"$metadata")
if [ -z "$version" ] || [ -z "$built" ]; then fail "cargo metadata names no version or no target directory"; fi

cargo build --release --locked --bin kanon --target "$target" --config 'profile.release.strip="symbols"'
program=$built/$target/release/kanon
[ -x "$program" ] || fail "there is no $program after the build"
version_line=$("$program" --version)
[ "$version_line" = "kanon $version" ] || fail "$program says \`$version_line\` instead of \`kanon $version\`"

time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
name=kanon-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$name"
cp "$program" README.md CHANGELOG.md LICENSE "$work/$name/"
chmod 644 "$work/$name"/*.md "$work/$name/LICENSE"
chmod 755 "$work/$name" "$work/$name/kanon"

# Without a commit, the first second of 2000.
LC_ALL=C "$tar" --create --directory "$work" --format ustar --sort name --mtime "@${time:-946684800}" \
    --owner 0 --group 0 --numeric-owner "$name" | gzip -n -9 >"$work/$name.tar.gz"
(cd "$work" && "${sum[@]}" "$name.tar.gz" >"$name.tar.gz.sha256")

mkdir -p dist
mv "$work/$name.tar.gz" "$work/$name.tar.gz.sha256" dist/
printf '%d bytes: %s\n' "$(wc -c <"dist/$name.tar.gz")" "$PWD/dist/$name.tar.gz"
