//! Media that are to be dies: files, which are made, or block devices, whose contents are lost.
//!
//! **Invariant**: nothing is written to a medium that holds something, unless its loss was allowed.

use std::fs::{self, FileType};
use std::io;
use std::path::Path;

use super::signature;
use crate::engine::dies::header_copies::{self, newest_header};
use crate::format::layout::{HEADER_BYTES, Layout};
use crate::medium::is_block_device;
use crate::{Access, FileMedium, Medium, OpenError, Preallocation, Shape};

/// Fate of what a medium holds that is to be a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Kept: a medium that holds a file system or anything else that is known is refused.
    #[default]
    Kept,
    /// Lost, if need be.
    Lost,
}

impl Contents {
    /// Returns the fate by whether the operator allows the loss.
    pub const fn lost_if(is_allowed: bool) -> Self {
        if is_allowed { Self::Lost } else { Self::Kept }
    }
}

/// A medium that is to be a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDie<'a> {
    pub(super) path: &'a Path,
    pub(super) access: Access,
    pub(super) preallocation: Preallocation,
    pub(super) contents: Contents,
}

impl NewDie<'_> {
    /// Makes a file that did not exist, or opens a block device.
    pub(super) fn make(&self, shape: &Shape) -> Result<Box<dyn Medium>, OpenError> {
        if is_block_device(self.path) {
            return self.open(None);
        }
        self.create(shape).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::refused(self.in_the_way()),
            _ => self.failed("creating the die", error),
        })
    }

    /// Describes what is at a path where a file was to be made, and the remedy.
    fn in_the_way(&self) -> String {
        let (path, shown) = (self.path, self.path.display());
        let found = fs::symlink_metadata(path).map(|it| it.file_type());
        if found.as_ref().is_ok_and(FileType::is_dir) {
            return format!("{shown} is a folder: give a new file or a block device");
        }
        if !found.is_ok_and(|it| it.is_file() || it.is_symlink()) {
            return format!("{shown} is neither a file nor a block device: give a new file");
        }
        let viewed = FileMedium::view(path).and_then(|medium| signature::contents(&medium));
        let holds = viewed.ok().flatten().map_or_else(String::new, |what| format!(" and {what}"));
        format!(
            "{shown} exists already{holds}: give the path of a new file; if it was left over by a \
             `create` that was interrupted, remove it"
        )
    }

    fn create(&self, shape: &Shape) -> io::Result<Box<dyn Medium>> {
        let layout = Layout::new(shape);
        let (path, bytes) = (self.path, layout.die_bytes_with_end());
        let medium = FileMedium::create(path, bytes, self.access, self.preallocation)?;
        // Whatever becomes of data, headers, the journal and the checkpoints can be written.
        let reserved = medium
            .reserve(0, layout.unit_from(0))
            .and_then(|()| medium.reserve(layout.end_header_from(), HEADER_BYTES));
        if let Err(error) = reserved {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(Box::new(medium))
    }

    /// Opens what is there already. A die of the volume `own` counts as blank.
    pub(super) fn open(&self, own: Option<u64>) -> Result<Box<dyn Medium>, OpenError> {
        let opened = FileMedium::open(self.path, self.access);
        let medium: Box<dyn Medium> =
            Box::new(opened.map_err(|error| self.failed("opening the die", error))?);
        if self.contents == Contents::Lost {
            return Ok(medium);
        }
        let drive = newest_header(&*medium).ok().flatten().map(|header| header.drive);
        if own.is_some() && drive == own {
            return Ok(medium);
        }
        let found = signature::contents(&*medium);
        if let Some(what) = found.map_err(|error| self.failed("reading", error))? {
            return Err(OpenError::refused(format!(
                "{} {what}, which would be lost: give another path, or --destroy to overwrite it",
                self.path.display()
            )));
        }
        Ok(medium)
    }

    /// Makes the medium no die of any volume, and where its contents may be lost also nothing else,
    /// once nothing is in the way of its being a die.
    pub(super) fn clear(&self, medium: &dyn Medium) -> Result<(), OpenError> {
        let cleared = match self.contents {
            Contents::Kept => header_copies::erase(medium),
            Contents::Lost => signature::erase(medium),
        };
        cleared.map_err(|error| self.failed("erasing the beginning of", error))
    }

    fn failed(&self, attempted: &str, error: io::Error) -> OpenError {
        if error.kind() == io::ErrorKind::WouldBlock {
            let shown = self.path.display();
            return OpenError::refused(format!(
                "{shown} is in use by a volume that is open: stop its server, or give another path"
            ));
        }
        OpenError::medium(&format!("{attempted} {}", self.path.display()), error)
    }
}
