//! Bytes of every structure on the media as format version 5 has them: fixtures that no change of
//! the code may move. What they say field by field is in `docs/internals/media-format.md`.

use std::fmt::Write as _;

use blockio::Rng;
use ftl::{Lpn, Ppn};
use status::Compression;

use super::disk::Disks;
use super::exhaustive::{PROTECTED, SINGLE, ScriptStep, play};
use super::hostile::Structure;
use crate::engine::log::checkpoint::Writer;
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::die_set::DieSet;
use crate::format::header::{Closing, FORMAT_VERSION, Header};
use crate::format::journal;
use zerocopy::IntoBytes as _;

use crate::format::key_area::{Cost, KeyArea, KeySource, WrappedKey};
use crate::format::layout::{Layout, Place};
use crate::format::position::Position;
use crate::format::unit::{Codec, Extent, Identity, Origin, UnitBuffer, UnitHeader};
use crate::{Drive, Shape, format};

/// Lines of 16 bytes that are not all zeroes, each after its offset.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(16).enumerate() {
        if line.iter().any(|byte| *byte != 0) {
            write!(text, "{:04x}", index * 16).unwrap();
            for word in line.chunks(4) {
                text.push(' ');
                for byte in word {
                    write!(text, "{byte:02x}").unwrap();
                }
            }
            text.push('\n');
        }
    }
    text
}

fn assert_bytes(bytes: &[u8], length: usize, lines: &str) {
    assert_eq!(bytes.len(), length);
    let expected: Vec<&str> = lines.trim().lines().map(str::trim).collect();
    let found = dump(bytes);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "\n{found}");
}

const SHAPE: Shape = Shape {
    pages_logical: 0x111,
    pages_stored_max: 0x110,
    pages_mappable: 0x112,
    dies: 6,
    is_protected: true,
    unit_pages: 8,
    rows: 5,
    superblocks: 20,
    extents_per_page: 4,
    compression: Compression::Zstd,
    journal_bytes: 1 << 24,
};

const IDENTITY: Identity =
    Identity { drive: 0x0102_0304_0506_0708, row_seq: 0x1112_1314_1516_1718 };

const POSITION: Position =
    Position { at: 0x0031_3233_3435_3600, number: 0x0041_4243_4445_4647, link: 0x5152_5354 };

#[test]
fn header_of_a_die() {
    let header = Header {
        format: FORMAT_VERSION,
        drive: IDENTITY.drive,
        die: 3,
        shape: SHAPE,
        version: 0x2122_2324_2526_2728,
        version_everywhere: 0x1122_2324_2526_2728,
        session: 0x0a_0b0c,
        is_open: true,
        lost: DieSet(0b11_0000),
        lost_since: [0; 64],
        removed: DieSet(0b10_0000),
        left_out: DieSet(0b00_0110),
        unsafe_shutdowns: 0x0a_0b0a,
        closing: Closing { checkpoint: 0x0061_6263_6465_6667, journal: POSITION },
        keys: KeyArea::default(),
    };
    let bytes = header.encode();
    assert_bytes(
        &bytes,
        4096,
        "
        0000 666c6f61 74676174 65206469 65000000
        0010 05000000 03000000 06000000 01000000
        0020 08000000 05000000 14000000 04000000
        0030 11010000 10010000 02000000 01000000
        0040 00000001 00000000 08070605 04030201
        0050 28272625 24232221 0c0b0a00 00000000
        0060 30000000 00000000 0a0b0a00 00000000
        0070 20000000 00000000 06000000 00000000
        0080 12010000 00000000 67666564 63626100
        0090 00363534 33323100 47464544 43424100
        00a0 54535251 00000000 28272625 24232211
        0ff0 00000000 00000000 00000000 2f4dcff1
        ",
    );
    assert_eq!(Header::parse(&bytes), Ok(Some(header)));
}

#[test]
fn checkpoint_header_and_frames() {
    let header = CheckpointHeader {
        drive: IDENTITY.drive,
        number: 0x0061_6263_6465_6667,
        session: 0x0a_0b0c,
        seq: 0x7172_7374_7576_7778,
        journal: POSITION,
        pages: 0x8182_8384,
    };
    let bytes = header.encode();
    assert_bytes(
        &bytes,
        4096,
        "
        0000 464c4754 636b7074 08070605 04030201
        0010 67666564 63626100 0c0b0a00 00000000
        0020 78777675 74737271 00363534 33323100
        0030 47464544 43424100 54535251 00000000
        0040 84838281 00000000 00000000 00000000
        0ff0 00000000 00000000 00000000 62f0c2c9
        ",
    );
    assert_eq!(CheckpointHeader::parse(&bytes), Some(header));
    let mut writer = Writer::new(&header);
    let (at, frame) = writer.frame(&[0x91; 20]);
    assert_eq!(at, 4096);
    assert_bytes(
        frame,
        52,
        "
        0000 67666564 63626100 00000000 14000000
        0010 38375fbe 78777675 74737271 3ec31083
        0020 91919191 91919191 91919191 91919191
        0030 91919191
        ",
    );
    let (at, frame) = writer.frame(&[0; 20]);
    assert_eq!(at, 4096 + 52);
    assert_bytes(
        frame,
        32,
        "
        0000 67666564 63626100 01000000 00000000
        0010 00000000 78777675 74737271 2ac8fbf2
        ",
    );
}

#[test]
fn unit_with_its_table_and_extents() {
    let layout = Layout::new(&Shape { unit_pages: 1, ..SHAPE });
    let mut unit = UnitBuffer::new(&layout, Vec::new());
    let extent = |lpn, codec, payload: &[u8]| Extent {
        lpn: Lpn(lpn),
        codec,
        key: 0,
        length: u16::try_from(payload.len()).unwrap(),
        seq: 0x7172_7374_7576_7778,
        payload_crc: crc32c::crc32c(payload),
    };
    let lpns = [0xa1a2_a3a4, 0xb1b2_b3b4, 0xc1c2_c3c4];
    let payloads = [(Codec::Lz4, &[0xd1; 9][..]), (Codec::Zstd, &[0xe1; 7]), (Codec::Lost, &[])];
    for (slot, (lpn, (codec, payload))) in (0..).zip(lpns.into_iter().zip(payloads)) {
        let ppn = layout.ppn(Place { row: 7, unit: 2, slot });
        unit.append(&extent(lpn, codec, payload), payload, IDENTITY, ppn);
    }
    let header = UnitHeader {
        is_parity: false,
        row: 7,
        position: 2,
        identity: IDENTITY,
        programmed_at: 0x2122_2324_2526_2728,
        body_crc: 0xf1f2_f3f4,
        out: DieSet(0x0000_0000_0000_0018),
        batches: 0x0041_4243_4445_4647,
    };
    let origin = Origin { is_relocation: true, erase_count: 0x0909_0a0b };
    unit.finish(&layout, &header, origin, layout.ppn(Place { row: 7, unit: 2, slot: 0 }));
    let bytes = unit.into_memory().unwrap();
    assert_bytes(
        &bytes,
        4608,
        "
        0000 464c4754 01000000 07000000 02000000
        0010 08070605 04030201 18171615 14131211
        0020 28272625 24232221 f4f3f2f1 18000000
        0030 00000000 47464544 43424100 19a5b1c6
        0040 03000000 01000000 0b0a0909 b3b8e319
        0050 a4a3a2a1 09000100 78777675 74737271
        0060 b0000000 7043cd5b b4b3b2b1 07000200
        0070 78777675 74737271 d9000000 bce2bae1
        0080 c4c3c2c1 0000ff00 78777675 74737271
        0090 00010000 00000000 00000000 00000000
        00b0 a4a3a2a1 09000100 78777675 74737271
        00c0 7043cd5b 00000000 00000000 4d2b701c
        00d0 d1d1d1d1 d1d1d1d1 d1b4b3b2 b1070002
        00e0 00787776 75747372 71bce2ba e1000000
        00f0 00000000 00f4ca4d e7e1e1e1 e1e1e1e1
        0100 c4c3c2c1 0000ff00 78777675 74737271
        0110 00000000 00000000 00000000 ecfaf463
        ",
    );
    assert_eq!(UnitHeader::parse(&bytes), Some(header));
}

#[test]
fn keys_in_the_header_of_an_encrypted_die() {
    let cost = Cost { memory_kib: 0x0001_0203, passes: 0x11, lanes: 5 };
    let source = KeySource::Passphrase { salt: [0xa1; 32], cost };
    let key = WrappedKey { epoch: 0x0102_0304_0506_0708, nonce: [0xb1; 12], sealed: [0xc1; 80] };
    let keys = KeyArea::new(source, [key].into_iter());
    let bytes = keys.encode();
    assert_bytes(
        bytes.as_bytes(),
        448,
        "
        0000 02000000 03020100 11000000 05000000
        0010 a1a1a1a1 a1a1a1a1 a1a1a1a1 a1a1a1a1
        0020 a1a1a1a1 a1a1a1a1 a1a1a1a1 a1a1a1a1
        0030 08070605 04030201 b1b1b1b1 b1b1b1b1
        0040 b1b1b1b1 c1c1c1c1 c1c1c1c1 c1c1c1c1
        0050 c1c1c1c1 c1c1c1c1 c1c1c1c1 c1c1c1c1
        0060 c1c1c1c1 c1c1c1c1 c1c1c1c1 c1c1c1c1
        0070 c1c1c1c1 c1c1c1c1 c1c1c1c1 c1c1c1c1
        0080 c1c1c1c1 c1c1c1c1 c1c1c1c1 c1c1c1c1
        0090 c1c1c1c1 00000000 00000000 00000000
        ",
    );
    assert_eq!(KeyArea::parse(&bytes), Some(keys));
    let mut excess = bytes;
    excess.as_mut_bytes()[8] = 65;
    assert_eq!(KeyArea::parse(&excess), None, "no header asks for more than 64 passes");
}

#[test]
fn header_of_a_parity_unit() {
    let mut bytes = [0xff; 64];
    let header = UnitHeader {
        is_parity: true,
        row: 8,
        position: 5,
        identity: IDENTITY,
        programmed_at: 1,
        body_crc: 0xf1f2_f3f4,
        out: DieSet(0),
        batches: 0,
    };
    header.write(&mut bytes);
    assert_bytes(
        &bytes,
        64,
        "
        0000 464c4754 02000000 08000000 05000000
        0010 08070605 04030201 18171615 14131211
        0020 01000000 00000000 f4f3f2f1 00000000
        0030 00000000 00000000 00000000 2baee1bd
        ",
    );
    assert_eq!(UnitHeader::parse(&bytes), Some(header));
}

#[test]
fn records_of_the_journal() {
    let payload = [0xd1; 5];
    let extent = Extent {
        lpn: Lpn(0xa1a2_a3a4),
        codec: Codec::Zstd,
        key: 0,
        length: 5,
        seq: 0x7172_7374_7576_7778,
        payload_crc: crc32c::crc32c(&payload),
    };
    let mut records = Vec::new();
    journal::add_extent(&mut records, extent, &payload, IDENTITY.row_seq, Ppn(0xb1b2_b3b4));
    assert_bytes(
        &records,
        37,
        "
        0000 01020500 a4a3a2a1 78777675 74737271
        0010 18171615 14131211 b4b3b2b1 28653ff6
        0020 d1d1d1d1 d1
        ",
    );
    // Head, a trim, a lost page, and a row of one unit with two extents.
    assert_bytes(
        &Structure::Batch.example(),
        512,
        "
        0000 464c4754 6a726e6c 07000000 00000000
        0010 02000000 00000000 01000000 00000000
        0020 00000000 00000000 84000000 03000000
        0030 00000000 02000000 7e665ac7 3821f4ad
        0040 02000000 02000000 00000000 00010000
        0050 03000000 00000000 00000000 00000000
        0060 04000000 07000000 01000000 00010000
        0070 01000000 00000000 00000000 00000000
        0080 05000100 03000000 00000000 00010000
        0090 00000000 00000000 04000000 24000000
        00a0 02000000 03000000 00100000 04000000
        00b0 00010000 05000000 e8030100 06000000
        00c0 00010000 00000000 00000000 00000000
        ",
    );
}

/// Checksums of the dies after a script that makes batches of every kind, and two checkpoints.
fn dies_after_script(shape: &Shape) -> Vec<u32> {
    let disks =
        Disks::new(shape.dies as usize, usize::try_from(shape.die_bytes().0).unwrap(), Rng::new(0));
    format(disks.media(), shape, 0x0102_0304).unwrap();
    let mut script = vec![
        ScriptStep::Write(0),
        ScriptStep::Flush,
        ScriptStep::Checkpoint,
        ScriptStep::WriteBoth(1, 2),
    ];
    for round in 0..40 {
        script.extend([
            ScriptStep::Write(round % 6),
            ScriptStep::Write(round * 5 % 6),
            ScriptStep::Flush,
        ]);
    }
    script.extend([
        ScriptStep::Trim(3),
        ScriptStep::Flush,
        ScriptStep::Write(4),
        ScriptStep::Checkpoint,
        ScriptStep::Write(5),
    ]);
    play(&disks, shape, &script).unwrap();
    Drive::open_media(disks.media()).unwrap().close().unwrap();
    disks.contents().iter().map(|bytes| crc32c::crc32c(bytes)).collect()
}

#[test]
fn dies_of_whole_drives() {
    let found = [SINGLE, PROTECTED].map(|shape| dies_after_script(&shape));
    let expected = [vec![0x1c5e_83f7], vec![0x087f_a1fd, 0x2321_21ba, 0x32fc_c350]];
    assert_eq!(found, expected, "{found:x?}");
}
