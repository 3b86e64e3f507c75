//! A table of numbers, in memory that the system may back with huge pages.
//!
//! The map of a large drive has hundreds of megabytes and is read at random, so that nearly every
//! look-up of a page of 4 KiB of it would miss the processor's address translation as well.
//! Memory that was never written to costs nothing.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;
use prefetch_index::prefetch_index;

/// Smallest page of memory that the system backs, in bytes.
const PAGE_BYTES: usize = 4096;

/// Expected use of a table, which decides about huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// All of it sooner or later: huge pages are welcome.
    Whole,
    /// Runs with gaps between them: a huge page would be resident for the little that lies in it.
    Parts,
}

/// Table of numbers, zero at first.
pub(crate) struct Table<T> {
    memory: MmapMut,
    used: Use,
    of: PhantomData<T>,
}

impl<T: Pod> Table<T> {
    /// `count` zeros, which take no memory yet.
    ///
    /// # Panics
    /// When there is not that much address space.
    pub(crate) fn new(count: usize, used: Use) -> Self {
        let memory = MmapMut::map_anon(count * size_of::<T>()).expect("address space for the map");
        // Advice only: without huge pages all is as right, and slower; with them it is as right,
        // and larger.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(match used {
            Use::Whole => memmap2::Advice::HugePage,
            Use::Parts => memmap2::Advice::NoHugePage,
        });
        Self { memory, used, of: PhantomData }
    }

    /// The numbers.
    #[inline]
    pub(crate) fn entries(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory)
    }

    /// The numbers, to change them.
    #[inline]
    pub(crate) fn entries_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }

    /// Number `index`, if there are so many.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<T> {
        let at = index as usize * size_of::<T>();
        self.memory.get(at..at + size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    /// Number `index`, which there must be. A single one costs less so than as one of
    /// [`Table::entries`], which looks at the whole table first.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> T {
        let at = index as usize * size_of::<T>();
        bytemuck::pod_read_unaligned(&self.memory[at..at + size_of::<T>()])
    }

    /// Sets number `index`, which there must be.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, number: T) {
        let at = index as usize * size_of::<T>();
        self.memory[at..at + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&number));
    }

    /// Has the processor fetch number `index`.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        prefetch_index(&*self.memory, index as usize * size_of::<T>());
    }

    /// Has another count of numbers; new ones are zero.
    pub(crate) fn resize(&mut self, count: usize) {
        let mut resized = Self::new(count, self.used);
        let kept = count.min(self.entries().len());
        resized.entries_mut()[..kept].copy_from_slice(&self.entries()[..kept]);
        *self = resized;
    }

    /// Makes all of them zero.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.entries().len(), self.used);
    }
}

impl<T: Pod> Clone for Table<T> {
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.entries().len(), self.used);
        let pages = clone.memory.chunks_mut(PAGE_BYTES).zip(self.memory.chunks(PAGE_BYTES));
        for (to, from) in pages.filter(|(_, from)| from.iter().any(|byte| *byte != 0)) {
            to.copy_from_slice(from);
        }
        clone
    }
}

impl<T: Pod> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("count", &self.entries().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 3 * PAGE_BYTES;

    fn numbered(used: Use) -> Table<u32> {
        let mut table = Table::new(COUNT, used);
        table.entries_mut()[1] = 7;
        table.entries_mut()[COUNT - 1] = 9;
        table
    }

    #[test]
    fn a_number_by_itself_is_the_one_among_all() {
        let mut table = numbered(Use::Whole);
        table.set(2, 8);
        assert_eq!(table.entries()[..4], [0, 7, 8, 0]);
        assert_eq!((table.at(1), table.get(2), table.get(u32::MAX)), (7, Some(8), None));
    }

    #[test]
    fn a_clone_has_the_same_numbers() {
        for used in [Use::Whole, Use::Parts] {
            let table = numbered(used);
            assert_eq!(table.clone().entries(), table.entries());
        }
    }

    #[test]
    fn another_count_keeps_what_fits_and_adds_zeros() {
        let mut table = numbered(Use::Whole);
        table.resize(COUNT - 1);
        table.resize(COUNT);
        assert_eq!((table.entries()[1], table.entries()[COUNT - 1]), (7, 0));
    }

    #[test]
    fn a_table_of_nothing_has_no_numbers() {
        assert!(Table::<u8>::new(0, Use::Whole).entries().is_empty());
    }
}
