//! The dies of a drive: media, some of which may have failed.

use std::io::{self, IoSliceMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::{DeviceError, Medium};

/// Dies as a set, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DieSet(pub(crate) u64);

impl DieSet {
    pub(crate) const fn add(&mut self, die: usize) {
        self.0 |= 1 << die;
    }

    pub(crate) const fn has(self, die: usize) -> bool {
        self.0 & (1 << die) != 0
    }

    pub(crate) const fn has_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// All but the one with the lowest index.
    pub(crate) const fn without_first(self) -> Self {
        Self(self.0 & self.0.wrapping_sub(1))
    }

    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// All dies; those that failed are without medium.
#[derive(Debug)]
pub(crate) struct Dies {
    media: Vec<RwLock<Option<Box<dyn Medium>>>>,
    /// Held while one of the sets that follow is changed.
    changing: Mutex<()>,
    /// The failed ones, as a [`DieSet`].
    lost: AtomicU64,
    /// Those whose contents are being restored, as a [`DieSet`].
    filling: AtomicU64,
    /// Those of the failed ones that no row has a unit on, as a [`DieSet`].
    done_without: AtomicU64,
    /// Those of which some read failed, as a [`DieSet`].
    unread: AtomicU64,
    /// Whether a row survives the loss of one.
    is_protected: bool,
    traffic: Vec<Moved>,
}

/// Bytes moved since the drive was opened, and requests that failed.
#[derive(Debug, Default)]
struct Moved {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    failures: AtomicU64,
}

impl Moved {
    fn count<T>(&self, moved: &AtomicU64, bytes: usize, done: io::Result<T>) -> io::Result<T> {
        match &done {
            Ok(_) => moved.fetch_add(bytes as u64, Ordering::Relaxed),
            Err(_) => self.failures.fetch_add(1, Ordering::Relaxed),
        };
        done
    }
}

impl Dies {
    pub(crate) fn new(media: Vec<Option<Box<dyn Medium>>>, is_protected: bool) -> Self {
        let mut lost = DieSet::default();
        for (die, medium) in media.iter().enumerate() {
            if medium.is_none() {
                lost.add(die);
            }
        }
        let media: Vec<_> = media.into_iter().map(RwLock::new).collect();
        let mut traffic = Vec::new();
        traffic.resize_with(media.len(), Moved::default);
        let lost = AtomicU64::new(lost.0);
        let [filling, done_without, unread] = [0; 3].map(AtomicU64::new);
        let changing = Mutex::new(());
        Self { media, changing, lost, filling, done_without, unread, is_protected, traffic }
    }

    pub(crate) fn count(&self) -> usize {
        self.media.len()
    }

    pub(crate) fn lost(&self) -> DieSet {
        DieSet(self.lost.load(Ordering::Acquire))
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the drive can do without `die`, besides those that it does without already.
    fn can_lose(&self, die: usize) -> bool {
        let is_spare = self.missed() == DieSet::default() && self.healthy().count() > 1;
        self.is_protected && (self.incomplete().has(die) || is_spare)
    }

    /// Dies without which some row lacks a unit.
    pub(crate) fn missed(&self) -> DieSet {
        DieSet(self.incomplete().0 & !self.done_without().0)
    }

    /// Failed dies that no row has a unit on.
    pub(crate) fn done_without(&self) -> DieSet {
        DieSet(self.done_without.load(Ordering::Acquire) & self.incomplete().0)
    }

    /// Says which of the failed dies no row has a unit on; refuses where rows would lack more than
    /// one.
    pub(crate) fn do_without(&self, dies: DieSet) -> bool {
        let _changing = self.changing();
        let missed = DieSet(self.incomplete().0 & !dies.0);
        let is_possible = missed.count() <= u32::from(self.is_protected);
        if is_possible {
            self.done_without.store(dies.0, Ordering::Release);
        }
        is_possible
    }

    /// Whether reads of more dies failed than the drive can do without, so that what was not found
    /// may be there all the same.
    pub(crate) fn is_unsure(&self) -> bool {
        let unread = self.unread.load(Ordering::Acquire) & !self.done_without().0;
        let unread = unread | self.missed().0;
        unread.count_ones() > u32::from(self.is_protected)
    }

    /// Goes on without a die, if the drive can do without it; says whether it can.
    pub(crate) fn lose(&self, die: usize) -> bool {
        let _changing = self.changing();
        if !self.can_lose(die) {
            return false;
        }
        if !self.incomplete().has(die) {
            self.done_without.fetch_and(!(1 << die), Ordering::AcqRel);
        }
        self.lost.fetch_or(1 << die, Ordering::AcqRel);
        self.filling.fetch_and(!(1 << die), Ordering::AcqRel);
        *self.media[die].write().unwrap_or_else(PoisonError::into_inner) = None;
        true
    }

    /// What each die did since the drive was opened.
    pub(crate) fn traffic(&self) -> Vec<crate::status::Die> {
        let lost = self.lost();
        let die = |(die, moved): (usize, &Moved)| crate::status::Die {
            is_lost: lost.has(die),
            read_bytes: moved.read_bytes.load(Ordering::Relaxed),
            written_bytes: moved.written_bytes.load(Ordering::Relaxed),
            failures: moved.failures.load(Ordering::Relaxed),
        };
        self.traffic.iter().enumerate().map(die).collect()
    }

    /// Puts an empty medium in the place of a die that failed.
    pub(crate) fn fill(&self, die: usize, medium: Box<dyn Medium>) {
        let _changing = self.changing();
        *self.media[die].write().unwrap_or_else(PoisonError::into_inner) = Some(medium);
        self.filling.fetch_or(1 << die, Ordering::AcqRel);
        self.lost.fetch_and(!(1 << die), Ordering::AcqRel);
    }

    /// A die that was being filled holds all that it should.
    pub(crate) fn settle(&self, die: usize) {
        let _changing = self.changing();
        self.filling.fetch_and(!(1 << die), Ordering::AcqRel);
    }

    /// Dies that hold nothing, or not yet all that they should.
    pub(crate) fn incomplete(&self) -> DieSet {
        DieSet(self.lost().0 | self.filling.load(Ordering::Acquire))
    }

    /// Dies that have not failed, in order.
    pub(crate) fn healthy(&self) -> impl Iterator<Item = usize> + use<> {
        let lost = self.lost();
        (0..self.count()).filter(move |die| !lost.has(*die))
    }

    fn with<T>(&self, die: usize, act: impl FnOnce(&dyn Medium) -> io::Result<T>) -> io::Result<T> {
        let medium = self.media[die].read().unwrap_or_else(PoisonError::into_inner);
        match medium.as_deref() {
            Some(medium) => act(medium),
            None => Err(io::Error::new(io::ErrorKind::NotConnected, "the die has failed")),
        }
    }

    pub(crate) fn read(&self, die: usize, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let read = self.with(die, |medium| medium.read_at(offset, buffer));
        let moved = &self.traffic[die];
        let read = moved.count(&moved.read_bytes, buffer.len(), read);
        if read.is_err() {
            self.unread.fetch_or(1 << die, Ordering::AcqRel);
        }
        read
    }

    pub(crate) fn read_vectored(
        &self,
        die: usize,
        offset: u64,
        buffers: &mut [IoSliceMut<'_>],
    ) -> io::Result<()> {
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        let read = self.with(die, |medium| medium.read_vectored_at(offset, buffers));
        let moved = &self.traffic[die];
        moved.count(&moved.read_bytes, bytes, read)
    }

    pub(crate) fn write(&self, die: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.with(die, |medium| medium.write_at(offset, bytes));
        let moved = &self.traffic[die];
        moved.count(&moved.written_bytes, bytes.len(), written)
    }

    /// Has what lies there read as zeroes, once it is synced.
    pub(crate) fn erase(&self, die: usize, offset: u64, length: u64) -> io::Result<()> {
        let erased = self.with(die, |medium| medium.erase(offset, length));
        self.traffic[die].count(&self.traffic[die].written_bytes, 0, erased)
    }

    pub(crate) fn sync(&self, die: usize) -> io::Result<()> {
        self.with(die, |medium| medium.sync())
    }
}

/// An error of the medium, with what was attempted.
pub(crate) fn medium_error(attempted: String) -> impl FnOnce(io::Error) -> DeviceError {
    move |source| DeviceError::Medium { attempted, source }
}
