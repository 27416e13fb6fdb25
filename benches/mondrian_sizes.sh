#!/usr/bin/env bash
# How does the time of Mondrian grow with the rows, and how much memory does a release of the largest table take?
#
#   bash benches/mondrian_sizes.sh [ROWS...]      ROWS are 250000 1000000 4000000 10000000 if left out
#
# For each size: generates visits, then runs in turns a DataFusion GROUP BY of the six quasi-identifiers with ORDER BY, written as
# Parquet, and `kanon search` by Mondrian at medians (reading, grouping, cutting) under k = 5 with rows for people. Prints a
# Markdown table of CPU seconds and their ratio. At last releases the largest table under `--memory-limit 4G` and prints the
# time and the peak of resident memory. KANON: the program ($CARGO_TARGET_DIR/release/kanon). KANON_RUNS: runs of each (2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(250000 1000000 4000000 10000000)
runs=${KANON_RUNS:-2}
kanon=${KANON:-${CARGO_TARGET_DIR:-target}/release/kanon}
work=$(mktemp -d "${TMPDIR:-/tmp}/mondrian_sizes.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp data/*.csv "$work/"
sed -e 's/role = "individual"/role = "identifier"/' -e '/^\[\[require\]\]/,/^sensitive/d' \
    -e '0,/^k = /s//method = "mondrian"\nrows_are_individuals = true\naccept_homogeneity = ["diagnosis"]\nk = /' \
    data/visits.toml > "$work/policy.toml"
quasi=dob,zip,sex,race,education,marital_status

# cpu COMMAND...: prints the user and system seconds of a command.
cpu() {
    TIMEFORMAT='%U %S'
    { time "$@" > "$work/log" 2> "$work/errors"; } 2>&1 | awk '{ print $1 + $2 }'
}

least() { sort -n | head -1; }

echo "| rows | base classes | GROUP BY and sort, CPU s | Mondrian, CPU s | ratio | Mondrian, ns for a base class and its logarithm |"
echo "|---:|---:|---:|---:|---:|---:|"
for rows in "${sizes[@]}"; do
    rm -f "$work"/visits.parquet "$work"/grouped.parquet
    "$kanon" generate --rows "$rows" --seed 7 --to "$work/visits.parquet" > /dev/null
    grouped="COPY (SELECT $quasi, count(*) AS n FROM '$work/visits.parquet' GROUP BY $quasi ORDER BY $quasi) TO '$work/grouped.parquet'"
    : > "$work/grouped.runs"
    : > "$work/mondrian.runs"
    for ((run = 0; run < runs; run++)); do
        cpu "$kanon" sql --threads 2 -c "$grouped" >> "$work/grouped.runs"
        cpu "$kanon" search "$work/visits.parquet" --policy "$work/policy.toml" --threads 2 >> "$work/mondrian.runs"
    done
    bases=$(awk '/^read/ { gsub(",", "", $4); print $4 }' "$work/log")
    awk -v r="$rows" -v b="$bases" -v g="$(least < "$work/grouped.runs")" -v m="$(least < "$work/mondrian.runs")" \
        'BEGIN { printf "| %d | %d | %.2f | %.2f | %.1f | %.1f |\n", r, b, g, m, m / g, m * 1e9 / (b * log(b) / log(2)) }'
done
python3 - "$kanon" "$work" <<'END'
import resource, subprocess, sys, time

kanon, work = sys.argv[1:]
begin = time.perf_counter()
command = [kanon, "release", f"{work}/visits.parquet", "--policy", f"{work}/policy.toml", "--to", f"{work}/out"]
done = subprocess.run([*command, "--threads", "2", "--memory-limit", "4G"], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"\nrelease of the largest: exit {done.returncode}, {time.perf_counter() - begin:.0f} s, peak {used.ru_maxrss / 1024:,.0f} MiB")
print("".join(line + "\n" for line in (done.stdout + done.stderr).splitlines() if line.startswith(("search", "verified", "kanon"))), end="")
END
