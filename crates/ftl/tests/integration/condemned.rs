//! Superblocks that are condemned, as their owner finds places where the media failed.

use std::collections::BTreeSet;

use ftl::{Ftl, Lpn, MediaOp, SuperblockId, SuperblockState};

use crate::{SMALL, page};

/// An owner that releases erased superblocks after some more writes, and notes which are opened.
struct Owner {
    ftl: Ftl,
    ops: Vec<MediaOp>,
    round: u32,
}

impl Owner {
    fn new() -> Self {
        let mut ftl = Ftl::format(&SMALL).expect("it can be");
        ftl.hold_erased();
        Self { ftl, ops: Vec::new(), round: 0 }
    }

    /// Writes so many pages; none of them, nor what is relocated, lies in `spared`.
    fn write(&mut self, pages: u32, spared: &BTreeSet<SuperblockId>) {
        for _ in 0..pages {
            while self.ftl.needs_room() {
                self.ftl.relocate_next(&mut self.ops);
                self.ftl.release_erased(self.ftl.held_erased().len());
            }
            let lpn = page(self.round);
            self.round += 1;
            self.ftl.write(lpn, &mut self.ops);
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
        let pages = (0..SMALL.pages_logical).map(Lpn);
        let lies_there = |ftl: &Ftl, lpn: Lpn| {
            ftl.lookup(lpn).is_some_and(|ppn| ftl.unit_of(ppn).0 == superblock)
        };
        for lpn in pages {
            if lies_there(&self.ftl, lpn) {
                self.ftl.relocate(lpn, &mut self.ops);
            }
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
        if owner.ftl.superblock_state(id) != SuperblockState::Bad {
            owner.drain(id);
        }
        assert_eq!(owner.ftl.superblock_state(id), SuperblockState::Bad);
        owner.write(2000, &spared);
        owner.ftl.purge();
        owner.ftl.release_erased(owner.ftl.held_erased().len());
        owner.write(1000, &spared);
        owner.ftl.reinstate(id);
        owner.write(2000, &BTreeSet::new());
        assert_ne!(owner.ftl.superblock_state(id), SuperblockState::Bad);
    }
}

#[test]
fn no_more_are_condemned_than_leaves_relocation_what_it_needs() {
    let mut owner = Owner::new();
    owner.write(3000, &BTreeSet::new());
    owner.ftl.finish_rows(&mut owner.ops);
    let max = owner.ftl.superblocks_condemned_max();
    assert!(max > 0 && owner.ftl.resize(SMALL.pages_logical + 1, SMALL.pages_logical).is_ok());
    let mut condemned = BTreeSet::new();
    for id in (0..24).map(SuperblockId) {
        if owner.ftl.condemn(id) {
            condemned.insert(id);
        }
    }
    assert_eq!(condemned.len(), max as usize);
    owner.ops.clear();
    owner.write(5000, &condemned);
    // Of what the format allows, the condemned ones are no part any more.
    let mut sizes = SMALL.pages_logical..2 * SMALL.pages_logical;
    let most = sizes.find(|it| owner.ftl.resize(*it, *it).is_err()).unwrap();
    let mut whole = Ftl::format(&SMALL).unwrap();
    assert!(whole.resize(most, most).is_ok());
}
