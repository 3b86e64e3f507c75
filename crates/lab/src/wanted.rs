//! Targets and setups of measurements, as runs remember them.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssd::{Setup, Surroundings};

use crate::{Error, Kind};

/// Bytes of a target's name that go into a file name: with the time before it and what follows,
/// far from the 255 that file systems take.
const SLUG_BYTES_MAX: usize = 120;

/// Target and setup of a measurement, as a run remembers them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TargetSetup {
    /// Name of a model in the catalogue, or path of its file; path or address of a real target.
    pub target: String,
    /// Format of a model; empty for a real target.
    pub format: String,
    /// Host driver of a model; for a real target the machines that it is on, such as `a,b:8766`,
    /// empty for this one.
    pub host: String,
    /// Time lapse of a model, at least 1; 1 for a real target.
    pub time_lapse: u32,
    /// Ambient temperature, airflow and slot power of a model, where they differ from its file.
    #[serde(default)]
    pub surroundings: Surroundings,
    /// Precision to which a model is sampled; absent: it is simulated in detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

/// Precision of a sampled run: half of the interval of a rate at 95 % ÷ the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Precision {
    /// In millionths, from 1 to 500,000.
    pub millionths: u32,
}

impl Precision {
    /// The precision of `share`, such as 0.01.
    ///
    /// # Errors
    /// Refuses shares below a thousandth, which detail reaches sooner, or above a half.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 0.5")]
    pub fn of_share(share: f64) -> Result<Self, Error> {
        if !(0.001..=0.5).contains(&share) {
            let text = format!("precision is {} %, must be from 0.1 to 50 %", share * 100.0);
            let hint = "leave it out to simulate every request in detail";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        Ok(Self { millionths: (share * 1e6).round() as u32 })
    }

    /// The precision as a share.
    pub fn share(self) -> f64 {
        f64::from(self.millionths) / 1e6
    }
}

impl TargetSetup {
    /// A real target on machines `host`, which are empty for this one.
    pub fn of_real(target: String, host: String) -> Self {
        let surroundings = Surroundings::default();
        let format = String::new();
        Self { target, format, host, time_lapse: 1, surroundings, precision: None }
    }

    /// True for a drive model, whose suites may run at the same time.
    pub const fn is_model(&self) -> bool {
        !self.format.is_empty()
    }

    /// Setup of the model, with the random numbers of `seed`.
    pub fn with_seed(&self, seed: u64) -> Setup {
        let Self { format, host, time_lapse, .. } = self.clone();
        Setup { format, host, time_lapse, seed }
    }

    /// Error for a target that is a model where the run was begun on a real one, or the reverse.
    pub fn mismatch(&self) -> Error {
        let text = format!("{} is no longer the kind of target that it was", self.target);
        Error::new(Kind::Input, text).hint("begin a new run")
    }

    /// Target and format as part of a file name: letters and digits of any script, and hyphens.
    pub(crate) fn slug(&self) -> String {
        // Several devices are named with commas between them.
        let stem = |name| Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
        let stems: Vec<_> = self.target.split(',').map(stem).collect();
        let (name, format) = (words(&stems.join("-")), words(&self.format));
        let name = &name[..name.floor_char_boundary(SLUG_BYTES_MAX)];
        let parts = [name.trim_end_matches('-'), &format];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

impl fmt::Display for TargetSetup {
    /// `iodrive-duo stock linux`; for a real drive its path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {} {}", self.target, self.format, self.host);
        f.write_str(text.trim_end())
    }
}

/// Letters and digits of `text` in lower case, everything else one hyphen.
pub(crate) fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(drive: &str, format: &str) -> TargetSetup {
        let (target, format, host) = (drive.into(), format.into(), "linux".into());
        let surroundings = Surroundings { ambient_c: Some(45), ..Surroundings::default() };
        TargetSetup { target, format, host, time_lapse: 64, surroundings, precision: None }
    }

    fn real(target: &str) -> TargetSetup {
        TargetSetup::of_real(target.into(), "a,b:8766".into())
    }

    #[test]
    fn a_path_becomes_a_part_of_a_file_name() {
        assert_eq!(model("iodrive-duo", "stock").slug(), "iodrive-duo-stock");
        assert_eq!(real("/tmp/my disk.img").slug(), "my-disk");
        assert_eq!(real("../..").slug(), "");
        assert_eq!(real("/dev/nvme1n1,/dev/nvme2n1").slug(), "nvme1n1-nvme2n1");
        assert_eq!(real("/srv/Плита №1.img").slug(), "плита-1");
        assert_eq!(model("磁盘.img", "stock").slug(), "磁盘-stock");
        assert_eq!(real(&format!("{}.img", "ж".repeat(110))).slug().len(), 120);
    }

    #[test]
    fn both_kinds_have_one_form_in_files_and_are_told_apart_again() {
        let texts = [
            r#"{"target":"p5510","format":"stock","host":"linux","time_lapse":64,"surroundings":"#,
            r#"{"target":"/dev/sda","format":"","host":"a,b:8766","time_lapse":1,"surroundings":"#,
        ];
        for (wanted, begins) in [model("p5510", "stock"), real("/dev/sda")].into_iter().zip(texts) {
            let text = serde_json::to_string(&wanted).unwrap();
            assert!(text.starts_with(begins), "{text}");
            assert_eq!(serde_json::from_str::<TargetSetup>(&text).unwrap(), wanted);
        }
    }
}
