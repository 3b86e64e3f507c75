# Goes on after begin.sh: processor time of requests over ublk and over kernel NBD.
ublk=/dev/ublkb0
nbd=/dev/nbd0

# Ticks in which the machine was not idle.
busy() {
    read -r cpu user nice system idle wait irq softirq rest < /proc/stat
    echo $((user + nice + system + irq + softirq))
}

# Nanoseconds that the threads of a process ran.
ran() {
    sum=0
    for task in "/proc/$1/task/"*; do
        read -r ran rest < "$task/schedstat"
        sum=$((sum + ran))
    done
    echo $sum
}

# Has fio carry out requests: their kind, their number, the front end, its device, its server.
measure() {
    busy=$(busy) ran=$(ran "$5")
    fio --name=load --filename="$4" --rw="rand$1" --bs=4k --iodepth=16 --ioengine=libaio \
        --direct=1 --size="${mib}m" --io_size=$(($2 * 4096)) --minimal > /tmp/fio 2>&1 || cat /tmp/fio
    echo "measured $3 $1 $2 $(($(ran "$5") - ran)) $(($(busy) - busy))"
}

floatgate volume serve --memory 64m --ublk > /tmp/ublk 2> /tmp/log &
ublk_server=$!
floatgate volume serve --memory 64m --nbd unix:/tmp/nbd > /tmp/uris 2> /tmp/log &
nbd_server=$!
while [ ! -s /tmp/ublk ] || [ ! -s /tmp/uris ]; do sleep 0.05; done
read -r uri < /tmp/uris
say attached floatgate volume attach "$uri"
for device in $ublk $nbd; do
    dd if=/dev/urandom of=$device bs=1M count="$mib" oflag=direct 2> /tmp/dd
done
for round in $(seq "$rounds"); do
    for kind in write read; do
        for requests in "$few" "$many"; do
            say ublk measure $kind $requests ublk $ublk $ublk_server
            say nbd measure $kind $requests nbd $nbd $nbd_server
        done
    done
done
echo "guest: done"
sleep 1000
