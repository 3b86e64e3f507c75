//! A small key-value log over atomic writes: `key_value VOLUME set KEY VALUE [KEY VALUE]...`,
//! `key_value VOLUME get KEY`, `key_value VOLUME list`.
//!
//! ```text
//!  page 0   head: magic, bytes of the log
//!  page 1…  log: key length 4, value length 4, key, value; one entry after the other
//! ```
//!
//! Entries that belong together and the head that makes them count go into one
//! [`Drive::atomic_write`]: after a crash all of them are there or none. So there is no journal, no
//! checksum and no repair in this file; the drive has them.

#![expect(clippy::print_stdout, reason = "it is a program of its own")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use live::{Device as _, DeviceError, Drive};

const MAGIC: [u8; 8] = *b"keyvalue";
/// Offset of the log on the drive.
const LOG_FROM: u64 = 4096;

/// Keys and what they are set to, kept in a drive.
#[derive(Debug)]
struct Store {
    drive: Drive,
    values: BTreeMap<String, String>,
    /// Bytes of the log.
    length: u64,
}

impl Store {
    /// Reads the log of a drive, which is empty at first.
    fn open(drive: Drive) -> Result<Self, Box<dyn Error>> {
        let mut head = [0; 16];
        drive.read(0, &mut head)?;
        let (magic, length) = head.split_at(8);
        let length = if magic == MAGIC { u64::from_le_bytes(length.try_into()?) } else { 0 };
        let mut log = vec![0; usize::try_from(length)?];
        drive.read(LOG_FROM, &mut log)?;
        let mut values = BTreeMap::new();
        let mut rest = log.as_slice();
        while let Some((key, value, after)) = split_entry(rest) {
            values.insert(String::from_utf8(key.to_vec())?, String::from_utf8(value.to_vec())?);
            rest = after;
        }
        Ok(Self { drive, values, length })
    }

    /// Sets several keys: all of them, durably, or none.
    fn set(&mut self, pairs: &[(&str, &str)]) -> Result<(), DeviceError> {
        let mut entries = Vec::new();
        for (key, value) in pairs {
            for part in [key, value] {
                let length = u32::try_from(part.len()).expect("a line of text");
                entries.extend_from_slice(&length.to_le_bytes());
            }
            entries.extend_from_slice(key.as_bytes());
            entries.extend_from_slice(value.as_bytes());
        }
        let length = self.length + entries.len() as u64;
        let head = [MAGIC, length.to_le_bytes()].concat();
        self.drive.atomic_write(&[(LOG_FROM + self.length, &entries), (0, &head)])?;
        self.length = length;
        self.values.extend(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        Ok(())
    }
}

/// The first entry of a log, and what follows it.
fn split_entry(log: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (lengths, rest) = log.split_at_checked(8)?;
    let length = |at: usize| {
        let bytes = lengths[at..at + 4].try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let (key, rest) = rest.split_at_checked(length(0)?)?;
    let (value, rest) = rest.split_at_checked(length(4)?)?;
    Some((key, value, rest))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [volume, command, rest @ ..] = arguments.as_slice() else {
        return Err("key_value VOLUME set KEY VALUE [KEY VALUE]... | get KEY | list".into());
    };
    let mut store = Store::open(Drive::open(Path::new(volume))?)?;
    match (*command, rest) {
        ("set", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
            let pairs = pairs.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value));
            store.set(&pairs.collect::<Vec<_>>())?;
        }
        ("get", [key]) => println!("{}", store.values.get(*key).ok_or("there is no such key")?),
        ("list", []) => store.values.iter().for_each(|(key, value)| println!("{key}={value}")),
        _ => return Err(format!("{command}: not that, or not so").into()),
    }
    Ok(store.drive.close()?)
}

#[cfg(test)]
mod tests {
    use blockio::{Bytes, Rng};
    use live::simulation::Disks;
    use live::{Compression, Plan, format};

    use super::*;

    /// Two disks with an empty drive of 1 MiB.
    fn disks() -> Disks {
        let plan = Plan {
            size: Bytes::from_kib(1 << 10),
            dies: 2,
            is_protected: true,
            over_provisioning: 0.5,
            compression: Compression::Lz4,
            physical: None,
            unit: None,
        };
        let shape = plan.shape().unwrap();
        let bytes = usize::try_from(shape.die_bytes().0).unwrap();
        let disks = Disks::new(2, bytes, Rng::new(5));
        format(disks.media(), &shape, 1).unwrap();
        disks
    }

    fn open(disks: &Disks) -> Store {
        Store::open(Drive::open_media(disks.media()).unwrap()).unwrap()
    }

    #[test]
    fn what_was_set_is_there_after_any_cut_and_pairs_stay_together() {
        let disks = disks();
        let mut acknowledged = 0;
        for round in 0..60 {
            let mut store = open(&disks);
            let found: u64 = store.values.get("left").map_or(0, |value| value.parse().unwrap());
            assert!(found >= acknowledged, "round {round}: {found} < {acknowledged}");
            assert_eq!(store.values.get("left"), store.values.get("right"));
            disks.cut_after(round * 7 % 40);
            for number in found + 1.. {
                let text = number.to_string();
                if store.set(&[("left", &text), ("right", &text)]).is_err() {
                    break;
                }
                acknowledged = number;
            }
            drop(store);
            disks.restore();
        }
        assert!(acknowledged > 60);
    }
}
