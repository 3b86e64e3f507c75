//! The translation layer beside oracles and closed forms, through what the crate offers.
//!
//! One program: it is linked once, and its tests share the processors to the end.

mod analytic;
mod capacity;
mod compression;
mod degraded_rows;
mod lost_die;
mod oracle;
mod owing;
mod p2l;
mod placement;
mod wear;
