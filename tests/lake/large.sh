#!/usr/bin/env bash
# Releases a large table in partition folders, from SeaweedFS to SeaweedFS, and copies it the same way in SQL. Prints seconds,
# CPU seconds, and the peaks of memory and of TMPDIR, of each command. 20 million rows take an optimized kanon 20 minutes and 12 GB of disk.
#
#   bash tests/lake/large.sh KANON FOLDER [ROWS]      KANON is the program; the server and data lie in FOLDER
set -euo pipefail
kanon=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
rows=${3:-20000000}
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
source "$repository/tests/lake/servers.sh"

# measure WHAT WORD...: runs kanon, which must succeed within 4 GiB of resident memory.
measure() {
    python3 - "$kanon" "$@" <<'END'
import os, resource, subprocess, sys, time

def disk(folder):
    held = 0
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                held += os.lstat(os.path.join(above, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return held

kanon, what, *words = sys.argv[1:]
began, most = time.monotonic(), 0
words += ["--quiet", "--memory-limit", "4500M"]
with open("said", "w") as said:
    run = subprocess.Popen([kanon, *words], stdin=subprocess.DEVNULL, stdout=said)
    while run.poll() is None:
        time.sleep(0.5)
        most = max(most, disk(os.environ["TMPDIR"]))
seconds, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss >> 10
cpu = used.ru_utime + used.ru_stime
print(f"{what:<18} {seconds:>6.0f} s {cpu:>6.0f} CPU s {peak:>5} MiB memory {most >> 20:>6} MiB disk", flush=True)
sys.exit(run.returncode or (f"{what}: more than 4 GiB" if peak > 4096 else 0))
END
}

seaweed_start "$folder"
work=$(mktemp -d "$folder/large.XXXXXX")
on_exit "rm -rf '$work'"
cd "$work"
mkdir tmp
export TMPDIR=$work/tmp
ln -s "$repository/data" data

measure 'generate' generate --rows "$rows" --to visits.parquet
measure 'COPY to the store' sql -c "COPY (SELECT *, to_char(visit_date, '%Y-%m') AS month FROM 'visits.parquet')
    TO 's3://lake/visits/' STORED AS PARQUET PARTITIONED BY (month)"
rm visits.parquet
measure 'COPY in the store' sql -c "COPY (SELECT * FROM 's3://lake/visits/')
    TO 's3://lake/copy/' STORED AS PARQUET PARTITIONED BY (month)"
measure 'release' release s3://lake/visits/ --policy data/visits.toml \
    --set 'columns.month={ role = "insensitive" }' --set 'output.partition_by=["month"]' \
    --to s3://lake/safe --private private.json
measure 'verify' verify s3://lake/safe
measure 'verify --input' verify s3://lake/safe --input s3://lake/visits/ --private private.json
"$kanon" sql --quiet -c "SELECT count(DISTINCT month) AS folders, count(*) AS rows FROM 's3://lake/safe'"
