#!/usr/bin/env bash
# What takes too long for every run: long fuzz runs, large tables under small memory limits, many queries that spill, mutants.
# Needs Rust, pyarrow for `recount`, cargo-mutants for `mutants` and `guards`, Python and npm for the servers of `lake` and `large`, DuckDB's package for `proofs`. Prints each step's result; stops at the first that fails.
#
#   bash tests/long.sh [searches] [laws] [recount] [lives] [fuzz] [memory] [spills] [mutants] [guards] [lake] [large] [proofs]        all of them when none is named
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

steps=${*:-searches laws recount lives fuzz memory spills mutants guards lake large proofs}
cases=${KANON_FUZZ_CASES:-100000}

target_directory() {
    cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

new_seed() {
    export PROPTEST_RNG_SEED=$RANDOM
    printf 'PROPTEST_RNG_SEED=%s\n' "$PROPTEST_RNG_SEED"
}

for step in $steps; do
    start=$SECONDS
    printf '\n== %s\n' "$step"
    case $step in
    searches)
        # The searches on every row of ARX's optima.
        KANON_EVERY_ROW=1 cargo test --locked --test it arx:: -- --nocapture
        ;;
    laws)
        # The laws of searches and measures on many random tables, then all property tests under five new seeds. A failure
        # comes back under its seed.
        new_seed
        KANON_LAW_CASES=1000 cargo test --locked --test it _laws:: -- --nocapture
        KANON_LAW_CASES=1000 cargo test --locked --test it sql_measures:: -- --nocapture
        for _ in 1 2 3 4 5; do
            new_seed
            cargo test --locked --lib
        done
        unset PROPTEST_RNG_SEED
        ;;
    recount)
        # Releases of 300 random policies, of every method and model, recounted in Python from the written text.
        if python3 -c 'import pyarrow' 2>/dev/null; then
            cargo build --locked --bin kanon
            python3 -B tests/recount "$(target_directory)/debug/kanon"
        else
            printf 'skipped: python3 cannot import pyarrow\n'
        fi
        ;;
    lives)
        # 500 random chains of releases of the same people, of four methods, attacked with all files.
        KANON_CHAINS=125 cargo test --locked --test it release_after::chains -- --nocapture
        ;;
    fuzz)
        # Random and mutated policies, hierarchy files, input files and queries. Releases wait for the device, so they are
        # made in memory where there is such a place: a busy disk would make inputs look as if they took forever.
        if [ -d /dev/shm ]; then export TMPDIR=/dev/shm; fi
        KANON_FUZZ_CASES=$cases cargo test --locked --test it fuzz:: -- --nocapture
        ;;
    memory)
        # Peak resident memory of every command, on a million rows; answers under a twentieth of the
        # memory, on ten million.
        KANON_MEMORY_ROWS=1000000 KANON_MEMORY_LIMITS=150,300,400 KANON_SPILL_ROWS=10000000 \
            cargo test --locked --test it memory:: -- --nocapture
        ;;
    spills)
        # Two stacked GROUP BYs that spill: an answer or a refusal, never a wait without end. DataFusion 55 waits in every
        # third run (apache/datafusion#24883), which `engine::Resources` prevents.
        cargo build --release --locked --bin kanon
        kanon=$(target_directory)/release/kanon
        rows="SELECT value % 10 AS g, 'zip' || (value * 7919 % 20000) AS a, 'o' || (value * 31 % 100) AS b,
              'diag' || (value * 104729 % 200) AS s FROM range(2000000)"
        for run in $(seq 1 10); do
            code=0
            timeout 120 "$kanon" sql --threads 2 --memory-limit 20M --output csv \
                -c "SELECT g, entropy_l_diversity(s, a, b) FROM ($rows) GROUP BY g" >/dev/null || code=$?
            printf 'run %s: exit code %s\n' "$run" "$code"
            if [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then exit 1; fi
        done
        ;;
    mutants)
        # Every mutant of the generalizers and models, against the quick loop.
        cargo mutants --no-default-features --file 'src/model/*.rs' --file 'src/generalize/*.rs' \
            --output "${TMPDIR:-/tmp}/kanon-mutants" -- --lib
        ;;
    guards)
        # A sample of the mutants of verification and the guards, against the tests that attack them.
        cargo mutants --sharding round-robin --shard "${KANON_SHARD:-0/20}" \
            --file 'src/verify/*.rs' --file 'src/release/{role_checks,check_record,released_labels,verify_folder}.rs' \
            --file src/release/publish/order.rs \
            --output "${TMPDIR:-/tmp}/kanon-guards" \
            -- --lib --test it -- mutants roles releases individuals release:: verify::
        ;;
    lake)
        # Real servers of S3 and Azure on this machine.
        cargo build --locked --bin kanon
        bash tests/lake/reading.sh "$(target_directory)/debug/kanon" "$(target_directory)/lake"
        bash tests/lake/publishing.sh "$(target_directory)/debug/kanon" "$(target_directory)/lake"
        ;;
    large)
        # 20 million rows from a store to the store.
        cargo build --release --locked --bin kanon
        bash tests/lake/large.sh "$(target_directory)/release/kanon" "$(target_directory)/lake"
        ;;
    proofs)
        # What `kanon compare --prove` prints, in DuckDB; then the histories of more lives.
        if python3 -c 'import duckdb' 2>/dev/null; then
            cargo build --locked --bin kanon
            python3 -B tests/proofs.py "$(target_directory)/debug/kanon" 300 "$RANDOM"
        else
            printf 'skipped: python3 cannot import duckdb\n'
        fi
        KANON_LIVES=200 cargo test --locked --test it compare:: -- --nocapture
        ;;
    *)
        printf 'there is no step %s: searches, laws, recount, fuzz, memory, spills, mutants, guards, lake, large, proofs\n' "$step" >&2
        exit 2
        ;;
    esac
    printf -- '-- %s: %d s\n' "$step" $((SECONDS - start))
done
