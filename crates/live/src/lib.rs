//! Drives that store: the flash translation layer on real bytes and in real time.
//!
//! A [`Device`] is what a client sees; exports hand it to clients over a protocol.

mod device;
pub mod export;
mod memory;

pub use device::{Allocation, Device, DeviceError, Durability};
pub use memory::MemoryDevice;
