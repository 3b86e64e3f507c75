#!/bin/sh
# The only process of the guest: writes to the virtio-blk device of this test while the server is
# killed, and verifies what it wrote.
export PATH=/bin HOME=/home LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do
    insmod "/lib/modules/$module"
done < /etc/modules

# Says what a command says, and how it ends, under a name.
say() {
    echo "guest: $1"
    shift
    "$@" 2>&1
    echo "guest: exit $?"
}

echo
while [ ! -b /dev/vda ]; do sleep 0.1; done
say size cat /sys/block/vda/size
say cache cat /sys/block/vda/queue/write_cache
say serial cat /sys/block/vda/serial
say discard blkdiscard -f /dev/vda
# The server is killed and started again while this runs; the machine monitor connects again.
(sleep 2; echo "guest: kill the server") &
say fio fio --name=verify --filename=/dev/vda --rw=randwrite --bsrange=512-128k --iodepth=16 \
    --ioengine=libaio --direct=1 --size=32m --loops=4 --verify=crc32c --verify_fatal=1 \
    --verify_state_save=0 --thinktime=2ms --minimal
say filesystem mkfs.ext4 -q /dev/vda
say mount mount -t ext4 -o discard /dev/vda /home
say copy sh -c 'cat /bin/fio > /home/copy && sync'
say unmount umount /home
say fsck fsck.ext4 -f -n /dev/vda
echo "guest: done"
sleep 1000
