//! Asynchronous events ([nvme-base-2021], "Asynchronous Event Request command"): a drive whose
//! health changed, a namespace whose size did.
//!
//! ```text
//!   look, now and then ──► event ──► a request that is held ──► its completion
//!                                      └── none: waits ──┘
//!   the log page of an event is read ──► the next event of that kind may come
//! ```

use std::collections::{BTreeSet, VecDeque};

use blockio::Nanos;

use super::controller::Context;
use super::feature::Features;
use super::status::Status;
use super::subsystem::Namespace;

/// Requests that a controller holds.
pub(super) const HELD_MAX: usize = 4;
/// Time from one look at health and sizes to the next, while a host waits for events.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// Events that a controller tells of, as bits of the feature Asynchronous Event Configuration:
/// critical warnings, and attributes of namespaces.
pub(super) const SUPPORTED: u32 = NAMESPACE_NOTICES | CRITICAL_WARNINGS;
pub(super) const NAMESPACE_NOTICES: u32 = 1 << 8;
const CRITICAL_WARNINGS: u32 = 0x1F;

/// Log page that an event points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Page {
    Health = 0x02,
    ChangedNamespaces = 0x04,
}

/// Events of a controller, and requests that wait for them.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Requests without an event, the oldest first.
    held: VecDeque<u16>,
    /// Requests that were aborted.
    aborted: Vec<u16>,
    /// Events without a request, with dword 0 of their completions.
    waiting: VecDeque<(Page, u32)>,
    /// Pages that an event was told of and that were not read since.
    masked: BTreeSet<Page>,
    /// Namespaces whose size changed since that page was read.
    changed: BTreeSet<u32>,
    /// Sizes of the namespaces in blocks at the last look; empty before the first.
    sizes: Vec<u64>,
    /// Critical warnings at the last look.
    warning: u8,
    looked_at: Option<Nanos>,
}

impl Events {
    /// Holds a request until an event comes.
    ///
    /// # Errors
    /// Fails if as many are held as may be.
    pub(super) fn hold(&mut self, command: u16) -> Result<(), Status> {
        if self.held.len() >= HELD_MAX {
            return Err(Status::AER_LIMIT);
        }
        self.held.push_back(command);
        Ok(())
    }

    /// Aborts a request that is held. Returns dword 0 of the Abort: bit 0 is clear if it was.
    pub(super) fn abort(&mut self, command: u16) -> u32 {
        let Some(index) = self.held.iter().position(|held| *held == command) else { return 1 };
        self.aborted.extend(self.held.remove(index));
        0
    }

    /// The page was read: the next event about it may come. Returns the namespaces that changed, if
    /// it is about them.
    pub(super) fn page_read(&mut self, page: Page) -> BTreeSet<u32> {
        self.masked.remove(&page);
        match page {
            Page::Health => BTreeSet::new(),
            Page::ChangedNamespaces => std::mem::take(&mut self.changed),
        }
    }

    /// Namespaces that changed since that page was read.
    pub(super) const fn changed(&self) -> &BTreeSet<u32> {
        &self.changed
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

    /// Looks at health and sizes, if it is time to. Returns when to look again.
    pub(super) fn look(&mut self, context: &Context<'_>, features: &Features) -> Option<Nanos> {
        if let Some(at) = self.looked_at.filter(|at| context.now < *at + LOOK_EVERY) {
            return (!self.held.is_empty()).then_some(at + LOOK_EVERY);
        }
        self.looked_at = Some(context.now);
        self.look_at_health(context, features);
        self.look_at_sizes(context, features);
        (!self.held.is_empty()).then_some(context.now + LOOK_EVERY)
    }

    fn look_at_health(&mut self, context: &Context<'_>, features: &Features) {
        let warning = features.critical_warning(&context.subsystem.administration().health());
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
        self.raise(Page::Health, 1, information);
    }

    fn look_at_sizes(&mut self, context: &Context<'_>, features: &Features) {
        let sizes: Vec<u64> =
            context.subsystem.namespaces().iter().map(Namespace::blocks).collect();
        let before = std::mem::replace(&mut self.sizes, sizes);
        let changed: Vec<u32> = (1..)
            .zip(before.iter().zip(&self.sizes))
            .filter(|(_, (then, now))| then != now)
            .map(|(id, _)| id)
            .collect();
        if changed.is_empty() {
            return;
        }
        self.changed.extend(changed);
        if features.events() & NAMESPACE_NOTICES != 0 {
            // Type 2, notice: namespace attribute changed.
            self.raise(Page::ChangedNamespaces, 2, 0);
        }
    }

    /// Has the host told, unless it was and has not read the page since.
    fn raise(&mut self, page: Page, kind: u32, information: u32) {
        if !self.masked.contains(&page) && !self.waiting.iter().any(|(other, _)| *other == page) {
            self.waiting.push_back((page, (page as u32) << 16 | information << 8 | kind));
        }
    }
}
