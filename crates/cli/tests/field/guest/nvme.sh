# What a host of the NVMe controller asks of it, the same over each transport.

# The device of a namespace of the first controller: its number need not be that of the namespace,
# since Linux looks at several namespaces at once.
namespace() {
    for disk in /sys/block/nvme0n*; do
        [ -e "$disk/nsid" ] && [ "$(cat "$disk/nsid")" = "$1" ] && echo "/dev/${disk##*/}"
    done
}

# Waits for the namespaces 1 and 2.
find_namespaces() {
    while [ -z "$(namespace 1)" ] || [ -z "$(namespace 2)" ]; do sleep 0.1; done
    first=$(namespace 1)
    second=$(namespace 2)
    while [ ! -b "$first" ] || [ ! -b "$second" ]; do sleep 0.1; done
}

# Reads what describes the drive.
say_pages() {
    say list nvme list
    say id-ctrl nvme id-ctrl /dev/nvme0
    say id-ns nvme id-ns "$first"
    say descriptors nvme ns-descs "$second"
    say smart nvme smart-log /dev/nvme0
    say errors nvme error-log /dev/nvme0 -e 1
    say firmware nvme fw-log /dev/nvme0
    say pages nvme supported-log-pages /dev/nvme0
}

# Sends commands of the NVM command set, one at a time.
say_commands() {
    dd if=/dev/urandom of=/tmp/page bs=4096 count=1 2> /tmp/dd
    say write nvme write "$first" -s 100 -c 7 -z 4096 -d /tmp/page
    say compare nvme compare "$first" -s 100 -c 7 -z 4096 -d /tmp/page
    say differs nvme compare "$first" -s 101 -c 7 -z 4096 -d /tmp/page
    say zeroes nvme write-zeroes "$first" -s 100 -c 7 --deac
    say deallocate nvme dsm "$first" --ad -s 100 -b 8
    say verify nvme verify "$first" -s 0 -c 7
    say flush nvme flush "$first"
    say uncorrectable nvme write-uncor "$first" -s 100 -c 7
    say unreadable nvme read "$first" -s 100 -c 7 -z 4096 -d /tmp/back
    say mended nvme write "$first" -s 100 -c 7 -z 4096 -d /tmp/page
    say copied nvme copy "$first" --sdlba=200 --slbs=100 --blocks=7
    say same nvme compare "$first" -s 200 -c 7 -z 4096 -d /tmp/page
}

# Writes at random and verifies; further options of fio are given.
say_fio() {
    say fio fio --name=verify --filename="$first" --rw=randwrite --bsrange=512-256k \
        --iodepth=16 --ioengine=libaio --direct=1 --size=16m --verify=crc32c \
        --verify_fatal=1 --minimal "$@"
    say discard blkdiscard -f "$first"
}

# Has the drive do what hosts have it do: afterwards namespace 2 is another one, of 1 MiB.
say_operations() {
    say self-test nvme device-self-test /dev/nvme0 -n 0xffffffff -s 1
    say format nvme format "$second" -l 1 --force
    say formatted nvme id-ns "$second"
    say sanitize nvme sanitize /dev/nvme0 -a 2
    while nvme sanitize-log /dev/nvme0 | grep -q '(SSTAT) :  0x2$'; do sleep 0.5; done
    say sanitized nvme sanitize-log /dev/nvme0
    say tested nvme self-test-log /dev/nvme0
    say delete nvme delete-ns /dev/nvme0 -n 2
    say create nvme create-ns /dev/nvme0 -s 2048 -c 2048 -f 1
    controller=$(nvme id-ctrl /dev/nvme0 | grep '^cntlid' | cut -d : -f 2)
    say attach nvme attach-ns /dev/nvme0 -n 2 -c "$controller"
    say namespaces nvme list-ns /dev/nvme0 --all
    say events nvme persistent-event-log /dev/nvme0 -a 1 -l 512
    say ocp nvme ocp smart-add-log /dev/nvme0
}
