#!/usr/bin/env bash
# What does a release by Mondrian cost beside a GROUP BY and sort of the same columns, and beside one by levels?
#
#   bash benches/mondrian.sh [ROWS]        ROWS is 1000000 if left out
#
# Generates visits, then runs in turns: a DataFusion GROUP BY of the six quasi-identifiers with ORDER BY, written as
# Parquet; `kanon release` of data/visits.toml; the same by Mondrian, at medians and by least loss; and these with rows for
# people and k alone. Prints a Markdown table: the least CPU and wall time of each, and the CPU ratio to the GROUP BY.
# KANON: the program ($CARGO_TARGET_DIR/release/kanon). KANON_RUNS: runs of each (3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

rows=${1:-1000000}
runs=${KANON_RUNS:-3}
kanon=${KANON:-${CARGO_TARGET_DIR:-target}/release/kanon}
if [ ! -x "$kanon" ]; then
    echo "$kanon is not there: cargo build --release --locked --bin kanon" >&2
    exit 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/mondrian.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$kanon" generate --rows "$rows" --seed 7 --to "$work/visits.parquet" >&2
cp data/*.csv "$work/"
cp data/visits.toml "$work/levels.toml"
sed '0,/^k = /s//method = "mondrian"\nk = /' data/visits.toml > "$work/mondrian.toml"
sed '0,/^k = /s//method = { mondrian = { split = "loss" } }\nk = /' data/visits.toml > "$work/loss.toml"
for policy in levels mondrian loss; do
    sed -e 's/role = "individual"/role = "identifier"/' -e '/^\[\[require\]\]/,/^sensitive/d' \
        -e '0,/^k = /s//rows_are_individuals = true\naccept_homogeneity = ["diagnosis"]\nk = /' \
        "$work/$policy.toml" > "$work/${policy}_rows.toml"
done
quasi=dob,zip,sex,race,education,marital_status
grouped="COPY (SELECT $quasi, count(*) AS n FROM '$work/visits.parquet' GROUP BY $quasi ORDER BY $quasi) TO '$work/grouped.parquet'"

# measure NAME COMMAND...: appends `cpu wall` in seconds to $work/NAME.runs.
measure() {
    local name=$1 wall user system
    shift
    TIMEFORMAT='%3R %3U %3S'
    { time "$@" > "$work/log" 2> "$work/errors"; } 2> "$work/time" || { cat "$work/errors" >&2; exit 1; }
    read -r wall user system < "$work/time"
    awk -v w="$wall" -v u="$user" -v s="$system" 'BEGIN { printf "%.2f %.2f\n", u + s, w }' >> "$work/$name.runs"
}

for ((run = 0; run < runs; run++)); do
    measure grouped "$kanon" sql --threads 2 -c "$grouped"
    for policy in levels mondrian loss levels_rows mondrian_rows loss_rows; do
        measure "$policy" "$kanon" release "$work/visits.parquet" --policy "$work/$policy.toml" --to "$work/out" --overwrite --threads 2
    done
done

least() { sort -n -k"$2" "$work/$1.runs" | head -1 | cut -d' ' -f"$2"; }
base=$(least grouped 1)
echo "| $rows rows, 2 threads, least of $runs | CPU s | wall s | CPU ratio |"
echo "|---|---:|---:|---:|"
while read -r name text; do
    cpu=$(least "$name" 1)
    echo "| $text | $cpu | $(least "$name" 2) | $(awk -v a="$cpu" -v b="$base" 'BEGIN { printf "%.1f", a / b }') |"
done <<'END'
grouped GROUP BY and sort
levels_rows release by levels, rows, k = 5
mondrian_rows release by Mondrian at medians, rows, k = 5
loss_rows release by Mondrian by least loss, rows, k = 5
levels release by levels, people, k = 5 and 2-diversity
mondrian release by Mondrian at medians, people, k = 5 and 2-diversity
loss release by Mondrian by least loss, people, k = 5 and 2-diversity
END
