//! The format of the media: structures as bytes, without any I/O.

pub(crate) mod checkpoint_header;
pub(crate) mod compress;
pub(crate) mod die_set;
pub(crate) mod encoding;
pub(crate) mod header;
pub(crate) mod journal;
pub(crate) mod key_area;
pub(crate) mod layout;
pub(crate) mod media_keys;
pub(crate) mod page_set;
pub(crate) mod position;
pub(crate) mod row;
pub(crate) mod unit;
pub(crate) mod write_buffer;
pub(crate) mod xts;
