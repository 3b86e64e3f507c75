//! Volumes: drives by name, in a folder that says where their dies are, and what is done with them
//! beside serving them.

pub mod check;
pub(crate) mod damage_list;
#[cfg(test)]
mod example;
pub(crate) mod failing_reads;
pub(crate) mod folder;
pub(crate) mod folder_witness;
pub(crate) mod hot_spares;
pub(crate) mod identity;
pub(crate) mod inspect;
pub(crate) mod lifetime;
pub(crate) mod listed_dies;
pub mod locate;
pub(crate) mod maintenance;
pub(crate) mod meter;
pub(crate) mod namespace;
pub(crate) mod new_die;
pub(crate) mod opal;
pub(crate) mod opening;
pub(crate) mod operations;
pub(crate) mod purge;
pub(crate) mod recover;
pub(crate) mod rekey;
pub(crate) mod shortages;
pub(crate) mod signature;
pub(crate) mod space_taken;
pub(crate) mod unlocking;
