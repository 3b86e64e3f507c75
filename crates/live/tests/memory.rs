//! Memory that a drive takes for its map, as the system counts it: in a process of its own, since
//! whatever else ran in this one would be counted too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use blockio::Bytes;
use live::{Compression, Device as _, Drive, Durability, Medium, Plan, format};

const DIES: u32 = 4;
const SIZE: u64 = 8 << 30;
/// Written before memory is looked at for the first time, so that all buffers are there, those of
/// a checkpoint too.
const FIRST: u64 = 2 << 30;
const PAGE: u64 = 4096;
/// Bytes of a unit of 64 whole pages, as the format of the media has it.
const PAGE_BYTES: u64 = 266_240;

/// A die that keeps headers, journal and checkpoints in a file, and forgets pages: no test reads
/// them here.
#[derive(Debug)]
struct Forgetful {
    size: u64,
    kept: u64,
    file: File,
}

impl Medium for Forgetful {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if offset < self.kept {
            return self.file.read_exact_at(buffer, offset);
        }
        buffer.fill(0);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset < self.kept { self.file.write_all_at(bytes, offset) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of this process that are in memory.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let resident: u64 = pages.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a number");
    resident * PAGE
}

fn write(drive: &Drive, range: std::ops::Range<u64>) {
    let mega = vec![1; 1 << 20];
    for at in range.step_by(mega.len()) {
        drive.write(at, &mega, Durability::Volatile).expect("there is room");
    }
}

/// Set in the process that measures.
const MEASURES: &str = "FLOATGATE_TEST_MEASURES_MEMORY";

/// Runs the test of this name again, in a process whose allocator gives each buffer of 128 KiB and
/// more back to the system once it is freed. By default glibc raises that threshold with every
/// large buffer that is freed, and keeps the megabytes that a checkpoint needed for a moment: these
/// would be counted as bytes of the map.
fn measure_in_own_process(test: &str) {
    let mut program = Command::new(std::env::current_exe().expect("Linux knows it"));
    program.args([test, "--exact", "--nocapture"]);
    let ran = program
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env(MEASURES, "1")
        .output()
        .expect("it starts again");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn a_mapped_page_takes_less_than_five_bytes_and_one_that_is_not_takes_none() {
    if std::env::var_os(MEASURES).is_none() {
        return measure_in_own_process(
            "a_mapped_page_takes_less_than_five_bytes_and_one_that_is_not_takes_none",
        );
    }
    let plan = Plan {
        size: Bytes(SIZE),
        dies: DIES,
        is_protected: false,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let shape = plan.shape().unwrap();
    let rows = u64::from(shape.superblocks) * u64::from(shape.rows);
    let kept = shape.die_bytes().0 - rows * PAGE_BYTES;
    let files: Vec<File> = (0..DIES).map(|_| tempfile::tempfile().unwrap()).collect();
    let media = || {
        let die = |file: &File| {
            file.set_len(kept).unwrap();
            let file = file.try_clone().unwrap();
            Box::new(Forgetful { size: shape.die_bytes().0, kept, file }) as Box<dyn Medium>
        };
        files.iter().map(die).collect()
    };
    format(media(), &shape, 1).unwrap();
    let before = resident_bytes();
    let drive = Drive::open_media(media()).unwrap();
    let empty = resident_bytes() - before;
    assert!(empty < SIZE / PAGE / 2, "{empty} bytes for an empty map");

    write(&drive, 0..FIRST);
    let before = resident_bytes();
    write(&drive, FIRST..SIZE);
    let bytes = (resident_bytes() - before) as f64;
    let pages = (SIZE - FIRST) as f64 / PAGE as f64;
    let stated = drive.status().format.mapping_bytes as f64 / (SIZE / PAGE) as f64;
    let each = bytes / pages;
    assert!(each < 4.8 && each < 1.1 * stated, "{each} bytes a page, the status says {stated}");
    assert!(each > 0.8 * stated, "{each} bytes a page, the status says {stated}");
}
