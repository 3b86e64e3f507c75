//! Asynchronous events ([nvme-base-2021], "Asynchronous Event Request command"): a change of the
//! drive's health or of a namespace's size.
//!
//! ```text
//!   periodic check ──► event ──► an outstanding request ──► its completion
//!                                  └── none: waits ──┘
//!   the host reads the log page of an event ──► the next event of that type may be reported
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use blockio::Nanos;
use device::{Protection, SanitizeState};

use super::context::Context;
use super::feature::Features;
use super::namespace::Namespaces;
use super::repertoire::LogPage;
use super::status::Status;

/// Requests that a host may have outstanding (AERL plus one).
pub(super) const HELD_MAX: usize = 4;
/// Time between checks of health and sizes while a host waits for events.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// Events that a controller reports, as bits of the feature Asynchronous Event Configuration:
/// critical warnings, and attributes of namespaces.
pub(super) const SUPPORTED: u32 = NAMESPACE_NOTICES | CRITICAL_WARNINGS;
pub(super) const NAMESPACE_NOTICES: u32 = 1 << 8;
const CRITICAL_WARNINGS: u32 = 0x1F;

/// Write to a doorbell that rings for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoorbellError {
    /// No queue has the doorbell.
    Register = 0,
    /// The value is beyond the entries of the queue.
    Value = 1,
}

/// Attributes whose changes are reported: blocks, their size, and write protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attributes {
    blocks: u64,
    block_shift: u8,
    protection: Protection,
}

/// Events of a controller, and requests that wait for them.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Requests without an event, the oldest first.
    held: VecDeque<u16>,
    /// Requests that were aborted.
    aborted: Vec<u16>,
    /// Events without a request, with dword 0 of their completions.
    waiting: VecDeque<(LogPage, u32)>,
    /// Log pages that an event was reported for and that the host has not read since.
    masked: BTreeSet<LogPage>,
    /// Namespaces whose size changed since the Changed Namespace List was read.
    changed: BTreeSet<u32>,
    /// Namespaces that are attached at the last look, with what a host knows of each; none before
    /// the first.
    known: Option<BTreeMap<u32, Attributes>>,
    /// Sanitizes that had ended; none before the first look.
    sanitized: Option<u64>,
    /// Critical warnings at the last look.
    warning: u8,
    looked_at: Option<Nanos>,
}

impl Events {
    /// Keeps a request outstanding until an event occurs.
    ///
    /// # Errors
    /// Fails if the limit of outstanding requests is reached.
    pub(super) fn hold(&mut self, command: u16) -> Result<(), Status> {
        if self.held.len() >= HELD_MAX {
            return Err(Status::AER_LIMIT);
        }
        self.held.push_back(command);
        Ok(())
    }

    /// Aborts an outstanding request. Returns dword 0 of the Abort: bit 0 is clear on success.
    pub(super) fn abort(&mut self, command: u16) -> u32 {
        let Some(index) = self.held.iter().position(|held| *held == command) else { return 1 };
        self.aborted.extend(self.held.remove(index));
        0
    }

    /// Records that the host read a log page, so that its next event may be reported. Returns the
    /// changed namespaces if it was the Changed Namespace List.
    pub(super) fn page_read(&mut self, page: LogPage) -> BTreeSet<u32> {
        self.masked.remove(&page);
        match page {
            LogPage::ChangedNamespaces => std::mem::take(&mut self.changed),
            _ => BTreeSet::new(),
        }
    }

    /// Namespaces that changed since the Changed Namespace List was read.
    pub(super) const fn changed(&self) -> &BTreeSet<u32> {
        &self.changed
    }

    /// Notes a write to a doorbell that rings for nothing.
    pub(super) fn note_doorbell(&mut self, error: DoorbellError) {
        // Type 0, error status, which hosts cannot disable.
        self.raise(LogPage::Errors, 0, error as u32);
    }

    /// Notes that the log of reservations has a page more.
    pub(super) fn note_reservation(&mut self) {
        // Type 6, of the command set: reservation log page available.
        self.raise(LogPage::ReservationNotification, 6, 0);
    }

    /// Completions that are due, by command, with dword 0.
    pub(super) fn completed(&mut self) -> Vec<(u16, Status, u32)> {
        let aborted = self.aborted.drain(..).map(|id| (id, Status::ABORTED_BY_REQUEST, 0));
        let mut completed: Vec<_> = aborted.collect();
        while let Some(id) = self.held.front().copied() {
            let Some((page, value)) = self.waiting.pop_front() else { break };
            self.held.pop_front();
            self.masked.insert(page);
            completed.push((id, Status::SUCCESS, value));
        }
        completed
    }

    /// Looks at health and namespaces, if it is time to. Returns when to look again.
    pub(super) fn look(
        &mut self,
        context: &Context<'_>,
        features: &Features,
        namespaces: &Namespaces,
    ) -> Option<Nanos> {
        if let Some(at) = self.looked_at.filter(|at| context.now < *at + LOOK_EVERY) {
            return (!self.held.is_empty()).then_some(at + LOOK_EVERY);
        }
        self.looked_at = Some(context.now);
        self.look_at_health(context, features);
        self.look_at_namespaces(context, features, namespaces);
        self.look_at_sanitize(context);
        (!self.held.is_empty()).then_some(context.now + LOOK_EVERY)
    }

    fn look_at_health(&mut self, context: &Context<'_>, features: &Features) {
        let warning = features.critical_warning(&context.drive.operations().health());
        let new = warning & !self.warning;
        self.warning = warning;
        if u32::from(new) & features.events() & CRITICAL_WARNINGS == 0 {
            return;
        }
        // Type 1, SMART / health status: reliability, temperature or spare space.
        let information = match new {
            _ if new & 1 != 0 => 2,
            _ if new & 2 != 0 => 1,
            _ => 0,
        };
        self.raise(LogPage::Health, 1, information);
    }

    fn look_at_namespaces(
        &mut self,
        context: &Context<'_>,
        features: &Features,
        namespaces: &Namespaces,
    ) {
        let operations = context.drive.operations();
        let now: BTreeMap<u32, Attributes> = namespaces
            .iter()
            .map(|it| {
                let (blocks, block_shift) = (it.blocks(), it.block_shift);
                (
                    it.id,
                    Attributes { blocks, block_shift, protection: operations.protection(it.id) },
                )
            })
            .collect();
        let Some(before) = self.known.replace(now.clone()) else { return };
        let ids: BTreeSet<u32> = before.keys().chain(now.keys()).copied().collect();
        let changed: Vec<u32> =
            ids.into_iter().filter(|id| before.get(id) != now.get(id)).collect();
        if changed.is_empty() {
            return;
        }
        self.changed.extend(changed);
        if features.events() & NAMESPACE_NOTICES != 0 {
            // Type 2, notice: namespace attribute changed.
            self.raise(LogPage::ChangedNamespaces, 2, 0);
        }
    }

    fn look_at_sanitize(&mut self, context: &Context<'_>) {
        let sanitize = context.drive.operations().operation_status().sanitize;
        if self.sanitized.replace(sanitize.ended).is_some_and(|before| before < sanitize.ended) {
            // Type 6, of the command set: sanitize operation completed, or completed with blocks
            // deallocated that were to stay allocated.
            let is_unasked = sanitize.state == SanitizeState::Done && sanitize.keeps_blocks;
            self.raise(LogPage::Sanitize, 6, if is_unasked { 2 } else { 1 });
        }
    }

    /// Raises an event, unless one of its page waits, or the host has not read the page since the
    /// last one.
    fn raise(&mut self, page: LogPage, kind: u32, information: u32) {
        if !self.masked.contains(&page) && !self.waiting.iter().any(|(other, _)| *other == page) {
            self.waiting.push_back((page, (page as u32) << 16 | information << 8 | kind));
        }
    }
}
