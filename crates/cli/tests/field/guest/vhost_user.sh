# Goes on after begin.sh: writes to a drive over vhost-user-blk while its server is killed, and
# verifies what it wrote. It never flushes.
while [ ! -b /dev/vda ]; do sleep 0.1; done
say cache cat /sys/block/vda/cache_type
say size cat /sys/block/vda/size
# The rate makes the writes last for some eight seconds, three of which the server is killed in.
fio --name=verify --filename=/dev/vda --rw=randwrite --bsrange=512-16k --iodepth=16 \
    --ioengine=libaio --direct=1 --size=48m --rate=6m --verify=crc32c --verify_fatal=1 \
    --minimal > /tmp/fio 2>&1 &
job=$!
for kill in 1 2 3; do
    sleep 2
    echo "guest: kill the server"
    [ -d "/proc/$job" ] && echo "writing"
done
wait $job
ended=$?
say fio cat /tmp/fio
say ended test $ended = 0
# All of it is there for a server that begins with what the killed ones left.
echo "guest: kill the server"
say again fio --name=verify --filename=/dev/vda --rw=randwrite --bsrange=512-16k --iodepth=16 \
    --ioengine=libaio --direct=1 --size=48m --verify=crc32c --verify_fatal=1 --verify_only \
    --minimal
echo "guest: done"
sleep 1000
