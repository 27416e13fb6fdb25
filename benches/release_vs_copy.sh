#!/usr/bin/env bash
# What does a release cost over a plain copy of the same file, and what does counting people cost?
#
#   bash benches/release_vs_copy.sh [ROWS]        ROWS is 1000000 if left out
#
# Runs `kanon release` of visits that are counted by person, the same counted by row, and a plain DataFusion COPY of
# the same Parquet in turns, three times each, and prints
# a Markdown table: the least wall time, CPU time and peak memory of each, and the ratio.
# KANON_THREADS: threads for both (2). KANON_RUNS: runs of each (3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

rows=${1:-1000000}
runs=${KANON_RUNS:-3}
export KANON_THREADS=${KANON_THREADS:-2}
for number in "$rows" "$runs" "$KANON_THREADS"; do
    if ! [[ $number =~ ^[1-9][0-9]*$ ]]; then
        echo "usage: bash benches/release_vs_copy.sh [ROWS]; ROWS, KANON_RUNS and KANON_THREADS are whole numbers above 0" >&2
        exit 2
    fi
done

target=${CARGO_TARGET_DIR:-target}
kanon=$target/release/kanon
copy=$target/release/examples/copy
if [ ! -x "$kanon" ] || [ ! -x "$copy" ]; then
    echo "kanon or copy is not in $target/release: building both, which takes some minutes" >&2
    cargo build --release --locked --bin kanon --example copy
fi

work=$(mktemp -d "$target/release_vs_copy.XXXXXX")
trap 'rm -rf "$work"' EXIT
input=$work/visits.parquet

# GNU time knows the peak memory of a process; without it we watch the process from here.
if /usr/bin/time -q -f %M -o "$work/peak" true 2>/dev/null; then gnu_time=yes; else gnu_time=no; fi

# Runs a command and prints nothing of its own; its peak memory in KiB goes to $work/peak, 0 if nobody knows.
with_peak() {
    if [ "$gnu_time" = yes ]; then
        /usr/bin/time -q -f %M -o "$work/peak" "$@"
        return
    fi
    local peak=0 child key value
    "$@" &
    child=$!
    while kill -0 "$child" 2>/dev/null; do
        while read -r key value _; do
            if [ "$key" = VmHWM: ]; then peak=$value; fi
        done 2>/dev/null < "/proc/$child/status" || true
        sleep 0.05
    done
    echo "$peak" > "$work/peak"
    wait "$child"
}

# measure NAME COMMAND...: appends `wall cpu peak` (seconds, seconds, MiB) to $work/NAME.runs.
measure() {
    local name=$1 code=0 wall user system
    shift
    sync
    TIMEFORMAT='%3R %3U %3S'
    { time with_peak "$@" > "$work/log" 2>&1; } 2> "$work/time" || code=$?
    if [ "$code" -ne 0 ]; then
        echo "$name failed with exit code $code:" >&2
        cat "$work/log" >&2
        exit "$code"
    fi
    read -r wall user system < "$work/time"
    awk -v wall="$wall" -v usr="$user" -v sys="$system" -v peak="$(cat "$work/peak")" \
        'BEGIN { printf "%.3f %.3f %.1f\n", wall, usr + sys, peak / 1024 }' >> "$work/$name.runs"
    echo "$name: $(tail -n 1 "$work/$name.runs") (wall s, CPU s, peak MiB)" >&2
}

"$kanon" generate --rows "$rows" --seed 7 --to "$input" >&2
cat "$input" > /dev/null

# The same policy with rows for people; its hierarchy files are named from its folder.
cp data/*.csv "$work/"
sed -e 's/role = "individual"/role = "identifier"/' -e 's/^k = 5$/k = 5\nrows_are_individuals = true/' \
    data/visits.toml > "$work/rows.toml"

for ((run = 0; run < runs; run++)); do
    rm -rf "$work/release" "$work/copied"
    mkdir "$work/release"
    measure release "$kanon" release "$input" --policy data/visits.toml --to "$work/release/out" --threads "$KANON_THREADS"
    measure rows "$kanon" release "$input" --policy "$work/rows.toml" --to "$work/release/rows" --threads "$KANON_THREADS"
    measure copy "$copy" "$input" "$work/copied/"
done

echo
echo "$rows rows, $(wc -c < "$input" | awk '{ printf "%.1f", $1 / 1048576 }') MiB of Parquet, $KANON_THREADS threads, least of $runs runs"
echo
awk '
    FNR == 1 { file += 1 }
    { for (i = 1; i <= 3; i++) if (FNR == 1 || $i < least[file, i]) least[file, i] = $i }
    function ratio(a, b, i) { return least[b, i] > 0 ? sprintf("%.1f", least[a, i] / least[b, i]) : "-" }
    function line(name, file) {
        printf "| %s | %.2f | %.2f | %s |\n", name, least[file, 1], least[file, 2], mib(file)
    }
    function ratios(name, a, b) {
        printf "| %s | %s | %s | %s |\n", name, ratio(a, b, 1), ratio(a, b, 2), ratio(a, b, 3)
    }
    function mib(file) { return least[file, 3] > 0 ? sprintf("%.0f", least[file, 3]) : "-" }
    END {
        print "| | wall s | CPU s | peak MiB |"
        print "|---|---:|---:|---:|"
        line("`kanon release`, people counted", 1)
        line("`kanon release`, rows counted", 2)
        line("plain COPY", 3)
        ratios("people / rows", 1, 2)
        ratios("people / COPY", 1, 3)
    }' "$work/release.runs" "$work/rows.runs" "$work/copy.runs"
