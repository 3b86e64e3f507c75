# Goes on after begin.sh and nvme.sh: uses a drive on PCI Express that a server of this test is. In
# its first life the machine loses the drive, in its second it looks at what is left.

# The namespace of so many sectors: the numbers of two controllers may be either way round.
of_size() {
    for disk in /sys/block/nvme?n?; do
        [ "$(cat "$disk/size")" = "$1" ] && echo "/dev/${disk##*/}"
    done
}

if [ "$life" = 2 ]; then
    while [ -z "$(of_size 250000)" ] || [ -z "$(of_size 125000)" ]; do sleep 0.1; done
    home=$(of_size 250000)
    say "smart again" nvme smart-log "${home%n?}"
    say fsck fsck.ext4 -f -p "$home"
    mount -t ext4 "$home" /home
    say before cmp /home/before /home/same
    umount /home
    # A drive of one export becomes larger.
    other=$(of_size 125000)
    other=${other#/dev/}
    echo "guest: resize the other"
    while [ -n "$(of_size 125000)" ]; do sleep 0.1; done
    say size cat "/sys/block/$other/size"
    # The driver tells the drive that its power goes.
    # The address is of the drive, and gone with it.
    cat "/sys/class/nvme/${other%n?}/address" > /tmp/address
    say unbind tee /sys/bus/pci/drivers/nvme/unbind < /tmp/address
    echo "guest: done"
    sleep 1000
fi

find_namespaces
say queues dmesg
say interrupts grep nvme0q /proc/interrupts
say_pages
say smartctl smartctl --all /dev/nvme0
say_commands
# Each job has a part of the drive of its own; with two processors, they use two queues.
say_fio --numjobs=2 --offset_increment=16m
echo "guest: many commands"
say polled fio --name=polled --filename="$first" --rw=randwrite --bs=4k --iodepth=32 \
    --ioengine=io_uring --hipri --direct=1 --size=4m --verify=crc32c --verify_fatal=1 --minimal
echo "guest: few doorbells"
say_operations
while [ -z "$(namespace 2)" ]; do sleep 0.1; done
say detach nvme detach-ns /dev/nvme0 -n 2 -c "$controller"
while [ -n "$(namespace 2)" ]; do sleep 0.1; done
say "format of all" nvme format "$first" -l 1 --force
say "blocks of 4096" cat "/sys/block/${first#/dev/}/queue/logical_block_size"
say "format back" nvme format "$first" -l 0 --force
say "blocks of 512" cat "/sys/block/${first#/dev/}/queue/logical_block_size"
say reset nvme reset /dev/nvme0
function=/sys/bus/pci/devices/$(cat /sys/class/nvme/nvme0/address)
say "ways to reset" cat "$function/reset_method"
say "function reset" sh -c "echo 1 > $function/reset"
say "after that" dd if="$first" of=/dev/null bs=4k count=1 iflag=direct
dd if=/dev/urandom of=/tmp/file bs=1M count=4 2> /tmp/dd
say filesystem mkfs.ext4 -q "$first"
mount -t ext4 "$first" /home
for name in before same; do
    say "file $name" dd if=/tmp/file of=/home/$name bs=1M conv=fsync
done
# What the emulator makes of a drive that goes is its own affair: this life ends with the server.
(
    sleep 1
    echo "guest: kill the server"
    echo "guest: done"
) &
while dd if=/dev/zero of=/home/lost bs=64k count=200 oflag=direct 2> /dev/null; do :; done
sleep 1000
