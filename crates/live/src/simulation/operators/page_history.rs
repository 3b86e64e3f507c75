//! Contents that a page may have: writes by their numbers, 0 for nothing.

/// Writes of a page since it was known.
#[derive(Clone, Debug, Default)]
pub(super) struct PageHistory {
    /// Contents that a crash may have left; empty while there was none.
    allowed: Vec<u64>,
    /// Content that survives a power loss, unless something since then does.
    settled: u64,
    /// Writes since then, and whether each was acknowledged.
    since: Vec<(u64, bool)>,
}

impl PageHistory {
    /// A write that is under way.
    pub(super) fn attempt(&mut self, number: u64) {
        self.since.push((number, false));
    }

    /// The last write was acknowledged.
    pub(super) fn acknowledge(&mut self) {
        if let Some((_, is_acknowledged)) = self.since.last_mut() {
            *is_acknowledged = true;
        }
    }

    /// A flush was acknowledged.
    pub(super) fn settle(&mut self) {
        self.settled = self.latest();
        self.since.clear();
        self.allowed.clear();
    }

    pub(super) fn is_settled(&self) -> bool {
        self.since.is_empty()
    }

    fn latest(&self) -> u64 {
        self.since.iter().rev().find(|(_, is)| *is).map_or(self.settled, |(number, _)| *number)
    }

    /// True if a client may read that now.
    pub(super) fn is_latest(&self, number: u64) -> bool {
        number == self.latest()
    }

    /// The server died: whatever was acknowledged last is there, or what was under way.
    pub(super) fn lose_server(&mut self) {
        let from = self.since.iter().rposition(|(_, is)| *is).unwrap_or(0);
        self.allowed = vec![self.latest()];
        self.allowed.extend(self.since.iter().skip(from).map(|(number, _)| *number));
    }

    /// The power went: anything since the last flush may be there.
    pub(super) fn lose_power(&mut self) {
        self.since.iter_mut().for_each(|(_, is_acknowledged)| *is_acknowledged = false);
        self.allowed = vec![self.settled];
        self.allowed.extend(self.since.iter().map(|(number, _)| *number));
    }

    /// True if the page may hold that now.
    pub(super) fn allows(&self, number: u64) -> bool {
        if self.allowed.is_empty() {
            self.is_latest(number)
        } else {
            self.allowed.contains(&number)
        }
    }

    /// Takes note of its content after a crash, which the power may still take.
    pub(super) fn become_known(&mut self, number: u64) {
        if self.settled != number || !self.is_settled() {
            self.since.push((number, true));
        }
        self.allowed.clear();
    }

    /// Takes note that it holds nothing, durably.
    pub(super) fn erase(&mut self) {
        *self = Self::default();
    }
}
