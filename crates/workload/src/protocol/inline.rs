//! Workloads that a protocol's file holds itself: those of a workload's file, of which what only a
//! reader needs may be left out.

use serde::{Deserialize, Deserializer};

use crate::prose::optional_prose;
use crate::trace::TraceShape;
use crate::{Access, ByteRange, SizeShare, Workload, WorkloadStream};

/// One `[[workloads]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inline {
    #[serde(default = "schema")]
    schema: u32,
    name: String,
    title: Option<String>,
    #[serde(default, deserialize_with = "optional_prose")]
    description: Option<String>,
    #[serde(default, deserialize_with = "optional_prose")]
    source: Option<String>,
    read_percent: f64,
    access: Access,
    sizes: Vec<SizeShare>,
    #[serde(default)]
    align_bytes: u32,
    #[serde(default = "whole")]
    footprint_percent: f64,
    #[serde(default)]
    offset_percent: f64,
    range: Option<ByteRange>,
    #[serde(default)]
    compressible_percent: f64,
    #[serde(default)]
    random_map: bool,
    #[serde(default)]
    shared_start: bool,
    #[serde(default)]
    streams: Vec<WorkloadStream>,
    trace: Option<TraceShape>,
}

const fn schema() -> u32 {
    Workload::SCHEMA
}

const fn whole() -> f64 {
    100.0
}

impl From<Inline> for Workload {
    fn from(it: Inline) -> Self {
        Self {
            schema: it.schema,
            title: it.title.unwrap_or_else(|| it.name.clone()),
            description: it.description.unwrap_or_default(),
            source: it.source.unwrap_or_else(|| "its protocol".into()),
            name: it.name,
            read_percent: it.read_percent,
            access: it.access,
            sizes: it.sizes,
            align_bytes: it.align_bytes,
            footprint_percent: it.footprint_percent,
            offset_percent: it.offset_percent,
            range: it.range,
            compressible_percent: it.compressible_percent,
            random_map: it.random_map,
            shared_start: it.shared_start,
            streams: it.streams,
            trace: it.trace,
        }
    }
}

/// Reads them.
pub(super) fn workloads<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Workload>, D::Error> {
    Ok(Vec::<Inline>::deserialize(from)?.into_iter().map(Workload::from).collect())
}
