#!/bin/sh
# The only process of the guest: connects to a modelled drive that the test serves over NVMe/TCP,
# reviews it, and prints the result. Its command line has the subsystem and the port.
export PATH=/bin HOME=/tmp LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do
    insmod "/lib/modules/$module"
done < /etc/modules
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
read -r words < /proc/cmdline
for word in $words; do
    case $word in
        subsystem=*) subsystem=${word#subsystem=} ;;
        port=*) port=${word#port=} ;;
    esac
done

# Says what a command says, and how it ends, under a name.
say() {
    echo "guest: $1"
    shift
    "$@" 2>&1
    echo "guest: exit $?"
}

review() {
    floatgate review /dev/nvme0n1 --protocol /etc/protocol.toml --destroy > /tmp/said 2>&1
    ended=$?
    cat /tmp/said
    return $ended
}

# The firmware left its line unfinished.
echo
# A queue for all that a protocol keeps outstanding: by default it has 128 entries.
say connect nvme connect -t tcp -a 10.0.2.2 -s "$port" -n "$subsystem" --queue-size=1024
while [ ! -b /dev/nvme0n1 ]; do sleep 0.1; done
cd /tmp || exit
say review review
say result cat runs/*/run.json
echo "guest: done"
sleep 1000
