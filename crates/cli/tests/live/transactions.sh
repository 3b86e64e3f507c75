#!/usr/bin/env bash
# Transactions of SQLite on the mounted drive, and their rate as pgbench prints it.
set -eu
file=$FLOATGATE_MOUNT/database
sqlite3 "$file" 'pragma journal_mode = delete; create table t (a integer primary key, b blob);' > /dev/null
count=60 began=$(date +%s.%N)
for number in $(seq $count); do
    sqlite3 "$file" "pragma synchronous = full; insert into t values ($number, randomblob(20000));"
done > /dev/null
awk -v count=$count -v began="$began" -v ended="$(date +%s.%N)" 'BEGIN {
    print "number of transactions actually processed: " count
    print "latency average = " (ended - began) * 1000 / count " ms"
    print "tps = " count / (ended - began) " (without initial connection time)"
}'
