# Goes on after begin.sh: locks the drive by three programs that people lock drives with, each from
# an owner of none to none again: sedutil, nvme-cli by the kernel's requests, and cryptsetup.
drive=/dev/nvme0
first=/dev/nvme0n1
while [ ! -b "$first" ]; do sleep 0.1; done
read -r psid < /etc/psid
read_at() { dd if="$first" of="/tmp/$1" bs=4096 skip="$2" count=8 iflag=direct 2> /tmp/dd; }
write_at() { dd if=/tmp/data of="$first" bs=4096 seek="$1" count=8 oflag=direct 2> /tmp/dd; }
dd if=/dev/urandom of=/tmp/data bs=4096 count=8 2> /tmp/dd
write_at 0
write_at 4096

# sedutil: the first 4 MiB are a range of their own.
sed() { sedutil-cli "$@" "$drive"; }
say scan sedutil-cli --scan
say query sed --query
say setup sed --initialSetup secret
dd if=/tmp/data of=/tmp/image bs=4096 count=4 2> /tmp/dd
say "load image" sed --loadPBAimage secret /tmp/image
say "shadow shown" cmp -n 16384 /tmp/image "$first"
say "shadow done" sed --setMBRDone on secret
say "shadow gone" read_at data0 0
say "behind the shadow" cmp /tmp/data /tmp/data0
say "no shadow" sed --setMBREnable off secret
say range sed --setupLockingRange 1 0 8192 secret
# A new range has a new key: what was there is gone.
say "range: read" read_at data6 0
say "range: gone" cmp -n 32768 /tmp/data6 /dev/zero
write_at 0
say enable sed --enableLockingRange 1 secret
say wrong sed --setLockingRange 1 LK guess
say lock sed --setLockingRange 1 LK secret
say "locked: read" read_at none 0
say "locked: write" write_at 0
say "locked: discard" blkdiscard -o 0 -l 32768 "$first"
say "beside: read" read_at data1 4096
say "beside: same" cmp /tmp/data /tmp/data1
say "beside: write" write_at 4096
say list sed --listLockingRanges secret
say "read only" sed --setLockingRange 1 RO secret
say "read only: read" read_at data2 0
say "read only: same" cmp /tmp/data /tmp/data2
say "read only: write" write_at 0
say unlock sed --setLockingRange 1 RW secret
say "unlocked: write" write_at 0
say "new password" sed --setSIDPassword secret other
say "admin password" sed --setAdmin1Pwd secret other
say "old password" sed --setLockingRange 1 LK secret
say "lock again" sed --setLockingRange 1 LK other
say "erased: locked" read_at none 0
say rekey sed --rekeyLockingRange 1 other
say "psid" sedutil-cli --yesIreallywanttoERASEALLmydatausingthePSID "$psid" "$drive"
say "erased: read" read_at data3 0
say "erased: gone" cmp -n 32768 /tmp/data3 /dev/zero
say "query after" sed --query

# nvme-cli, by the requests of the kernel.
write_at 0
say discover nvme sed discover "$first"
keys() { printf 'secret12\nsecret12\n' | nvme sed "$@" "$first"; }
say initialize keys initialize
say "kernel: lock" keys lock -k
say "kernel: locked" read_at none 0
say "kernel: unlock" keys unlock -k
say "kernel: unlocked" read_at data4 0
say "kernel: same" cmp /tmp/data /tmp/data4
say "kernel: revert" keys revert

# cryptsetup: a volume that the drive alone locks.
printf 'passphrase of mine' > /tmp/key
printf 'secret of admin' > /tmp/admin
mkdir -p /run/cryptsetup
opal() { cryptsetup -q --key-file /tmp/key "$@" < /tmp/admin; }
say "LUKS: format" opal luksFormat --type luks2 --hw-opal-only --pbkdf pbkdf2 \
    --pbkdf-force-iterations 1000 "$first"
say "LUKS: open" opal open "$first" volume
say "LUKS: write" dd if=/tmp/data of=/dev/mapper/volume bs=4096 count=8 oflag=direct
say "LUKS: close" cryptsetup close volume
say "LUKS: locked" read_at none 8192
say "LUKS: reopen" opal open "$first" volume
dd if=/dev/mapper/volume of=/tmp/data5 bs=4096 count=8 iflag=direct 2> /tmp/dd
say "LUKS: same" cmp /tmp/data /tmp/data5
say "LUKS: shut" cryptsetup close volume
printf %s "$psid" > /tmp/admin
printf %s "$psid" > /tmp/key
say "LUKS: erase" opal erase --hw-opal-factory-reset "$first"
say messages dmesg
echo "guest: done"
sleep 1000
