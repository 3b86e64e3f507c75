//! Level 0 discovery: features of the drive (TCG Core 2.01, 3.3.6; Opal SSC 2.02, 3.1.1).

use crate::state::{LockingSp, OpalState};
use crate::uid::{ADMINS, ByteTable, USERS};

/// The one ComID for sessions.
pub const COM_ID: u16 = 0x07FE;

/// Place of the drive's blocks, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Blocks that there are.
    pub blocks: u64,
    /// Blocks of which starts and lengths of ranges are multiples.
    pub granularity_blocks: u64,
    /// True if what is stored is encrypted.
    pub is_encrypted: bool,
}

/// The answer to Level 0 discovery.
pub(crate) fn level_0(state: &OpalState, is_sid_blocked: bool, geometry: &Geometry) -> Vec<u8> {
    let mut out = vec![0; 48];
    // Synchronous protocol, streaming.
    feature(&mut out, (0x0001, 0x10), &padded(&[0x11]));
    feature(&mut out, (0x0002, 0x10), &padded(&[locking(state, geometry)]));
    feature(&mut out, (0x0003, 0x10), &of_geometry(geometry));
    feature(&mut out, (0x0202, 0x10), &data_store());
    feature(&mut out, (0x0203, 0x22), &opal());
    let sid = u8::from(state.is_owned()) | u8::from(is_sid_blocked) << 1;
    feature(&mut out, (0x0402, 0x10), &padded(&[sid]));
    let length = u32::try_from(out.len() - 4).expect("some hundred bytes");
    out[..4].copy_from_slice(&length.to_be_bytes());
    // Revision of the structure: 0.1.
    out[7] = 1;
    out
}

fn feature(out: &mut Vec<u8>, (code, version): (u16, u8), data: &[u8]) {
    out.extend(code.to_be_bytes());
    out.extend([version, u8::try_from(data.len()).expect("some bytes")]);
    out.extend(data);
}

fn padded(bytes: &[u8]) -> [u8; 12] {
    let mut all = [0; 12];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

/// Locking feature: supported, enabled, locked, media encryption, MBR enabled, MBR done.
fn locking(state: &OpalState, geometry: &Geometry) -> u8 {
    let locking = state.locking.as_ref();
    let bits = [
        true,
        locking.is_some(),
        locking.is_some_and(LockingSp::is_locked),
        geometry.is_encrypted,
        locking.is_some_and(|it| it.mbr.is_enabled),
        locking.is_some_and(|it| it.mbr.is_done),
    ];
    bits.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit))
}

fn of_geometry(geometry: &Geometry) -> [u8; 28] {
    let mut data = [0; 28];
    data[0] = u8::from(geometry.granularity_blocks > 1);
    data[8..12].copy_from_slice(&geometry.block_bytes.to_be_bytes());
    data[12..20].copy_from_slice(&geometry.granularity_blocks.to_be_bytes());
    data
}

/// One table, its bytes, and their alignment.
fn data_store() -> [u8; 12] {
    let mut data = padded(&[0, 0, 0, 1]);
    let size = u32::try_from(ByteTable::DataStore.size()).expect("some MiB");
    data[4..8].copy_from_slice(&size.to_be_bytes());
    data[11] = 1;
    data
}

/// One ComID, no crossing of ranges refused, authorities; the first PIN is the MSID, and after a
/// revert again.
fn opal() -> [u8; 16] {
    let mut data = [0; 16];
    data[..2].copy_from_slice(&COM_ID.to_be_bytes());
    data[3] = 1;
    data[5..7].copy_from_slice(&ADMINS.to_be_bytes());
    data[7..9].copy_from_slice(&USERS.to_be_bytes());
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::PinCost;

    #[test]
    fn level_0_has_the_features_that_clients_look_for() {
        let state = OpalState::new(&[0; 64], PinCost::default());
        let geometry = Geometry {
            block_bytes: 512,
            blocks: 1 << 20,
            granularity_blocks: 8,
            is_encrypted: false,
        };
        let bytes = level_0(&state, false, &geometry);
        let length = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        assert_eq!(length as usize + 4, bytes.len());
        assert!(bytes.len() <= 2048);
        let (mut at, mut found) = (48, Vec::new());
        while at < bytes.len() {
            found.push((u16::from_be_bytes([bytes[at], bytes[at + 1]]), bytes[at + 4]));
            at += 4 + usize::from(bytes[at + 3]);
        }
        assert_eq!(at, bytes.len());
        let expected = [(1, 0x11), (2, 0x01), (3, 1), (0x0202, 0), (0x0203, 0x07), (0x0402, 0)];
        assert_eq!(found, expected);
    }
}
