#!/bin/sh
# Three nodes on one PostgreSQL, behind a load balancer, all on this machine: to try a cluster before you build one.
#
#   examples/cluster.sh [FOLDER]        everything is kept in FOLDER, by default a new one; Ctrl-C stops it
#
# It needs `longhaul` (or LONGHAUL=/path/to/it), Debian's `postgresql`, and `haproxy` or `nginx` for the balancer. The model is
# LONGHAUL_MODEL; without one, a script answers.
set -eu

longhaul=${LONGHAUL:-longhaul}
folder=${1:-$(mktemp -d /tmp/longhaul-cluster.XXXXXX)}
nodes="ash birch cedar"
first_port=${FIRST_PORT:-7181}
balancer_port=${BALANCER_PORT:-7180}
mkdir -p "$folder/work"
folder=$(cd "$folder" && pwd)
chmod 755 "$folder"

programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$programs" ] || { echo "no PostgreSQL: apt install postgresql" >&2; exit 1; }
command -v "$longhaul" >/dev/null || { echo "no longhaul: put it on PATH, or set LONGHAUL" >&2; exit 1; }

# PostgreSQL refuses to run as root.
as_owner() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; else "$@"; fi
}

pids=
stop() {
    trap - EXIT INT TERM
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    (cd / && as_owner "$programs/pg_ctl" stop -m fast -D "$folder/postgres/data" >/dev/null 2>&1) || true
    echo "stopped; everything is in $folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

# 1. The database.
if [ ! -d "$folder/postgres/data" ]; then
    mkdir -p "$folder/postgres"
    if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder/postgres"; fi
    (cd / && as_owner "$programs/initdb" -U longhaul -A trust -E UTF8 --locale=C -D "$folder/postgres/data" >/dev/null)
fi
(cd / && as_owner "$programs/pg_ctl" start -w -D "$folder/postgres/data" -l "$folder/postgres/log" \
    -o "-k $folder/postgres -c listen_addresses=" >/dev/null)
psql -h "$folder/postgres" -U longhaul -d postgres -Atc "SELECT 1 FROM pg_database WHERE datname = 'longhaul'" | grep -q 1 ||
    psql -h "$folder/postgres" -U longhaul -d postgres -qc "CREATE DATABASE longhaul ENCODING 'UTF8' TEMPLATE template0"

# 2. The nodes. Each has a home; they share the database and nothing else.
if [ -z "${LONGHAUL_MODEL:-}" ]; then
    echo '["The tide is high at noon.", "And again at midnight.", "That is all I know."]' >"$folder/script.json"
    LONGHAUL_MODEL=scripted/$folder/script.json
fi
export LONGHAUL_MODEL
# With a shared token and addresses, nodes wake each other directly and show each other's text while it streams.
[ -s "$folder/cluster-token" ] || (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$folder/cluster-token")
LONGHAUL_CLUSTER_TOKEN=$(cat "$folder/cluster-token")
export LONGHAUL_CLUSTER_TOKEN
port=$first_port
for node in $nodes; do
    mkdir -p "$folder/$node"
    cat >"$folder/$node/config.toml" <<END
[journal]
url = "postgres://longhaul@/longhaul?host=$folder/postgres"
[node]
id = "$node"
address = "http://127.0.0.1:$port"
[server]
listen = "127.0.0.1:$port"
END
    (cd "$folder/work" && exec "$longhaul" --home "$folder/$node" serve >"$folder/$node/log" 2>&1) &
    pids="$pids $!"
    port=$((port + 1))
done

# 3. The balancer asks each node whether it can write to the journal. Any node answers for any session.
servers=
port=$first_port
if command -v haproxy >/dev/null; then
    for node in $nodes; do
        servers="$servers
    server $node 127.0.0.1:$port check inter 1s fall 2 rise 1"
        port=$((port + 1))
    done
    cat >"$folder/balancer.conf" <<END
defaults
    mode http
    timeout connect 2s
    timeout client 1h
    timeout server 1h
frontend longhaul
    bind 127.0.0.1:$balancer_port
    default_backend nodes
backend nodes
    balance leastconn
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
    option redispatch
    retries 2$servers
END
    haproxy -f "$folder/balancer.conf" >"$folder/balancer.log" 2>&1 &
    pids="$pids $!"
elif command -v nginx >/dev/null; then
    for node in $nodes; do
        servers="$servers server 127.0.0.1:$port max_fails=1 fail_timeout=2s;"
        port=$((port + 1))
    done
    cat >"$folder/balancer.conf" <<END
pid $folder/balancer.pid;
error_log $folder/balancer.log;
daemon off;
events {}
http {
    access_log off;
    upstream nodes { least_conn; $servers }
    server {
        listen 127.0.0.1:$balancer_port;
        location / {
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Host \$http_host;
            proxy_buffering off;
            proxy_read_timeout 1h;
            client_max_body_size 64m;
        }
    }
}
END
    nginx -c "$folder/balancer.conf" >>"$folder/balancer.log" 2>&1 &
    pids="$pids $!"
else
    echo "no haproxy and no nginx: there is no balancer; the nodes listen on ports $first_port and up" >&2
    balancer_port=$first_port
fi

# 4. A token, which all nodes accept because it is in the journal.
until "$longhaul" --home "$folder/ash" nodes 2>/dev/null | grep -c live | grep -q 3; do sleep 0.3; done
if [ ! -s "$folder/token" ]; then
    (umask 077 && "$longhaul" --home "$folder/ash" token new --scope admin --name "cluster-$$" >"$folder/token")
fi
cat <<END
$("$longhaul" --home "$folder/ash" nodes)

Three nodes are behind http://127.0.0.1:$balancer_port; the token is in $folder/token. Try:

  token=\$(cat $folder/token)
  curl -H "Authorization: Bearer \$token" http://127.0.0.1:$balancer_port/api/nodes
  curl -H "Authorization: Bearer \$token" -H 'content-type: application/json' \\
       -d '{"key": "tide"}' http://127.0.0.1:$balancer_port/api/sessions
  curl -H "Authorization: Bearer \$token" -H 'content-type: application/json' \\
       -d '{"text": "When is the tide high?"}' http://127.0.0.1:$balancer_port/api/sessions/tide/inputs
  $longhaul --home $folder/birch nodes drain ash
  $longhaul --home $folder/birch nodes

Kill a node while it answers, and see another one go on. Ctrl-C stops everything.
END
wait
