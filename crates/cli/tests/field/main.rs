//! Real devices as far as a machine without spare drives has them: a part of a disk image, and a
//! whole emulated machine with an NVMe drive. Each test says so where it cannot run.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself")]

mod disk;
mod guest;

use std::process::Command;

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn fio_is_missing() -> bool {
    let found = Command::new("fio").arg("--version").output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        skip("fio is not installed");
    }
    missing
}
