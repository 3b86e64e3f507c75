//! Files through FUSE.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use export::fuse;
use tracing::warn;

use super::{ExportedDrive, FrontEnd, Preparation, ReadyFrontEnd, Running};
use crate::cleanup::CleanupShell;
use crate::mount;

/// `--fuse`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Empty folder in which each export is mounted as a file through FUSE
    #[arg(long, value_name = "DIR")]
    fuse: Option<PathBuf>,
}

/// Folder that exports are to be mounted in.
struct Folder(PathBuf);

/// Exports that are mounted as files.
struct Files {
    folder: PathBuf,
    /// Absent once they are unmounted.
    mount: Option<(fuse::Mount, CleanupShell)>,
}

impl FrontEnd for Options {
    fn prepare(&self, _: &mut Preparation<'_>) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let folder = |path: PathBuf| Box::new(Folder(path)) as Box<dyn ReadyFrontEnd>;
        Ok(self.fuse.clone().map(folder))
    }
}

impl ReadyFrontEnd for Folder {
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>> {
        let folder = mount::empty_folder(&self.0)?;
        let mut shell = CleanupShell::new()?;
        let mount = mount::files(&mut shell, drive.exports, &folder)?;
        for export in &mut drive.offered {
            let path = folder.join(fuse::file_name(&export.name));
            export.uris.push(path.display().to_string());
        }
        Ok(Box::new(Files { folder, mount: Some((mount, shell)) }))
    }
}

/// Unmounts them once none is open, or after two seconds.
impl Drop for Files {
    fn drop(&mut self) {
        let Some((mount, shell)) = self.mount.take() else { return };
        drop(shell);
        if let Err(error) = mount.unmount() {
            let folder = self.folder.display();
            warn!("a file in {folder} is still open; I/O to it fails from now on: {error}");
        }
    }
}
