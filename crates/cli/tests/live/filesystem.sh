#!/usr/bin/env bash
# ext4 on an NBD export, through FUSE and a loop device: filesystem.sh URI FOLDER
# Prints `clean` last where everything held; `cannot mount` where this machine has no FUSE or loop.
set -eu
uri=$1 folder=$2 loop=
mkdir -p "$folder/nbd" "$folder/fs"
cleanup() {
    mountpoint -q "$folder/fs" && umount "$folder/fs"
    [ -n "$loop" ] && losetup -d "$loop"
    mountpoint -q "$folder/nbd" && fusermount3 -u "$folder/nbd"
    wait
}
trap cleanup EXIT
[ -w /dev/fuse ] && [ -w /dev/loop-control ] || { echo "cannot mount: no FUSE or loop"; exit 0; }

nbdfuse "$folder/nbd" "$uri" &
for _ in $(seq 100); do
    [ -e "$folder/nbd/nbd" ] && break
    sleep 0.1
done
[ -e "$folder/nbd/nbd" ] || { echo "cannot mount: FUSE is refused"; exit 0; }
loop=$(losetup --direct-io=on --show -f "$folder/nbd/nbd") || { echo "cannot mount: no loop"; exit 0; }

mkfs.ext4 -q -F "$loop"
mount "$loop" "$folder/fs" || { echo "cannot mount: ext4 is refused"; exit 0; }
for file in $(seq 100); do
    head -c $((file * 3000)) /dev/urandom > "$folder/fs/$file"
done
(cd "$folder/fs" && sha256sum [0-9]* > sums && rm 5 50 && fstrim .)
umount "$folder/fs"
e2fsck -f -n "$loop" > /dev/null

# What was written is on the export, not in the mount.
mount "$loop" "$folder/fs"
(cd "$folder/fs" && grep -v -E '  (5|50)$' sums | sha256sum --check --quiet)
umount "$folder/fs"
echo clean
