#!/bin/sh
# The only process of the guest. Its home is a drive that outlives a reset; in its first life it
# resets itself in the middle of a review, without a word to anyone; in its second it goes on.
export PATH=/bin HOME=/home LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp

# The name of a namespace (its number comes second) of the drive with a serial number. Linux numbers
# drives and namespaces in the order in which it finds them, which changes from boot to boot.
drive() {
    for disk in /sys/block/nvme*; do
        read -r serial < "$disk/device/serial" # without the spaces after it
        read -r number < "$disk/nsid"
        [ "$serial $number" = "$1 $2" ] && echo "${disk##*/}"
    done
}

# Waits for a namespace, and says its name.
await_drive() {
    while [ -z "$(drive "$1" "$2")" ]; do sleep 0.1; done
    drive "$1" "$2"
}

# Keeps what the rest of the line says and how it ends.
keep() {
    file=$1
    shift
    "$@" > "$file" 2>&1
    echo "exit $?" >> "$file"
}

read -r up rest < /proc/uptime
echo "guest: up after $up s"
home=/dev/$(await_drive home 1)
neighbour=$(await_drive tested 2)
# As udev does: a name that stays with the drive.
mkdir -p /dev/disk/by-id
tested=/dev/disk/by-id/tested
ln -s "/dev/$(await_drive tested 1)" "$tested"
mount -t ext4 "${home}p1" /home
cd /home || exit
if [ -d runs ]; then
    echo "guest: second life"
    set -- runs/*/
    run=${1%/}
    keep resumed floatgate review --resume "${run##*/}" --destroy
else
    echo "guest: first life"
    echo "$neighbour" > neighbour
    keep refused floatgate review "$tested" --protocol brief.toml --out none
    keep mounted floatgate review "$home" --protocol brief.toml --out none --destroy
    keep sanitize floatgate run "$tested" 4k-rand-write --purge sanitize --destroy
    keep heat floatgate run "$tested" 4k-rand-read --threads 1 --queue 1 --runtime 1h \
        --temperature-max 45 --destroy
    sync
    floatgate review "$tested" --protocol brief.toml --destroy > review 2>&1 &
    while kill -0 $! 2> /dev/null; do
        for step in runs/*/steps/003.json; do
            [ -e "$step" ] && echo b > /proc/sysrq-trigger
        done
        sleep 0.2
    done
    cat review
fi
cd /
umount /home
echo "guest: done"
sleep 1000
