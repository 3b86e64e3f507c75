//! Mechanics of a hard disk: where an address lies, and how long the arm and the platters take to
//! get there.
//!
//! Addresses begin at the outermost cylinder, whose tracks are the longest, and run inwards. With a
//! rate that falls evenly from `r0` outside to `r1` inside, the address at a share `x` of the
//! capacity is read at `r = sqrt(r0^2 - (r0^2 - r1^2) x)` and lies at the share
//! `(r0 - r) / (r0 - r1)` of the cylinders. A head that reads everything from the beginning reaches
//! it after `2 (r0 - r) / (r0^2 - r1^2)` times the capacity.
//!
//! Seeks take `a sqrt(x) + b x + c` over a share `x` of the cylinders, through the three times that
//! a manual states [lee-1993].
//!
//! Invariants:
//! - Additions, multiplications, divisions and square roots in a fixed order: the same bits on
//!   every machine.
//! - At 1/k of the capacity shares, rates and times stay what they are.

use blockio::{Nanos, SECTOR_BYTES};

use crate::spec::DiskSpec;

/// Factors `a`, `b` and `c` of a seek's time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeekCurve {
    a: f64,
    b: f64,
    c: f64,
}

/// The curve through seeks to the next cylinder, on average and over all cylinders, in
/// milliseconds; none if it would fall somewhere.
pub(crate) fn seek_curve([next, average, all]: [f64; 3]) -> Option<SeekCurve> {
    let a = (15.0 * average - 10.0 * next - 5.0 * all) / 3.0;
    let b = (7.0 * next - 15.0 * average + 8.0 * all) / 3.0;
    (a >= 0.0 && b >= 0.0).then_some(SeekCurve { a: a / 1e3, b: b / 1e3, c: next / 1e3 })
}

impl SeekCurve {
    /// Time for a share of all cylinders, in seconds.
    fn seconds(self, share: f64) -> f64 {
        self.a * share.sqrt() + self.b * share + self.c
    }
}

/// Position of the arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Head {
    /// Sector after the last one that was under it.
    pub(crate) sector: u64,
    /// Time at which it was there.
    pub(crate) at: Nanos,
}

/// Seeks, rotation and rates of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mechanics {
    sectors: f64,
    /// Rates in bytes a second.
    outer: f64,
    inner: f64,
    cylinders: f64,
    revolution_s: f64,
    read: SeekCurve,
    write: SeekCurve,
}

impl Mechanics {
    /// A disk of `sectors`, which are all those of `spec` at some scale.
    pub(crate) fn new(spec: &DiskSpec, sectors: u64) -> Self {
        let (outer, inner) = (spec.outer_mb_s * 1e6, spec.inner_mb_s * 1e6);
        let revolution_s = 60.0 / spec.rpm;
        let cylinder_bytes = f64::midpoint(outer, inner) * revolution_s * f64::from(spec.heads);
        let curve = |seek| seek_curve(seek).expect("checked when the drive's file was read");
        assert!(outer >= inner && inner > 0.0, "tracks are no shorter outside");
        Self {
            sectors: sectors as f64,
            outer,
            inner,
            cylinders: (spec.gb * 1e9 / cylinder_bytes).max(1.0),
            revolution_s,
            read: curve(spec.read_seek_ms),
            write: curve(spec.write_seek_ms),
        }
    }

    /// Time from `now` until the first of some sectors is under the head.
    pub(crate) fn position(&self, head: Head, now: Nanos, first: u64, is_write: bool) -> Nanos {
        if (head.sector, head.at) == (first, now) {
            return Nanos::ZERO;
        }
        let share = (self.cylinder(head.sector) - self.cylinder(first)).abs();
        let curve = if is_write { self.write } else { self.read };
        // Sectors that follow one another do so across cylinders too: rates have that in them.
        let is_near = share * self.cylinders < 1.0 || head.sector == first;
        let seek_s = if is_near { 0.0 } else { curve.seconds(share) };
        let arrived_s = now.as_secs_f64() + seek_s;
        let turns = self.turns(first) - arrived_s / self.revolution_s;
        Nanos::from_secs_f64(seek_s + (turns - turns.floor()) * self.revolution_s)
    }

    /// Time for `sectors` to pass under the head, beginning with `first`.
    pub(crate) fn transfer(&self, first: u64, sectors: u64) -> Nanos {
        Nanos::from_secs_f64(self.passed_s(first + sectors) - self.passed_s(first))
    }

    /// Sectors that have passed under the head in `span`, beginning with `first`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few sectors")]
    pub(crate) fn passed(&self, first: u64, span: Nanos) -> u64 {
        (span.as_secs_f64() * self.rate(first) / SECTOR_BYTES as f64) as u64
    }

    /// Rate at a sector, in bytes a second.
    fn rate(&self, sector: u64) -> f64 {
        let share = (sector as f64 / self.sectors).min(1.0);
        let (outer, inner) = (self.outer, self.inner);
        (outer * outer - (outer * outer - inner * inner) * share).sqrt()
    }

    /// Share of the cylinders that lie outside of a sector's, 0 to 1.
    fn cylinder(&self, sector: u64) -> f64 {
        if self.outer > self.inner {
            (self.outer - self.rate(sector)) / (self.outer - self.inner)
        } else {
            sector as f64 / self.sectors
        }
    }

    /// Time in which all sectors before this one pass under the head, in seconds.
    fn passed_s(&self, sector: u64) -> f64 {
        let (outer, inner) = (self.outer, self.inner);
        let bytes = SECTOR_BYTES as f64;
        if outer > inner {
            let square = outer * outer - inner * inner;
            2.0 * self.sectors * bytes * (outer - self.rate(sector)) / square
        } else {
            sector as f64 * bytes / outer
        }
    }

    /// Turns of the platters after which a sector is under the head, whole ones included.
    fn turns(&self, sector: u64) -> f64 {
        self.passed_s(sector) / self.revolution_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockio::Rng;

    fn spec() -> DiskSpec {
        DiskSpec {
            gb: 100.0,
            rpm: 15_000.0,
            heads: 4,
            read_seek_ms: [0.2, 2.6, 4.9],
            write_seek_ms: [0.4, 3.1, 5.5],
            outer_mb_s: 90.0,
            inner_mb_s: 60.0,
            queue_depth: 32,
            wait_max_ms: 500.0,
            read_ahead_kib: 0,
            write_cache_kib: 0,
            write_cache_entries: 1,
            source: "estimated: for a test".into(),
        }
    }

    const SECTORS: u64 = 195_312_500;

    #[test]
    fn a_seek_curve_goes_through_what_a_manual_states() {
        let curve = seek_curve([0.2, 2.6, 4.9]).expect("a curve");
        assert!((curve.seconds(0.0) * 1e3 - 0.2).abs() < 1e-9);
        assert!((curve.seconds(1.0) * 1e3 - 4.9).abs() < 1e-9);
        // The mean over all pairs of cylinders, whose distances have the density 2 (1 - x).
        let (steps, mut mean) = (10_000_u32, 0.0);
        for step in 0..steps {
            let share = (f64::from(step) + 0.5) / f64::from(steps);
            mean += curve.seconds(share) * 2.0 * (1.0 - share) / f64::from(steps);
        }
        assert!((mean * 1e3 - 2.6).abs() < 1e-3, "{mean}");
        assert_eq!(seek_curve([5.0, 1.0, 2.0]), None);
    }

    #[test]
    fn rates_and_capacity_follow_the_zones() {
        let disk = Mechanics::new(&spec(), SECTORS);
        let mb_s = |first| 2048.0 * 512.0 / disk.transfer(first, 2048).as_secs_f64() / 1e6;
        assert!((mb_s(0) - 90.0).abs() < 0.1 && (mb_s(SECTORS - 2048) - 60.0).abs() < 0.1);
        // The whole disk takes its bytes over the mean of both rates, since tracks are counted.
        let whole_s = disk.transfer(0, SECTORS).as_secs_f64();
        assert!((whole_s - 100e9 / 75e6).abs() < 1.0, "{whole_s}");
        assert!(disk.cylinder(SECTORS / 2) < 0.46, "the outer half takes fewer cylinders");
    }

    #[test]
    fn rotation_takes_half_a_turn_on_average_and_never_a_whole_one() {
        let disk = Mechanics::new(&spec(), SECTORS);
        let mut rng = Rng::new(1);
        let mut sum = 0.0;
        for _ in 0..10_000 {
            let first = rng.below(SECTORS);
            let now = Nanos(rng.below(1_000_000_000_000));
            // The same cylinder: nothing but rotation.
            let head = Head { sector: first + 1, at: Nanos::ZERO };
            let wait = disk.position(head, now, first, false);
            assert!(wait <= Nanos::from_millis(4), "{wait}");
            sum += wait.as_secs_f64();
        }
        assert!((sum / 10_000.0 / 0.002 - 1.0).abs() < 0.02, "{sum}");
    }

    #[test]
    fn a_smaller_scale_changes_no_time() {
        let (whole, part) =
            (Mechanics::new(&spec(), SECTORS), Mechanics::new(&spec(), SECTORS / 64));
        let from = |sector| Head { sector, at: Nanos::ZERO };
        let span = |disk: &Mechanics, scale: u64| {
            let first = SECTORS / 3 / scale;
            let curve = disk.read;
            let share = (disk.cylinder(0) - disk.cylinder(first)).abs();
            (curve.seconds(share), disk.transfer(first, 256).0)
        };
        let (seen, lapsed) = (span(&whole, 1), span(&part, 64));
        assert!((seen.0 / lapsed.0 - 1.0).abs() < 1e-6 && seen.1.abs_diff(lapsed.1) < 100);
        assert_eq!(whole.position(from(8), Nanos::ZERO, 8, false), Nanos::ZERO);
    }
}
