#!/usr/bin/env bash
# Checks that the object stores of servers.sh behave as the commit of a release needs it, and that they leave nothing behind.
#
#   bash tests/lake/check_servers.sh DIR
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/servers.sh"
dir=$1

# expect STATUS WHAT STORE ARGUMENTS...: sends a request; the answer's body is then in $body.
expect() {
    local status=$1 what=$2 answer
    shift 2
    answer=$(python3 "$servers_here/store.py" "$@") || :
    body=${answer#*$'\n'}
    if [ "${answer%%$'\n'*}" != "$status" ]; then
        printf 'FAIL  %s: %s instead of %s\n' "$what" "$answer" "$status"
        exit 1
    fi
    printf 'ok    %s: %s\n' "$what" "$status"
}

# is WHAT TEXT PATTERN
is() {
    # shellcheck disable=SC2053
    if [[ $2 != $3 ]]; then printf 'FAIL  %s: %s\n' "$1" "$2"; exit 1; fi
    printf 'ok    %s\n' "$1"
}

# race STORE ARGUMENTS...: eight at once create one object; exactly one may succeed.
race() {
    local folder number
    folder=$(mktemp -d)
    for number in 1 2 3 4 5 6 7 8; do
        { python3 "$servers_here/store.py" "$@" --body "$number" || :; } >"$folder/$number" 2>&1 &
        running[number]=$!
    done
    wait "${running[@]}"
    is "one of eight wins" "$(head -qn 1 "$folder"/* | sort | uniq -c | xargs)" "1 20[01] 7 4[01][29]"
    rm -r "$folder"
}

start=${EPOCHREALTIME/./}
seaweed_start "$dir"
printf -- '-- SeaweedFS started in %d ms\n' $(((${EPOCHREALTIME/./} - start) / 1000))
expect 200 "put" s3 PUT /lake/a/one.txt --body one
expect 200 "get" s3 GET /lake/a/one.txt
is "the bytes" "$body" one
expect 200 "list" s3 GET '/lake?list-type=2&prefix=a/'
is "the listed key" "$body" '*<Key>a/one.txt</Key>*'
expect 412 "create what exists" s3 PUT /lake/a/one.txt --body two --header 'If-None-Match: *'
expect 200 "create" s3 PUT /lake/a/two.txt --body two --header 'If-None-Match: *'
expect 412 "update of another version" s3 PUT /lake/a/two.txt --body x --header 'If-Match: "00112233445566778899"'
expect 200 "get again" s3 GET /lake/a/one.txt
is "the first bytes are still there" "$body" one
race s3 PUT /lake/raced --header 'If-None-Match: *'
expect 404 "get what is not there" s3 GET /lake/nothing
AWS_SECRET_ACCESS_KEY=wrong expect 403 "a wrong key" s3 GET /lake/a/one.txt
is "nobody reads without a key" "$(curl -s -o /dev/null -w '%{http_code}' "$AWS_ENDPOINT/lake/a/one.txt")" 403
expect 204 "delete" s3 DELETE /lake/a/one.txt
pids=$seaweed_pid folders=$seaweed_data
start=${EPOCHREALTIME/./}
seaweed_stop
printf -- '-- SeaweedFS stopped in %d ms\n' $(((${EPOCHREALTIME/./} - start) / 1000))

start=${EPOCHREALTIME/./}
azurite_start "$dir"
printf -- '-- Azurite started in %d ms\n' $(((${EPOCHREALTIME/./} - start) / 1000))
expect 201 "put" azure PUT /lake/a/one.txt --body one
expect 200 "get" azure GET /lake/a/one.txt
is "the bytes" "$body" one
expect 200 "list" azure GET '/lake?restype=container&comp=list&prefix=a/'
is "the listed name" "$body" '*<Name>a/one.txt</Name>*'
expect 409 "create what exists" azure PUT /lake/a/one.txt --body two --header 'If-None-Match: *'
expect 201 "create" azure PUT /lake/a/two.txt --body two --header 'If-None-Match: *'
expect 412 "update of another version" azure PUT /lake/a/two.txt --body x --header 'If-Match: "0x1"'
expect 200 "get again" azure GET /lake/a/one.txt
is "the first bytes are still there" "$body" one
race azure PUT /lake/raced --header 'If-None-Match: *'
expect 404 "get what is not there" azure GET /lake/nothing
AZURE_STORAGE_ACCOUNT_KEY=d3Jvbmc= expect 403 "a wrong key" azure GET /lake/a/one.txt
expect 202 "delete" azure DELETE /lake/a/one.txt
pids+=" $azurite_pid" folders+=" $azurite_data"
azurite_stop

for pid in $pids; do is "process $pid has ended" "$(kill -0 "$pid" 2>&1 || :)" '*No such process'; done
for folder in $folders; do is "its data is gone" "$(ls -d "$folder" 2>&1 || :)" '*No such file*'; done
