//! Cost of opening a drive after a crash: `opening MIB PAGES FLUSH TIMES [FOLDER]`.
//!
//! A drive of 7+1 dies is filled, then `PAGES` pages are placed at random since a checkpoint, with
//! a flush after each `FLUSH` of them if that is not 0, and the drive is dropped: that is a crash.
//! Opening it is timed beside opening it after a crash just behind a checkpoint, so that the
//! difference is what the pages cost, and beside opening it after it was closed, which is what the
//! map costs.
//!
//! Without a folder the dies are in memory, where what is zero takes no room: data is all zeroes,
//! so that only headers, tables and maps are kept, some 130 bytes a page. Then the same dies are
//! opened `TIMES` times, and the least counts. Time is that of the processor, which such dies do
//! not wait for; on a folder's dies it is that of the clock.

#![expect(clippy::print_stdout, reason = "it tells what it measures")]

use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use blockio::{Bytes, Rng};
use live::{
    Access, Compression, Device as _, Drive, Durability, FileMedium, Medium, Plan, Preallocation,
    format,
};

const PAGE: u64 = 4096;
const DIES: u32 = 8;
/// Bytes of a block of a die in memory, and of the lines that are kept of it.
const BLOCK: usize = 1 << 16;
const LINE: usize = 64;
/// Share of the time of an open below which a difference says nothing.
const NOISE_SHARE: f64 = 0.2;
/// Pages of a terabyte.
const TERABYTE_PAGES: f64 = 1e12 / PAGE as f64;

/// The lines of a block that are not all zeroes.
struct Block {
    masks: [u64; BLOCK / LINE / 64],
    lines: Vec<u8>,
}

impl Block {
    fn of(bytes: &[u8]) -> Option<Arc<Self>> {
        let mut block = Self { masks: [0; BLOCK / LINE / 64], lines: Vec::new() };
        for (index, line) in bytes.as_chunks::<LINE>().0.iter().enumerate() {
            if line.iter().fold(0, |all, byte| all | byte) != 0 {
                block.masks[index / 64] |= 1 << (index % 64);
                block.lines.extend_from_slice(line);
            }
        }
        block.lines.shrink_to_fit();
        (!block.lines.is_empty()).then(|| Arc::new(block))
    }

    /// The lines from number `first` on, one for each of `into`.
    fn read(&self, first: usize, into: &mut [[u8; LINE]]) {
        let (word, bit) = (first / 64, first % 64);
        let before: u32 = self.masks[..word].iter().map(|mask| mask.count_ones()).sum();
        let within = self.masks[word] & ((1 << bit) - 1);
        let mut at = (before + within.count_ones()) as usize * LINE;
        for (index, line) in (first..).zip(into) {
            if self.masks[index / 64] & (1 << (index % 64)) == 0 {
                line.fill(0);
            } else {
                line.copy_from_slice(&self.lines[at..at + LINE]);
                at += LINE;
            }
        }
    }
}

type Blocks = Arc<RwLock<Vec<Option<Arc<Block>>>>>;

/// A die in memory.
struct Memory {
    size: u64,
    blocks: Blocks,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("size", &self.size).finish_non_exhaustive()
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a die in memory")
}

/// The parts of blocks that `length` bytes from `offset` on lie in: block, from, length.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = index(offset);
    let end = at + length;
    std::iter::from_fn(move || {
        let (block, from) = (at / BLOCK, at % BLOCK);
        let length = (BLOCK - from).min(end - at);
        at += length;
        (length > 0).then_some((block, from, length))
    })
}

impl Medium for Memory {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let mut rest = buffer;
        for (block, from, length) in parts(offset, rest.len()) {
            let (here, after) = rest.split_at_mut(length);
            rest = after;
            let Some(block) = &blocks[block] else {
                here.fill(0);
                continue;
            };
            let (lines, tail) = here.as_chunks_mut::<LINE>();
            if from % LINE == 0 && tail.is_empty() {
                block.read(from / LINE, lines);
            } else {
                let first = from / LINE;
                let mut lines = vec![[0; LINE]; (from + length).div_ceil(LINE) - first];
                block.read(first, &mut lines);
                here.copy_from_slice(&lines.as_flattened()[from % LINE..][..length]);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let mut whole = vec![[0; LINE]; BLOCK / LINE];
        let mut rest = bytes;
        for (block, from, length) in parts(offset, bytes.len()) {
            let (here, after) = rest.split_at(length);
            rest = after;
            match &blocks[block] {
                Some(block) => block.read(0, &mut whole),
                None => whole.fill([0; LINE]),
            }
            whole.as_flattened_mut()[from..from + length].copy_from_slice(here);
            blocks[block] = Block::of(whole.as_flattened());
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Storage of the dies: memory, or files in a folder.
enum Place {
    Memory(Vec<Blocks>, u64),
    Folder(tempfile::TempDir),
}

impl Place {
    fn new(folder: Option<PathBuf>, die_bytes: u64) -> io::Result<Self> {
        let Some(folder) = folder else {
            let blocks = index(die_bytes.div_ceil(BLOCK as u64));
            let empty = || Arc::new(RwLock::new(vec![None; blocks]));
            return Ok(Self::Memory((0..DIES).map(|_| empty()).collect(), die_bytes));
        };
        let folder = tempfile::tempdir_in(folder)?;
        for die in 0..DIES {
            FileMedium::create(
                &folder.path().join(format!("d{die}.img")),
                die_bytes,
                Access::default(),
                Preallocation::Off,
            )?;
        }
        Ok(Self::Folder(folder))
    }

    fn media(&self) -> io::Result<Vec<Box<dyn Medium>>> {
        match self {
            Self::Memory(dies, size) => Ok(dies
                .iter()
                .map(|blocks| Memory { size: *size, blocks: Arc::clone(blocks) })
                .map(|die| Box::new(die) as Box<dyn Medium>)
                .collect()),
            Self::Folder(folder) => (0..DIES)
                .map(|die| folder.path().join(format!("d{die}.img")))
                .map(|path| {
                    Ok(Box::new(FileMedium::open(&path, Access::default())?) as Box<dyn Medium>)
                })
                .collect(),
        }
    }

    /// Dies in memory as they are now.
    fn copy(&self) -> Option<Self> {
        let Self::Memory(dies, size) = self else { return None };
        let copy = |die: &Blocks| {
            let blocks = die.read().unwrap_or_else(PoisonError::into_inner);
            Arc::new(RwLock::new(blocks.clone()))
        };
        Some(Self::Memory(dies.iter().map(copy).collect(), *size))
    }

    /// Opens the drive; returns it and what that took.
    fn open(&self) -> Result<(Drive, Opening), Box<dyn Error>> {
        // From now on the peak is that of what follows.
        fs::write("/proc/self/clear_refs", "5")?;
        let resident = memory_bytes("VmRSS:")?;
        let media = self.media()?;
        let (begun, busy) = (Instant::now(), busy_ns()?);
        let drive = Drive::open_media(media)?;
        let seconds = match self {
            Self::Memory(..) => (busy_ns()? - busy) as f64 / 1e9,
            Self::Folder(_) => begun.elapsed().as_secs_f64(),
        };
        let memory_bytes = memory_bytes("VmHWM:")?.saturating_sub(resident);
        let read_bytes = drive.status().dies.iter().map(|die| die.read_bytes).sum();
        Ok((drive, Opening { seconds, memory_bytes, read_bytes }))
    }

    /// Opens the drive for good, and says what that took: where it can be opened again and again
    /// as it is, the least of so many times.
    fn opened(&self, times: u64) -> Result<(Drive, Opening), Box<dyn Error>> {
        let mut least: Option<Opening> = None;
        for _ in 1..times {
            let Some(copy) = self.copy() else { break };
            let (_, opening) = copy.open()?;
            let is_least = least.as_ref().is_none_or(|least| opening.seconds < least.seconds);
            least = if is_least { Some(opening) } else { least };
        }
        let (drive, opening) = self.open()?;
        let least = least.filter(|least| least.seconds < opening.seconds);
        Ok((drive, least.unwrap_or(opening)))
    }
}

/// Cost of opening a drive.
struct Opening {
    seconds: f64,
    memory_bytes: u64,
    read_bytes: u64,
}

impl Opening {
    fn show(&self, what: &str) {
        println!(
            "{what}: {:.3} s, {} MiB read, {} MiB of memory at most",
            self.seconds,
            self.read_bytes >> 20,
            self.memory_bytes >> 20
        );
    }
}

/// Nanoseconds that this thread had a processor.
fn busy_ns() -> Result<u64, Box<dyn Error>> {
    let all = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(all.split(' ').next().unwrap_or_default().parse()?)
}

/// A line of what the system says of this process.
fn memory_bytes(name: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).unwrap_or_default();
    Ok(kib.trim().parse::<u64>()? * 1024)
}

/// Pages that got a place since the drive was opened.
fn placed(drive: &Drive) -> Result<u64, Box<dyn Error>> {
    let counters = drive.counters()?;
    Ok(counters.pages_host + counters.pages_relocation)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |other| words.next().map_or(Ok(other), |word| word.parse::<u64>());
    let (pages, since) = (number(1 << 14)? << 8, number(240_000)?);
    let (flush, times) = (number(0)?, number(5)?);
    let plan = Plan {
        size: Bytes(pages * PAGE),
        dies: DIES,
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let shape = plan.shape()?;
    let place = Place::new(words.next().map(PathBuf::from), shape.die_bytes().0)?;
    format(place.media()?, &shape, 1)?;
    let (drive, _) = place.open()?;
    let run = vec![0; 1 << 18];
    for at in (0..pages * PAGE).step_by(run.len()) {
        drive.write(at, &run, Durability::Volatile)?;
    }
    drive.close()?;
    let (drive, closed) = place.opened(times)?;
    closed.show("after it was closed");
    drive.checkpoint()?;
    drop(drive);
    let (drive, empty) = place.opened(times)?;
    empty.show("after a crash behind a checkpoint");
    let (before, mut rng, mut written) = (placed(&drive)?, Rng::new(1), 0_u64);
    while placed(&drive)? - before < since {
        drive.write(rng.below(pages) * PAGE, &run[..index(PAGE)], Durability::Volatile)?;
        written += 1;
        if written.checked_rem(flush) == Some(0) {
            drive.flush()?;
        }
    }
    drop(drive);
    let (_, full) = place.opened(times)?;
    full.show(&format!("after a crash {since} pages later"));
    let (pages_s, page_ns) = (full.seconds - empty.seconds, closed.seconds * 1e9 / pages as f64);
    println!("after it was closed: {page_ns:.1} ns for each page of the drive");
    if pages_s < empty.seconds * NOISE_SHARE {
        println!("pages since the checkpoint: less than what opening varies by");
    } else {
        let each_ns = pages_s * 1e9 / since as f64;
        let terabyte_s = each_ns * TERABYTE_PAGES / 1e9;
        println!("pages since the checkpoint: {each_ns:.1} ns each, {terabyte_s:.2} s for each TB");
    }
    Ok(())
}
