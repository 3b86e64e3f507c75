//! Files of workloads and protocols: their text, faults among them, and import of fio job files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lab::library::{Item, Library, Origin};
use lab::runs::write_text;
use lab::workload::fio::{self, ImportedProtocol};
use lab::workload::vdbench;
use lab::{Error, Kind};

use crate::args::Import;
use crate::{output, setup};

/// The text of the file of a workload or a protocol.
pub(super) fn text<T: Item>(library: &Library, name: &str) -> Result<String> {
    let found = library.find::<T>(name)?;
    Ok(match found.origin {
        Origin::BuiltIn => T::built_in_text(name).unwrap_or_default().to_owned(),
        Origin::File(path) => {
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?
        }
    })
}

/// Prints the user's files that cannot be read.
pub(super) fn tell_faults<T: Item>(library: &Library) {
    for fault in library.faults::<T>() {
        output::talk(&format!("not listed: {:#}", anyhow::Error::from(fault)));
    }
}

/// Writes each job of a job file of fio, or run of a parameter file of vdbench, as a workload.
pub(super) fn import_workloads(args: &Import) -> Result<()> {
    let imported = read(&args.file)?;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("workloads"));
    let files: Vec<(PathBuf, String)> = imported
        .protocol
        .workloads
        .iter()
        .map(|it| Ok((folder.join(format!("{}.toml", it.name)), toml::to_string(it)?)))
        .collect::<Result<_>>()?;
    write(&folder, &files, args.overwrite)?;
    tell(&imported);
    Ok(())
}

/// Writes a job file as a protocol that holds its workloads.
pub(super) fn import_protocol(args: &Import) -> Result<()> {
    let imported = read(&args.file)?;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("protocols"));
    let path = folder.join(format!("{}.toml", imported.protocol.name));
    let text = toml::to_string(&imported.protocol).context("making TOML of the protocol")?;
    write(&folder, &[(path, text)], args.overwrite)?;
    tell(&imported);
    Ok(())
}

fn read(path: &Path) -> Result<ImportedProtocol> {
    let shown = path.display().to_string();
    let text = setup::read_text(path)?;
    let (imported, what) = if vdbench::is_parameter_file(&text) {
        (vdbench::import(&text, &shown), "a parameter file of vdbench")
    } else {
        (fio::import(&text, &shown), "a job file of fio")
    };
    let refused = |source| Error::new(Kind::Input, format!("reading {what}")).source(source).into();
    imported.map_err(refused)
}

fn write(folder: &Path, files: &[(PathBuf, String)], overwrite: bool) -> Result<()> {
    for (path, _) in files {
        setup::check_output(path, overwrite)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (path, text) in files {
        write_text(path, text)?;
        output::data(&path.display().to_string())?;
    }
    Ok(())
}

/// Prints the options of the job file that were not imported.
fn tell(imported: &ImportedProtocol) {
    for note in &imported.notes {
        output::talk(&format!("note: {note}"));
    }
}
