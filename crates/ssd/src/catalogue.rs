//! The catalogue: every drive in `drives/`, embedded.

use crate::DriveSpec;

/// The catalogue, ordered by name.
pub fn drives() -> Vec<DriveSpec> {
    vec![DriveSpec {
        name: "iodrive-duo".into(),
        title: "Fusion-io ioDrive Duo 640 GB (MLC)".into(),
    }]
}

/// The drive named `name`.
pub fn find(name: &str) -> Option<DriveSpec> {
    drives().into_iter().find(|drive| drive.name == name)
}
