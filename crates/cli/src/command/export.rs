//! `floatgate volume export`: exports of a volume.

use anyhow::{Context as _, Result, bail};
use live::{Beyond, Drive, Namespaces, OpenError};

use crate::args::{AddExport, Export, NamedExport, RemoveExport, ResizeExport};
use crate::{Ending, output};

/// Adds, resizes or removes an export.
pub(crate) fn export(command: &Export) -> Result<Ending> {
    let said = match command {
        Export::Add(AddExport { meant, size }) => {
            let NamedExport { volume, name, .. } = meant;
            changed(meant, None, |drive, _| Namespaces::add(volume, drive, name, *size))?;
            format!("{} has an export `{name}` of {size}", volume.display())
        }
        Export::Resize(ResizeExport { meant, size, destroy }) => {
            let NamedExport { volume, name, .. } = meant;
            changed(meant, destroy.as_deref(), |drive, beyond| {
                Namespaces::resize(volume, drive, name, *size, beyond)
            })?;
            format!("export `{name}` of {} has {size}", volume.display())
        }
        Export::Remove(RemoveExport { meant, destroy }) => {
            let NamedExport { volume, name, .. } = meant;
            changed(meant, destroy.as_deref(), |drive, beyond| {
                Namespaces::remove(volume, drive, name, beyond)
            })?;
            format!("{} has no export `{name}` any more", volume.display())
        }
    };
    output::talk(&said);
    Ok(Ending::Done)
}

/// Opens a drive, changes an export of it, and closes it again.
fn changed<T>(
    meant: &NamedExport,
    destroy: Option<&str>,
    change: impl FnOnce(&Drive, Beyond) -> Result<T, OpenError>,
) -> Result<T> {
    let shown = meant.volume.display();
    let drive = meant.key.open(&meant.volume)?;
    let number = drive.status().drive;
    let done = match destroy {
        Some(other) if !other.eq_ignore_ascii_case(&number) => {
            drive.close().with_context(|| format!("closing {shown}"))?;
            bail!("the volume ID of {shown} is {number}, not {other}");
        }
        Some(_) => change(&drive, Beyond::Lost),
        None => change(&drive, Beyond::Kept),
    };
    drive.close().with_context(|| format!("closing {shown}"))?;
    done.with_context(|| format!("changing export `{}` of volume {number}", meant.name))
}
