//! A table of numbers, in memory that the system may back with huge pages.
//!
//! The map of a large drive has hundreds of megabytes and is read at random, so that nearly every
//! look-up of a page of 4 KiB of it would miss the processor's address translation as well.
//! Memory that was never written to costs nothing.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// So many numbers, zero at first.
pub(crate) struct Table<T> {
    memory: MmapMut,
    of: PhantomData<T>,
}

impl<T: Pod> Table<T> {
    /// `count` zeros.
    ///
    /// # Panics
    /// When there is not that much address space.
    pub(crate) fn new(count: usize) -> Self {
        let memory = MmapMut::map_anon(count * size_of::<T>()).expect("address space for the map");
        // Advice only: without huge pages all is as right, and slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self { memory, of: PhantomData }
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

    /// Makes all of them zero.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.entries().len());
    }
}

impl<T: Pod> Clone for Table<T> {
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.entries().len());
        clone.entries_mut().copy_from_slice(self.entries());
        clone
    }
}

impl<T: Pod> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("count", &self.entries().len()).finish()
    }
}
