#!/usr/bin/env bash
# The whole test: form, lints, the quick loop, documentation, everything. Needs Rust only.
# Stops at the first step that fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# On a CI machine nobody edits and builds again: incremental files would only cost time and disk.
if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=0; fi

# step HEADING COMMAND...: runs it between a heading and its duration.
step() {
    local heading=$1 start=$SECONDS code=0
    shift
    printf '\n== %s\n' "$heading"
    "$@" || code=$?
    if [ "$code" -ne 0 ]; then
        printf '== FAILED after %d s: %s\n' $((SECONDS - start)) "$heading" >&2
        exit "$code"
    fi
    printf -- '-- %d s\n' $((SECONDS - start))
}

skip() {
    printf '\n== %s\n-- %s\n' "$1" "$2"
}

step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "lints, without the command line" cargo clippy --no-default-features --features engine --lib --locked -- -D warnings
step "lints, without the engine" cargo clippy --no-default-features --lib --locked -- -D warnings
step "quick loop: the library without the engine" cargo test --no-default-features --lib --locked
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items --locked
step "all tests" cargo test --locked
step "a foreign program" cargo run --quiet --locked -p kanon-foreign
for example in examples/*.rs; do
    name=$(basename "$example" .rs)
    step "example $name" cargo run --quiet --locked --example "$name"
done

if command -v cargo-deny >/dev/null; then
    step "dependencies: licenses, bans, sources" cargo deny --locked check licenses bans sources
    if cargo deny fetch db >/dev/null 2>&1; then
        step "dependencies: advisories" cargo deny --locked check advisories
    else
        skip "dependencies: advisories" "the advisory database cannot be reached: skipped"
    fi
else
    skip "dependencies" "cargo-deny not installed: skipped"
fi
if command -v taplo >/dev/null; then
    step "form of the TOML files" taplo fmt --check
else
    skip "form of the TOML files" "taplo not installed: skipped"
fi

printf '\n== all passed in %d s\n' "$SECONDS"
