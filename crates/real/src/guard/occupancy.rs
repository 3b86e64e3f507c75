//! Users of a device or a file: mounts, swap, holders, loop devices.

use std::iter;
use std::path::Path;

use lab::target::system::{Block, System};

/// Use that forbids writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Occupancy {
    /// Description of the user, by name.
    pub(super) text: String,
    /// Advice on how to end the use.
    pub(super) remedy: String,
}

/// The first use of `block`, of a partition of it, or of the disk around it; also through another
/// node of the same drive.
pub(super) fn of_device(system: &System, block: &Block) -> Option<Occupancy> {
    let used = use_of(system, block);
    // Of the disk that the system runs from nothing is to be unmounted, whatever else uses it.
    match (used, below_root(system, block)) {
        (Some(used), Some(root)) => Some(Occupancy { remedy: root.remedy, ..used }),
        (used, root) => used.or(root),
    }
}

/// As [`of_device`], but for devices that are merely on the disk that the system runs from.
pub(super) fn use_of(system: &System, block: &Block) -> Option<Occupancy> {
    let mut concerned = vec![block.clone()];
    concerned.extend(block.partitions());
    if block.is_partition() {
        concerned.push(block.disk());
    }
    first_use(system, &concerned).or_else(|| through_other_nodes(system, block))
}

fn first_use(system: &System, concerned: &[Block]) -> Option<Occupancy> {
    let uses = concerned.iter();
    uses.clone()
        .find_map(|block| mounted(system, block))
        .or_else(|| uses.clone().find_map(|block| swapped_on(system, block)))
        .or_else(|| uses.clone().find_map(held))
}

/// The first use of what `block` addresses through another node of its drive: a second path to a
/// LUN or a namespace, which sysfs shows as a disk of its own.
fn through_other_nodes(system: &System, block: &Block) -> Option<Occupancy> {
    let (disk, number) = (block.disk(), block.attribute("partition"));
    let others = system.disks().into_iter();
    others.filter(|other| *other != disk && other.is_same_drive(&disk)).find_map(|other| {
        let mut parts = other.partitions();
        parts.retain(|part| number.is_none() || part.attribute("partition") == number);
        let concerned: Vec<Block> = iter::once(other.clone()).chain(parts).collect();
        let used = first_use(system, &concerned)?;
        let text = format!("{}, and {} is the same drive", used.text, other.node());
        Some(Occupancy { text, ..used })
    })
}

/// The first use of the file at `path`, which is absolute and free of links.
pub(super) fn of_file(system: &System, path: &Path) -> Option<Occupancy> {
    let swap = system.swaps().into_iter().find(|swap| swap == path);
    if let Some(swap) = swap {
        let swap = swap.display();
        return Some(Occupancy {
            text: "it is in use as swap".into(),
            remedy: format!("swapoff {swap}, or name another file"),
        });
    }
    let disk =
        system.disks().into_iter().find(|disk| disk.backing_file().as_deref() == Some(path))?;
    let node = disk.node();
    let used = of_device(system, &disk);
    let also = used.as_ref().map_or_else(String::new, |use_| format!(", and {}", use_.text));
    Some(Occupancy {
        text: format!("it is the backing file of {node}{also}"),
        remedy: match &used {
            Some(use_) => format!("name another file; or {}, then losetup -d {node}", use_.remedy),
            None => format!("losetup -d {node}, or name another file"),
        },
    })
}

fn mounted(system: &System, block: &Block) -> Option<Occupancy> {
    let mount = system.mounts().into_iter().find(|mount| {
        let own = mount.device.major == 0
            && mount.source.starts_with("/dev")
            && system.block_at(&mount.source).as_ref() == Some(block);
        mount.device == block.device() || own
    })?;
    let (node, point) = (block.node(), mount.point.display());
    Some(Occupancy {
        text: format!("{node} is mounted at {point}"),
        remedy: format!("if it is the right drive: umount {point}"),
    })
}

fn swapped_on(system: &System, block: &Block) -> Option<Occupancy> {
    let mut swaps = system.swaps().into_iter();
    swaps.find(|swap| system.block_at(swap).as_ref() == Some(block))?;
    let node = block.node();
    Some(Occupancy {
        text: format!("{node} is in use as swap"),
        remedy: format!("if it is the right drive: swapoff {node}"),
    })
}

fn held(block: &Block) -> Option<Occupancy> {
    let holders = block.holders();
    let names: Vec<_> = holders.iter().map(Block::described).collect();
    (!names.is_empty()).then(|| Occupancy {
        text: format!("{} is held by {}", block.node(), names.join(", ")),
        remedy: "stop the volume or array first (vgchange -an, mdadm --stop, dmsetup remove)"
            .into(),
    })
}

fn below_root(system: &System, block: &Block) -> Option<Occupancy> {
    let root = system.mount_of(Path::new("/"))?;
    let root_block = system.block(root.device).or_else(|| system.block_at(&root.source))?;
    let ours = block.disks_below();
    let is_ours = |disk: &Block| ours.iter().any(|our| our.is_same_drive(disk));
    let shared = root_block.disks_below().into_iter().find(is_ours)?;
    Some(Occupancy {
        text: format!("{} is the disk of the root file system", shared.node()),
        remedy: "name a drive that the system does not run from".into(),
    })
}
