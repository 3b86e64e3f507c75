//! Disturbances of a load: other users of the device, throttling.
//!
//! Counters are read when the load begins, at every look, and when it has ended. What the device
//! moved and fio did not ask for is foreign: the kernel counts both, so that neither rounding nor
//! fio's own ramp comes between.

use std::time::Instant;

use lab::target::system::Block;
use results::{Warning, WarningKind};

use crate::environment::{Health, machine};
use crate::sites::Sites;
use crate::tools::Tools;

/// Share of what the device moved that may be foreign.
const FOREIGN_MAX: f64 = 0.05;
/// Foreign bytes a second below which no measurement is disturbed.
const FOREIGN_BYTES_PER_S_MIN: f64 = 1e6;

/// Bytes moved until a moment.
#[derive(Clone, Copy, Debug)]
struct ByteCounts {
    at: Instant,
    device_bytes: u64,
    fio_bytes: u64,
}

/// Watches one load.
#[derive(Debug)]
pub(super) struct Interference<'a> {
    sites: &'a Sites,
    devices: Vec<Block>,
    /// Health of each drive.
    before: Vec<Option<Health>>,
    clock_throttled: u64,
    first: Option<ByteCounts>,
    last: Option<ByteCounts>,
}

impl<'a> Interference<'a> {
    /// Begins before a load on `sites`.
    pub(super) fn begin(sites: &'a Sites) -> Self {
        Self {
            sites,
            devices: sites.devices(),
            before: sites.health(&Tools::default()),
            clock_throttled: machine::throttle_count(sites.system()),
            first: None,
            last: None,
        }
    }

    /// Looks at the devices and at the process `fio`.
    pub(super) fn look(&mut self, fio: u32) {
        let counts = self.devices.iter().map(Block::counts);
        let moved = counts.map(|counts| Some(counts?.bytes())).sum::<Option<u64>>();
        let device = moved.filter(|_| self.devices.len() == self.sites.all().len());
        let own = machine::bytes_moved_by(self.sites.system(), fio);
        if let Some((device_bytes, fio_bytes)) = device.zip(own) {
            let moved = ByteCounts { at: Instant::now(), device_bytes, fio_bytes };
            self.first.get_or_insert(moved);
            self.last = Some(moved);
        }
    }

    /// Warnings about other users and throttling during the load `step`.
    pub(super) fn warnings(&self, step: &str, direct: bool) -> Vec<Warning> {
        let after = self.sites.health(&Tools::default());
        let warning = |text: String, remedy: &str| Warning {
            kind: WarningKind::Environment,
            step: step.to_owned(),
            text,
            remedy: remedy.into(),
        };
        let looks = self.first.zip(self.last).filter(|_| direct);
        let foreign = looks.and_then(|(first, last)| foreign(&first, &last));
        let throttled = self.before.iter().zip(after).enumerate().filter_map(|(index, pair)| {
            let text = too_hot((*pair.0)?, pair.1?)?;
            Some(format!("{text}{}", self.sites.beside(index)))
        });
        let clock = machine::throttle_count(self.sites.system());
        let foreign = foreign.map(|text| {
            warning(
                text,
                "stop the programs that use the device (find them with iostat or iotop), then \
                 repeat the step",
            )
        });
        let throttled =
            throttled.map(|text| warning(text, "improve its cooling, then repeat the step"));
        let slowed = slowed(self.clock_throttled, clock)
            .map(|text| warning(text, "cool the machine, then repeat the step"));
        foreign.into_iter().chain(throttled).chain(slowed).collect()
    }
}

/// Warning text for a drive that counted more throttling after a load than before it.
fn too_hot(before: Health, after: Health) -> Option<String> {
    let times = after.throttled?.saturating_sub(before.throttled?);
    let at = after.temperature_c.map_or(String::new(), |it| format!(", {it} °C after it"));
    (times > 0).then(|| format!("the drive throttled because of its temperature{at}"))
}

/// Warning text for processors whose count of throttling rose from `before` to `after`.
fn slowed(before: u64, after: u64) -> Option<String> {
    let times = after.saturating_sub(before);
    (times > 0).then(|| format!("the processor was throttled {times} times: it was too hot"))
}

/// Warning text for the bytes that others moved between two looks, where it is too much.
fn foreign(first: &ByteCounts, last: &ByteCounts) -> Option<String> {
    let span_s = last.at.duration_since(first.at).as_secs_f64();
    let device = last.device_bytes.saturating_sub(first.device_bytes) as f64;
    let own = last.fio_bytes.saturating_sub(first.fio_bytes) as f64;
    let others = device - own;
    if span_s <= 0.0 || others < device * FOREIGN_MAX || others < FOREIGN_BYTES_PER_S_MIN * span_s {
        return None;
    }
    let mb_s = others / span_s / 1e6;
    let percent = others / device * 100.0;
    Some(format!(
        "other programs transferred {mb_s:.0} MB/s on the device, {percent:.0} % of its traffic"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn moved(at: Instant, device_bytes: u64, fio_bytes: u64) -> ByteCounts {
        ByteCounts { at, device_bytes, fio_bytes }
    }

    #[test]
    fn throttling_of_the_drive_and_of_the_clock_is_told_where_it_rose_under_the_load() {
        let health =
            |throttled, temperature_c| Health { temperature_c, throttled, ..Health::default() };
        let (cool, hot) = (health(Some(3), Some(41)), health(Some(5), Some(78)));
        let said = too_hot(cool, hot).unwrap();
        assert_eq!(said, "the drive throttled because of its temperature, 78 °C after it");
        assert_eq!(too_hot(hot, hot), None, "before the load is not under it");
        assert_eq!(too_hot(cool, health(None, Some(78))), None, "heat alone slows nothing");
        assert_eq!(slowed(7, 9).unwrap(), "the processor was throttled 2 times: it was too hot");
        assert_eq!(slowed(7, 7), None);
    }

    #[test]
    fn what_others_move_is_told_from_a_twentieth_on() {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(10);
        let first = moved(begin, 1000, 0);
        let alone = moved(end, 1000 + 1_000_000_000, 1_000_000_000);
        assert_eq!(foreign(&first, &alone), None);
        let beside = moved(end, 1000 + 1_250_000_000, 1_000_000_000);
        assert_eq!(
            foreign(&first, &beside).unwrap(),
            "other programs transferred 25 MB/s on the device, 20 % of its traffic"
        );
        let journal = moved(end, 1000 + 20_000, 10_000);
        assert_eq!(foreign(&first, &journal), None, "half of next to nothing");
        assert_eq!(foreign(&first, &first), None);
    }
}
