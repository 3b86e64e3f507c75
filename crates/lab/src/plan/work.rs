//! Work of a simulation, estimated before it begins, for the order of suites and the remaining
//! time.
//!
//! The estimate is the number of 4 KiB pages that the model will move, limited by its host, its
//! controller, its link or its dies. Protocol time alone is a poor estimate, since a slow drive
//! takes fewer requests in the same time. Seeks of a hard disk are left out.

use results::StepKind;
use ssd::{DriveSpec, HostSpec};
use workload::{SizeShare, Workload};

use super::PlannedStep;

/// Pages that relocation moves for each page that the host writes at random on a settled drive,
/// about the middle of the catalogue.
pub(super) const RELOCATED: f64 = 1.5;
/// Cost of a page of a fill, which is written in order, relative to that of a page of a load.
const FILLED: f64 = 0.3;
const PAGE_KIB: f64 = 4.0;

/// Pages that the model of `spec` moves in `step`, at its own time lapse.
pub(super) fn pages(spec: &DriveSpec, step: &PlannedStep) -> f64 {
    let time_lapse = f64::from(spec.time_lapse_default());
    let devices = f64::from(spec.device_count());
    if step.kind == StepKind::Fill {
        let user_gb = spec.formats.first().map_or(0.0, |format| format.user_gb);
        let pages = user_gb * 1e9 / (PAGE_KIB * 1024.0) * devices / time_lapse;
        let cost = if step.is_fill_in_order() { FILLED } else { 1.0 + RELOCATED };
        return pages * f64::from(step.fill_passes.max(1)) * cost;
    }
    let Some(workload) = &step.workload else { return 0.0 };
    let request = Request::from_workload(workload, spec);
    let (moved, rate) = (request.moved(spec), request.rate(spec, step.outstanding()));
    rate * devices * step.length_s() / time_lapse * moved
}

/// Seconds in which each device of `spec` writes as much as `step` addresses, while so many pages
/// are `relocated` for each; infinite where it writes nothing.
pub(super) fn written_over_s(spec: &DriveSpec, step: &PlannedStep, relocated: f64) -> f64 {
    let Some(workload) = &step.workload else { return f64::INFINITY };
    let user_gb = spec.formats.first().map_or(0.0, |format| format.user_gb);
    let request = Request { relocated, ..Request::from_workload(workload, spec) };
    let rate = request.rate(spec, step.outstanding());
    let written_gb_s = rate * (1.0 - request.reads) * request.kib * 1024.0 / 1e9;
    user_gb * workload.footprint_percent / 100.0 / written_gb_s
}

/// The mean request of a load.
#[derive(Clone, Copy)]
struct Request {
    /// Share of reads, 0 to 1.
    reads: f64,
    kib: f64,
    /// Programmed where it writes: a write of a part of an indirection unit writes all of it.
    programmed_kib: f64,
    /// Pages that are relocated for each that is written.
    relocated: f64,
}

impl Request {
    const fn of(reads: f64, kib: f64) -> Self {
        Self { reads, kib, programmed_kib: kib.max(PAGE_KIB), relocated: RELOCATED }
    }

    fn from_workload(workload: &Workload, spec: &DriveSpec) -> Self {
        let unit_kib = f64::from(spec.indirection_kib());
        let of_size = |size: &SizeShare| {
            let kib = f64::from(size.bytes) / 1024.0;
            size.percent / 100.0 * kib.max(unit_kib)
        };
        let programmed_kib = workload.sizes.iter().map(of_size).sum();
        let kib = workload.mean_bytes() / 1024.0;
        Self { programmed_kib, ..Self::of(workload.read_percent / 100.0, kib) }
    }

    /// Pages that the host and relocation move for it.
    fn moved(self, spec: &DriveSpec) -> f64 {
        let relocated = if spec.is_nand() { self.relocated } else { 0.0 };
        let pages = (self.kib / PAGE_KIB).max(1.0);
        pages * (1.0 + (1.0 - self.reads) * relocated)
    }

    /// Requests per second of one device with this number `outstanding`.
    fn rate(self, spec: &DriveSpec, outstanding: u32) -> f64 {
        let host = spec.hosts.first();
        let limits = [
            self.by_controller(spec),
            self.by_link(spec),
            self.by_dies(spec),
            host.map_or(f64::INFINITY, |host| self.by_host(spec, host, outstanding)),
        ];
        limits.into_iter().fold(f64::INFINITY, f64::min)
    }

    fn by_controller(self, spec: &DriveSpec) -> f64 {
        let of = &spec.controller;
        let relocated = self.moved(spec) - (self.kib / PAGE_KIB).max(1.0);
        let us = self.reads * (of.read_us + self.kib * of.read_us_per_kib)
            + (1.0 - self.reads) * (of.write_us + self.kib * of.write_us_per_kib)
            + relocated * of.relocate_us;
        f64::from(of.cores * spec.modules.count) * 1e6 / us.max(1e-3)
    }

    fn by_link(self, spec: &DriveSpec) -> f64 {
        let kb_s = |mb_s: f64| mb_s * 1e6 / 1024.0;
        let read = kb_s(spec.link.read_mb_s) / (self.kib * self.reads).max(1e-3);
        let written = kb_s(spec.link.write_mb_s) / (self.kib * (1.0 - self.reads)).max(1e-3);
        read.min(written)
    }

    /// Programs of dies, relocation's included.
    fn by_dies(self, spec: &DriveSpec) -> f64 {
        if !spec.is_nand() || self.reads >= 1.0 {
            return f64::INFINITY;
        }
        let (geometry, times) = (&spec.geometry, &spec.nand.t_program_us);
        let dies = f64::from(geometry.banks * geometry.dies_per_bank * spec.modules.count);
        let program_us = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let kib = f64::from(geometry.planes_per_die * geometry.page_kib)
            * f64::from(geometry.pages_per_program);
        let written_kib = (1.0 - self.reads) * self.programmed_kib * (1.0 + self.relocated);
        dies * kib * 1e6 / program_us / written_kib
    }

    fn by_host(self, spec: &DriveSpec, host: &HostSpec, outstanding: u32) -> f64 {
        let media_us = match &spec.in_place {
            Some(media) => self.reads * media.read_us,
            None => self.reads * spec.nand.t_read_us,
        };
        let copy_us = host.copy_us_per_kib * self.kib;
        let latency_us = host.submit_us + host.complete_us + host.wake_us + copy_us + media_us;
        let by_latency = f64::from(outstanding) * 1e6 / latency_us.max(1.0);
        if host.serial_us > 0.0 { by_latency.min(1e6 / host.serial_us) } else { by_latency }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ssd::catalogue;
    use workload::catalogue::{find_protocol, workloads};

    use super::Request;
    use crate::plan::Plan;

    #[test]
    fn a_fast_drive_is_more_work_than_a_slow_one_for_the_same_protocol() {
        let protocol = find_protocol("enterprise").unwrap();
        let plan = Plan::new(&protocol, &workloads(), 1).unwrap();
        let work = |name: &str| {
            let spec = catalogue::find(name).unwrap();
            let time_lapse = f64::from(spec.time_lapse_default());
            plan.clone().for_drive(&spec).work() * time_lapse
        };
        let (slow, fast) = (work("iodrive-duo"), work("csd-3000-7680"));
        assert!(fast > 3.0 * slow, "{fast} beside {slow}");
    }

    #[test]
    fn only_nand_relocates() {
        let moved = |name: &str| Request::of(0.0, 4.0).moved(&catalogue::find(name).unwrap());
        assert!(moved("iodrive-duo") > 1.0);
        for name in ["p5800x", "savvio-15k1-73"] {
            assert!((moved(name) - 1.0).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn every_step_with_a_load_is_some_work_on_every_drive() {
        let mut least = BTreeMap::new();
        for protocol in workload::catalogue::protocols() {
            let plan = Plan::new(&protocol, &workloads(), 1).unwrap();
            for spec in catalogue::drives() {
                let plan = plan.clone().for_drive(&spec);
                for (index, step) in plan.steps.iter().enumerate() {
                    let work = plan.work_of(index);
                    assert!(work.is_finite(), "{} {}", spec.name, step.id);
                    if step.workload.is_some() {
                        let least = least.entry(spec.name.clone()).or_insert(work);
                        *least = work.min(*least);
                    }
                }
            }
        }
        assert!(least.values().all(|work| *work > 0.0), "{least:?}");
    }
}
