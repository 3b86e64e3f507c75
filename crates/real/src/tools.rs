//! Programs of the system that know drives: nvme-cli, hdparm, blkdiscard, smartctl.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// External programs: on the path, or, in tests, in one folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    folder: Option<PathBuf>,
}

impl Tools {
    /// Programs in `folder`, and no others.
    #[cfg(test)]
    pub(crate) fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Runs `program` and returns its standard output.
    ///
    /// # Errors
    /// Fails if the tool is missing, or with its own error, in one line.
    pub(crate) fn ask<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<Vec<u8>, String> {
        let output = self.output(program, arguments).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => format!("{program} is not installed"),
            _ => format!("{program} did not start: {source}"),
        })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let line = said.lines().map(str::trim).find(|line| !line.is_empty());
        let status = output.status.to_string();
        Err(format!("{program} failed: {}", line.unwrap_or(&status)))
    }

    /// Standard output of `program`, however it ended; absent where it did not start.
    ///
    /// smartctl tells the state of a drive by its exit status.
    pub(crate) fn text_of<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Option<String> {
        let output = self.output(program, arguments).ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Output of `program` in a process group of its own: Ctrl-C on the terminal must not end it
    /// between two steps of what is done to a drive, such as setting a password and removing it.
    fn output<A: AsRef<OsStr>>(&self, program: &str, arguments: &[A]) -> io::Result<Output> {
        let path = match &self.folder {
            Some(folder) => folder.join(program),
            None => program.into(),
        };
        Command::new(path)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .process_group(0)
            .output()
    }
}

#[cfg(test)]
pub(crate) mod fake;

#[cfg(test)]
mod tests {
    use super::fake::Fakes;

    #[test]
    fn a_program_does_not_hear_the_interrupts_of_the_terminal() {
        let fakes = Fakes::none().with("hdparm", "cut -d ' ' -f 5 /proc/self/stat");
        let said = fakes.tools().ask("hdparm", &[""; 0]).unwrap();
        let group: i32 = String::from_utf8(said).unwrap().trim().parse().unwrap();
        assert_ne!(group, rustix::process::getpgrp().as_raw_nonzero().get());
    }
}
