# Goes on after begin.sh: connects to the server of this test over NVMe/TCP and says what nvme-cli
# and the kernel make of it. The kernel's command line has the subsystem and the port.
say discover nvme discover -t tcp -a 10.0.2.2 -s "$port"
say connect nvme connect -t tcp -a 10.0.2.2 -s "$port" -n "$subsystem" --hdr-digest \
    --data-digest --nr-poll-queues=1 --reconnect-delay=1
while [ ! -b /dev/nvme0n2 ]; do sleep 0.1; done
say list nvme list
say id-ctrl nvme id-ctrl /dev/nvme0
say id-ns nvme id-ns /dev/nvme0n1
say descriptors nvme ns-descs /dev/nvme0n2
say smart nvme smart-log /dev/nvme0
say errors nvme error-log /dev/nvme0 -e 1
say firmware nvme fw-log /dev/nvme0
say property nvme get-property /dev/nvme0 -o 0x1c -H
say pages nvme supported-log-pages /dev/nvme0
dd if=/dev/urandom of=/tmp/page bs=4096 count=1 2> /tmp/dd
say write nvme write /dev/nvme0n1 -s 100 -c 7 -z 4096 -d /tmp/page
say compare nvme compare /dev/nvme0n1 -s 100 -c 7 -z 4096 -d /tmp/page
say differs nvme compare /dev/nvme0n1 -s 101 -c 7 -z 4096 -d /tmp/page
say zeroes nvme write-zeroes /dev/nvme0n1 -s 100 -c 7 --deac
say deallocate nvme dsm /dev/nvme0n1 --ad -s 100 -b 8
say verify nvme verify /dev/nvme0n1 -s 0 -c 7
say flush nvme flush /dev/nvme0n1
say uncorrectable nvme write-uncor /dev/nvme0n1 -s 100 -c 7
say unreadable nvme read /dev/nvme0n1 -s 100 -c 7 -z 4096 -d /tmp/back
say mended nvme write /dev/nvme0n1 -s 100 -c 7 -z 4096 -d /tmp/page
say copied nvme copy /dev/nvme0n1 --sdlba=200 --slbs=100 --blocks=7
say same nvme compare /dev/nvme0n1 -s 200 -c 7 -z 4096 -d /tmp/page
say fio fio --name=verify --filename=/dev/nvme0n1 --rw=randwrite --bsrange=512-256k \
    --iodepth=16 --ioengine=libaio --direct=1 --size=16m --verify=crc32c \
    --verify_fatal=1 --minimal
say discard blkdiscard -f /dev/nvme0n1
dd if=/dev/urandom of=/tmp/file bs=1M count=8 2> /tmp/dd
say filesystem mkfs.ext4 -q /dev/nvme0n1
say mount mount -t ext4 -o discard /dev/nvme0n1 /home
say copy dd if=/tmp/file of=/home/before bs=1M conv=fsync
# The server is killed and started again at this word; the kernel connects again by itself.
echo "guest: kill the server"
say again dd if=/tmp/file of=/home/after bs=1M conv=fsync
umount /home
say fsck fsck.ext4 -f -n /dev/nvme0n1
mount -t ext4 /dev/nvme0n1 /home
say before cmp /tmp/file /home/before
say after cmp /tmp/file /home/after
umount /home
say subsystems nvme list-subsys
# What hosts have the drive do.
say self-test nvme device-self-test /dev/nvme0 -n 0xffffffff -s 1
say format nvme format /dev/nvme0n2 -l 1 --force
say formatted nvme id-ns /dev/nvme0n2
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
say disconnect nvme disconnect -n "$subsystem"
# The same drive through the command, twice: the second time the host is connected already.
uri="nvme+tcp://10.0.2.2:$port/$subsystem"
say attached floatgate attach "$uri/1"
say "attached another" floatgate attach "$uri/2"
another=$(floatgate attach "$uri/2")
say "namespace of another" cat "/sys/block/${another#/dev/}/nsid"
say detached floatgate detach /dev/nvme0n1
say gone test ! -e "$another"
echo "guest: done"
sleep 1000
