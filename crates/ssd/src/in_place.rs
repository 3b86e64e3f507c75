//! One module of media that is written in place: nothing to map, to relocate or to erase.
//!
//! ```text
//!  controller ─► media, at the rate of a module ─► latency of the media ─► link      (reads)
//!      └─► queue ─► media                                                            (writes)
//! ```
//!
//! Where the host's processor copies the data, the media works while it copies: lines arrive as
//! they are asked for, and are taken as they come. A transfer is then no time of its own, unless it
//! takes longer than the copy. Caches allocate what is written, so a copy begins with the arrival
//! of its first line in either direction.
//!
//! Every address is always where it was, so the module keeps no state but what it has to do. Time
//! lapse is exact: a smaller module differs in nothing but its size. A trim gains nothing and
//! changes nothing.

use blockio::{Nanos, SECTOR_BYTES};
use ftl::{Counters, PAGE_BYTES};

use crate::climate::Throttle;
use crate::command::{CommandCosts, picos, span};
use crate::module::Extent;
use crate::server::{PriorityServer, ServerPool};
use crate::spec::{DriveSpec, HostSpec, InPlaceSpec};

/// Time that each operation costs.
#[derive(Clone, Copy, Debug)]
struct MediaCosts {
    command: CommandCosts,
    read_line_ps: u64,
    write_line_ps: u64,
    read: Nanos,
    write: Nanos,
    /// Time in which the media takes what the queue holds.
    queue: Nanos,
}

/// Time in which the host moves the data of a request: a moment, unless its processor copies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    pub(crate) begins_at: Nanos,
    /// No earlier than its begin.
    pub(crate) ends_at: Nanos,
}

/// One module.
#[derive(Clone, Debug)]
pub(crate) struct InPlace {
    costs: MediaCosts,
    /// Costs while nothing is throttled.
    costs_free: MediaCosts,
    line_bytes: u64,
    write_unit_bytes: u64,
    /// Pieces in which cores share a command; a whole request if it has none.
    piece_bytes: u64,
    controller: ServerPool,
    media: PriorityServer,
    counters: Counters,
    media_bytes: u64,
}

impl InPlace {
    /// An idle module.
    pub(crate) fn new(spec: &DriveSpec, media: &InPlaceSpec, host: &HostSpec) -> Self {
        let costs = MediaCosts::new(spec, media, host);
        Self {
            costs,
            costs_free: costs,
            line_bytes: media.line_bytes.into(),
            write_unit_bytes: media.write_unit().into(),
            piece_bytes: match spec.controller.piece_kib {
                0 => u64::MAX,
                kib => u64::from(kib) * 1024,
            },
            controller: ServerPool::new(spec.controller.cores),
            media: PriorityServer::default(),
            counters: Counters::default(),
            media_bytes: 0,
        }
    }

    /// Holds the writes of media that are booked from now on.
    pub(crate) fn throttle(&mut self, throttle: Throttle) {
        // Picoseconds are throttled as nanoseconds are.
        self.costs.write_line_ps = throttle.of(Nanos(self.costs_free.write_line_ps)).0;
        self.costs.write = throttle.of(self.costs_free.write);
        let is_slower = self.costs.write_line_ps >= self.costs_free.write_line_ps;
        assert!(is_slower, "a throttled write takes no less time");
    }

    /// Reads an extent; returns when its data is at hand.
    #[inline]
    pub(crate) fn read(&mut self, copying: Copying, extent: Extent) -> Nanos {
        let command = self.costs.command.read(extent.sectors);
        let at = self.carry_out(copying.begins_at, command, extent);
        self.counters.host_read_bytes += u64::from(extent.sectors) * SECTOR_BYTES;
        self.fetch(at, touched(extent, self.line_bytes)).max(self.copied_at(copying))
    }

    /// Writes an extent; returns when it is acknowledged. Units that are written in part are read
    /// first, and written whole (read-modify-write).
    #[inline]
    pub(crate) fn write(&mut self, copying: Copying, extent: Extent) -> Nanos {
        let bytes = u64::from(extent.sectors) * SECTOR_BYTES;
        let lines =
            touched(extent, self.write_unit_bytes) * self.write_unit_bytes / self.line_bytes;
        debug_assert!(lines * self.line_bytes >= bytes, "units cover the extent that touches them");
        let command = self.costs.command.write(extent.sectors);
        let mut at = self.carry_out(copying.begins_at, command, extent);
        if lines * self.line_bytes > bytes {
            at = self.fetch(at, lines);
        }
        let taken = self.media.book(at, span(self.costs.write_line_ps, lines));
        self.counters.host_sent_bytes += bytes;
        self.media_bytes += lines * self.line_bytes;
        let at = at.max(self.copied_at(copying));
        at.max((taken + self.costs.write).saturating_sub(self.costs.queue))
    }

    /// Books a command on the controller, whose cores share a large one.
    #[inline]
    fn carry_out(&mut self, at: Nanos, command: Nanos, extent: Extent) -> Nanos {
        let pieces = (u64::from(extent.sectors) * SECTOR_BYTES).div_ceil(self.piece_bytes);
        self.controller.book_in_parts(at, command, pieces)
    }

    /// Acknowledges a trim.
    pub(crate) fn trim(&mut self, at: Nanos) -> Nanos {
        self.controller.book(at, self.costs.command.write(0))
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

    /// Time at which the host has moved the data: a copy waits for its first line.
    #[inline]
    fn copied_at(&self, copying: Copying) -> Nanos {
        let is_copied = copying.ends_at > copying.begins_at;
        copying.ends_at + if is_copied { self.costs.read } else { Nanos::ZERO }
    }

    #[inline]
    fn fetch(&mut self, at: Nanos, lines: u64) -> Nanos {
        self.media.book_urgent(at, span(self.costs.read_line_ps, lines)) + self.costs.read
    }
}

/// Pieces of `bytes` that an extent touches.
#[inline]
const fn touched(extent: Extent, bytes: u64) -> u64 {
    let first = extent.first * SECTOR_BYTES;
    let end = first + extent.sectors as u64 * SECTOR_BYTES;
    end.div_ceil(bytes) - first / bytes
}

impl MediaCosts {
    fn new(spec: &DriveSpec, media: &InPlaceSpec, host: &HostSpec) -> Self {
        let line = f64::from(media.line_bytes);
        let queue_bytes = f64::from(media.queue_kib) * 1024.0;
        let lines = [picos(line / media.read_mb_s), picos(line / media.write_mb_s)];
        assert!(lines.iter().all(|picos| *picos > 0), "media takes time for a line");
        Self {
            command: CommandCosts::new(spec, host),
            read_line_ps: lines[0],
            write_line_ps: lines[1],
            read: Nanos::from_micros_f64(media.read_us),
            write: Nanos::from_micros_f64(media.write_us),
            queue: Nanos::from_micros_f64(queue_bytes / media.write_mb_s),
        }
    }
}
