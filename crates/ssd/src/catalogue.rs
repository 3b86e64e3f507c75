//! The catalogue: every drive in `drives/` and every platform in `hosts/`, embedded by the build
//! script.

use crate::{DriveSpec, PlatformSpec};

/// Name and text of every drive file, ordered by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/drives.rs"));

/// Name and text of every file of a platform, ordered by name.
const PLATFORMS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/hosts.rs"));

/// The drives, ordered by name.
pub fn drives() -> Vec<DriveSpec> {
    debug_assert!(names().is_sorted(), "the catalogue is ordered by name");
    FILES.iter().map(|(file, text)| parsed(file, text)).collect()
}

fn parsed(file: &str, text: &str) -> DriveSpec {
    DriveSpec::parse(text, file).expect("tested: every file is a drive")
}

/// The drive named `name`.
pub fn find(name: &str) -> Option<DriveSpec> {
    let (file, text) = FILES.iter().find(|(file, _)| name_of(file) == name)?;
    Some(parsed(file, text))
}

/// Names of the drives, in order: those of the files.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(file, _)| name_of(file))
}

/// Text of the drive named `name`.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| name_of(file) == name).map(|(_, text)| *text)
}

/// The platforms, ordered by name.
pub fn platforms() -> Vec<PlatformSpec> {
    platform_names().filter_map(platform).collect()
}

/// The platform named `name`.
pub fn platform(name: &str) -> Option<PlatformSpec> {
    let (file, text) = PLATFORMS.iter().find(|(file, _)| name_of(file) == name)?;
    Some(PlatformSpec::parse(text, file).expect("tested: every file is a platform"))
}

/// Names of the platforms, in order: those of the files.
pub(crate) fn platform_names() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().map(|(file, _)| name_of(file))
}

fn name_of(file: &'static str) -> &'static str {
    let name = file.trim_start_matches("drives/").trim_start_matches("hosts/");
    name.trim_end_matches(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::{fs, path::Path};

    #[test]
    fn every_file_is_embedded_and_named_after_its_drive() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| format!("drives/{}", path.file_name().unwrap().display()))
            .collect();
        let embedded: BTreeSet<String> = FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
        assert_eq!(embedded, files);
        assert!(names().is_sorted(), "ordered by name");
        let named: BTreeSet<String> =
            drives().iter().map(|drive| format!("drives/{}.toml", drive.name)).collect();
        assert_eq!(named, files);
    }
}
