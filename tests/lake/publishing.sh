#!/usr/bin/env bash
# Publishes releases to SeaweedFS (S3) and Azurite (Azure): they are those of this machine; of runs at one time one publishes;
# a killed run leaves a whole release or none, here too, and the next one cleans up. 13 minutes. If a check fails, its data stay
# in FOLDER.
#
#   bash tests/lake/publishing.sh KANON FOLDER [here] [s3] [az]      KANON is the program; servers and data lie in FOLDER
set -euo pipefail
kanon=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
stores=("${@:3}")
if [ ${#stores[@]} -eq 0 ]; then stores=(here s3 az); fi
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
source "$repository/tests/lake/servers.sh"

race_count=30
kill_count=60

fail() {
    printf 'FAIL  %s: %s\n' "${scheme:-}" "$*"
    printf 'the data are in %s\n' "$work"
    exit 1
}

# held WHAT: says that a step held, and how long it took.
held() {
    printf '%s  %s (%d s)\n' "$scheme" "$*" $((SECONDS - began))
    began=$SECONDS
}

# run EXIT WORD...: runs kanon and demands this exit code. What it printed is in `out` and `err`.
run() {
    local expected=$1 code=0
    shift
    "$kanon" "$@" >out 2>err </dev/null || code=$?
    if [ "$code" -ne "$expected" ]; then
        cat out err
        fail "kanon $*: exit code $code instead of $expected"
    fi
}

# is WHAT FOUND EXPECTED
is() {
    if [ "$2" != "$3" ]; then fail "$1: $2 instead of $3"; fi
}

# holds_only FOLDER [NAME]: demands that a folder holds nothing, or nothing but this.
holds_only() {
    local names
    names=$(ls -A "$1")
    is "names in $1" "${names//$'\n'/ }" "${2:-}"
}

# choose here|s3|az: the store of what follows, and where its folders lie.
choose() {
    scheme=$1
    lake=$scheme://lake
    case $scheme in
    here) lake=$work/here ;;
    s3) kind=s3 list='list-type=2' tag=Key ;;
    az) kind=azure list='restype=container&comp=list' tag=Name ;;
    *) fail "there is no store $scheme: here, s3, az" ;;
    esac
    began=$SECONDS
}

ask() { python3 "$repository/tests/lake/store.py" "$kind" "$@"; }

# listing FOLDER: what the store tells of the objects in a folder, with their tags and times.
listing() { ask GET "/lake?$list&prefix=$1/" | tail -n +2; }

# keys FOLDER: their keys.
keys() { listing "$1" | sed 's/></>\n</g' | sed -n "s|^<$tag>\(.*\)</$tag>\$|\1|p"; }

# fetch KEY FILE
fetch() {
    case $scheme in
    here) cp "$lake/$1" "$2" ;;
    *) ask GET "/lake/$1" | tail -n +2 >"$2" ;;
    esac
}

# status KEY: prints 200 or 404, as a store does.
status() {
    case $scheme in
    here) if [ -e "$lake/$1" ]; then printf '200\n'; else printf '404\n'; fi ;;
    *) ask HEAD "/lake/$1" | head -n 1 ;;
    esac
}

# copy FOLDER TO: copies all objects of a folder to this machine.
copy() {
    local key name
    mkdir "$2"
    keys "$1" >listed
    while read -r key; do
        name=${key#"$1/"}
        mkdir -p "$(dirname "$2/$name")"
        fetch "$key" "$2/$name"
    done <listed
}

# is_same_release FAR NEAR: demands the same rows in the same bytes, and the same record but for its digest and for the digits
# that a run adds to names.
is_same_release() {
    python3 - "$1" "$2" <<'END' || fail "$1 is not the release $2"
import json, re, sys
from pathlib import Path

def release(folder):
    record = json.loads((folder / "_kanon.json").read_bytes())
    del record["digest"]
    files = [file for table in record["tables"] for file in table["files"]]
    names = [file["name"] for file in files]
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    if sorted(["_kanon.json", *names]) != sorted(found):
        sys.exit(f"{folder} holds other files than those of its record")
    for file in files:
        file["name"] = re.sub(r"-[0-9a-f]{16}(?=\.parquet$)", "", file["name"])
    return record, [(folder / name).read_bytes() for name in names]

(record, files), (other, others) = (release(Path(folder)) for folder in sys.argv[1:])
if not files or files != others:
    sys.exit("other bytes")
if record != other:
    sys.exit("another record")
END
}

# required_k FILE: the k that a record promises.
required_k() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["models"][0]["required"])' "$1"
}

# 1 and 7: a release, read by every command and by another program.
releases() {
    local there=$scheme://lake/safe line
    run 0 release in.parquet --policy "$policy" --to "$there" --private "$scheme/p.json"
    holds_only "$scheme" p.json
    for line in 'verify OUT' 'verify OUT --input in.parquet --private PRIVATE' 'explain OUT' 'risk OUT'; do
        line=${line/PRIVATE/$scheme/p.json}
        # shellcheck disable=SC2086
        run 0 ${line/OUT/$there}
        sed "s|$there|OUT|g" out >far.out
        line=${line/$scheme\/p.json/near.private.json}
        # shellcheck disable=SC2086
        run 0 ${line/OUT/.\/near}
        sed 's|\./near|OUT|g' out >near.out
        diff near.out far.out || fail "$line answers otherwise"
    done
    copy safe "$scheme.copy"
    is_same_release "$scheme.copy" near
    holds_only "$TMPDIR"
    held '1. a release has the bytes of a local one, and every command reads it'
    read_s3 "$folder" "$there" --compare near >rows.txt || fail "$(cat rows.txt)"
    grep -qxF 'same rows as in near' rows.txt || fail "$(cat rows.txt)"
    held "7. pyarrow reads the same rows: $(head -n 1 rows.txt | cut -d ' ' -f 2,3)"
}

# 2 and 3: the same again, then another one.
again() {
    local there=$scheme://lake/safe private
    private=$(sha256sum "$scheme/p.json")
    listing safe >before
    keys safe | grep -v '/_kanon\.json$' >first
    # A time in S3's lists is of whole seconds.
    sleep 1.1
    run 0 release in.parquet --policy "$policy" --to "$there" --private "$scheme/p.json"
    grep -q unchanged out err || fail "it does not say that it is unchanged: $(cat out)"
    listing safe >after
    cmp before after || fail 'a run that is unchanged changed objects'
    is 'the private record' "$(sha256sum "$scheme/p.json")" "$private"
    holds_only "$TMPDIR"
    held '2. the same again is unchanged, and so are all objects'

    run 2 release in.parquet --policy "$policy" --set k=10 --to "$there" --private "$scheme/p.json"
    grep -q 'a release already exists; --overwrite replaces it' err || fail "it gives another reason: $(cat err)"
    listing safe >after
    cmp before after || fail 'a run that was refused changed objects'
    run 0 release in.parquet --policy "$policy" --set k=10 --to "$there" --private "$scheme/p.json" --overwrite
    run 0 verify "$there"
    run 0 verify "$there" --input in.parquet --private "$scheme/p.json"
    fetch safe/_kanon.json record
    is k "$(required_k record)" 10
    if [ "$(sha256sum "$scheme/p.json")" = "$private" ]; then fail 'the private record is the old one'; fi
    keys safe >now
    is 'objects of the first release that are there' "$(grep -cxFf first now || :)" 0
    is 'objects of the second release' "$(wc -l <now)" 2
    holds_only "$scheme" p.json
    holds_only "$TMPDIR"
    held '3. another release needs --overwrite, and replaces the first one with its objects'
}

# 4: each of three runs at the same time is as if on a machine of its own; two of them make the same release.
races() {
    local race at there codes winner winners refused=0 lost=0 running=()
    for race in $(seq 1 "$race_count"); do
        there=$scheme://lake/race/$race
        for at in 0 1 2; do
            mkdir -p "race/$at/tmp" "race/$at/private"
            {
                code=0
                TMPDIR=$PWD/race/$at/tmp "$kanon" release small.parquet --policy "$policy" \
                    --set k=$((at == race % 3 ? 4 : 5)) --to "$there" --private "race/$at/private/p.json" \
                    >"race/$at/said" 2>&1 </dev/null || code=$?
                printf '%d\n' "$code" >"race/$at/code"
            } &
            running[at]=$!
        done
        wait "${running[@]}"
        winner='' winners=0 codes=$(cat race/?/code | xargs)
        for at in 0 1 2; do
            case $(cat "race/$at/code") in
            0) winner=$at winners=$((winners + 1)) ;;
            2) refused=$((refused + 1)) ;;
            3) lost=$((lost + 1)) ;;
            *) cat race/?/said && fail "race $race: exit codes $codes" ;;
            esac
        done
        if [ $winners -ne 1 ]; then cat race/?/said && fail "race $race: exit codes $codes"; fi
        for at in 0 1 2; do
            holds_only "race/$at/tmp"
            if [ "$at" = "$winner" ]; then holds_only "race/$at/private" p.json; else holds_only "race/$at/private"; fi
        done
        fetch "race/$race/_kanon.json" record
        is "race $race: k" "$(required_k record)" $((winner == race % 3 ? 4 : 5))
        run 0 verify "$there" --input small.parquet --private "race/$winner/private/p.json"
        is "race $race: objects" "$(keys "race/$race" | wc -l)" 2
        rm -r race
    done
    held "4. of three runs at the same time one publishes, in $race_count races; $refused refused, $lost lost"
}

# left: the names in the folder for temporary files of the killed runs.
left() { find killed/tmp -mindepth 1 -maxdepth 1 -printf '%f\n' | sort; }

# leaves_no_more: demands that only what killed runs left is there.
leaves_no_more() {
    left >now
    sort -u killed/left | comm -13 - now >added.txt
    is 'what a run left that was not killed' "$(xargs <added.txt)" ''
}

# 5: after a kill there is no record, or a release that verifies, and no release disappears; the next run cleans up. One of the
# releases has partition folders.
kills() {
    local there=$lake/killed kill k start whole run code status was=404 none=0 early=0 published=0 took
    local small=(release small.parquet --policy "$policy") by=('' '' '' '' '' 'output.partition_by=["sex", "length_of_stay"]')
    mkdir -p killed/tmp killed/private
    : >killed/left
    : >killed/record
    export TMPDIR=$PWD/killed/tmp
    whole=60000000
    for k in 4 5 4 5; do
        start=${EPOCHREALTIME/./}
        run 0 "${small[@]}" --set k="$k" ${by[k]:+--set "${by[k]}"} --to "$lake/measured" \
            --private killed/measured.json --overwrite
        took=$((${EPOCHREALTIME/./} - start))
        if [ "$took" -lt "$whole" ]; then whole=$took; fi
    done
    holds_only "$TMPDIR"
    for kill in $(seq 1 "$kill_count"); do
        k=$((4 + kill % 2))
        "$kanon" "${small[@]}" --set k="$k" ${by[k]:+--set "${by[k]}"} --to "$there" \
            --private killed/private/p.json --overwrite >killed/said 2>&1 </dev/null &
        run=$!
        # Up to a third more than a whole run, so that some end.
        start=$((whole * RANDOM / 24576))
        sleep "$(printf '%d.%06d' $((start / 1000000)) $((start % 1000000)))"
        kill -KILL "$run" 2>/dev/null || :
        code=0
        # The shell would tell that it was killed.
        { wait "$run" || code=$?; } 2>/dev/null
        case $code in
        0) leaves_no_more ;;
        137) early=$((early + 1)) && left >>killed/left ;;
        *) cat killed/said && fail "kill $kill: the run ended before with exit code $code" ;;
        esac
        status=$(status killed/_kanon.json) || :
        case $status in
        404)
            is "kill $kill: the record that was there" "$was" 404
            is "kill $kill: the exit code of a run that published nothing" "$code" 137
            none=$((none + 1))
            ;;
        200)
            run 0 verify "$there"
            # On this machine the private record that is not in its place yet is found by the next run, not by `verify`.
            if [ ! -e "$lake/.killed.kanon-work/private.json" ]; then
                run 0 verify "$there" --input small.parquet --private killed/private/p.json
            fi
            fetch killed/_kanon.json record
            if [ "$code" -eq 137 ] && ! cmp -s record killed/record; then published=$((published + 1)); fi
            mv record killed/record
            leaves_no_more
            ;;
        *) fail "kill $kill: the store answers $status" ;;
        esac
        was=$status
    done
    if [ $((early * 3)) -lt "$kill_count" ]; then fail "only $early of $kill_count runs were killed before they ended"; fi
    is 'a release after all kills' "$was" 200

    # A release with the other k: one that is there already would change nothing.
    k=$((9 - $(required_k killed/record)))
    run 0 "${small[@]}" --set k="$k" ${by[k]:+--set "${by[k]}"} --to "$there" --private killed/private/p.json --overwrite
    run 0 verify "$there"
    run 0 verify "$there" --input small.parquet --private killed/private/p.json
    fetch killed/_kanon.json record
    is 'k after the last run' "$(required_k record)" "$k"
    holds_only killed/private p.json
    leaves_no_more
    is 'work directories after the last run' "$(left | grep -c 'kanon-work$' || :)" 0
    if [ "$scheme" = here ]; then holds_only "$lake" 'killed measured'; fi
    rm -r killed
    export TMPDIR=$work/tmp
    held "5. $kill_count kills leave a whole release or none: $early before the end, $published of them with the record put;" \
        "$none times no record; a whole run takes $((whole / 1000)) ms"
}

# 6: a part that takes several requests.
large() {
    local there=$scheme://lake/large part sum="count(*) AS rows, sum(length_of_stay) AS days, sum(cost) AS cost"
    run 0 release large.parquet --policy large.toml --to "$there" --private "$scheme/large.json"
    copy large "$scheme.large"
    is_same_release "$scheme.large" near_large
    part=$(keys large | grep '/part-00000-')
    if [ "$(stat -c %s "$scheme.large/${part##*/}")" -le $((16 << 20)) ]; then fail "$part is no large object"; fi
    if [ "$scheme" = s3 ]; then
        # The tag of an object that was put in three parts.
        listing large | grep -qE 'ETag>[^<]*-3(&#34;|&quot;|")?</ETag' || fail "$part was put as a whole: $(listing large)"
    else
        is 'blocks' "$(ask GET "/lake/$part?comp=blocklist" | grep -o '<Block>' | wc -l)" 3
    fi
    run 0 verify "$there"
    run 0 verify "$there" --input large.parquet --private "$scheme/large.json"
    run 0 sql --output csv -c "SELECT $sum FROM '$there'"
    cp out far.out
    run 0 sql --output csv -c "SELECT $sum FROM 'near_large'"
    cmp out far.out || fail "other sums: $(cat far.out)"
    holds_only "$TMPDIR"
    held "6. a part of $(stat -c %s "$scheme.large/${part##*/}") bytes, put in 3 pieces, has the bytes of a local one"
}

# 8: the private record in the store.
private() {
    local there=$scheme://lake/apart at=$scheme://lake/private/ k
    for k in 5 4; do
        run 0 release small.parquet --policy "$policy" --set k="$k" --to "$there" --private "$at" --overwrite
        is 'objects beside the private record' "$(keys private)" private/apart.private.json
        run 0 verify "$there" --input small.parquet --private "$at"
        run 0 verify "$there" --input small.parquet --private "${at}apart.private.json"
        fetch apart/_kanon.json record
        fetch private/apart.private.json private.json
        is 'the release of the private record' \
            "$(python3 -c 'import json; print(json.load(open("private.json"))["release"])')" \
            "$(python3 -c 'import json; print(json.load(open("record"))["digest"])')"
    done
    rm record private.json
    holds_only "$TMPDIR"
    held '8. the private record lies in the store, and is found there'
}

# 9: folders whose names hold columns, then the same rows without them.
folders() {
    local there=$scheme://lake/folders query found rows='rows=[0-9]* sum=[0-9a-f]*'
    local release=(release places.parquet --policy places.toml --to "$there" --private "$scheme/places.json")
    run 0 "${release[@]}" --set "$partition_by"
    run 0 verify "$there"
    run 0 verify "$there" --input places.parquet --private "$scheme/places.json"
    copy folders "$scheme.folders"
    is_same_release "$scheme.folders" near_folders
    keys folders | grep -v '/_kanon\.json$' >first
    is cities "$(sed -n 's|.*/city=\(.*\)/part-.*|\1|p' first | LC_ALL=C sort -u | paste -sd '|')" \
        '%5B20,30%5B|100%25|Köln|__HIVE_DEFAULT_PARTITION__|a b+c|a%2Fb'
    for query in '' "WHERE city = '[20,30['" "WHERE city = 'a/b' AND year = 2024" 'WHERE city IS NULL' "WHERE age LIKE '[30%'"; do
        query="SELECT year, age, city, days FROM 'OUT' $query ORDER BY year, age, city, days"
        run 0 sql --output csv -c "${query/OUT/$there}"
        if [ "$(wc -l <out)" -le 1 ]; then fail "$query finds no rows"; fi
        mv out far.out
        run 0 sql --output csv -c "${query/OUT/near_folders}"
        cmp out far.out || fail "$query reads other rows"
    done
    read_s3 "$folder" "$there" --compare near_folders >rows.txt || fail "$(cat rows.txt)"
    found=$(grep -o "$rows" rows.txt)

    run 2 "${release[@]}"
    run 0 "${release[@]}" --overwrite
    run 0 verify "$there" --input places.parquet --private "$scheme/places.json"
    keys folders >now
    is 'objects of the folders that are there' "$(grep -cxFf first now || :)" 0
    is 'objects of the release without folders' "$(wc -l <now)" 2
    read_s3 "$folder" "$there" >rows.txt || fail "$(cat rows.txt)"
    is 'what pyarrow reads without folders' "$(grep -o "$rows" rows.txt)" "$found"
    holds_only "$TMPDIR"
    held "9. SQL and pyarrow read $(wc -l <first) partition folders as the same rows, and they are replaced: ${found% *}"
}

# 10: requests that go wrong between the program and the server.
faults() {
    local said
    said=$(python3 -B "$repository/tests/lake/faults.py" "$kanon" small.parquet "$policy") || fail "$said"
    holds_only "$TMPDIR"
    held "10. $said; a whole release or none"
}

seaweed_start "$folder"
azurite_start "$folder"
work=$(mktemp -d "$folder/publishing.XXXXXX")
cd "$work"
mkdir tmp
export TMPDIR=$work/tmp
policy=$repository/data/visits.toml
began=$SECONDS scheme=here
"$kanon" generate --rows 60000 --to in.parquet --quiet >out
"$kanon" generate --rows 2000 --to small.parquet --quiet >out
"$kanon" generate --rows 1400000 --to large.parquet --quiet >out
# Columns that do not shrink, so that the release is large, and few that are searched.
cat >large.toml <<'END'
k = 5
others = "drop"
[columns]
sex = { role = "quasi" }
race = { role = "quasi" }
visit_date = { role = "insensitive" }
length_of_stay = { role = "insensitive" }
cost = { role = "insensitive", allow_unique = true }
ssn = { role = "insensitive", allow_unique = true }
END
# Cities whose names need escapes, and none. Other rows in each folder, so that no two objects are equal.
cat >places.toml <<'END'
k = 5
rows_are_individuals = true
[columns]
year = { role = "insensitive" }
age = { role = "quasi", hierarchy = { range = [10, 20] }, min_level = 1 }
city = { role = "quasi" }
days = { role = "insensitive" }
END
partition_by='output.partition_by=["year", "age", "city"]'
run 0 sql -c "COPY (SELECT year, 20 + n % 30 AS age, city, (n * n / 10 + at + 6 * year) % 13 AS days
    FROM generate_series(1, 300) AS n(n), (VALUES (2023), (2024)) AS years(year),
    (VALUES ('[20,30[', 1), ('100%', 2), ('a/b', 3), ('Köln', 4), ('a b+c', 5), (NULL, 6)) AS cities(city, at)
    ) TO 'places.parquet'"
run 0 release places.parquet --policy places.toml --set "$partition_by" --to near_folders
run 0 release in.parquet --policy "$policy" --to near
run 0 release large.parquet --policy large.toml --to near_large
held 'tables and the releases of this machine'
for store in "${stores[@]}"; do
    choose "$store"
    mkdir "$scheme"
    if [ "$store" = here ]; then
        kills
        continue
    fi
    releases
    again
    races
    kills
    large
    private
    folders
    if [ "$store" = s3 ]; then faults; fi
done
cd "$folder"
rm -r "$work"
