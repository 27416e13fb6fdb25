#!/usr/bin/env bash
# Reads the same table from this machine, from SeaweedFS (S3) and from Azurite (Azure): the releases have the same bytes, and
# the commands say the same.
#
#   bash tests/lake/reading.sh KANON FOLDER        KANON is the program; servers and data lie in FOLDER
set -euo pipefail
kanon=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
source "$repository/tests/lake/servers.sh"

seaweed_start "$folder"
azurite_start "$folder"
work=$(mktemp -d "$folder/reading.XXXXXX")
cd "$work"
policy=$repository/data/visits.toml
mkdir -p in/part=a in/part=b
"$kanon" generate --rows 60000 --to in/part=a/0.parquet --quiet
"$kanon" sql --quiet -c "COPY (SELECT * FROM 'in/part=a/0.parquet' LIMIT 30000) TO 'in/part=b/1.parquet'"
for file in part=a/0.parquet part=b/1.parquet; do
    python3 "$repository/tests/lake/store.py" s3 PUT "/lake/in/$file" --body "@in/$file" | head -1
    python3 "$repository/tests/lake/store.py" azure PUT "/lake/in/$file" --body "@in/$file" | head -1
done
# What jobs leave.
python3 "$repository/tests/lake/store.py" s3 PUT "/lake/in/_SUCCESS" --body '' | head -1
python3 "$repository/tests/lake/store.py" s3 PUT "/lake/in/_temporary/0/x.parquet" --body 'x' | head -1

# said INPUT: what the commands say of it.
said() {
    local input=$1 line
    cp "$policy" p.toml
    for file in education marital_status; do cp "$repository/data/$file.csv" .; done
    for line in 'check IN --policy p.toml' 'risk IN --policy p.toml' 'search IN --policy p.toml' 'init IN' \
        'link IN IN --individual patient_id --on dob,zip' 'hierarchy IN zip --by prefix=[3]'; do
        code=0
        # shellcheck disable=SC2086
        "$kanon" ${line//IN/$input} --quiet || code=$?
        if [ $code -gt 1 ]; then return 1; fi
        printf '%s\n' "exit code $code"
    done | sed "s|$input|IN|g; s| INPUT | IN |g"
    "$kanon" sql --quiet --output csv -c "SELECT part, count(*) AS rows, sum(cost) AS cost FROM '$input' GROUP BY part ORDER BY part"
}

"$kanon" release in --policy "$policy" --to near --quiet >/dev/null
said ./in >near.txt
for address in s3://lake/in az://lake/in abfss://lake@kanon.dfs.core.windows.net/in; do
    "$kanon" release "$address" --policy "$policy" --to far --quiet >/dev/null
    diff -r near far
    "$kanon" verify far --input "$address" --quiet >/dev/null
    rm -r far far.private.json
    said "$address" >far.txt
    diff near.txt far.txt
    printf 'the same release and the same answers from %s\n' "$address"
done
