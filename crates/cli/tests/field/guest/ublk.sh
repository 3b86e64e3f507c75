# Goes on after begin.sh: this machine serves a volume to itself over ublk, and kills the server.
device=/dev/ublkb0
folder=/sys/block/ublkb0

# Serves a drive over ublk, and waits until its devices are there.
serve() {
    : > /tmp/uris
    floatgate volume serve "$@" --ublk > /tmp/uris 2> /tmp/log &
    server=$!
    while [ ! -s /tmp/uris ] && kill -0 $server; do sleep 0.05; done
}

end() {
    kill "-$1" $server
    wait $server
}

# Both jobs write parts of their own, each from a processor of its own.
both() {
    fio --name=both --filename=$device --rw=randwrite --bsrange=512-256k --iodepth=16 \
        --ioengine=libaio --direct=1 --size=4m --offset_increment=32m --numjobs=2 \
        --cpus_allowed=0,1 --cpus_allowed_policy=split --verify=crc32c --verify_fatal=1 \
        --minimal
}

file() {
    fio --name=file --filename=/home/file --rw=randwrite --bsrange=4k-32k --iodepth=16 \
        --ioengine=libaio --direct=1 --size=8m --verify=crc32c --verify_fatal=1 --minimal "$@"
}

# The name of each thread of a queue, and the nanoseconds that it ran.
threads() {
    for task in /proc/$server/task/*; do
        read -r name < "$task/comm"
        read -r ran rest < "$task/schedstat"
        case $name in ublk-*) echo "$name $ran" ;; esac
    done
}

limits() {
    for name in write_cache fua logical_block_size physical_block_size max_hw_sectors_kb \
        discard_granularity discard_max_bytes write_zeroes_max_bytes; do
        read -r value < "$folder/queue/$name"
        echo "$name $value"
    done
}

rmmod ublk_drv
say missing floatgate volume serve --memory 16m --ublk
insmod /lib/modules/ublk_drv.ko*

say create floatgate volume create /tmp/volume --size 96m --dies /tmp/a,/tmp/b,/tmp/c
serve /tmp/volume --ublk-queues 2
say device cat /tmp/uris
say limits limits
say both both
say threads threads
say status floatgate volume status /tmp/volume --json
say attached floatgate volume attach /tmp/volume
say zeroes blkdiscard -z $device
say discard blkdiscard -f $device
say discarded cmp -n 4194304 $device /dev/zero
say filesystem mkfs.ext4 -q $device
say mount mount -t ext4 -o discard $device /home
dd if=/dev/urandom of=/tmp/file bs=1M count=4 2> /tmp/dd
say copy dd if=/tmp/file of=/home/copy bs=1M conv=fsync
say "in use" floatgate volume detach $device
# The rate makes the writes last for some seconds, in which the server is killed.
file --rate=2m > /tmp/fio 2>&1 &
job=$!
for kill in 1 2; do
    sleep 1.5
    end KILL
    [ -d /proc/$job ] && echo "guest: killed while writing"
    serve /tmp/volume
    say recovered cat /tmp/uris
done
wait $job
ended=$?
say fio cat /tmp/fio
say ended test $ended = 0
end KILL
serve /tmp/volume
umount /home
say fsck fsck.ext4 -f -n $device
say "mount again" mount -t ext4 $device /home
say again file --verify_only
say same cmp /tmp/file /home/copy
umount /home
end TERM
say removed test ! -e $device -a ! -e /dev/ublkc0

serve /tmp/volume --read-only
say protected cat $folder/ro
end KILL
say waits test -b $device
say detached floatgate volume detach $device
say gone test ! -e $device -a ! -e /dev/ublkc0

# The devices of these do not wait for the next server.
serve /tmp/volume --volatile
end KILL
while [ -e $device ]; do sleep 0.05; done
serve /tmp/volume --volatile
say anew cat /tmp/uris
end TERM
say log cat /tmp/log

serve --memory 136MiB --time-lapse 512 --timing model --model savvio-15k1-73
say timing fio --name=timing --filename=$device --rw=randread --bs=4k --iodepth=4 \
    --ioengine=libaio --direct=1 --io_size=256k --output-format=json
end TERM
echo "guest: done"
sleep 1000
