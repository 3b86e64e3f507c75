//! The catalogue: every drive in `drives/`, embedded.

use crate::DriveSpec;

/// Name and text of every drive file, ordered by name.
const FILES: &[(&str, &str)] = &[
    ("drives/flashmax-ii.toml", include_str!("../../../drives/flashmax-ii.toml")),
    ("drives/iodrive-duo.toml", include_str!("../../../drives/iodrive-duo.toml")),
    ("drives/iodrive-duo-mlc-1280.toml", include_str!("../../../drives/iodrive-duo-mlc-1280.toml")),
    ("drives/iodrive-duo-slc-320.toml", include_str!("../../../drives/iodrive-duo-slc-320.toml")),
    ("drives/iodrive-duo-slc-640.toml", include_str!("../../../drives/iodrive-duo-slc-640.toml")),
    ("drives/optane-pmem-200.toml", include_str!("../../../drives/optane-pmem-200.toml")),
    ("drives/p5510.toml", include_str!("../../../drives/p5510.toml")),
    ("drives/p5510-eight.toml", include_str!("../../../drives/p5510-eight.toml")),
    ("drives/p5800x.toml", include_str!("../../../drives/p5800x.toml")),
    ("drives/p5800x-pair.toml", include_str!("../../../drives/p5800x-pair.toml")),
    ("drives/px600-2600.toml", include_str!("../../../drives/px600-2600.toml")),
];

/// The catalogue, ordered by name.
pub fn drives() -> Vec<DriveSpec> {
    FILES
        .iter()
        .map(|(file, text)| DriveSpec::parse(text, file).expect("tested: every file is a drive"))
        .collect()
}

/// The drive named `name`.
pub fn find(name: &str) -> Option<DriveSpec> {
    drives().into_iter().find(|drive| drive.name == name)
}

/// Names of the drives, in order: those of the files.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(file, _)| name_of(file))
}

/// Text of the drive named `name`.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| name_of(file) == name).map(|(_, text)| *text)
}

fn name_of(file: &'static str) -> &'static str {
    file.trim_start_matches("drives/").trim_end_matches(".toml")
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
        let named: BTreeSet<String> =
            drives().iter().map(|drive| format!("drives/{}.toml", drive.name)).collect();
        assert_eq!(named, files);
    }
}
