//! Other capacities for the host, over the same media.

use ftl::{Config, Geometry, Lpn, NoMedia, Watermarks};

use crate::{PAGE, SMALL, indebted, write_paid};

const CONFIG: Config = Config {
    geometry: Geometry {
        erase_blocks_per_plane: 20,
        pages_per_erase_block: 4,
        page_kib: 8,
        ..SMALL.geometry
    },
    pages_logical: 60,
    pages_stored_max: 60,
    watermarks: Watermarks { low: 4, high: 7, burst: 0.1, price_max: 1e9, batch_pages: 1 },
    ..SMALL
};

#[test]
fn pages_within_the_new_end_stay_and_those_beyond_are_forgotten() {
    let mut ftl = indebted(&CONFIG);
    let places: Vec<_> =
        (0..60).map(|lpn| write_paid(&mut ftl, Lpn(lpn), PAGE, &mut NoMedia)).collect();
    ftl.resize(40, 40).unwrap();
    assert_eq!((ftl.config().pages_logical, ftl.occupancy().pages_stored), (40, 40));
    ftl.resize(80, 80).unwrap();
    let kept = (0..40).all(|lpn| ftl.lookup(Lpn(lpn)) == Some(places[lpn as usize]));
    assert!(kept && (40..80).all(|lpn| ftl.lookup(Lpn(lpn)).is_none()));
    assert!(places[40..].iter().all(|ppn| !ftl.map().is_valid(*ppn)));
    for round in 0..400 {
        write_paid(&mut ftl, Lpn(round * 7 % 80), PAGE, &mut NoMedia);
    }
    assert_eq!(ftl.occupancy().pages_stored, 80);
}

#[test]
fn a_capacity_that_cannot_be_changes_nothing() {
    let mut ftl = indebted(&CONFIG);
    for lpn in 0..60 {
        write_paid(&mut ftl, Lpn(lpn), PAGE, &mut NoMedia);
    }
    assert!(ftl.resize(120, 120).is_err() && ftl.resize(70, 50).is_err());
    assert_eq!((ftl.config().pages_logical, ftl.occupancy().pages_stored), (60, 60));
}
