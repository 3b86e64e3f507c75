//! Namespaces: parts of a drive that its clients see as devices of their own.
//!
//! ```text
//!  a drive | one ......... | two .... | free | three ..... | free |
//! ```
//!
//! The drive's folder lists them. They share what the drive has: its spare space, its journal, its
//! redundancy, and on a thin drive what physical space is left. A drive without any is one device.
//!
//! Invariants:
//! - Each is at least one page long; none overlaps another, or reaches beyond the drive.
//! - No two have one name.
//! - Nothing is stored outside of them.

use std::path::Path;
use std::sync::Arc;

use blockio::{Bytes, SECTOR_BYTES};
use device::{Allocation, Device, DeviceError, Durability, ReadPart};
use status::Namespace;
use status::UserCapacity;

use crate::format::layout::PAGE_BYTES;
use crate::volume::folder;
use crate::{Beyond, Drive, OpenError};

/// Longest name in bytes, so that it fits wherever it is shown.
const NAME_BYTES_MAX: usize = 255;
const PAGE: u64 = PAGE_BYTES as u64;

/// The namespaces of a drive, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(Vec<Namespace>);

/// A namespace as a device.
#[derive(Debug)]
struct Window {
    device: Arc<dyn Device>,
    from: u64,
    size: u64,
}

/// A namespace of a device as a device, whose clients reach nothing else of it.
pub fn namespace_device(namespace: &Namespace, device: Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(Window { device, from: namespace.offset_bytes, size: namespace.size_bytes })
}

/// Checks that a namespace can be, wherever on a drive it is.
fn check_namespace(namespace: &Namespace) -> Result<(), OpenError> {
    let Namespace { name, offset_bytes, size_bytes } = namespace;
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if !is_name {
        let what = format!("`{}` is not a valid export name", name.escape_debug());
        let limit = format!("1 to {NAME_BYTES_MAX} bytes without control characters");
        return Err(OpenError::refused(format!("{what}: must be {limit}")));
    }
    let is_whole = offset_bytes.is_multiple_of(PAGE) && size_bytes.is_multiple_of(PAGE);
    if !is_whole || *size_bytes == 0 || offset_bytes.checked_add(*size_bytes).is_none() {
        return Err(OpenError::refused(format!(
            "export `{name}` has {size_bytes} bytes at offset {offset_bytes}: both must be \
             multiples of 4096, and the size must be above zero"
        )));
    }
    Ok(())
}

impl Namespaces {
    /// Reads the namespaces of the drive of a folder.
    ///
    /// # Errors
    /// Fails if there is no drive, or they cannot be.
    pub fn of(volume: &Path) -> Result<Self, OpenError> {
        let listed = Self(folder::namespaces(volume)?);
        for (index, namespace) in listed.0.iter().enumerate() {
            check_namespace(namespace)?;
            if let Some(other) = listed.0[..index].iter().find(|other| {
                other.name == namespace.name
                    || other.offset_bytes < namespace.end_bytes()
                        && namespace.offset_bytes < other.end_bytes()
            }) {
                let (one, other) = (&namespace.name, &other.name);
                let what = format!("the exports `{other}` and `{one}` overlap or have one name");
                return Err(OpenError::refused(what));
            }
        }
        Ok(listed)
    }

    /// Namespaces that lie within a drive and do not overlap.
    pub(crate) const fn new(namespaces: Vec<Namespace>) -> Self {
        Self(namespaces)
    }

    /// Lays out the namespaces of a new drive of so many bytes, one after the other.
    ///
    /// # Errors
    /// Fails if they do not fit, or two have one name.
    pub fn laid_out(sizes: &[(String, Bytes)], capacity: Bytes) -> Result<Self, OpenError> {
        let mut all = Self::default();
        for (name, size) in sizes {
            let namespace = all.placed(name, *size, capacity)?;
            all.0.push(namespace);
        }
        Ok(all)
    }

    /// Lists them in the folder of a drive instead of those that were.
    ///
    /// # Errors
    /// Fails if there is no drive, or the system refuses.
    pub fn keep(&self, volume: &Path) -> Result<(), OpenError> {
        folder::keep_namespaces(volume, &self.0)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Namespace> {
        self.0.iter()
    }

    /// True if there is none: clients see the whole drive as one device.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that a drive of so many bytes has room for them where they are.
    ///
    /// # Errors
    /// Fails if it has not.
    pub fn check_capacity(&self, capacity: Bytes) -> Result<(), OpenError> {
        match self.0.iter().find(|namespace| namespace.end_bytes() > capacity.0) {
            Some(Namespace { name, .. }) => Err(OpenError::refused(format!(
                "export `{name}` would exceed the capacity of {capacity}: resize or remove it first"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the drive of a folder has room for them with another capacity, too.
    ///
    /// # Errors
    /// As [`Namespaces::of`] and [`Namespaces::check_capacity`].
    pub fn allow(volume: &Path, drive: &Drive, capacity: UserCapacity) -> Result<(), OpenError> {
        Self::of(volume)?.check_capacity(drive.capacity_of(capacity).size)
    }

    /// Adds a namespace to a drive, in the first gap that is large enough. The first one of a drive
    /// holds what is stored there already.
    ///
    /// # Errors
    /// Fails if there is no room, the name is taken, or something is stored that it would not hold.
    pub fn add(
        volume: &Path,
        drive: &Drive,
        name: &str,
        size: Bytes,
    ) -> Result<Namespace, OpenError> {
        let mut all = Self::of(volume)?;
        let namespace = all.placed(name, size, Bytes(drive.size()))?;
        let (from, until) = if all.is_empty() {
            (namespace.end_bytes(), drive.size())
        } else {
            (namespace.offset_bytes, namespace.end_bytes())
        };
        let stored = stored_bytes(drive, from, until)?;
        if stored.0 > 0 {
            let what = format!("export `{name}` would not contain {stored} of stored data");
            return Err(OpenError::refused(format!("{what}: make it larger, or purge the volume")));
        }
        all.0.push(namespace.clone());
        all.keep(volume)?;
        Ok(namespace)
    }

    /// Gives a namespace another size, where it is.
    ///
    /// # Errors
    /// Fails if another one is in the way, or something would be lost that is to be kept.
    pub fn resize(
        volume: &Path,
        drive: &Drive,
        name: &str,
        size: Bytes,
        beyond: Beyond,
    ) -> Result<(), OpenError> {
        let mut all = Self::of(volume)?;
        let index = all.find(name)?;
        let was = all.0[index].clone();
        let resized = Namespace { size_bytes: size.0, ..was.clone() };
        check_namespace(&resized)?;
        let most = Bytes(all.room_after(&was, drive.size()));
        if size > most {
            return Err(OpenError::refused(format!(
                "export `{name}` can grow to at most {most} at its location, not to {size}"
            )));
        }
        if size.0 < was.size_bytes {
            give_up(drive, (was.offset_bytes + size.0, was.end_bytes()), beyond)?;
        }
        all.0[index] = resized;
        all.keep(volume)
    }

    /// Removes a namespace, and what is stored in it.
    ///
    /// # Errors
    /// Fails if something is stored there that is to be kept.
    pub fn remove(
        volume: &Path,
        drive: &Drive,
        name: &str,
        beyond: Beyond,
    ) -> Result<(), OpenError> {
        let mut all = Self::of(volume)?;
        let index = all.find(name)?;
        let Namespace { offset_bytes, .. } = all.0[index];
        give_up(drive, (offset_bytes, all.0[index].end_bytes()), beyond)?;
        all.0.remove(index);
        all.keep(volume)
    }

    fn find(&self, name: &str) -> Result<usize, OpenError> {
        self.0.iter().position(|namespace| namespace.name == name).ok_or_else(|| {
            let names: Vec<String> = self.0.iter().map(|it| format!("`{}`", it.name)).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            OpenError::refused(format!("no export is named `{name}`; there are {there}"))
        })
    }

    /// A namespace in the first gap that is large enough.
    fn placed(&self, name: &str, size: Bytes, capacity: Bytes) -> Result<Namespace, OpenError> {
        let mut namespace =
            Namespace { name: name.to_owned(), offset_bytes: 0, size_bytes: size.0 };
        check_namespace(&namespace)?;
        if self.0.iter().any(|other| other.name == name) {
            return Err(OpenError::refused(format!("an export named `{name}` already exists")));
        }
        let mut taken: Vec<&Namespace> = self.0.iter().collect();
        taken.sort_by_key(|other| other.offset_bytes);
        let mut largest = 0;
        let ends = taken.iter().map(|other| other.offset_bytes).chain([capacity.0]);
        let starts = [0].into_iter().chain(taken.iter().map(|other| other.end_bytes()));
        for (start, end) in starts.zip(ends) {
            let gap = end.saturating_sub(start);
            if gap >= size.0 {
                namespace.offset_bytes = start;
                return Ok(namespace);
            }
            largest = largest.max(gap);
        }
        let (largest, what) = (Bytes(largest), format!("no room for {size} of export `{name}`"));
        Err(OpenError::refused(format!("{what}: the largest gap has {largest} of {capacity}")))
    }

    /// Bytes from the beginning of a namespace to the next one, or to the end of the drive.
    fn room_after(&self, namespace: &Namespace, capacity: u64) -> u64 {
        let starts = self.0.iter().map(|other| other.offset_bytes);
        let next = starts.filter(|start| *start > namespace.offset_bytes).min();
        next.unwrap_or(capacity).saturating_sub(namespace.offset_bytes)
    }
}

/// Bytes that are stored in a range.
fn stored_bytes(drive: &Drive, from: u64, until: u64) -> Result<Bytes, DeviceError> {
    let runs = drive.allocations(from, until - from)?;
    Ok(Bytes(runs.iter().filter(|run| run.is_stored).map(|run| run.length).sum()))
}

/// Forgets what is stored in a range, durably, if it may be lost.
fn give_up(drive: &Drive, (from, until): (u64, u64), beyond: Beyond) -> Result<(), OpenError> {
    let stored = stored_bytes(drive, from, until)?;
    if stored.0 > 0 && beyond == Beyond::Kept {
        let id = drive.status().drive;
        let what = format!("{stored} of stored data would be lost");
        return Err(OpenError::refused(format!("{what}; --destroy {id} allows that")));
    }
    Ok(drive.trim(from, until - from, Durability::Durable)?)
}

impl Window {
    /// Returns the offset of a range of its own on the device below.
    fn below(&self, offset: u64, length: u64) -> Result<u64, DeviceError> {
        self.check_range(offset, length)?;
        Ok(self.from + offset)
    }

    /// An error of the device below, in numbers of its own.
    fn above<T>(&self, done: Result<T, DeviceError>) -> Result<T, DeviceError> {
        done.map_err(|error| match error {
            DeviceError::OutOfRange { offset, length, size } => DeviceError::OutOfRange {
                offset: offset.saturating_sub(self.from),
                length,
                size: size.saturating_sub(self.from).min(self.size),
            },
            DeviceError::NoSpace { offset, length } => {
                DeviceError::NoSpace { offset: offset.saturating_sub(self.from), length }
            }
            DeviceError::Unreadable { lba, reason } => {
                let lba = lba.saturating_sub(self.from / SECTOR_BYTES);
                DeviceError::Unreadable { lba, reason }
            }
            error @ (DeviceError::HostFull { .. }
            | DeviceError::ReadOnly
            | DeviceError::Reserved
            | DeviceError::Locked
            | DeviceError::Poisoned { .. }
            | DeviceError::Transient { .. }
            | DeviceError::InProgress(_)
            | DeviceError::Gone
            | DeviceError::Medium { .. }) => error,
        })
    }
}

impl Device for Window {
    fn size(&self) -> u64 {
        self.size
    }

    fn origin(&self) -> u64 {
        self.from + self.device.origin()
    }

    /// Blocks of the drive, as far as they lie on blocks of the window.
    fn atomic_bytes(&self) -> u64 {
        let aligned = 1 << self.from.trailing_zeros().min(63);
        self.device.atomic_bytes().min(aligned).max(512)
    }

    fn is_write_through(&self) -> bool {
        self.device.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let below = self.below(offset, buffer.len() as u64)?;
        self.above(self.device.read(below, buffer))
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let below = |read: &ReadPart<'_>| self.below(read.offset, read.buffer.len() as u64);
        let below: Result<Vec<u64>, DeviceError> = reads.iter().map(below).collect();
        let Ok(below) = below else {
            // Each has its own answer, where one is out of range.
            return reads.iter_mut().map(|it| self.read(it.offset, it.buffer)).collect();
        };
        let mut moved = Vec::with_capacity(reads.len());
        for (ReadPart { buffer, .. }, offset) in reads.iter_mut().zip(below) {
            moved.push(ReadPart { offset, buffer });
        }
        let done = self.device.read_many(&mut moved);
        done.into_iter().map(|done| self.above(done)).collect()
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let below = self.below(offset, bytes.len() as u64)?;
        self.above(self.device.write(below, bytes, durability))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        let below = self.below(offset, length)?;
        self.above(self.device.trim(below, length, durability))
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        let below = self.below(offset, length)?;
        self.above(self.device.allocations(below, length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use device::MemoryDevice;

    fn sized(sizes: &[(&str, u64)]) -> Vec<(String, Bytes)> {
        sizes.iter().map(|(name, pages)| ((*name).to_owned(), Bytes(pages * PAGE))).collect()
    }

    #[test]
    fn a_new_one_takes_the_first_gap_that_is_large_enough() {
        let capacity = Bytes(10 * PAGE);
        let mut all =
            Namespaces::laid_out(&sized(&[("a", 2), ("b", 3), ("c", 4)]), capacity).unwrap();
        let b = all.find("b").unwrap();
        all.0.remove(b);
        let placed = |name, pages| all.placed(name, Bytes(pages * PAGE), capacity);
        assert_eq!(placed("d", 3).unwrap().offset_bytes, 2 * PAGE);
        assert_eq!(placed("d", 1).unwrap().offset_bytes, 2 * PAGE);
        let refused = placed("d", 4).unwrap_err().to_string();
        assert!(refused.ends_with("the largest gap has 12 KiB of 40 KiB"), "{refused}");
        assert!(placed("a", 1).unwrap_err().to_string().contains("already"));
        assert_eq!(all.room_after(&all.0[0], capacity.0), 5 * PAGE);
    }

    #[test]
    fn what_is_no_namespace_is_refused_with_what_would_be() {
        for (name, bytes) in [("", PAGE), ("a\n", PAGE), ("a", 0), ("a", 100), ("a", u64::MAX)] {
            let refused = Namespaces::laid_out(&[(name.to_owned(), Bytes(bytes))], Bytes(1 << 20));
            assert!(refused.is_err(), "{name:?}, {bytes}");
        }
    }

    #[test]
    fn errors_are_told_in_numbers_of_the_namespace() {
        let size_bytes = 2 * PAGE;
        let namespace = Namespace { name: "a".into(), offset_bytes: PAGE, size_bytes };
        let window = Window {
            device: Arc::new(MemoryDevice::new(2 * PAGE)),
            from: namespace.offset_bytes,
            size: size_bytes,
        };
        let lost = DeviceError::Unreadable { lba: 11, reason: String::new() };
        let told = window.above::<()>(Err(lost)).unwrap_err();
        assert!(matches!(told, DeviceError::Unreadable { lba: 3, .. }), "{told}");
        // The device below has become smaller.
        let told = window.read(PAGE, &mut [0; 10]).unwrap_err();
        assert!(matches!(told, DeviceError::OutOfRange { offset: 4096, size: 4096, .. }), "{told}");
    }

    proptest! {
        /// Whatever is asked of a namespace, its neighbours stay as they are.
        #[test]
        fn no_command_reaches_beyond_a_namespace(
            offset in prop_oneof![0..20_000_u64, any::<u64>(), Just(u64::MAX)],
            bytes in prop::collection::vec(Just(2_u8), 0..20_000),
            is_trim in any::<bool>(),
        ) {
            let (length, device) = (bytes.len() as u64, Arc::new(MemoryDevice::new(6 * PAGE)));
            let whole = vec![1; 6 * PAGE_BYTES];
            device.write(0, &whole, Durability::Volatile).unwrap();
            let (offset_bytes, size_bytes) = (2 * PAGE, 2 * PAGE);
            let namespace = Namespace { name: "a".into(), offset_bytes, size_bytes };
            let window = namespace_device(&namespace, Arc::<MemoryDevice>::clone(&device));
            let done = if is_trim {
                window.trim(offset, length, Durability::Volatile)
            } else {
                window.write(offset, &bytes, Durability::Volatile)
            };
            let is_within = offset.checked_add(length).is_some_and(|end| end <= size_bytes);
            prop_assert_eq!(done.is_ok(), is_within);
            prop_assert_eq!(window.allocations(offset, length).is_ok(), is_within);
            let mut found = vec![0; 6 * PAGE_BYTES];
            device.read(0, &mut found).unwrap();
            let (first, last) = (2 * PAGE_BYTES, 4 * PAGE_BYTES);
            prop_assert!(found[..first] == whole[..first] && found[last..] == whole[last..]);
        }
    }
}
