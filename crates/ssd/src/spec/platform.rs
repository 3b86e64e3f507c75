//! Platforms: machine, system and the way of asking, whatever the drive (`hosts/*.toml`).
//!
//! ```text
//!  thread ── submit ──► serial section ──► drive ──► wake-up ──► interrupt ── complete ──► thread
//!            platform      its driver                platform     platform     platform
//! ```
//!
//! What a request costs the host has two owners. The platform has the costs of the system, of its
//! interrupts and of waking up. A drive's file has what its driver adds: the section that only one
//! request may be in, a flash translation layer on the host, copies by the processor.

use blockio::text::in_toml_types;
use serde::Deserialize;
use toml::Value;

use crate::spec::{DriveSpec, HostSpec, SpecError};

/// A machine with its system, and the way in which programs ask there.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformSpec {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name in the catalogue, such as `linux-polled`.
    pub name: String,
    /// Operating system, `linux` or `windows`: its driver of a drive is the drive's for it.
    pub system: String,
    /// True if figures that name no more than the system are compared with it.
    #[serde(default)]
    pub generic: bool,
    /// System, and the way of asking.
    pub title: String,
    /// Processors of the machine.
    pub processor: String,
    /// Processor time of the submitting thread for each request: system call, block layer, driver
    /// and doorbell.
    pub submit_us: f64,
    /// Processor time for an interrupt, shared by all completions that it finds.
    pub interrupt_us: f64,
    /// Processor time for each completion, from the queue of the drive to the program.
    pub complete_us: f64,
    /// Time that an idle processor takes to wake up and to switch to the thread; 0: it polls.
    pub wake_us: f64,
    /// Processors that threads share; 0: never too few.
    pub processors: u32,
    /// Source.
    pub source: String,
}

impl PlatformSpec {
    /// Reads a platform from the text of a TOML file; `file` names it in errors.
    ///
    /// # Errors
    /// Says what is not understood or out of range.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        let fault = |text: String| SpecError { place: file.to_owned(), text };
        let platform: Self = toml::from_str(text)
            .map_err(|error| fault(in_toml_types(error.to_string().trim_end())))?;
        let times = [
            ("submit_us", platform.submit_us),
            ("interrupt_us", platform.interrupt_us),
            ("complete_us", platform.complete_us),
            ("wake_us", platform.wake_us),
        ];
        for (key, value) in times {
            if !(0.0..=1e6).contains(&value) {
                return Err(fault(format!("{key} is {value}, must be from 0 to 1000000")));
            }
        }
        let is_known = platform.schema == 1 && !platform.source.trim().is_empty();
        is_known.then_some(platform).ok_or_else(|| fault("schema must be 1, with a source".into()))
    }

    /// Keys of a drive's host on this platform, whose driver adds nothing.
    pub(crate) fn keys(&self) -> [(&'static str, Value); 9] {
        [
            ("title", self.title.clone().into()),
            ("processor", self.processor.clone().into()),
            ("submit_us", self.submit_us.into()),
            ("interrupt_us", self.interrupt_us.into()),
            ("complete_us", self.complete_us.into()),
            ("wake_us", self.wake_us.into()),
            ("processors", i64::from(self.processors).into()),
            ("serial_us", 0.0.into()),
            ("controller_factor", 1.0.into()),
        ]
    }

    /// This platform with the driver of a drive: that of its file for the same system, else for its
    /// first one.
    pub(crate) fn with_driver_of(&self, drive: &DriveSpec) -> HostSpec {
        let of_system = drive.hosts.iter().find(|host| host.name == self.system);
        let driver = of_system.or(drive.hosts.first()).expect("checked: a drive has a host");
        // Where the processor copies, no drive interrupts it.
        let interrupt_us = if driver.one_at_a_time { 0.0 } else { self.interrupt_us };
        HostSpec {
            name: self.name.clone(),
            title: self.title.clone(),
            processor: self.processor.clone(),
            submit_us: self.submit_us,
            complete_us: self.complete_us,
            interrupt_us,
            wake_us: self.wake_us,
            processors: self.processors,
            documents: Vec::new(),
            source: format!("{}; driver: {}", self.source, driver.source),
            ..driver.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use blockio::{Lba, Nanos, Op, Request};

    use crate::{Drive, DriveSpec, Setup, catalogue};

    /// Mean time from one completion to the next of `queue` outstanding 4 KiB reads of a thread, in
    /// microseconds.
    fn request_us(host: &str, queue: u32) -> f64 {
        let spec = catalogue::find("p5800x").unwrap();
        let setup = Setup { format: "stock".into(), host: host.into(), time_lapse: 512, seed: 1 };
        let mut drive = Drive::new(&spec, &setup).unwrap();
        let (lba, sectors) = (Lba(0), 8);
        let read = Request { tag: 0, thread: 0, op: Op::Read, handle: 0, lba, sectors };
        for _ in 0..queue {
            drive.submit(Nanos::ZERO, read);
        }
        let mut at = Nanos::ZERO;
        for _ in 0..10_000 {
            at = drive.next_completion(Nanos::MAX).unwrap().completed_at;
            drive.submit(at, read);
        }
        at.as_micros_f64() / 10_000.0
    }

    #[test]
    fn every_file_is_a_platform_and_one_stands_for_each_system() {
        let all = catalogue::platforms();
        for system in ["linux", "windows"] {
            let count = all.iter().filter(|it| it.generic && it.system == system).count();
            assert_eq!(count, 1, "{system}");
        }
        for platform in &all {
            assert!(catalogue::platform(&platform.name).as_ref() == Some(platform));
            let kinds = ["published:", "derived:", "estimated:"];
            assert!(kinds.iter().any(|kind| platform.source.starts_with(kind)), "{platform:?}");
        }
    }

    #[test]
    fn an_interrupt_and_waking_are_paid_alone_and_shared_at_depth() {
        let platform = catalogue::platform("linux-libaio").unwrap();
        let polled = catalogue::platform("linux-polled").unwrap();
        let alone = request_us("linux-libaio", 1) - request_us("linux-polled", 1);
        assert!((alone - platform.interrupt_us - platform.wake_us).abs() < 0.01, "{alone} us");
        let deep = request_us("linux-libaio", 128);
        let busy_us = platform.submit_us + platform.complete_us;
        assert!((deep - busy_us).abs() < 0.05, "{deep} us a request of a busy thread");
        let polled_us = polled.submit_us + polled.complete_us;
        assert!((polled_us - busy_us).abs() < 1e-9, "the same system");
    }

    #[test]
    fn figures_of_other_reviews_are_compared_with_the_platform_of_their_system() {
        let spec = catalogue::find("p5800x").unwrap();
        let of = |system: &str, document: &str| {
            spec.host_of_figure(system, document).map(|host| host.name)
        };
        assert_eq!(of("windows", "Optane and P5510 review").as_deref(), Some("windows"));
        assert_eq!(of("windows", "another review").as_deref(), Some("windows-desktop"));
        assert_eq!(of("linux", "another review").as_deref(), Some("linux-libaio"));
        assert_eq!(of("linux-polled", "another review").as_deref(), Some("linux-polled"));
        assert_eq!(of("plan9", "another review"), None);
        let duo = catalogue::find("iodrive-duo").unwrap();
        let (own, other) = (duo.host("linux").unwrap(), duo.host("linux-libaio").unwrap());
        assert_eq!(duo.host_of_figure("linux", "any").unwrap(), own);
        assert!((other.serial_us - own.serial_us).abs() < 1e-9, "its driver is the same");
        assert!(other.submit_us < own.submit_us && other.stalls == own.stalls);
    }

    #[test]
    fn a_host_on_a_platform_has_what_it_lacks_from_there() {
        let text = |platform: &str| {
            format!(
                "like = \"p5800x\"\nname = \"mine\"\n[[host]]\nname = \"linux\"\n\
                 platform = {platform:?}\nserial_us = 0.2\nsource = \"estimated: mine\"\n"
            )
        };
        let spec = DriveSpec::parse(&text("linux-polled"), "mine.toml").unwrap();
        let platform = catalogue::platform("linux-polled").unwrap();
        let host = &spec.hosts[0];
        assert_eq!((host.serial_us, host.submit_us), (0.2, platform.submit_us));
        let error = DriveSpec::parse(&text("linux-poled"), "mine.toml").unwrap_err().to_string();
        assert!(error.ends_with("did you mean linux-polled?"), "{error}");
    }
}
