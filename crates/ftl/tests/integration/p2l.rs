//! Reverse map left to the media: the same decisions, and their cost.

use ftl::{Lpn, Media, MediaOp, NoMedia, Ppn};

use crate::{PAGE, SMALL, indebted, page, write_paid};

/// Media that remember what was written to each place, and count how often they are asked.
struct Telling {
    pages: Vec<Option<Lpn>>,
    ops: Vec<MediaOp>,
    asked: u64,
}

impl Media for Telling {
    fn submit(&mut self, op: MediaOp) {
        if let MediaOp::Relocate { to, lpn, .. } = op {
            self.pages[to.0 as usize] = Some(lpn);
        }
        self.ops.push(op);
    }

    fn contents(&mut self, first: Ppn, pages: &mut [Option<Lpn>]) {
        self.asked += 1;
        let first = first.0 as usize;
        pages.copy_from_slice(&self.pages[first..first + pages.len()]);
    }
}

const ROUNDS: u32 = 8000;

#[test]
fn a_drive_that_is_told_does_what_one_does_that_searches_its_map_once_a_victim() {
    let (mut searching, mut ops) = (indebted(&SMALL), Vec::new());
    let mut told = indebted(&SMALL);
    let places = usize::try_from(SMALL.geometry.pages()).unwrap();
    let mut media = Telling { pages: vec![None; places], ops: Vec::new(), asked: 0 };
    for round in 0..ROUNDS {
        let ppn = write_paid(&mut told, page(round), PAGE, &mut media);
        media.pages[ppn.0 as usize] = Some(page(round));
        assert_eq!(write_paid(&mut searching, page(round), PAGE, &mut ops), ppn);
    }
    assert_eq!(media.ops, ops);
    let relocated = told.counters().pages_relocation;
    assert!(relocated > u64::from(ROUNDS) / 2, "{relocated} pages relocated");
    // Units of four pages, some of which are not valid any more.
    assert!(media.asked > relocated / 4 && media.asked < relocated, "asked {}", media.asked);
    assert_eq!(told.map().searches(), 0);
    let (searches, erased) = (searching.map().searches(), searching.counters().superblocks_erased);
    assert!(searches > 100 && searches <= erased + 1, "{searches} for {erased} superblocks");
}

#[test]
fn the_map_says_what_lies_at_some_places() {
    let mut ftl = indebted(&SMALL);
    let places = [7, 3, 9].map(|lpn| write_paid(&mut ftl, Lpn(lpn), PAGE, &mut NoMedia));
    ftl.trim(Lpn(3));
    assert_eq!(ftl.map().pages_at(&places), [(Lpn(7), places[0]), (Lpn(9), places[2])]);
    assert_eq!(ftl.map().pages_at(&[]), []);
}
