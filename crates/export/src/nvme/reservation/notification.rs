//! Reservation Notification log ([nvme-base-2021], "Reservation Notification"; offsets in bytes):
//! what a controller has to tell its host about reservations that others changed.
//!
//! ```text
//!   notice ──► the last page ──► ... ──► the first page ──► read by the host, and gone
//! ```
//!
//! **Invariants**
//! - The count of the last page is that of all notices, also of those that were lost.

use std::collections::VecDeque;

use super::super::wire::Structure;
use super::ReservingHost;

/// Pages that wait for the host at most: the log counts those behind one in a byte.
const PAGES_MAX: usize = 256;
const PAGE_BYTES: usize = 64;

/// Change of reservations that a host is told of, by its type in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    RegistrationPreempted = 1,
    ReservationReleased = 2,
    ReservationPreempted = 3,
}

impl Notice {
    /// Bit of the feature Reservation Notification Mask.
    pub(super) const fn mask(self) -> u32 {
        1 << self as u32
    }
}

/// A notice for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) host: ReservingHost,
    pub(crate) notice: Notice,
}

#[derive(Debug)]
struct Page {
    count: u64,
    notice: Notice,
    namespace: u32,
}

/// The log of a controller.
#[derive(Debug, Default)]
pub(crate) struct NotificationLog {
    pages: VecDeque<Page>,
    /// Notices so far.
    count: u64,
    /// True if there were notices since an event told of them.
    is_new: bool,
}

impl NotificationLog {
    /// Adds a notice about a namespace; one that has no room is lost.
    pub(crate) fn add(&mut self, notice: Notice, namespace: u32) {
        // 0 is the count of an empty log.
        self.count = self.count.wrapping_add(1).max(1);
        self.is_new = true;
        if self.pages.len() < PAGES_MAX {
            self.pages.push_back(Page { count: self.count, notice, namespace });
        } else if let Some(last) = self.pages.back_mut() {
            last.count = self.count;
        }
    }

    /// Returns whether there were notices since it was asked last.
    pub(crate) const fn take_news(&mut self) -> bool {
        std::mem::replace(&mut self.is_new, false)
    }

    /// Takes the oldest page; an empty one if there is none.
    pub(crate) fn take_page(&mut self) -> Vec<u8> {
        let mut it = Structure::new(PAGE_BYTES);
        if let Some(Page { count, notice, namespace }) = self.pages.pop_front() {
            it.put_u64(0, count);
            it.put_u8(8, notice as u8);
            it.put_u8(9, u8::try_from(self.pages.len()).expect("below 256"));
            it.put_u32(12, namespace);
        }
        it.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_come_in_order_and_those_without_room_are_counted() {
        let mut log = NotificationLog::default();
        assert_eq!((log.take_page(), log.take_news()), (vec![0; 64], false));
        for number in 1..=300 {
            log.add(Notice::ReservationReleased, number);
        }
        assert_eq!((log.take_news(), log.take_news()), (true, false));
        let mut page = || {
            let page = log.take_page();
            let count = u64::from_le_bytes(*page.first_chunk().unwrap());
            (count, page[8], page[9], u16::from_le_bytes([page[12], page[13]]))
        };
        assert_eq!((page(), page()), ((1, 2, 255, 1), (2, 2, 254, 2)));
        for _ in 2..255 {
            page();
        }
        assert_eq!((page(), page()), ((300, 2, 0, 256), (0, 0, 0, 0)));
        log.add(Notice::RegistrationPreempted, 7);
        assert_eq!(log.take_page()[..16], [45, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    }
}
