//! Dies that rows leave out.

use super::Core;
use crate::format::die_set::DieSet;
use crate::format::layout::PAGE_BYTES;

/// Share of the pages that may be stored which must fit besides, before rows leave out dies, so
/// that the next few writes do not undo it.
const SLACK_DIVISOR: u32 = 16;

impl Core {
    /// Has rows leave out all of these dies, which have failed, if what is stored fits then with
    /// something to spare; else those that are removed already.
    ///
    /// Whatever a crash may bring back counts as stored.
    pub(crate) fn choose_rows(&mut self, failed: DieSet, removed: DieSet) {
        let shape = self.layout().shape;
        let more = self.freed.div_ceil(PAGE_BYTES as u64)
            + u64::from(self.ftl.config().pages_stored_max / SLACK_DIVISOR);
        let is_possible = shape.may_leave_out(failed)
            && (failed == self.out || self.ftl.fits_leaving_out(failed.count(), more));
        self.leave_out(if is_possible { failed } else { removed });
    }

    /// Has rows that are begun from now on leave out these dies.
    pub(crate) fn leave_out(&mut self, out: DieSet) {
        if out != self.out {
            assert!(self.layout().shape.may_leave_out(out), "a row keeps a data unit");
            self.finish_rows();
            self.out = out;
            self.choices += 1;
            self.ftl.leave_out(out.count());
        }
    }
}
