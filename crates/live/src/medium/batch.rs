//! Requests to several media that are submitted together: through `io_uring` where they are files
//! that may be asked so, else one after the other.

use std::io::{self, IoSliceMut};

use super::aligned::{AlignedBytes, Cover};
use super::file::scatter;
use super::ring::{self, Ask};
use super::{FileMedium, Medium, file_of};

/// Fewest media that are synced at once. The system has threads of its own do it, so that two of
/// one disk are slower made durable than one after the other; many disks are not.
const SYNCED_AT_ONCE_MIN: usize = 3;

/// Request to read from a medium.
#[derive(Debug)]
pub struct MediumRead<'a, 'b> {
    /// The medium that is read.
    pub medium: &'a dyn Medium,
    /// Offset of the first byte.
    pub offset: u64,
    /// Buffers, filled one after the other.
    pub buffers: &'a mut [IoSliceMut<'b>],
}

impl MediumRead<'_, '_> {
    fn length(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.len()).sum()
    }
}

/// Request to make a medium durable.
#[derive(Clone, Copy, Debug)]
pub struct MediumWrite<'a> {
    /// The medium that is made durable.
    pub medium: &'a dyn Medium,
    /// Offset and bytes of a write that comes before the sync, if there is one.
    pub write: Option<(u64, &'a [u8])>,
}

/// Result of a request of a batch; none: it has to be sent again, by itself.
type BatchResult = Option<io::Result<()>>;

/// Reads all of them, and says of each whether its buffers were filled.
pub(crate) fn read_all(reads: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
    let lots = reads.chunks_mut(ring::AT_ONCE);
    let answers: Vec<_> = lots.flat_map(|lot| lot[0].medium.submit_reads(lot)).collect();
    assert_eq!(answers.len(), reads.len(), "each request of a batch is answered");
    answers
}

/// Reads one after the other.
pub(super) fn read_in_turn(reads: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
    let read = |MediumRead { medium, offset, buffers }: &mut MediumRead<'_, '_>| {
        medium.read_vectored_at(*offset, buffers)
    };
    reads.iter_mut().map(read).collect()
}

/// Reads files, at once where the system can.
pub(super) fn read_files(reads: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
    let Some(at_once) = read_at_once(reads) else { return read_in_turn(reads) };
    let again = |(answer, read): (BatchResult, &mut MediumRead<'_, '_>)| {
        answer.unwrap_or_else(|| read.medium.read_vectored_at(read.offset, read.buffers))
    };
    at_once.into_iter().zip(reads).map(again).collect()
}

/// Whole blocks about something to be read.
struct Blocks {
    cover: Cover,
    bytes: AlignedBytes,
}

fn read_at_once(reads: &mut [MediumRead<'_, '_>]) -> Option<Vec<BatchResult>> {
    let files = files(reads.iter().map(|read| read.medium))?;
    let blocks_of = |(read, file): (&MediumRead<'_, '_>, &&FileMedium)| {
        let cover = file.cover(read.offset, read.length())?;
        Some(Blocks { cover, bytes: AlignedBytes::new(cover.length) })
    };
    let mut blocks: Vec<Option<Blocks>> = reads.iter().zip(&files).map(blocks_of).collect();
    let mut asks = Vec::with_capacity(reads.len());
    for ((read, file), blocks) in reads.iter_mut().zip(&files).zip(&mut blocks) {
        let (file, offset) = (file.descriptor(), read.offset);
        asks.push(match blocks {
            Some(Blocks { cover, bytes }) => {
                Ask::ReadInto { file, offset: cover.offset, buffer: bytes.bytes_mut() }
            }
            None => Ask::Read { file, offset, buffers: read.buffers },
        });
    }
    let moved = ring::carry_out(&mut asks);
    let mut answers = Vec::with_capacity(reads.len());
    for ((read, blocks), moved) in reads.iter_mut().zip(blocks).zip(moved) {
        let before = blocks.as_ref().map_or(0, |blocks| blocks.cover.before);
        let answer = judge(moved, before + read.length());
        if let (Some(Ok(())), Some(Blocks { bytes, .. })) = (&answer, blocks) {
            scatter(&bytes.bytes()[before..], read.buffers);
        }
        answers.push(answer);
    }
    Some(answers)
}

/// Writes what is to be written, makes all media durable, and says of each whether it is.
pub(crate) fn write_and_sync(writes: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
    let lots = writes.chunks(ring::AT_ONCE / 2);
    let answers: Vec<_> = lots.flat_map(|lot| lot[0].medium.submit_writes(lot)).collect();
    assert_eq!(answers.len(), writes.len(), "each request of a batch is answered");
    answers
}

/// Writes one after the other, and then syncs: all are on their way before the first is waited for.
pub(super) fn write_in_turn(writes: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
    let written: Vec<_> = writes.iter().map(MediumWrite::carry_out).collect();
    for MediumWrite { medium, write } in writes.iter().filter(|_| writes.len() > 1) {
        if let Some((offset, bytes)) = write {
            medium.begin_sync(*offset, bytes.len() as u64);
        }
    }
    let sync = |(write, written): (&MediumWrite<'_>, io::Result<()>)| {
        written.and_then(|()| write.medium.sync())
    };
    writes.iter().zip(written).map(sync).collect()
}

/// Writes and syncs files, at once where the system can.
pub(super) fn write_files(writes: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
    let Some(at_once) = write_at_once(writes) else { return write_in_turn(writes) };
    let again = |write: &MediumWrite<'_>| write.carry_out().and_then(|()| write.medium.sync());
    let answer = |(write, answer): (_, BatchResult)| answer.unwrap_or_else(|| again(write));
    writes.iter().zip(at_once).map(answer).collect()
}

impl MediumWrite<'_> {
    /// Writes what is to be written.
    ///
    /// # Errors
    /// As [`Medium::write_at`].
    pub fn carry_out(&self) -> io::Result<()> {
        self.write.map_or(Ok(()), |(offset, bytes)| self.medium.write_at(offset, bytes))
    }
}

fn write_at_once(writes: &[MediumWrite<'_>]) -> Option<Vec<BatchResult>> {
    (writes.len() >= SYNCED_AT_ONCE_MIN).then_some(())?;
    let files = files(writes.iter().map(|write| write.medium))?;
    let mut blocks: Vec<Option<AlignedBytes>> = Vec::new();
    for (write, file) in writes.iter().zip(&files) {
        let Some((offset, bytes)) = write.write else {
            blocks.push(None);
            continue;
        };
        let cover = file.cover(offset, bytes.len());
        // Part of a block has to be read first.
        cover.is_none_or(|cover| cover.is_exact(bytes.len())).then_some(())?;
        blocks.push(cover.map(|_| AlignedBytes::of(bytes)));
    }
    let mut asks = Vec::with_capacity(2 * writes.len());
    for ((write, file), blocks) in writes.iter().zip(&files).zip(&blocks) {
        let file = file.descriptor();
        if let Some((offset, bytes)) = write.write {
            let bytes = blocks.as_ref().map_or(bytes, AlignedBytes::bytes);
            asks.push(Ask::WriteThen { file, offset, bytes });
        }
        asks.push(Ask::Sync { file });
    }
    let mut answers = ring::carry_out(&mut asks).into_iter();
    let answer = |write: &MediumWrite<'_>| {
        let mut next = |needed| judge(answers.next().flatten(), needed);
        let written = write.write.map(|(_, bytes)| next(bytes.len()));
        let synced = next(0);
        match written {
            None | Some(Some(Ok(()))) => synced,
            // What was to follow was not begun.
            Some(not_written) => not_written,
        }
    };
    Some(writes.iter().map(answer).collect())
}

/// The files that media are, where there are several and all may be asked at once.
fn files<'a>(media: impl ExactSizeIterator<Item = &'a dyn Medium>) -> Option<Vec<&'a FileMedium>> {
    (media.len() > 1).then_some(())?;
    let may = |file: &&FileMedium| file.access().is_ringed;
    media.map(|medium| file_of(medium).filter(may)).collect()
}

/// Converts the bytes that a request moved, of which `needed` were asked for, or its error.
fn judge(moved: Option<io::Result<usize>>, needed: usize) -> BatchResult {
    match moved? {
        Ok(moved) => (moved >= needed).then_some(Ok(())),
        Err(error) if ring::is_passing(&error) => None,
        Err(error) => Some(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::{Access, Preallocation};

    const SIZE: usize = 1 << 17;
    const ACCESSES: [Access; 4] = [
        Access { is_direct: false, is_ringed: true },
        Access { is_direct: true, is_ringed: true },
        Access { is_direct: false, is_ringed: false },
        Access { is_direct: true, is_ringed: false },
    ];

    fn media(folder: &TempDir, access: Access) -> [FileMedium; 3] {
        [0, 1, 2].map(|die| {
            let path = folder.path().join(format!("{die}-{access:?}"));
            let medium = FileMedium::create(&path, SIZE as u64, access, Preallocation::Off)
                .expect("a new file");
            let bytes: Vec<u8> = (0..SIZE).map(|at| pattern(die, at)).collect();
            medium.write_at(0, &bytes).expect("there is space");
            medium
        })
    }

    fn pattern(die: usize, at: usize) -> u8 {
        u8::try_from((at * 31 + at / 4096 * 7 + die * 101) % 251).expect("below 251")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn many_reads_at_once_give_what_each_gives_by_itself(
            reads in prop::collection::vec((0..3_usize, 0..SIZE - 9000, 1..4000_usize), 1..100),
        ) {
            let folder = TempDir::new().unwrap();
            for access in ACCESSES {
                let media = media(&folder, access);
                let mut bytes: Vec<[Vec<u8>; 2]> =
                    reads.iter().map(|(_, _, length)| [vec![0; *length], vec![0; 32]]).collect();
                let mut buffers: Vec<_> = bytes
                    .iter_mut()
                    .map(|pair| pair.each_mut().map(|bytes| IoSliceMut::new(bytes)))
                    .collect();
                let mut asked: Vec<_> = reads
                    .iter()
                    .zip(&mut buffers)
                    .map(|((die, from, _), buffers)| MediumRead {
                        medium: &media[*die],
                        offset: *from as u64,
                        buffers,
                    })
                    .collect();
                prop_assert!(read_all(&mut asked).iter().all(Result::is_ok));
                for ((die, from, _), found) in reads.iter().zip(&bytes) {
                    let found = found.concat();
                    let right = (*from..).map(|at| pattern(*die, at)).take(found.len());
                    prop_assert!(found.iter().copied().eq(right), "{access:?} {die} {from}");
                }
            }
        }
    }

    #[test]
    fn what_one_of_many_cannot_do_is_its_own_error() {
        let folder = TempDir::new().unwrap();
        for access in ACCESSES {
            let media = media(&folder, access);
            let mut bytes = [[0; 512]; 3];
            let mut buffers = bytes.each_mut().map(|bytes| [IoSliceMut::new(bytes)]);
            let offsets = [0, SIZE as u64, 4096];
            let mut reads: Vec<_> = media
                .iter()
                .zip(&mut buffers)
                .zip(offsets)
                .map(|((medium, buffers), offset)| MediumRead { medium, offset, buffers })
                .collect();
            let kinds = read_all(&mut reads).into_iter().map(|it| it.map_err(|it| it.kind()));
            let beyond = Err(io::ErrorKind::UnexpectedEof);
            assert_eq!(kinds.collect::<Vec<_>>(), [Ok(()), beyond, Ok(())], "{access:?}");
            assert_eq!(bytes[2], std::array::from_fn(|at| pattern(2, at + 4096)));
        }
    }

    #[test]
    fn what_is_written_at_once_is_there() {
        let folder = TempDir::new().unwrap();
        for access in ACCESSES {
            let media = media(&folder, access);
            // Whole blocks, part of one, and nothing.
            let writes = [Some((8192, &[7; 8192][..])), Some((100, &[8; 1000][..])), None];
            for take in [2, 3] {
                let writes: Vec<_> = media
                    .iter()
                    .zip(writes)
                    .map(|(medium, write)| MediumWrite { medium, write })
                    .take(take)
                    .collect();
                assert!(write_and_sync(&writes).iter().all(Result::is_ok), "{access:?}");
            }
            for ((die, medium), write) in (0..).zip(&media).zip(writes) {
                let mut right: Vec<u8> = (0..SIZE).map(|at| pattern(die, at)).collect();
                if let Some((from, bytes)) = write {
                    let from = usize::try_from(from).unwrap();
                    right[from..from + bytes.len()].copy_from_slice(bytes);
                }
                let mut found = vec![0; SIZE];
                medium.read_at(0, &mut found).unwrap();
                assert!(found == right, "{access:?} {die}");
            }
        }
    }

    /// A medium that is no file, and counts.
    #[derive(Debug, Default)]
    struct Counting {
        writes: AtomicU32,
        /// Writes that there were at each sync.
        synced: AtomicU32,
    }

    impl Medium for Counting {
        fn size(&self) -> u64 {
            SIZE as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            buffer.fill(u8::try_from(offset % 251).expect("below 251"));
            Ok(())
        }

        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            self.synced.fetch_add(self.writes.load(Ordering::Relaxed), Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn media_that_are_no_files_are_asked_one_after_the_other() {
        let medium = Counting::default();
        let writes = [MediumWrite { medium: &medium, write: Some((0, &[1; 512])) }; 40];
        assert!(write_and_sync(&writes).iter().all(Result::is_ok));
        assert_eq!(medium.writes.load(Ordering::Relaxed), 40);
        // Lots of 32: each is written whole before it is synced.
        assert_eq!(medium.synced.load(Ordering::Relaxed), 32 * 32 + 8 * 40);
        let mut bytes = [[0; 16]; 2];
        let mut buffers = bytes.each_mut().map(|bytes| [IoSliceMut::new(bytes)]);
        let read = |(buffers, offset)| MediumRead { medium: &medium, offset, buffers };
        let mut reads: Vec<_> =
            buffers.iter_mut().map(|it| &mut it[..]).zip([5, 9]).map(read).collect();
        assert!(read_all(&mut reads).iter().all(Result::is_ok));
        assert_eq!(bytes, [[5; 16], [9; 16]]);
    }
}
