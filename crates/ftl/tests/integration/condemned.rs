//! Superblocks that are condemned, as their owner finds places where the media failed.

use std::collections::BTreeSet;

use ftl::{Debt, Ftl, MediaOp, SuperblockId, SuperblockState};

use crate::{PAGE, SMALL, indebted, page, write_paid};

/// An owner that releases erased superblocks after some more writes, and notes which are opened.
struct Owner {
    ftl: Ftl<Debt>,
    ops: Vec<MediaOp>,
    round: u32,
}

impl Owner {
    fn new() -> Self {
        Self { ftl: indebted(&SMALL), ops: Vec::new(), round: 0 }
    }

    /// Writes so many pages; none of them, nor what is relocated, lies in `spared`.
    fn write(&mut self, pages: u32, spared: &BTreeSet<SuperblockId>) {
        for _ in 0..pages {
            let lpn = page(self.round);
            self.round += 1;
            write_paid(&mut self.ftl, lpn, PAGE, &mut self.ops);
            for op in self.ops.drain(..) {
                if let MediaOp::Program { superblock, .. } = op {
                    assert!(!spared.contains(&superblock), "{superblock:?} is programmed again");
                }
            }
        }
        self.ftl.check_invariants();
    }

    /// Moves what a superblock holds, erases it, and has it released.
    fn drain(&mut self, superblock: SuperblockId) {
        let places = SMALL.geometry.pages_per_superblock();
        let first = superblock.0 * places;
        while let Some(lpn) = self.ftl.map().page_within(first..first + places) {
            self.ftl.relocate(lpn, &mut self.ops);
        }
        assert!(self.ftl.erase_emptied(superblock, &mut self.ops));
        self.ftl.release_erased(self.ftl.held_erased().len());
        self.ops.clear();
    }
}

#[test]
fn a_condemned_superblock_is_never_opened_again_whatever_state_it_was_in() {
    for id in (0..24).map(SuperblockId) {
        let mut owner = Owner::new();
        owner.write(3000 + 40 * id.0, &BTreeSet::new());
        owner.ftl.finish_rows(&mut owner.ops);
        owner.ops.clear();
        assert!(owner.ftl.condemn(id) && owner.ftl.condemn(id), "once is enough");
        owner.ftl.check_invariants();
        let spared = BTreeSet::from([id]);
        owner.write(200, &spared);
        if owner.ftl.superblock(id).state != SuperblockState::Bad {
            owner.drain(id);
        }
        assert_eq!(owner.ftl.superblock(id).state, SuperblockState::Bad);
        owner.write(2000, &spared);
        owner.ftl.purge();
        owner.ftl.release_erased(owner.ftl.held_erased().len());
        owner.write(1000, &spared);
        owner.ftl.reinstate(id);
        owner.write(2000, &BTreeSet::new());
        assert_ne!(owner.ftl.superblock(id).state, SuperblockState::Bad);
    }
}

#[test]
fn no_more_are_condemned_than_leaves_relocation_what_it_needs() {
    let mut owner = Owner::new();
    owner.write(3000, &BTreeSet::new());
    owner.ftl.finish_rows(&mut owner.ops);
    assert!(owner.ftl.resize(SMALL.pages_logical + 1, SMALL.pages_logical).is_ok());
    let mut condemned = BTreeSet::new();
    for id in (0..24).map(SuperblockId) {
        if owner.ftl.condemn(id) {
            condemned.insert(id);
        }
    }
    // Half of those that neither data nor relocation need.
    assert_eq!(condemned.len(), 1);
    owner.ops.clear();
    owner.write(5000, &condemned);
    // Of what the format allows, the condemned ones are no part any more.
    let mut sizes = SMALL.pages_logical..2 * SMALL.pages_logical;
    let most = sizes.find(|it| owner.ftl.resize(*it, *it).is_err()).unwrap();
    let mut whole = indebted(&SMALL);
    assert!(whole.resize(most, most).is_ok());
}
