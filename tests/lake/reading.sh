#!/usr/bin/env bash
# Reads the same table from this machine, from SeaweedFS (S3) and from Azurite (Azure): the releases have the same bytes.
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

"$kanon" release in --policy "$policy" --to near --quiet
for address in s3://lake/in az://lake/in; do
    "$kanon" release "$address" --policy "$policy" --to far --quiet
    diff -r near far
    "$kanon" verify far --input "$address" --quiet
    rm -r far far.private.json
    printf 'the same release from %s\n' "$address"
done
