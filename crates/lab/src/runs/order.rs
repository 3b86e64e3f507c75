//! Order of a run: enough to resume it, and to make its result from the finished steps.

use std::path::Path;

use results::{Bin, Sample, Step, Warning, WarningKind};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::runner::Record;
use crate::target::identity::{DeviceIdentity, check as check_devices, identities};
use crate::wanted::TargetSetup;
use crate::{Error, Kind};

/// Version of the order and of the steps kept beside it.
const SCHEMA: u32 = 1;

/// Contents of the file `order.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Version of this form.
    pub schema: u32,
    /// Name of the run.
    pub id: String,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// Version of the drive models that it began with.
    pub model_version: u32,
    /// Target and setup.
    pub wanted: TargetSetup,
    /// Plan of the run.
    pub plan: Plan,
    /// Block devices that a real target consists of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) devices: Vec<DeviceIdentity>,
}

impl Order {
    pub(super) fn new(id: String, started_at: String, plan: Plan, wanted: TargetSetup) -> Self {
        let is_real = !wanted.is_model();
        let devices = if is_real { identities(&wanted.target, &wanted.host) } else { Vec::new() };
        let model_version = ssd::MODEL_VERSION;
        Self { schema: SCHEMA, id, started_at, model_version, wanted, plan, devices }
    }

    /// Refuses an order that this program cannot resume: of another schema or model version, or on
    /// other drives.
    pub(super) fn check(&self, path: &Path) -> Result<(), Error> {
        let refused = |text: String| {
            let text = format!("resuming {}: {text}", path.display());
            Err(Error::new(Kind::Input, text).hint("begin a new run"))
        };
        if self.schema != SCHEMA {
            return refused(format!("its order has schema {}, not {SCHEMA}", self.schema));
        }
        if self.model_version != ssd::MODEL_VERSION {
            return refused(format!(
                "begun with model version {}, this is version {}",
                self.model_version,
                ssd::MODEL_VERSION
            ));
        }
        self.check_devices()
    }

    /// Refuses devices that are not those that the run was begun on.
    pub(super) fn check_devices(&self) -> Result<(), Error> {
        check_devices(&self.devices)
    }

    /// Warning of a run that was resumed on devices which only their size tells from others.
    pub(super) fn unidentified(&self) -> Option<Warning> {
        let unidentified = self.devices.iter().filter_map(DeviceIdentity::unidentified);
        let names: Vec<String> = unidentified.map(|path| path.display().to_string()).collect();
        (!names.is_empty()).then(|| Warning {
            kind: WarningKind::Environment,
            step: String::new(),
            text: format!(
                "the run was resumed, and nothing but the size identifies {}: whether it is the \
                 device that the run began on is not known",
                names.join(" and ")
            ),
            remedy: "measure it again in one go if another device may have taken its name".into(),
        })
    }
}

/// One finished step as it is kept on disk: with what the result itself keeps elsewhere.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredStep {
    step: Step,
    warnings: Vec<Warning>,
    samples: Vec<Sample>,
    read_bins: Vec<Bin>,
    write_bins: Vec<Bin>,
}

impl From<&Record> for StoredStep {
    fn from(record: &Record) -> Self {
        Self {
            step: record.step.clone(),
            warnings: record.warnings.clone(),
            samples: record.step.samples.clone(),
            read_bins: record.step.read_bins.clone(),
            write_bins: record.step.write_bins.clone(),
        }
    }
}

impl From<StoredStep> for Record {
    fn from(kept: StoredStep) -> Self {
        let StoredStep { step, warnings, samples, read_bins, write_bins } = kept;
        Self { step: Step { samples, read_bins, write_bins, ..step }, warnings }
    }
}
