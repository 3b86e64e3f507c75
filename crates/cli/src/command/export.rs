//! `floatgate export`: a drive that stores, divided among exports.

use anyhow::{Context as _, Result, bail};
use live::{Beyond, Drive, Namespaces, OpenError};

use crate::args::{AddExport, Export, Meant, RemoveExport, ResizeExport};
use crate::failure::Opening;
use crate::{Ending, output};

/// Adds, resizes or removes an export.
pub(crate) fn export(command: &Export) -> Result<Ending> {
    let said = match command {
        Export::Add(AddExport { meant, size }) => {
            let Meant { vault, name } = meant;
            changed(meant, None, |drive, _| Namespaces::add(vault, drive, name, *size))?;
            format!("{} has an export `{name}` of {size}", vault.display())
        }
        Export::Resize(ResizeExport { meant, size, destroy }) => {
            let Meant { vault, name } = meant;
            changed(meant, destroy.as_deref(), |drive, beyond| {
                Namespaces::resize(vault, drive, name, *size, beyond)
            })?;
            format!("export `{name}` of {} has {size}", vault.display())
        }
        Export::Remove(RemoveExport { meant, destroy }) => {
            let Meant { vault, name } = meant;
            changed(meant, destroy.as_deref(), |drive, beyond| {
                Namespaces::remove(vault, drive, name, beyond)
            })?;
            format!("{} has no export `{name}` any more", vault.display())
        }
    };
    output::talk(&said);
    Ok(Ending::Done)
}

/// Opens a drive, changes an export of it, and closes it again.
fn changed<T>(
    meant: &Meant,
    destroy: Option<&str>,
    change: impl FnOnce(&Drive, Beyond) -> Result<T, OpenError>,
) -> Result<T> {
    let shown = meant.vault.display();
    let drive = Drive::open(&meant.vault).with_context(|| Opening::of(&meant.vault))?;
    let number = drive.status().drive;
    let done = match destroy {
        Some(other) if other != number => {
            drive.close().with_context(|| format!("closing {shown}"))?;
            bail!("{shown} is drive {number}, not {other}");
        }
        Some(_) => change(&drive, Beyond::Lost),
        None => change(&drive, Beyond::Kept),
    };
    drive.close().with_context(|| format!("closing {shown}"))?;
    done.with_context(|| format!("changing export `{}` of drive {number}", meant.name))
}
