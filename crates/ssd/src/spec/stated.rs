//! Statements of a drive's file in the terms of a data sheet.
//!
//! Makers print raw NAND capacity with the digits of its binary size and the unit GB: 3,072 GB are
//! 384 dies of 8 GiB. They divide that by user capacity in decimal GB for the over-provisioning
//! that they print, so raw capacity is counted in GiB here, as they do. Over-provisioning of the
//! bytes that there are is larger: see [`DriveSpec::over_provisioning`].

use crate::spec::DriveSpec;

/// Over-provisioning of a format: spare bytes as shares of user and of raw capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverProvisioning {
    /// Spare over user capacity, as SNIA and most makers state it; 0.28 is 28 %.
    pub of_user: f64,
    /// Spare over raw capacity; 0.22 for the same drive.
    pub of_raw: f64,
}

impl OverProvisioning {
    /// The shares of `raw` and `user`, in the same unit.
    fn of(raw: f64, user: f64) -> Self {
        Self { of_user: (raw - user) / user, of_raw: (raw - user) / raw }
    }
}

impl DriveSpec {
    /// Raw capacity of one device in GiB, bad and spare erase blocks and parity included.
    pub fn raw_gib(&self) -> f64 {
        self.raw_device_capacity().0 as f64 / f64::from(1 << 30)
    }

    /// Over-provisioning of a format by the bytes of one device; absent if there is no such format.
    pub fn over_provisioning(&self, format: &str) -> Option<OverProvisioning> {
        let format = self.format(format).ok()?;
        let user = format.physical_gb.unwrap_or(format.user_gb);
        Some(OverProvisioning::of(self.raw_device_capacity().as_gb_f64(), user))
    }

    /// Value of a data sheet's metric as the drive's file has it, of the card or of one of its
    /// modules; absent where the file does not say, or the metric is of no file.
    ///
    /// Units are those of the names: decimal GB, percent, PB written, years.
    pub fn stated(&self, metric: &str, format: &str, is_of_module: bool) -> Option<f64> {
        let parts = if is_of_module { f64::from(self.modules.count) } else { 1.0 };
        let user_gb = self.format(format).ok()?.user_gb;
        let shares = OverProvisioning::of(self.raw_gib(), user_gb);
        let endurance = self.endurance.as_ref();
        match metric {
            "usable_capacity_gb" => Some(user_gb / parts),
            "raw_capacity_gb" => Some(self.raw_gib() / parts),
            "op_of_user_percent" => Some(shares.of_user * 100.0),
            "op_of_raw_percent" => Some(shares.of_raw * 100.0),
            "endurance_pbw" => endurance?.rated_pb,
            "warranty_years" => endurance?.warranty_years,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue;

    #[test]
    fn a_file_states_what_its_data_sheet_does() {
        let drives = catalogue::drives();
        let drive = drives.iter().find(|drive| drive.name == "flashmax-ii").expect("a drive");
        let stated = |metric| drive.stated(metric, "stock", false).expect("it is known");
        assert!((stated("raw_capacity_gb") - 3072.0).abs() < 0.1);
        assert!((stated("op_of_user_percent") - 38.25).abs() < 0.01);
        assert!((stated("op_of_raw_percent") - 27.67).abs() < 0.01);
        let module = drive.stated("usable_capacity_gb", "stock", true);
        assert_eq!(module, Some(1111.0), "one of two modules");
        let shares = drive.over_provisioning("stock").expect("a format");
        assert!((shares.of_user - 0.4845).abs() < 0.001, "by bytes: {shares:?}");
        assert_eq!(drive.stated("iops", "stock", false), None);
        assert_eq!(drive.stated("raw_capacity_gb", "none", false), None);
    }
}
