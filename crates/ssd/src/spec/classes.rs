//! The classes of a drive made of two: what its file says of them, and leaves out.

use blockio::text::in_toml_types;
use tier::{Layout, Policy};
use toml::{Table, Value};

use super::tier::TierSpec;
use super::{DriveSpec, HostSpec, SpecError};
use crate::catalogue;

/// Keys of the table that are not the policy's.
const OWN: [&str; 6] = ["fast", "slow", "fast_file", "slow_file", "fast_gb", "source"];

/// Tables that a tier has no use for: what it costs is that of its classes and its host.
const DEFAULTS: &str = r#"
[modules]
count = 1
layout = "striped"
stripe_kib = 4
source = "derived: a tier has no module of its own"

[controller]
cores = 1
read_us = 0
read_us_per_kib = 0
write_us = 0
write_us_per_kib = 0
relocate_us = 0
read_first = false
on_host = false
source = "derived: a tier has no controller of its own"

[link]
read_mb_s = 1e6
write_mb_s = 1e6
source = "derived: a tier has no link of its own"
"#;

impl DriveSpec {
    /// The classes of a drive made of two, the fast one first, each with a host that costs nothing
    /// but copying.
    ///
    /// # Errors
    /// Names the class that is no drive of the catalogue by itself.
    pub(crate) fn classes(&self, tier: &TierSpec) -> Result<[Self; 2], SpecError> {
        let place = &self.name;
        let class = |key: &str, name: &str, text: Option<&str>| {
            let spec = text.map_or_else(|| class(key, name, place), |it| Self::parse(it, place));
            spec.map(without_host)
        };
        let fast = class("fast", &tier.fast, tier.fast_file.as_deref())?;
        Ok([fast, class("slow", &tier.slow, tier.slow_file.as_deref())?])
    }

    /// Checks policy and capacities of a tier; `place` is that of its table.
    ///
    /// # Errors
    /// Says which key of the table is out of range, and its limit.
    pub(super) fn check_classes(&self, tier: &TierSpec, place: &str) -> Result<(), SpecError> {
        let fault = |text: String| SpecError { place: place.to_owned(), text };
        tier.policy.check().map_err(|error| fault(format!("tier.{error}")))?;
        let [fast, slow] = self.classes(tier)?;
        let (fast_gb_max, slow_gb) = (capacity_gb(&fast), capacity_gb(&slow));
        if let Some(fast_gb) = tier.fast_gb
            && !(fast_gb > 0.0 && fast_gb <= fast_gb_max)
        {
            let name = &tier.fast;
            return Err(fault(format!(
                "tier.fast_gb is {fast_gb}, must be above 0 and at most the {fast_gb_max} GB of \
                 {name}"
            )));
        }
        let used_gb = tier.fast_gb.unwrap_or(fast_gb_max);
        if used_gb >= slow_gb {
            return Err(fault(format!(
                "tier.fast is {}, of which {used_gb} GB are used, must be less than the \
                 {slow_gb} GB of {}: are the classes swapped? Set fast_gb if not",
                tier.fast, tier.slow
            )));
        }
        let user_gb_max = user_gb_max(tier, slow_gb);
        let larger = self.formats.iter().find(|it| it.user_gb > user_gb_max * (1.0 + 1e-9));
        larger.map_or(Ok(()), |format| {
            let (user_gb, name) = (format.user_gb, &tier.slow);
            Err(fault(format!(
                "format.user_gb is {user_gb}, must be at most the {user_gb_max} GB that {name} \
                 leaves as the slow class"
            )))
        })
    }
}

/// User capacity in decimal GB that a slow class allows.
fn user_gb_max(tier: &TierSpec, slow_gb: f64) -> f64 {
    match tier.policy.layout {
        Layout::InPlace => slow_gb,
        Layout::Log => slow_gb * (1.0 - tier.policy.spare_percent / 100.0),
    }
}

/// User capacity of a drive in its first format, all devices of a group, in decimal GB.
fn capacity_gb(spec: &DriveSpec) -> f64 {
    let of_device = spec.formats.first().map_or(0.0, |format| format.user_gb);
    of_device * f64::from(spec.device_count())
}

/// The drive of the catalogue that is a class.
fn class(key: &str, name: &str, place: &str) -> Result<DriveSpec, SpecError> {
    let fault = |text: String| SpecError { place: place.to_owned(), text };
    let Some(spec) = catalogue::find(name) else {
        let near = blockio::nearest(name, catalogue::names());
        let meant = near.map_or(String::new(), |near| format!(", did you mean {near}?"));
        return Err(fault(format!(
            "tier.{key} is {name:?}, must be a drive of the catalogue{meant}"
        )));
    };
    if spec.tier.is_some() {
        return Err(fault(format!(
            "tier.{key} is {name:?}, which is a tier itself: name its fast or its slow drive"
        )));
    }
    Ok(spec)
}

/// A drive whose requests cost the host nothing: its own host has counted them. A processor that
/// copies the data still does.
fn without_host(mut spec: DriveSpec) -> DriveSpec {
    let driver = spec.hosts.first().expect("checked: a drive has a host").clone();
    spec.hosts = vec![HostSpec {
        submit_us: 0.0,
        complete_us: 0.0,
        interrupt_us: 0.0,
        wake_us: 0.0,
        serial_us: 0.0,
        stalls: Vec::new(),
        one_at_a_time: false,
        processors: 0,
        ..driver
    }];
    spec
}

/// Moves the keys of the policy into a table of their own, and adds what the file of a tier may
/// leave out.
///
/// # Errors
/// Names a class that is none.
pub(super) fn complete(table: &mut Table, file: &str) -> Result<(), SpecError> {
    let fault = |text: &str| SpecError { place: file.to_owned(), text: text.to_owned() };
    let Some(Value::Table(tier)) = table.get_mut("tier") else {
        return Err(fault("tier is no table: name its drives, fast and slow, and a policy"));
    };
    if let Some(key) = ["fast_file", "slow_file"].into_iter().find(|key| tier.contains_key(*key)) {
        let text = format!(
            "tier.{key} is no key: describe the drive in a table [tier.fast] or [tier.slow]"
        );
        return Err(fault(&text));
    }
    let is_policy = |key: &String| !OWN.contains(&key.as_str());
    let keys: Vec<String> = tier.keys().filter(|key| is_policy(key)).cloned().collect();
    let policy: Table =
        keys.into_iter().filter_map(|key| tier.remove(&key).map(|value| (key, value))).collect();
    let (fast, slow) = (take_class(tier, "fast", file)?, take_class(tier, "slow", file)?);
    let spare_percent = policy.get("spare_percent").and_then(number).unwrap_or(20.0);
    let is_log = policy.get("layout").and_then(Value::as_str) == Some("log");
    policy.clone().try_into::<Policy>().map_err(|error| {
        // In one line, as a sweep shows it.
        let text = in_toml_types(&error.to_string());
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        fault(&format!("tier: {}", lines.join(", ")))
    })?;
    tier.insert("policy".into(), policy.into());
    let slow_gb = capacity_gb(&slow);
    let user_gb = if is_log { slow_gb * (1.0 - spare_percent / 100.0) } else { slow_gb };
    let words = [
        ("vendor", format!("{}, {}", fast.vendor, slow.vendor)),
        ("media", format!("{} before {}", fast.media, slow.media)),
        ("form", "two drives as one".to_owned()),
    ];
    for (key, text) in words {
        table.entry(key).or_insert(text.into());
    }
    let time_lapse = fast.time_lapse.min(slow.time_lapse);
    table.entry("time_lapse").or_insert(i64::from(time_lapse).into());
    let defaults: Table = toml::from_str(DEFAULTS).expect("tested: a part of a drive");
    for (key, value) in defaults {
        table.entry(key).or_insert(value);
    }
    let format = Table::from_iter([
        ("name".to_owned(), Value::from("stock")),
        ("user_gb".to_owned(), Value::from(user_gb)),
        ("source".to_owned(), Value::from("derived: what the slow class holds")),
    ]);
    table.entry("format").or_insert(Value::Array(vec![format.into()]));
    if !table.contains_key("host") {
        let name = catalogue::find(&slow.name).map_or(&fast.name, |_| &slow.name);
        let missing = || fault("host is missing: neither class is a drive of the catalogue");
        let hosts = catalogue::text(name).map(hosts_of).ok_or_else(missing)?;
        table.insert("host".into(), hosts);
    }
    Ok(())
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// The drive of a class; one that is described in place is kept as the text of its file.
fn take_class(tier: &mut Table, key: &'static str, file: &str) -> Result<DriveSpec, SpecError> {
    let Some(Value::Table(described)) = tier.get(key) else {
        let name = tier.get(key).and_then(Value::as_str).unwrap_or_default();
        return class(key, name, file);
    };
    let text = described.to_string();
    let spec = DriveSpec::parse(&text, &format!("{file}: tier.{key}"))?;
    if spec.tier.is_some() {
        let text = format!("tier.{key} has a tier itself: name or describe a single drive");
        return Err(SpecError { place: file.to_owned(), text });
    }
    tier.insert(key.into(), spec.name.clone().into());
    tier.insert(format!("{key}_file"), text.into());
    Ok(spec)
}

/// Hosts of a drive of the catalogue, as its file has them or the one that it is like.
fn hosts_of(text: &str) -> Value {
    let table: Table = toml::from_str(text).expect("tested: every file is a drive");
    if let Some(hosts) = table.get("host") {
        return hosts.clone();
    }
    let like = table.get("like").and_then(Value::as_str);
    let like = like.and_then(catalogue::text);
    hosts_of(like.expect("tested: a drive without hosts is like another"))
}
