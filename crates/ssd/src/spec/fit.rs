//! Unknown numbers of a drive that a fit may choose, and their bounds.

use serde::Deserialize;

/// One number of the drive's file that a fit may choose.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// Key of the number in the file: `controller.relocate_us`, `nand.t_program_us.1` (counted from
    /// 0), `host.linux.submit_us`.
    pub parameter: String,
    /// Least value, in the unit of the number.
    pub low: f64,
    /// Greatest value, in the unit of the number.
    pub high: f64,
    /// Scale by which a search steps from one to the other.
    #[serde(default)]
    pub scale: FitScale,
    /// Reason for these bounds; may be absent.
    pub source: Option<String>,
}

/// Scale by which a search steps through the values of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitScale {
    /// Equal differences are equal steps.
    #[default]
    Linear,
    /// Equal ratios are equal steps; for a number whose order of magnitude is open.
    Log,
}

impl FitSpec {
    /// Describes what is wrong with the bounds by themselves; `None` if they can be searched.
    pub fn fault(&self) -> Option<String> {
        let Self { low, high, .. } = self;
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Some(format!("low {low} and high {high} enclose nothing, low must be below"));
        }
        if self.scale == FitScale::Log && *low <= 0.0 {
            return Some(format!("low {low} has no logarithm, must be above 0 for scale \"log\""));
        }
        None
    }
}
