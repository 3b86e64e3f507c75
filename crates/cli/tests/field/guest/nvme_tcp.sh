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
dd if=/dev/urandom of=/tmp/file bs=1M count=8 2> /tmp/dd
say filesystem mkfs.ext4 -q "$first"
say mount mount -t ext4 -o discard "$first" /home
say copy dd if=/tmp/file of=/home/before bs=1M conv=fsync
# The server is killed and started again at this word; the kernel connects again by itself.
echo "guest: kill the server"
say again dd if=/tmp/file of=/home/after bs=1M conv=fsync
umount /home
say fsck fsck.ext4 -f -n "$first"
mount -t ext4 "$first" /home
say before cmp /tmp/file /home/before
say after cmp /tmp/file /home/after
umount /home
say subsystems nvme list-subsys
say_operations
say disconnect nvme disconnect -n "$subsystem"
# The same drive through the command, twice: the second time the host is connected already.
uri="nvme+tcp://10.0.2.2:$port/$subsystem"
say attached floatgate attach "$uri/1"
say "attached another" floatgate attach "$uri/2"
one=$(floatgate attach "$uri/1")
another=$(floatgate attach "$uri/2")
say "namespace of another" cat "/sys/block/${another#/dev/}/nsid"
say detached floatgate detach "$one"
say gone test ! -e "$another"
echo "guest: done"
sleep 1000
