//! Physical space of a drive that offers more than it holds: warnings as it runs short.

use blockio::Nanos;
use results::{Warning, WarningKind};
use ssd::{Drive, DriveSpec};

use crate::{Error, Kind};

/// Warnings of low physical space that a drive may still raise.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Shares in percent at which to warn, ascending, that were not passed yet.
    warn_percent: Vec<f64>,
}

impl Space {
    /// Warnings of a drive of `spec`, none of them raised yet.
    pub(super) fn new(spec: &DriveSpec) -> Self {
        let mut warn_percent =
            spec.compression.as_ref().map_or_else(Vec::new, |it| it.warn_percent.clone());
        warn_percent.sort_by(f64::total_cmp);
        Self { warn_percent }
    }

    /// A warning if another share was passed, of the highest one.
    pub(super) fn passed(&mut self, drive: &Drive, step: &str) -> Option<Warning> {
        let used_percent = drive.space_used_share()? * 100.0;
        let passed = self.warn_percent.iter().take_while(|share| **share <= used_percent).count();
        let last = self.warn_percent.drain(..passed).next_back()?;
        Some(Warning {
            kind: WarningKind::Space,
            step: step.into(),
            text: format!(
                "{used_percent:.1} % of the physical space is used, beyond the {last} % at which \
                 the drive warns"
            ),
            remedy: "write data that compresses better, or trim, before writes are refused".into(),
        })
    }
}

/// The end of a load: a write found no space `at` that protocol time.
pub(super) fn exhausted(at: Nanos) -> Error {
    out_of_space(&format!("after {at}"))
}

/// The end of a fill that takes no time: a write found no space.
pub(super) fn exhausted_by_fill() -> Error {
    out_of_space("while it was filled")
}

fn out_of_space(when: &str) -> Error {
    let text = format!(
        "{when} the drive was out of physical space: the data compresses less than its format \
         assumes"
    );
    Error::new(Kind::Program, text).hint(
        "write more compressible data (--compressible), or choose a format with less user capacity",
    )
}
