//! Arguments of `floatgate volume attach` and `floatgate volume detach`.

use std::path::PathBuf;

use clap::Args;

/// `floatgate volume attach`.
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Folder of a served volume, or one of the URIs that its server printed
    #[arg(value_name = "VOLUME|URI")]
    pub(crate) of: String,
    /// Name of the export, for a volume with several [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) export: Option<String>,
}

/// `floatgate volume detach`.
#[derive(Debug, Args)]
pub(crate) struct Detach {
    /// Block device that `floatgate volume attach` printed
    pub(crate) device: PathBuf,
}
