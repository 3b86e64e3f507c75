//! Real targets: their names and addresses, the machine that they are on, and how they are told
//! apart. The drivers that measure them are in the crate `real`.

pub mod access;
pub mod address;
pub mod hosts;
pub mod identity;
pub mod nbd;
pub mod purge_method;
pub mod system;
