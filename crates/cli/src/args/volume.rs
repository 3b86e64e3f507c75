//! Commands of `floatgate volume`.

use clap::Subcommand;

use super::{
    AddSpare, Attach, Check, Create, Detach, Export, FailDie, Format, Inject, Locate, Purge,
    Recover, Rekey, RemoveSpare, ReplaceDie, Resize, Scrub, Serve, Status, Top,
};

/// Commands of `floatgate volume`.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, parsed once")]
pub(crate) enum Volume {
    /// Create a volume over files or block devices
    #[command(after_help = "\
Examples:
  floatgate volume create volume --dies d0.img,d1.img,d2.img,d3.img --size 4g
  floatgate volume create volume --dies d0.img,d1.img,d2.img,d3.img --size 4g --protect 3+1
  floatgate volume create volume --dies d0.img,d1.img,d2.img,d3.img --size 4g --compress lz4
  floatgate volume create volume --dies d0.img,d1.img,d2.img,d3.img --size 8g --thin 4g
  floatgate volume create volume --dies d0.img,d1.img,d2.img --size 4g --export data=3g
  floatgate volume create volume --dies d0.img,d1.img --size 4g --encrypt --key-file key
  floatgate volume create volume --dies /dev/disk/by-id/EXAMPLE --size 100g --spare 28%")]
    Create(Create),
    /// Serve a volume to NBD and NVMe clients and virtual machines, until Ctrl-C
    #[command(after_help = "\
Prints the URIs for clients once they can connect. On Ctrl-C or SIGTERM the server accepts no more
requests, answers those that it received, makes all data durable, and removes its sockets.

Examples:
  floatgate volume serve volume --nbd unix:/run/volume.sock
  floatgate volume serve --memory 1g --nbd unix:/run/floatgate.sock
  floatgate volume serve --memory 1g --nbd tcp:10809 --export scratch --read-only
  floatgate volume serve volume --nvme tcp:4420
  floatgate volume serve volume --vhost-user /run/volume-blk.sock
  floatgate volume serve --memory 1g --nbd unix:/run/duo.sock --timing model --model iodrive-duo")]
    Serve(Serve),
    /// Attach a served volume to this machine as a block device
    #[command(after_help = "\
Prints the path of the device. Needs root, and the first of these that server and machine support:
- ublk: a server with --ublk, and the kernel module ublk_drv
- NVMe/TCP: a server with --nvme, and the kernel module nvme-tcp; attaches all exports at once
- NBD: a server with --nbd and without TLS, the kernel module nbd, and nbd-client

Examples:
  floatgate volume attach volume
  floatgate volume attach volume --export logs
  floatgate volume attach nbd+unix:///?socket=/run/volume.sock")]
    Attach(Attach),
    /// Detach the block device of a served volume from this machine
    #[command(after_help = "\
Unmount its file systems first. Over NVMe/TCP all exports of the volume are detached at once.

Examples:
  floatgate volume detach /dev/nvme0n1
  floatgate volume detach /dev/nbd0")]
    Detach(Detach),
    /// Show the status of a volume, served or closed
    #[command(after_help = "\
Asks the server of the volume. The status of a closed volume is read from its dies, which are not
changed.

Examples:
  floatgate volume status volume
  floatgate volume status volume --all
  floatgate volume status volume --json")]
    Status(Status),
    /// Show the activity of a served volume, refreshed each second
    #[command(after_help = "\
Examples:
  floatgate volume top volume
  floatgate volume top volume --once --interval 10s")]
    Top(Top),
    /// Turn the locate LED of a volume on or off: a mark in software only
    Locate(Locate),
    /// Check the consistency of a closed volume, and repair it on request
    #[command(after_help = "\
Reads headers, checkpoint, journal and every unit, and changes nothing without --repair. Exit status
is 0 if nothing is damaged, or everything was repaired.

Examples:
  floatgate volume check volume
  floatgate volume check volume --repair")]
    Check(Check),
    /// Copy or serve the readable data of a volume that cannot be opened
    #[command(after_help = "\
Reads the newest consistent state of the dies, reports all inconsistencies, and copies the readable
data. IMAGE.map is a mapfile of GNU ddrescue. Exit status is 0 if everything was read without
inconsistencies.

Examples:
  floatgate volume recover volume --out rescued.img")]
    Recover(Recover),
    /// Read, verify and repair all data of a served volume, while clients use it
    Scrub(Scrub),
    /// Take a die offline
    #[command(after_help = "\
Examples:
  floatgate volume fail-die volume 3")]
    FailDie(FailDie),
    /// Replace a failed die and rebuild its data
    #[command(after_help = "\
Examples:
  floatgate volume replace-die volume 3 --with new.img")]
    ReplaceDie(ReplaceDie),
    /// Add a hot spare, which replaces the next die that fails
    #[command(after_help = "\
Examples:
  floatgate volume add-spare volume spare.img")]
    AddSpare(AddSpare),
    /// Remove a hot spare
    #[command(after_help = "\
Examples:
  floatgate volume remove-spare volume spare.img")]
    RemoveSpare(RemoveSpare),
    /// Give an encrypted volume another passphrase or key
    #[command(after_help = "\
The data is not encrypted anew: an earlier copy of a die and the former key still give the key that
pages are encrypted with. `floatgate volume purge` replaces that one.

Examples:
  floatgate volume rekey volume --key-file old --new-key-file new")]
    Rekey(Rekey),
    /// Erase all data of a volume
    Purge(Purge),
    /// Erase all data of a volume and set another user capacity
    Format(Format),
    /// Change the size of a volume and keep its data
    Resize(Resize),
    /// Manage exports: parts of a closed volume that clients see as separate devices
    #[command(
        subcommand,
        after_help = "\
Data beyond a new end, or in an export that is removed, is lost only with --destroy.

Examples:
  floatgate volume export add volume logs --size 1g
  floatgate volume export resize volume logs --size 2g
  floatgate volume export remove volume logs --destroy 5f0c6a1b2d3e4f50"
    )]
    Export(Export),
    /// Inject faults into a served volume: power cuts, failed dies, bit flips, stalls
    #[command(after_help = "\
Examples:
  floatgate volume serve volume --nbd unix:/run/volume.sock --fault-injection
  floatgate volume inject volume stall 2s
  floatgate volume inject volume cut-power")]
    Inject(Inject),
}
