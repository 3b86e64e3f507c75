//! Time of a request to a mounted drive outside the drive: in the file system, the loop device and
//! the front end.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockio::{Nanos, Op};
use export::{RecordedCommand, Recorder};

/// Bytes of a read, and alignment of direct I/O.
const BLOCK: usize = 4096;
/// Blocks of the file that is read.
const BLOCKS: usize = 64;
/// Reads, one at a time.
const READS: usize = 256;

/// Latencies of reads as the front end saw them.
#[derive(Debug, Default)]
pub(crate) struct ReadLatencies(Mutex<Vec<Duration>>);

impl Recorder for ReadLatencies {
    fn keep(&self, _: u64, served: &[RecordedCommand]) {
        let reads = served.iter().filter(|it| it.asked.op == Op::Read);
        let latencies = reads.map(|it| it.completed_at.saturating_duration_since(it.issued_at));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(latencies);
    }
}

/// Median latency of reads in `folder`, one at a time, minus their median latency in the front end.
/// `listen` sets the recorder of the front end's requests, or removes it.
///
/// # Errors
/// Fails if a file cannot be written to the folder and read past the page cache.
pub(crate) fn round_trip(
    folder: &Path,
    listen: impl Fn(Option<Arc<dyn Recorder>>),
) -> Result<Nanos> {
    let path = folder.join(format!(".floatgate-round-trip-{}", std::process::id()));
    let measured = reads(&path, &listen);
    listen(None);
    fs::remove_file(&path).context("removing a file from the drive")?;
    measured
}

fn reads(path: &Path, listen: &impl Fn(Option<Arc<dyn Recorder>>)) -> Result<Nanos> {
    let mut file = File::create_new(path).context("writing a file to the drive")?;
    file.write_all(&vec![0x5a; BLOCK * BLOCKS]).context("writing a file to the drive")?;
    file.sync_all().context("writing a file to the drive")?;
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).context("numbering a flag")?;
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path);
    let file = file.context("opening a file of the drive for direct I/O")?;
    let mut memory = vec![0; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = memory.get_mut(start..start + BLOCK).context("aligning a buffer")?;
    let seen = Arc::<ReadLatencies>::default();
    listen(Some(Arc::<ReadLatencies>::clone(&seen)));
    let mut latencies = Vec::with_capacity(READS);
    for index in 0..READS {
        let offset = u64::try_from(index * 37 % BLOCKS * BLOCK).context("numbering a block")?;
        let begun = Instant::now();
        file.read_exact_at(block, offset).context("reading a file of the drive")?;
        latencies.push(begun.elapsed());
    }
    let mut seen = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = median(&mut latencies).saturating_sub(median(&mut seen));
    Ok(Nanos(u64::try_from(beside.as_nanos()).unwrap_or(u64::MAX)))
}

/// The middle one; zero of none.
fn median(latencies: &mut [Duration]) -> Duration {
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_one() {
        let us = Duration::from_micros;
        assert_eq!(median(&mut [us(9), us(1), us(5)]), us(5));
        assert_eq!(median(&mut []), Duration::ZERO);
    }

    #[test]
    fn what_is_read_of_a_folder_takes_time_that_no_front_end_saw() {
        let folder = tempfile::tempdir().unwrap();
        // Some file systems in memory have no direct I/O.
        if let Ok(beside) = round_trip(folder.path(), |_| {}) {
            assert!(beside > Nanos::ZERO);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
