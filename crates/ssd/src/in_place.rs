//! One module of media that is written in place: nothing to map, to relocate or to erase.
//!
//! ```text
//!  controller ─► media, at the rate of a module ─► latency of the media ─► link      (reads)
//!      └─► queue ─► media                                                            (writes)
//! ```
//!
//! Every address is always where it was, so the module keeps no state but what it has to do. Time
//! lapse is exact: a smaller module differs in nothing but its size. A trim gains nothing and
//! changes nothing.

use blockio::{Bytes, Nanos, SECTOR_BYTES};
use ftl::{Counters, PAGE_BYTES};

use crate::climate::Hold;
use crate::module::Extent;
use crate::server::{PriorityServer, ServerPool};
use crate::spec::{DriveSpec, HostSpec, InPlaceSpec};

/// Time that each operation costs.
#[derive(Clone, Copy, Debug)]
struct Costs {
    read_command: Nanos,
    write_command: Nanos,
    read_sector_ps: u64,
    write_sector_ps: u64,
    read_line_ps: u64,
    write_line_ps: u64,
    read: Nanos,
    write: Nanos,
    /// Time in which the media takes what the queue holds.
    queue: Nanos,
}

/// One module.
#[derive(Clone, Debug)]
pub(crate) struct InPlace {
    costs: Costs,
    /// Costs while nothing is throttled.
    costs_free: Costs,
    line_bytes: u64,
    controller: ServerPool,
    media: PriorityServer,
    counters: Counters,
    media_bytes: u64,
}

impl InPlace {
    /// An idle module.
    pub(crate) fn new(spec: &DriveSpec, media: &InPlaceSpec, host: &HostSpec) -> Self {
        let costs = Costs::new(spec, media, host);
        Self {
            costs,
            costs_free: costs,
            line_bytes: media.line_bytes.into(),
            controller: ServerPool::new(spec.controller.cores),
            media: PriorityServer::default(),
            counters: Counters::default(),
            media_bytes: 0,
        }
    }

    /// Holds the writes of media that are booked from now on.
    pub(crate) fn hold(&mut self, hold: Hold) {
        // Picoseconds are held as nanoseconds are.
        self.costs.write_line_ps = hold.of(Nanos(self.costs_free.write_line_ps)).0;
        self.costs.write = hold.of(self.costs_free.write);
        let is_slower = self.costs.write_line_ps >= self.costs_free.write_line_ps;
        assert!(is_slower, "a held write takes no less time");
    }

    /// Reads an extent; returns when its data is at hand.
    #[inline]
    pub(crate) fn read(&mut self, at: Nanos, extent: Extent) -> Nanos {
        let span = self.costs.read_command + span(self.costs.read_sector_ps, extent.sectors.into());
        let at = self.controller.book(at, span);
        self.counters.host_read_bytes += u64::from(extent.sectors) * SECTOR_BYTES;
        self.fetch(at, self.lines(extent))
    }

    /// Writes an extent; returns when it is acknowledged. Lines that are written in part are read
    /// first (read-modify-write).
    #[inline]
    pub(crate) fn write(&mut self, at: Nanos, extent: Extent) -> Nanos {
        let bytes = u64::from(extent.sectors) * SECTOR_BYTES;
        let lines = self.lines(extent);
        debug_assert!(lines * self.line_bytes >= bytes, "lines cover the extent that touches them");
        let command =
            self.costs.write_command + span(self.costs.write_sector_ps, extent.sectors.into());
        let mut at = self.controller.book(at, command);
        if lines * self.line_bytes > bytes {
            at = self.fetch(at, lines);
        }
        let taken = self.media.book(at, span(self.costs.write_line_ps, lines));
        self.counters.host_sent_bytes += bytes;
        self.media_bytes += lines * self.line_bytes;
        at.max((taken + self.costs.write).saturating_sub(self.costs.queue))
    }

    /// Acknowledges a trim.
    pub(crate) fn trim(&mut self, at: Nanos) -> Nanos {
        self.controller.book(at, self.costs.write_command)
    }

    /// Returns the counters so far: pages of the host are what the media wrote, in whole lines.
    pub(crate) fn counters(&self) -> Counters {
        let (media, host) = (self.media_bytes, self.counters.host_sent_bytes);
        assert!(media >= host, "the media writes whole lines: {media} bytes for {host}");
        Counters { pages_host: self.media_bytes / PAGE_BYTES, ..self.counters }
    }

    /// Work that the controller was given so far.
    pub(crate) const fn controller_work(&self) -> Nanos {
        self.controller.work()
    }

    #[inline]
    fn fetch(&mut self, at: Nanos, lines: u64) -> Nanos {
        self.media.book_urgent(at, span(self.costs.read_line_ps, lines)) + self.costs.read
    }

    /// Lines that an extent touches.
    #[inline]
    const fn lines(&self, extent: Extent) -> u64 {
        let first = extent.first * SECTOR_BYTES;
        let end = first + extent.sectors as u64 * SECTOR_BYTES;
        end.div_ceil(self.line_bytes) - first / self.line_bytes
    }
}

impl Costs {
    fn new(spec: &DriveSpec, media: &InPlaceSpec, host: &HostSpec) -> Self {
        let controller = &spec.controller;
        let factor = if controller.on_host { host.controller_factor } else { 1.0 };
        let command = |micros: f64| Nanos::from_micros_f64(micros * factor);
        let sector_kib = Bytes(SECTOR_BYTES).as_kib_f64();
        let line = f64::from(media.line_bytes);
        let queue_bytes = f64::from(media.queue_kib) * 1024.0;
        let lines = [picos(line / media.read_mb_s), picos(line / media.write_mb_s)];
        assert!(lines.iter().all(|picos| *picos > 0), "media takes time for a line");
        Self {
            read_command: command(controller.read_us),
            write_command: command(controller.write_us),
            read_sector_ps: picos(controller.read_us_per_kib * sector_kib * factor),
            write_sector_ps: picos(controller.write_us_per_kib * sector_kib * factor),
            read_line_ps: lines[0],
            write_line_ps: lines[1],
            read: Nanos::from_micros_f64(media.read_us),
            write: Nanos::from_micros_f64(media.write_us),
            queue: Nanos::from_micros_f64(queue_bytes / media.write_mb_s),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
fn picos(micros: f64) -> u64 {
    (micros * 1e6).round() as u64
}

/// Time of `count` things that take `ps` picoseconds each.
#[inline]
const fn span(ps: u64, count: u64) -> Nanos {
    Nanos(ps * count / 1000)
}
