#!/usr/bin/env bash
# Packs `kanon` for this machine: builds it under the profile `dist` and puts it, with README.md, docs/ and what these link
# to, into dist/kanon-VERSION-TARGET.tar.gz, with its SHA-256 in a file beside it. The same files give the same bytes: their
# order, owner, permissions and time are fixed, the time to SOURCE_DATE_EPOCH or else that of the last commit.
#
#   bash packaging/pack.sh
#
# Needs Rust, GNU tar (or gtar), gzip, and sha256sum or shasum. Builds where cargo builds (CARGO_TARGET_DIR).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The pages, and the files and folders that they link to.
pages=(README.md CHANGELOG.md LICENSE CONTRIBUTING.md DESIGN.md SECURITY.md docs sql data benches/README.md
    examples src/lib.rs src/method/attack_tests.rs tests/it/arx.rs)

fail() {
    printf 'pack.sh: %s\n' "$1" >&2
    exit 1
}

if [ $# -gt 0 ]; then fail "takes no arguments; see the head of this file"; fi
for tool in cargo rustc grep gzip sed mktemp; do
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

name=kanon-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$name"
"$tar" --create --file - "${pages[@]}" | "$tar" --extract --file - --directory "$work/$name"

# Before the long build: every relative link of a page leads to a file or folder of the archive.
broken=$(cd "$work/$name" && grep -roE --include '*.md' '\]\([^)]+' . | grep -v '://' | while IFS= read -r found; do
    page=${found%%:*} link=${found#*'('}
    [ -e "$(dirname "$page")/${link%%#*}" ] || printf '\n%s: %s' "$page" "$link"
done)
[ -z "$broken" ] || fail "links that lead out of the archive:$broken"

cargo build --profile dist --locked --bin kanon --target "$target"
program=$built/$target/dist/kanon
[ -x "$program" ] || fail "there is no $program after the build"
version_line=$("$program" --version)
[ "$version_line" = "kanon $version" ] || fail "$program says \`$version_line\` instead of \`kanon $version\`"

cp "$program" "$work/$name/"
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}

# Without a commit, the first second of 2000.
LC_ALL=C "$tar" --create --directory "$work" --format ustar --sort name --mtime "@${time:-946684800}" \
    --owner 0 --group 0 --numeric-owner --mode u=rwX,go=rX "$name" | gzip -n -9 >"$work/$name.tar.gz"
(cd "$work" && "${sum[@]}" "$name.tar.gz" >"$name.tar.gz.sha256")

mkdir -p dist
mv "$work/$name.tar.gz" "$work/$name.tar.gz.sha256" dist/
printf '%d bytes: %s\n' "$(wc -c <"dist/$name.tar.gz")" "$PWD/dist/$name.tar.gz"
