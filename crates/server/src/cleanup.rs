//! A shell that cleans up after this process, however the process ends.
//!
//! The shell reads line by line what to remove, and removes it when its input ends: the kernel
//! closes that input at the end of this process, even after `kill -9`.

use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result};

/// Reads lines of a word and a value. Then it ends processes, removes folders on mounts, unmounts,
/// detaches loop devices and removes folders, in this order. It ignores what is already gone.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
while read -r kind value; do
    case $kind in
        group) group=$value ;; folder) folder=$value ;; mount) mount=$value ;; loop) loop=$value ;;
        fuse) fuse=$value ;; scratch) scratch=$value ;;
    esac
done
exec 2> /dev/null
if [ -n "$group" ] && kill -s TERM -- "-$group"; then
    for attempt in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- "-$group" || break; sleep 0.2; done
    kill -s KILL -- "-$group"
fi
[ -z "$folder" ] || rm -rf "$folder"
gone() {
    for attempt in 1 2 3 4 5 6 7 8 9 10; do umount "$1" && return; sleep 0.2; done
    umount -l "$1"
}
[ -z "$mount" ] || gone "$mount"
[ -z "$loop" ] || losetup -d "$loop"
[ -z "$fuse" ] || gone "$fuse"
[ -z "$scratch" ] || rm -rf "$scratch"
exit 0
"#;

/// A shell that cleans up once this is dropped, or this process ends.
#[derive(Debug)]
pub struct CleanupShell {
    shell: Child,
    /// Absent once it has ended.
    input: Option<ChildStdin>,
}

/// Something to be removed.
#[derive(Clone, Copy, Debug)]
pub enum CleanupItem<'a> {
    /// Processes of a group, by its number.
    Group(u32),
    /// A folder with all that is in it, on what may be a mounted file system.
    Folder(&'a Path),
    /// A mounted file system.
    Mount(&'a Path),
    /// A loop device.
    Loop(&'a str),
    /// A folder on which drives are mounted as files.
    Fuse(&'a Path),
    /// A folder with all that is in it.
    Scratch(&'a Path),
}

impl CleanupShell {
    /// Starts the shell.
    ///
    /// # Errors
    /// Fails if the system has no shell.
    pub fn new() -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            // Not the group that Ctrl-C ends.
            .process_group(0)
            .spawn()
            .context("starting a shell")?;
        let input = shell.stdin.take();
        Ok(Self { shell, input })
    }

    /// Registers something to be removed at the end.
    ///
    /// # Errors
    /// Fails if the shell is gone.
    pub fn register(&mut self, item: CleanupItem<'_>) -> Result<()> {
        match item {
            CleanupItem::Group(number) => self.tell("group", &number),
            CleanupItem::Folder(folder) => self.tell("folder", &folder.display()),
            CleanupItem::Mount(folder) => self.tell("mount", &folder.display()),
            CleanupItem::Loop(device) => self.tell("loop", &device),
            CleanupItem::Fuse(folder) => self.tell("fuse", &folder.display()),
            CleanupItem::Scratch(folder) => self.tell("scratch", &folder.display()),
        }
    }

    fn tell(&mut self, kind: &str, value: &dyn Display) -> Result<()> {
        let input = self.input.as_mut().expect("there until it is dropped");
        writeln!(input, "{kind} {value}").context("writing to the shell that cleans up")
    }
}

impl Drop for CleanupShell {
    fn drop(&mut self) {
        self.input = None;
        // It ends once everything is removed.
        let _ = self.shell.wait();
    }
}
