# Goes on after begin.sh and nvme.sh: connects to the server of this test over NVMe/TCP and says
# what nvme-cli and the kernel make of it. The kernel's command line has the subsystem and the port.
say discover nvme discover -t tcp -a 10.0.2.2 -s "$port"
say connect nvme connect -t tcp -a 10.0.2.2 -s "$port" -n "$subsystem" --hdr-digest \
    --data-digest --nr-poll-queues=1 --reconnect-delay=1
find_namespaces
say_pages
say property nvme get-property /dev/nvme0 -o 0x1c -H
say_commands
say_fio
# File systems over NVMe/TCP and over NBD, on which fio writes and verifies while servers end.
say filesystem mkfs.ext4 -q "$first"
say "filesystem over NBD" mkfs.ext4 -q /dev/vda
say mount mount -t ext4 -o discard "$first" /home
mkdir /tmp/nbd
say "mount over NBD" mount -t ext4 -o discard /dev/vda /tmp/nbd
dd if=/dev/urandom of=/tmp/file bs=1M count=4 2> /tmp/dd
say copy dd if=/tmp/file of=/home/copy bs=1M conv=fsync
say "copy over NBD" dd if=/tmp/file of=/tmp/nbd/copy bs=1M conv=fsync
# fio 3.33 was seen to end by SIGPIPE here, with no output but the signal's number.
trap '' PIPE
pass() {
    fio --name=file --filename="$1/file" --rw=randwrite --bsrange=4k-32k --iodepth=16 \
        --ioengine=libaio --direct=1 --size=4m --fsync=32 --verify=crc32c --verify_fatal=1 \
        --minimal --randseed="$2" ${3:+"$3"}
}
# Each pass writes what none has written before.
write() {
    seed=0
    while [ ! -e /tmp/over ]; do
        seed=$((seed + 1))
        pass "$1" $seed || return
    done
    echo $seed > "$1/seed"
}
write /home > /tmp/fio 2>&1 &
writing=$!
write /tmp/nbd > /tmp/fio-nbd 2>&1 &
writing_nbd=$!
state() { read -r state < /sys/class/nvme/nvme0/state; }
for round in $(seq "$rounds"); do
    # The server ends and another one begins at this word; the clients connect again by themselves.
    case $((round % 3)) in
        0) echo "guest: update the server" ;;
        *) echo "guest: kill the server" ;;
    esac
    state; while [ "$state" = live ]; do sleep 0.05; state; done
    while [ "$state" != live ]; do sleep 0.05; state; done
    dd if=/dev/vda of=/dev/null bs=4096 count=1 iflag=direct 2> /tmp/dd
    # Another moment of a pass each time.
    sleep "0.$((round % 10))"
done
: > /tmp/over
say written wait $writing
say "written over NBD" wait $writing_nbd
say passes cat /tmp/fio /tmp/fio-nbd /home/seed /tmp/nbd/seed
umount /home
umount /tmp/nbd
say fsck fsck.ext4 -f -n "$first"
say "fsck over NBD" fsck.ext4 -f -n /dev/vda
mount -t ext4 "$first" /home
mount -t ext4 /dev/vda /tmp/nbd
read -r seed < /home/seed
say verified pass /home "$seed" --verify_only
read -r seed < /tmp/nbd/seed
say "verified over NBD" pass /tmp/nbd "$seed" --verify_only
say intact cmp /tmp/file /home/copy
say "intact over NBD" cmp /tmp/file /tmp/nbd/copy
umount /home
umount /tmp/nbd
say subsystems nvme list-subsys
say_operations
say disconnect nvme disconnect -n "$subsystem"
# The same drive through the command, twice: the second time the host is connected already.
uri="nvme+tcp://10.0.2.2:$port/$subsystem"
say attached floatgate volume attach "$uri/1"
say "attached another" floatgate volume attach "$uri/2"
one=$(floatgate volume attach "$uri/1")
another=$(floatgate volume attach "$uri/2")
say "namespace of another" cat "/sys/block/${another#/dev/}/nsid"
say detached floatgate volume detach "$one"
say gone test ! -e "$another"
echo "guest: done"
sleep 1000
