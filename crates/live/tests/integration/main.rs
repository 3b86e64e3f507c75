//! Drives on files, devices and simulated disks, through what the crate offers.
//!
//! One program: it is linked once, and its tests share the processors to the end.

mod absence;
mod atomic;
mod block_device;
mod check;
mod copies;
mod crossed;
mod damage;
mod exhaustive;
mod fault_injection;
mod foreign;
mod formatting;
mod full;
mod health;
mod hot_spares;
mod lost;
mod making;
mod opening;
mod packed;
mod redundancy;
mod remains;
mod server_death;
mod simulation;
mod slow;
mod stale;
mod threads;
mod together;
mod volume;
