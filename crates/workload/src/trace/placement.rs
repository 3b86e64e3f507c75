//! Placement of a trace's requests on a drive of another size.

use std::fmt;

use blockio::{Bytes, Lba, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use super::statistics::REGION_SECTORS;
use super::{Trace, TraceRequest};
use crate::{GeneratedRequest, Span};

/// Mapping of a trace's addresses to those of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// Stretched or shrunk with the whole space: what was far apart stays so, what was next to each
    /// other may overlap or leave a gap.
    #[default]
    Scaled,
    /// Kept, and begun again from zero beyond the drive's end: what was next to each other stays
    /// so.
    Wrapped,
    /// Scaled in regions of 1 MiB: what was far apart stays so, and within a region what was next
    /// to each other too, also on a model in time lapse.
    Regions,
}

/// Addresses of one trace on one drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    addresses: Addresses,
    space_sectors: u64,
    span: Span,
    part: Span,
}

/// Sectors to which an address stays aligned where it was: 4 KiB.
const ALIGN_SECTORS: u64 = 8;

impl Placement {
    /// Placement of `trace` on a drive of `span`, or on a part of one that begins with its first
    /// sector ([`Span::footprint`]).
    pub fn new(trace: &Trace, addresses: Addresses, span: Span) -> Self {
        let [span_sectors, space_sectors] =
            [span.sectors, trace.space_sectors()].map(|it| it.max(1));
        let span = Span { sectors: span_sectors };
        Self { addresses, space_sectors, span, part: span }
    }

    /// Placement with all addresses of the drive shrunk to `part`, which stands for the whole of
    /// it.
    #[must_use]
    pub fn in_time_lapse(self, part: Span) -> Self {
        Self { part: Span { sectors: part.sectors.max(1) }, ..self }
    }

    /// `request` on the drive; cut short where it is larger than the drive.
    pub fn place(&self, request: &TraceRequest) -> GeneratedRequest {
        let [span, part] = [self.span.sectors, self.part.sectors];
        let sectors = u32::try_from(part).map_or(request.sectors, |part| part.min(request.sectors));
        let moved = match self.addresses {
            Addresses::Scaled => scaled(request.lba, self.space_sectors, part),
            Addresses::Wrapped => scaled(request.lba % span, span, part),
            Addresses::Regions => in_regions(request.lba, self.space_sectors, part),
        };
        let align = 1 << request.lba.trailing_zeros().min(ALIGN_SECTORS.ilog2());
        let last = (part - u64::from(sectors)) / align * align;
        let lba = Lba((moved / align * align).min(last));
        GeneratedRequest { op: request.op, handle: request.handle, lba, sectors }
    }
}

/// `lba` of a space of `from` sectors, in one of `to`.
fn scaled(lba: u64, from: u64, to: u64) -> u64 {
    u64::try_from(u128::from(lba) * u128::from(to) / u128::from(from)).unwrap_or(u64::MAX)
}

/// `lba` of a space of `from` sectors in one of `to`, which keeps its place in its region.
fn in_regions(lba: u64, from: u64, to: u64) -> u64 {
    let regions = to / REGION_SECTORS;
    if regions == 0 {
        return scaled(lba, from, to);
    }
    let region = scaled(lba / REGION_SECTORS, from.div_ceil(REGION_SECTORS), regions);
    region * REGION_SECTORS + lba % REGION_SECTORS
}

impl fmt::Display for Placement {
    /// `scaled by 0.44 from 146 GB to 64 GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
        let (from, to) = (shown(self.space_sectors), shown(self.span.sectors));
        match self.addresses {
            Addresses::Scaled => {
                let factor = self.span.sectors as f64 / self.space_sectors as f64;
                write!(f, "scaled by {factor:.3} from {from} to {to}")
            }
            Addresses::Regions => write!(f, "moved in regions of 1 MiB from {from} to {to}"),
            Addresses::Wrapped if self.span.sectors >= self.space_sectors => {
                write!(f, "kept: {from} on {to}")
            }
            Addresses::Wrapped => write!(f, "wrapped from {from} to {to}"),
        }
    }
}
