#!/bin/sh
# Beginning of the only process of a guest: file systems, modules, the network where there is one,
# the words of the kernel's command line, and a way to say what commands say.
export PATH=/bin HOME=/home LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do
    insmod "/lib/modules/$module"
done < /etc/modules
if [ -e /sys/class/net/eth0 ]; then
    ip addr add 10.0.2.15/24 dev eth0
    ip link set eth0 up
fi
read -r words < /proc/cmdline
for word in $words; do
    case $word in
        subsystem=*) subsystem=${word#subsystem=} ;;
        port=*) port=${word#port=} ;;
        life=*) life=${word#life=} ;;
        rounds=*) rounds=${word#rounds=} ;;
    esac
done

# Says what a command says, and how it ends, under a name.
say() {
    echo "guest: $1"
    shift
    "$@" 2>&1
    echo "guest: exit $?"
}

# The firmware left its line unfinished.
echo
