//! Reads of a target that keeps its data.

use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::*;

/// Watches how other processes have opened `path`: their access modes, once each.
struct OpenModes<'a> {
    path: &'a Path,
    modes: Vec<u32>,
}

impl Watch for OpenModes<'_> {
    fn progress(&mut self, _: f64, _: &str) {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            for file in files.filter(|it| fs::read_link(it.path()).is_ok_and(|to| to == self.path))
            {
                let info = process.path().join("fdinfo").join(file.file_name());
                // The file may be closed by now.
                let Ok(info) = fs::read_to_string(info) else { continue };
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
                let mode = u32::from_str_radix(flags.trim(), 8).unwrap() & 3;
                if !self.modes.contains(&mode) {
                    self.modes.push(mode);
                }
            }
        }
    }

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        false
    }
}

#[test]
fn a_target_that_is_only_read_is_opened_for_reading_and_keeps_every_byte() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let asked = request(&folder).with(|it| (it.size, it.read_only) = (None, true));
    assert_eq!(asked.open().unwrap_err().kind(), Kind::Input, "no file is made");
    let file = fs::File::create(asked.path()).unwrap();
    file.set_len(SIZE.0).unwrap();
    file.write_all_at(&vec![0x5a; 32 << 20], 0).unwrap();
    drop(file);
    let state = || {
        let it = fs::metadata(asked.path()).unwrap();
        (it.len(), it.blocks(), it.mtime(), it.mtime_nsec())
    };
    let (before, content) = (state(), fs::read(asked.path()).unwrap());
    let mut fio = asked.open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let mut opened = OpenModes { path: asked.path(), modes: Vec::new() };
    let loaded = fio.load(&load(&workload, "reads"), &mut opened).unwrap();
    assert!(total(&loaded.intervals, |it| it.read.count()) > 0.0);
    assert_eq!(opened.modes, [0], "O_RDONLY, by this process and by fio");
    assert!(loaded.how.contains("`fio --readonly "), "{}", loaded.how);
    let told = loaded.warnings.iter().find(|it| it.kind == WarningKind::UnwrittenReads).unwrap();
    let expected = "50.0 % of the target holds no data (32 MiB of 64 MiB), says the file system; ";
    assert!(told.text.starts_with(expected), "{}", told.text);
    assert!(told.text.contains(" % of it reads as zeroes ("), "{}", told.text);
    assert!(!loaded.how.contains("written"), "its hole is not filled: {}", loaded.how);

    let writes = catalogue::find_workload("8k-70-30").unwrap();
    let refusals = [
        fio.load(&load(&writes, "writes"), &mut Waiter::patient()).unwrap_err(),
        fio.check(&load(&writes, "writes")).unwrap_err(),
        fio.purge().unwrap_err(),
        fio.fill(&Fill { step: "fill", workload: &writes, passes: 1 }, &mut Waiter::patient())
            .unwrap_err(),
    ];
    assert!(refusals.iter().all(|it| it.kind() == Kind::Refused), "{refusals:?}");
    assert_eq!(state(), before);
    assert!(fs::read(asked.path()).unwrap() == content, "a byte changed");
}
