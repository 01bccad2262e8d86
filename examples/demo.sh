#!/bin/sh
# Starts podgate with a certificate of its own, posts reviews to it with curl over TLS, and shows
# what it answers. Needs curl and a built podgate; leaves nothing running.
#
#   examples/demo.sh PODGATE          post the reviews in examples/reviews, then stop
#   examples/demo.sh PODGATE --keep   keep serving until Ctrl-C
set -eu

podgate=$1
keep=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=

finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$podgate" certs --dir "$folder/certs" >/dev/null

port=${PORT:-8443} admin=${ADMIN_PORT:-9090}
if [ -z "$keep" ]; then port=0 admin=0; fi
"$podgate" serve --addr "127.0.0.1:$port" --admin-addr "127.0.0.1:$admin" --drain-delay 0s \
    --tls-cert "$folder/certs/tls.crt" --tls-key "$folder/certs/tls.key" >"$folder/log" 2>&1 &
server=$!

# The log names the address, also where the system chose the port.
address=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    address=$(sed -n 's/.*listening.* addr=\([0-9.:]*\).*/https:\/\/\1/p' "$folder/log" | head -n 1)
    [ -z "$address" ] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
done
if [ -z "$address" ]; then
    echo "podgate did not start:" >&2
    cat "$folder/log" >&2
    [ -z "$keep" ] || echo "PORT and ADMIN_PORT choose other ports: PORT=18443 ADMIN_PORT=19090 make run" >&2
    exit 1
fi

# post WEBHOOK FILE: the answer, as podgate sent it
post() {
    curl --silent --show-error --fail --cacert "$folder/certs/ca.crt" \
        --header 'Content-Type: application/json' --data-binary "@$2" "$address/$1?timeout=10s"
}

# show WEBHOOK NAME: what was posted and what came back, taken apart
show() {
    answer=$(post "$1" "$here/reviews/$2.json")
    echo
    echo "── POST /$1  examples/reviews/$2.json"
    case $answer in
    *'"allowed":true'*) echo "allowed: yes" ;;
    *'"allowed":false'*) echo "allowed: no" ;;
    *) echo "no verdict: $answer" >&2 && exit 1 ;;
    esac
    # The message ends before "reason"; line breaks and quotes stand escaped in JSON.
    message=$(printf '%s' "$answer" | sed -n 's/.*"status":"Failure","message":"\(.*\)","reason":"Forbidden","details".*/\1/p')
    [ -z "$message" ] || printf '%s\n' "$message" | awk '{ gsub(/\\n/, "\n  "); gsub(/\\"/, "\""); print "  " $0 }'
    patch=$(printf '%s' "$answer" | sed -n 's/.*"patch":"\([A-Za-z0-9+\/=]*\)".*/\1/p')
    [ -z "$patch" ] || printf '%s' "$patch" | base64 -d | awk '{ gsub(/},{"op"/, "},\n   {\"op\""); print "  " $0 }'
}

if [ -n "$keep" ]; then
    cat "$folder/log"
    echo
    echo "podgate serves at $address; Ctrl-C stops it. Try, in another terminal:"
    echo
    echo "  curl --cacert $folder/certs/ca.crt -H 'Content-Type: application/json' \\"
    echo "    --data-binary @examples/reviews/denied-by-validate.json $address/validate"
    echo "  curl http://127.0.0.1:9090/metrics"
    wait "$server"
    exit
fi

echo "podgate serves at $address"
show mutate mutated
show mutate denied-by-mutate
show validate denied-by-validate
show validate clean
echo
echo "The same answers without a server: podgate review --webhook mutate examples/reviews/mutated.json"
