//! The commands, one file each.

pub(crate) mod beacon;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod drives;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod format;
mod listing;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod protocols;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod status;
mod summary;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod upkeep;
pub(crate) mod validate;
pub(crate) mod workloads;
