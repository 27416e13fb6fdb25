#!/usr/bin/env bash
# Four users and an Excel export: writes ugly files, works on them as people do, and prints a transcript that can be read by
# somebody who was not there. Each step must end with the exit code and the words that are written beside it.
# Needs bash, coreutils, awk, sed, grep and diff; no network.
#
#   bash tests/four_users.sh target/debug/kanon EMPTY_FOLDER
set -euo pipefail
export LC_ALL=C # bytes are bytes, whatever the machine speaks

[ $# -eq 2 ] || { echo "usage: four_users.sh KANON EMPTY_FOLDER" >&2; exit 2; }
binary=$(realpath "$1")
mkdir -p "$2"
cd "$2"
[ -z "$(ls -A)" ] || { echo "four_users.sh: $2 is not empty" >&2; exit 2; }
export TMPDIR=$PWD/.tmp
mkdir .tmp
said=.tmp/said # what the last command printed

heading() { printf '\n\n######## %s\n' "$*"; }
note() { printf '\n# %s\n' "$*"; }
fail() { printf '\nFAILED: %s\n' "$*" && exit 1; }
absent() { [ ! -e "$1" ] || fail "expected nothing at $1"; }

# show WORD...: prints a command so that it could be typed.
show() {
    local word line='$'
    for word in "$@"; do
        case $word in
        *\'*) line+=" \"${word//\"/\\\"}\"" ;;
        '>') line+=" >" ;;
        *[!a-zA-Z0-9_./,=:+-]* | '') line+=" '$word'" ;;
        *) line+=" $word" ;;
        esac
    done
    printf '\n%s\n' "$line"
}

# run EXIT WORD...: runs kanon WORD... and demands this exit code.
run() {
    local expected=$1 code=0
    shift
    show kanon "$@"
    (exec -a kanon "$binary" "$@") >"$said" 2>&1 </dev/null || code=$?
    cat "$said"
    printf '(exit code %d)\n' "$code"
    [ "$code" -eq "$expected" ] || fail "expected exit code $expected, found $code"
}

# says WORDS...: demands each of these in what the last command printed.
says() {
    local words
    for words in "$@"; do
        grep -qF -- "$words" "$said" || fail "expected these words: $words"
    done
}

# hides WORD...: demands that the last command printed none of these.
hides() {
    local word
    for word in "$@"; do
        ! grep -qF -- "$word" "$said" || fail "printed $word"
    done
}

# edit FILE SED...: edits a copy of FILE and shows the difference.
edit() {
    local file=$1
    shift
    cp "$file" .tmp/before
    sed "$@" .tmp/before >"$file"
    show edit "$file"
    if diff -U0 .tmp/before "$file" | tail -n +3; then fail "nothing was edited in $file"; fi
}

# The same numbers everywhere: the generator of Park and Miller.
draw='function draw(n) { seed = seed * 16807 % 2147483647; return int(seed / 65536) % n }'

# Stays in a hospital, in UTF-8: 150 patients, one to four rows each; NA, empty cells, lines that end in CR LF.
hospital() {
    awk "$draw"'
    BEGIN {
        seed = 7; OFS = ";"; ORS = "\r\n"
        split("Grippe Asthma Herzschwäche Gicht Migräne Diabetes", diagnosis, " ")
        split("ledig verheiratet geschieden verwitwet", status, " ")
        print "PatientenNr", "Fallnummer", "Geburtsdatum", "Geschlecht", "PLZ", "Familienstand", "Aufnahmedatum",
            "Entlassungsdatum", "Größe", "Kosten", "Station", "Diagnose", "Bemerkung"
        for (patient = 1001; patient <= 1150; patient++) {
            born = sprintf("%02d.%02d.%d", 1 + draw(28), 1 + draw(12), 1935 + draw(60))
            sex = draw(2) ? "w" : "m"
            code = "0" (1067 + draw(9) * 10 + draw(3))
            family = draw(12) ? status[1 + draw(4)] : ""
            height = 150 + draw(45) "," draw(10)
            for (visits = 1 + draw(4); visits > 0; visits--) {
                month = 1 + draw(12); day = 1 + draw(20); cases++
                came = sprintf("%02d.%02d.2023", day, month)
                left = sprintf("%02d.%02d.2023", day + draw(8), month)
                cost = sprintf("%d.%03d,%02d", 1 + draw(8), draw(1000), draw(100))
                print "P" patient, 70000 + cases, born, sex, code, family, came, left, (draw(15) ? height : "NA"), cost,
                    "S" (1 + draw(4)), (draw(25) ? diagnosis[1 + draw(6)] : ""), (draw(3) ? "" : "über Nacht; Fall " cases)
            }
        }
    }' | sed 's/;\(über.*\)\(\r\)$/;"\1"\2/'
}

latin1() { sed -e "s/ä/$(printf '\xe4')/g; s/ö/$(printf '\xf6')/g; s/ü/$(printf '\xfc')/g; s/ß/$(printf '\xdf')/g"; }

# night SEED ROWS: the visits of a day.
night() {
    awk -v seed="$1" -v rows="$2" "$draw"'
    BEGIN {
        split("cold fracture checkup allergy burn", reason, " ")
        print "visit,birth_date,sex,postcode,minutes,reason"
        for (row = 1; row <= rows; row++)
            printf "%d,%d-%02d-%02d,%s,%05d,%d,%s\n", row, 1940 + draw(60), 1 + draw(12), 1 + draw(28), draw(2) ? "f" : "m",
                1067 + draw(8) * 11, 5 + draw(90), reason[1 + draw(5)]
    }'
}

write_files() {
    hospital | latin1 >patienten.csv
    { printf '\xef\xbb\xbf' && hospital; } >patienten_bom.csv
    awk 'BEGIN {
        for (c = 1; c <= 50; c++) printf "%s%s", c % 10 ? "v" c : "Wert " c, c < 50 ? "," : "\n"
        for (r = 0; r < 40; r++) for (c = 1; c <= 50; c++) printf "%d%s", r * c % 7, c < 50 ? "," : "\n"
    }' >wide.csv
    printf 'age,sex\n31,f,01067\n32,m,01069\n' >short.csv
    { printf 'PK\x03\x04\x14\x00\x06\x00' && head -c 400 /dev/zero; } >export.xlsx
    { printf 'sep=;\r\n' && hospital; } >export.csv
    mkdir -p lake/{1..9}
    night 1 300 >lake/1/visits.csv
    night 2 150 >lake/2/a.csv && night 3 150 >lake/2/b.csv
    night 4 0 >lake/3/visits.csv
    night 5 300 >.tmp/whole && head -c 3000 .tmp/whole >lake/4/visits.csv
    night 6 300 | sed '1s/postcode/zip/' >lake/5/visits.csv
    night 7 300 | sed '1s/$/,email/; 2,$s/$/,x@example.org/' >lake/6/visits.csv
    night 8 300 | sed 's/,\([0-9]*\),\([a-z]*\)$/,\1 min,\2/' >lake/7/visits.csv
    night 9 300 | sed 's/,\(....\)-\(..\)-\(..\),/,\3.\2.\1,/' >lake/8/visits.csv
    night 10 3 >lake/9/visits.csv
}

# without PATTERN COPY: copies the steward's policy without the lines that match.
without() {
    show grep -v "$1" patienten.toml '>' "$2"
    grep -v -- "$1" patienten.toml >"$2"
}

# tidied PATTERN WORDS...: is refused with these words when the policy lacks the lines that match.
tidied() {
    without "$1" wrong.toml
    run 3 release patienten.csv --policy wrong.toml --to patienten_safe
    says "${@:2}"
}

steward() {
    heading "The data steward of a hospital: a German file in Latin-1, and the same in UTF-8 with a byte order mark"
    show head -n 4 patienten_bom.csv
    head -n 4 patienten_bom.csv | tr -d '\r'
    run 0 init patienten.csv --to patienten.toml
    says "1 individual, 1 identifier, 6 quasi, 1 sensitive, 1 text, 3 ?" 'decide every role that is "?"'
    show cat patienten.toml
    tee "$said" <patienten.toml
    says 'delimiter = ";"' 'encoding = "windows-1252"' 'date_format = "%d.%m.%Y"' 'decimal = ","' 'thousands = "."' \
        'nulls = ["", "NA"]' 'PatientenNr = { role = "individual" }' 'Bemerkung = { role = "text" }'
    if grep -qF -e Grippe -e verwitwet "$said"; then fail "a policy must not hold values of the data"; fi

    note "In a hurry: nothing is decided."
    run 2 release patienten.csv --policy patienten.toml --to patienten_safe
    says "still undecided: Größe, Kosten, Station" "replace each \`?\` with one of identifier, quasi"

    note "The three decisions that the file asks for; the hierarchies are those that it proposes."
    edit patienten.toml -e '/^"Größe" =/s/{.*/{ role = "quasi", hierarchy = { floor = [5, 10, 20] } }/' \
        -e '/^Kosten =/s/{.*/{ role = "identifier" }  # the insurer knows each bill: leave it out/' \
        -e '/^Station =/s/{.*/{ role = "quasi", hierarchy = { merge = { levels = 1 } } }/'

    note "Somebody tidies up [input]. Each message names the key that is missing."
    tidied '^encoding' "not UTF-8" 'encoding under [input]' windows-1252
    tidied '^date_format' '367 rows do not hold a date' 'date_format = "%d.%m.%Y"'
    tidied '^decimal\|^thousands' 'column `Größe`' 'decimal = ","'
    tidied '^nulls' 'column `Größe`: 28 rows do not hold a number' '[input] nulls'
    absent patienten_safe

    run 0 release patienten.csv --policy patienten.toml --to patienten_safe
    says "367 rows of 150 individuals" "k_anonymity 5 required, 5 reached" "l_diversity of Diagnose 2 required" \
        "next      kanon verify patienten_safe --input patienten.csv"
    run 0 verify patienten_safe --input patienten.csv
    says "verified  against the input"
    run 0 explain patienten_safe
    says "367 rows of 150 people" "What is not promised"

    note "The same table in UTF-8 with a byte order mark gives the same bytes."
    without '^encoding' patienten_bom.toml
    run 0 release patienten_bom.csv --policy patienten_bom.toml --to bom_safe
    run 0 verify bom_safe --input patienten_bom.csv
    cmp patienten_safe/part-00000.parquet bom_safe/part-00000.parquet || fail "expected the same bytes"
}

# tonight DAY EXIT CODE WORDS...: a night that the recoding of the first refuses, with this code; nothing appears.
tonight() {
    run "$2" release "lake/$1" --recoding nights/1.private.json --to "nights/$1" --format json
    says "\"code\": \"$3\"" "\"exit_code\": $2" "${@:4}"
    absent "nights/$1"
}

engineer() {
    heading "The engineer with a nightly job: a folder for each night"
    run 0 init lake/1 --to visits.toml
    edit visits.toml -e 's/^# rows_are_individuals/rows_are_individuals/' \
        -e '/^visit =/s/{.*/{ role = "identifier" }/' \
        -e '/^minutes =/s/{.*/{ role = "quasi", hierarchy = { range = [10, 20, 100] } }/' \
        -e '/^reason =/s/{.*/{ role = "sensitive" }/' \
        -e 's/^\[columns\]/[[require]]\nmodel = "l_diversity"\nl = 2\n\n[columns]/'
    run 0 release lake/1 --policy visits.toml --to nights/1
    says "300 rows; each counts as an individual" "k_anonymity 5 required"

    note "Night 2 is good, and comes in two files."
    run 0 release lake/2 --recoding nights/1.private.json --to nights/2
    says "the recoding of the earlier release again" "k_anonymity 5 required"
    run 0 verify nights/2 --input lake/2
    says "verified  against the input"
    note "Night 3 is empty, 4 was cut off, 5 and 6 have other columns, 7 and 8 other types, 9 three people."
    tonight 3 3 empty_input "no rows"
    tonight 4 3 damaged_file "lake/4/visits.csv: line " "fields, the first line has 6"
    tonight 5 2 other_columns '`postcode`'
    tonight 6 2 other_columns email 'others = \"drop\"'
    tonight 7 3 other_columns 'column `minutes`: 300 rows do not hold a number' 'such as a unit: write the number alone'
    tonight 8 3 other_columns 'column `birth_date`' 'date_format = \"%d.%m.%Y\"'
    tonight 9 1 not_met "the input has only 3 rows"
}

analyst() {
    heading "The analyst in SQL: the same files"
    run 3 sql -c "SELECT count(*) FROM 'patienten.csv'"
    says "not UTF-8" encoding
    run 2 sql --csv 'encodng = "latin1"' -c "SELECT count(*) FROM 'patienten.csv'"
    says 'did you mean `encoding`'
    run 2 sql --csv 'encoding = "latin1"' -c "SELECT Diagnose FROM 'patienten.csv'"
    says 'if you mean `Diagnose`, write it in double quotes: "Diagnose"'
    run 0 sql --csv 'encoding = "latin1"' -c "SELECT \"Diagnose\", count(*) AS n FROM 'patienten.csv' GROUP BY 1 ORDER BY n DESC, 1"
    says "Herzschwäche" "(7 rows)"

    note "A name with a minus sign is a difference without quotes."
    printf 'age,marital-status\n31,single\n32,married\n' >adult.csv
    run 2 sql -c "SELECT marital-status FROM 'adult.csv'"
    says 'if you mean `marital-status`, write it in double quotes: "marital-status"'
    run 0 sql -c "SELECT \"marital-status\" FROM 'adult.csv'"

    note "Columns of CSV files have the types of their cells, in the forms that --csv names; one other cell keeps a column text."
    run 0 sql --csv 'decimal = ",", nulls = ["", "NA"]' -c "SELECT avg(\"Größe\") AS mean FROM 'patienten_bom.csv'"
    run 2 sql --csv 'decimal = ","' -c "SELECT avg(\"Größe\") AS mean FROM 'patienten_bom.csv'"
    says 'nulls in --csv names the words for missing values'
    run 3 sql -c "SELECT avg(CAST(\"Größe\" AS DOUBLE)) AS mean FROM 'patienten_bom.csv'"
    run 3 sql -c "SELECT to_date(\"Geburtsdatum\") AS day FROM 'patienten_bom.csv'"
    says "write to_date(x, '%d.%m.%Y')"
    run 0 sql --csv 'nulls = ["", "NA"]' -c "SELECT avg(CAST(replace(\"Größe\", ',', '.') AS DOUBLE)) AS mean FROM 'patienten_bom.csv'"
    run 0 sql -c "SELECT avg(minutes) AS mean FROM 'lake/1'"
    run 0 sql -c "SELECT generalize_date(birth_date, 'year') AS year FROM 'lake/1' LIMIT 1"
    run 2 sql -c "SET kanon.csv_types = 'text'; SELECT avg(minutes) AS mean FROM 'lake/1'"
    says 'a column of a CSV file is text if one cell is'
    run 2 sql -c "SET kanon.csv_types = 'text'; SELECT generalize_date(birth_date, 'year') AS year FROM 'lake/1'"
    says "expected dates or timestamps"
    run 0 sql -c "SELECT k_anonymity(generalize_date(to_date(\"Geburtsdatum\", '%d.%m.%Y'), 'decade'), \"Geschlecht\") AS k FROM 'patienten_bom.csv'"

    note "Names that do not exist."
    run 2 sql -c "SELECT k_anonimity(sex, postcode) FROM 'lake/1'"
    says 'did you mean `k_anonymity`?'
    run 2 sql -c "SELECT * FROM risks('lake/1', 'sex')"
    says 'did you mean `risk`?'
    run 2 sql -c "SELECT l_diversity(sex) FROM 'lake/1'"
    says "expected at least 2 arguments"
    run 3 sql -c "SELECT * FROM 'lake/0'"
    says "no such file, folder or glob"
    run 2 sql -c "SELECT zip FROM 'lake/1'"
    says "postcode"

    note "A header that is too short, external tables, fifty columns."
    run 3 sql -c "SELECT * FROM 'short.csv'"
    says "line 2: 3 fields, the first line has 2"
    run 0 sql -c "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'patienten_bom.csv'; SELECT min(\"PLZ\") AS least FROM t"
    says "01067"
    run 2 sql -c "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'patienten_bom.csv' OPTIONS ('format.delimiter' ','); SELECT * FROM t LIMIT 1"
    says "OPTIONS ('format.delimiter' ';'"
    run 0 sql -c "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'patienten_bom.csv' OPTIONS ('format.delimiter' ';'); SELECT min(\"PLZ\") AS least FROM t"
    says "01067"
    run 3 sql -c "CREATE EXTERNAL TABLE t (visit INT, birth_date DATE, sex TEXT, postcode TEXT, minutes INT, reason TEXT) STORED AS CSV LOCATION 'lake/7/'; SELECT max(minutes) AS most FROM t"
    run 0 sql -c "SELECT k_anonymity(v1, \"Wert 10\") AS k, count(*) AS n FROM 'wide.csv'"
    run 0 sql -c "SELECT * FROM 'wide.csv' LIMIT 1"
    run 0 sql -c "SELECT * FROM 'wide.csv' LIMIT 2" --output csv
    says "v1,v2,v3"

    note "The steward's policy from SQL, and the release as a table."
    run 0 sql -c "SELECT count(*) AS n FROM anonymize('patienten.csv', 'patienten.toml')"
    says "367"
    run 0 sql -c "SELECT * FROM 'patienten_safe' LIMIT 5"
}

reviewer() {
    heading "The reviewer of an ethics board, who gets the folder of the release and nothing else"
    mkdir board
    cp -r patienten_safe board/release
    cd board && said=../.tmp/said
    show ls release
    ls release
    run 0 verify release
    says "k_anonymity 5 required, 5 reached" "not the individuals: only the input says whose a row is" "--input INPUT recounts them" "kanon explain release shows its figures"
    run 0 explain release
    says "Required: 5; the worst group reaches 5" "as it is" "What is not promised"
    run 0 risk release
    says "20 %" "counted in rows" "the release counts 150 individuals" "kanon explain release shows its figures"

    note "The attack, with a list of two neighbours."
    printf 'name,Geburtsdatum,Geschlecht,PLZ\nAnna,1992-04-02,w,01118\nBert,1950-01-01,m,01067\n' >people.csv
    run 0 link people.csv release --k 5
    says "as texts  " "not used  " "A lacks it" "an attacker who also knows the others may have fewer"
    run 0 link people.csv release --on Geburtsdatum --k 5
    says "required" "reached" "on 1 of 8 quasi-identifiers"
    run 1 link people.csv release --on Geburtsdatum --k 300
    says FAILS
    note "A list in German form: the key stands in --csv, because the reviewer has no policy."
    printf 'Name;Geburtsdatum;Geschlecht\nAnna;02.04.1992;w\n' >liste.csv
    run 3 link liste.csv release
    says 'date_format = "%d.%m.%Y"' "without a policy, --csv takes the keys of [input]"
    run 0 link liste.csv release --csv 'date_format = "%d.%m.%Y"'
    says "on Geburtsdatum region"
    note "Without the input nobody can compare; and a record that was made to look better is found."
    run 3 verify release --input patienten.csv
    says "no such file"
    cp -r release prettier
    sed 's/"reached": 5/"reached": 11/' release/_kanon.json >prettier/_kanon.json
    run 1 verify prettier
    says "was edited or damaged"
    run 3 explain people.csv
    says "is this a release of kanon?"
    cd .. && said=.tmp/said
}

excel() {
    heading "An export from Excel"
    run 3 init export.xlsx
    says "save the sheet as CSV" "CSV UTF-8"
    run 3 init export.csv
    says "sep= line, which names the delimiter; delete this line"
    show tail -n +2 export.csv '>' exported.csv
    tail -n +2 export.csv >exported.csv
    run 0 release exported.csv --policy patienten_bom.toml --to exported_safe
    run 0 verify exported_safe --input exported.csv
    cmp patienten_safe/part-00000.parquet exported_safe/part-00000.parquet || fail "expected the same bytes"
}

unlucky() {
    heading "What goes wrong: no line of names, lost zeros, a full disk, a job that runs twice"
    note "Without the line of names the first patient would be taken for the names of the columns, and shown."
    show tail -n +2 exported.csv '>' ohne_namen.csv
    tail -n +2 exported.csv >ohne_namen.csv
    for command in check risk sql; do
        case $command in
        sql) run 3 sql -c "SELECT foo FROM 'ohne_namen.csv'" ;;
        check) run 3 check ohne_namen.csv --quasi w --k 2 ;;
        *) run 3 "$command" ohne_namen.csv --quasi w ;;
        esac
        says "the first line looks like data" "header = false"
        hides 1001 Gicht verwitwet
    done
    mkdir zwei
    cp exported.csv zwei/a.csv
    cp ohne_namen.csv zwei/b.csv
    run 3 release zwei --policy patienten_bom.toml --to zwei_safe --format json
    says "zwei/b.csv: the first line looks like data" '"code": "other_columns"'
    run 0 check ohne_namen.csv --quasi column_3 --k 1 --csv 'header = false'
    says "k_anonymity(1) promises nothing"

    note "Postcodes that lost their zeros match nobody; that is no proof of anything."
    printf 'Geburtsdatum,Geschlecht,PLZ\n1992-04-02,w,1118\n' >verloren.csv
    show cat verloren.csv
    cat verloren.csv
    run 1 link verloren.csv patienten_safe --k 5
    says "PLZ: no value of A occurs in B" "no answer 5 matches required"

    note "The job runs twice, and then the disk is full."
    run 2 release patienten.csv --policy patienten.toml --to patienten_safe --format json
    says '"code": "exists"'
    show kanon list '>' /dev/full
    local code=0
    "$binary" list 2>"$said" >/dev/full || code=$?
    cat "$said"
    printf '(exit code %d)\n' "$code"
    [ "$code" -eq 3 ] || fail "expected exit code 3, found $code"
    says "no space left on the device"

    note "The private record is lost."
    cp -r patienten_safe kopie
    run 2 verify kopie --input patienten.csv --policy patienten.toml
    says "its private record is needed"

    note "Fifty columns."
    run 0 init wide.csv --to wide.toml
    says "50 columns"
}

write_files
for user in steward engineer analyst reviewer excel unlucky; do "$user"; done
rm -r .tmp
printf '\nall four users arrived\n'
