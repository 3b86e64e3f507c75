//! The specification sheet of a drive, row by row, each with its source.

use blockio::Bytes;
use tier::{Layout, Replacement, WriteMode};

use crate::spec::stated::OverProvisioning;
use crate::spec::{
    DiskSpec, DriveSpec, InPlaceSpec, ModuleLayout, SlotPower, StallDuring, StallHolds, StallSpec,
    Surroundings, TierSpec,
};

/// One row of the specification sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Group, such as `NAND`.
    pub group: String,
    /// Name of the property.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// `published`, `derived` or `estimated`, then where from; `given`, then by which options.
    pub source: String,
}

struct Sheet(Vec<Fact>);

impl Sheet {
    fn row(&mut self, group: &str, source: &str, name: &str, value: String) {
        let (group, name, source) = (group.to_owned(), name.to_owned(), source.to_owned());
        self.0.push(Fact { group, name, value, source });
    }
}

impl DriveSpec {
    /// Specification sheet in the format named `format`.
    pub fn sheet(&self, format: &str) -> Vec<Fact> {
        let mut sheet = Sheet(Vec::new());
        self.capacity(format, &mut sheet);
        if let Some(tier) = &self.tier {
            classes(tier, &mut sheet);
            return sheet.0;
        }
        self.layout(&mut sheet);
        match (&self.in_place, &self.disk) {
            (Some(media), _) => in_place(media, &mut sheet),
            (None, Some(media)) => disk(media, &mut sheet),
            (None, None) => self.nand(&mut sheet),
        }
        self.control(&mut sheet);
        self.limits(&mut sheet);
        sheet.0
    }

    /// Returns name and value of the properties of the host driver `host` and the machine around
    /// it.
    pub fn host_sheet(&self, host: &str) -> Vec<(String, String)> {
        let Ok(host) = self.host(host) else { return Vec::new() };
        let mut rows = vec![
            ("System and driver", host.title.clone()),
            ("Processors", host.processor.clone()),
            ("Processor time per request", format!("{} us", host.submit_us + host.complete_us)),
            ("Serialised section", format!("{} us", host.serial_us)),
            (
                "FTL processor time, relative to the reference host",
                format!("{}", host.controller_factor),
            ),
        ];
        if host.interrupt_us > 0.0 {
            rows.push((
                "Interrupt, shared by the completions it handles",
                format!("{} us", host.interrupt_us),
            ));
        }
        let copies = (host.copy_us_per_kib > 0.0).then(|| {
            let turns = if host.one_at_a_time { ", one request of a thread at a time" } else { "" };
            ("Copied by the processor", format!("{} us/KiB{turns}", host.copy_us_per_kib))
        });
        let shared = (host.processors > 0)
            .then(|| ("Processors that threads share", host.processors.to_string()));
        let stalls = host.stalls.iter().map(|stall| {
            let holds = match stall.holds {
                StallHolds::Thread => "each thread",
                StallHolds::Request => "one request",
            };
            let during = match stall.during {
                StallDuring::Always => "",
                StallDuring::DearRelocation => ", while relocation is put off",
            };
            let StallSpec { every_s, span_ms, .. } = stall;
            ("Listed stalls", format!("{holds} for {span_ms} ms every {every_s} s{during}"))
        });
        rows.into_iter()
            .chain(copies)
            .chain(shared)
            .chain(stalls)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Longest of the stalls that the file lists for a host, in milliseconds; absent where it lists
    /// none. Their periods and lengths were chosen to meet published maxima.
    pub fn host_stall_ms_max(&self, host: &str) -> Option<f64> {
        let stalls = self.host(host).ok()?.stalls;
        stalls.iter().map(|stall| stall.span_ms).max_by(f64::total_cmp)
    }

    fn capacity(&self, format: &str, sheet: &mut Sheet) {
        let raw = self.raw_device_capacity();
        sheet.row("Drive", "published: maker", "Maker", self.vendor.clone());
        if let Some(year) = self.year {
            sheet.row("Drive", "published: maker", "Year", year.to_string());
        }
        sheet.row("Drive", "published: maker", "Form", self.form.clone());
        sheet.row("Drive", "published: maker", "Media", self.media.clone());
        let raw = format!("{raw}, {:.0} GiB", self.raw_gib());
        let source = match (&self.in_place, &self.disk) {
            _ if let Some(tier) = &self.tier => &tier.source,
            (Some(media), _) => &media.source,
            (None, Some(media)) => &media.source,
            (None, None) => &self.geometry.source,
        };
        sheet.row("Capacity", source, "Raw", raw);
        if let Ok(format) = self.format(format) {
            let shares = self.over_provisioning(&format.name);
            let shares = shares.map_or_else(String::new, |OverProvisioning { of_user, of_raw }| {
                format!("{:.1} % of user, {:.1} % of raw", of_user * 100.0, of_raw * 100.0)
            });
            let printed = |metric| self.stated(metric, &format.name, false);
            let printed = printed("op_of_user_percent").zip(printed("op_of_raw_percent"));
            sheet.row("Capacity", &format.source, "Format", format.name.clone());
            sheet.row("Capacity", &format.source, "User", format!("{} GB", format.user_gb));
            if let Some(physical_gb) = format.physical_gb {
                let physical = format!("{physical_gb} GB for compressed data");
                sheet.row("Capacity", &format.source, "Physical", physical);
            }
            sheet.row("Capacity", "derived: raw less user", "Over-provisioning", shares);
            if let Some((of_user, of_raw)) = printed.filter(|(of_user, _)| *of_user > 0.0) {
                let text = format!("{of_user:.1} % of user, {of_raw:.1} % of raw");
                let source = "derived: raw GiB as GB less user GB, as makers print it";
                sheet.row("Capacity", source, "Over-provisioning, as printed", text);
            }
        }
    }

    fn layout(&self, sheet: &mut Sheet) {
        let modules = &self.modules;
        let count = match (modules.count, modules.layout) {
            (1, _) => "1".to_owned(),
            (count, ModuleLayout::Striped) => {
                format!("{count}, striped by {} KiB", modules.stripe_kib)
            }
            (count, ModuleLayout::Jbod) => format!("{count}, one after the other"),
        };
        let port = modules.port_mb_s.map(|mb_s| format!(", each behind a port of {mb_s} MB/s"));
        let count = count + &port.unwrap_or_default();
        if let Some(devices) = &self.devices {
            let count = format!("{}, each with jobs of its own; results are added", devices.count);
            sheet.row("Drive", &devices.source, "Devices", count);
        }
        let name = if self.devices.is_some() { "Modules per device" } else { "Modules" };
        sheet.row("Drive", &modules.source, name, count);
    }

    fn geometry(&self, sheet: &mut Sheet) {
        let geometry = &self.geometry;
        let source = &geometry.source;
        let dies = geometry.banks * geometry.dies_per_bank;
        sheet.row("NAND", source, "Dies per module", dies.to_string());
        sheet.row("NAND", source, "Planes per die", geometry.planes_per_die.to_string());
        let blocks = format!(
            "{}, of which {} bad or spare",
            geometry.erase_blocks_per_plane, geometry.spare_erase_blocks_per_plane
        );
        sheet.row("NAND", source, "Erase blocks per plane", blocks);
        let page = Bytes::from_kib(geometry.page_kib.into());
        let block = Bytes::from_kib((geometry.page_kib * geometry.pages_per_erase_block).into());
        sheet.row("NAND", source, "Page, erase block", format!("{page}, {block}"));
        let of_module = self.ftl_geometry();
        let superblock =
            Bytes(u64::from(of_module.pages_per_superblock()) * of_module.page_bytes());
        sheet.row("NAND", source, "Superblock (data)", superblock.to_string());
        let parity = match geometry.stripe_dies {
            0 => "none".to_owned(),
            dies => format!("{} + 1 dies", dies - 1),
        };
        sheet.row("NAND", source, "Parity", parity);
        if let Some(placement) = &self.placement {
            sheet.row("NAND", &placement.source, "Reclaim unit handles", placement.shown());
        }
    }

    fn nand(&self, sheet: &mut Sheet) {
        self.geometry(sheet);
        let (nand, channels) = (&self.nand, &self.channels);
        sheet.row("NAND", &nand.source, "Read (tR)", format!("{} us", nand.t_read_us));
        let programs: Vec<String> = nand.t_program_us.iter().map(ToString::to_string).collect();
        sheet.row("NAND", &nand.source, "Program (tPROG)", format!("{} us", programs.join(" / ")));
        sheet.row("NAND", &nand.source, "Erase (tBERS)", format!("{} us", nand.t_erase_us));
        self.nand_modes(sheet);
        let rate = format!("{} of {} MB/s", channels.count, channels.mb_s);
        sheet.row("NAND", &channels.source, "Channels per module", rate);
    }

    /// Adds the rows of what only some drives do with their NAND.
    fn nand_modes(&self, sheet: &mut Sheet) {
        if let Some(mapping) = self.mapping.as_ref().filter(|mapping| mapping.indirection_kib > 4) {
            let unit =
                format!("{} KiB, which a partial write reads first", mapping.indirection_kib);
            sheet.row("NAND", &mapping.source, "Indirection unit", unit);
        }
        if let Some(cache) = &self.slc_cache {
            let size = format!(
                "{} GB static, up to {} GB dynamic on an empty drive, none from {} % full",
                cache.static_gb, cache.dynamic_gb, cache.full_at_percent
            );
            sheet.row("NAND", &cache.source, "SLC cache", size);
            let times = format!("{} / {} us", cache.t_read_us, cache.t_program_us);
            sheet.row("NAND", &cache.source, "Read, program in SLC mode", times);
            let idle = format!("after {} ms without a write", cache.idle_ms);
            sheet.row("NAND", &cache.source, "SLC cache is folded", idle);
        }
        if let Some(retry) = &self.read_retry {
            let of = |cycles: Option<&f64>, days: Option<&f64>| {
                let (cycles, days) = (cycles.copied()?, days.copied()?);
                Some(format!(
                    "{:.1} at {cycles} cycles and {days} days",
                    retry.steps_at(cycles, days)
                ))
            };
            let ends = [
                of(retry.pe_cycles.first(), retry.retention_days.first()),
                of(retry.pe_cycles.last(), retry.retention_days.last()),
            ];
            let steps: Vec<String> = ends.into_iter().flatten().collect();
            let text = format!("{}, {} us each", steps.join(", "), retry.step_us);
            sheet.row("NAND", &retry.source, "Read retries, mean", text);
        }
    }

    fn control(&self, sheet: &mut Sheet) {
        let (controller, source) = (&self.controller, &self.controller.source);
        let place = if controller.on_host { "host driver" } else { "device" };
        sheet.row("Controller", source, "FTL runs on", place.to_owned());
        let read = format!("{} us + {} us/KiB", controller.read_us, controller.read_us_per_kib);
        sheet.row("Controller", source, "Read command", read);
        let write = format!("{} us + {} us/KiB", controller.write_us, controller.write_us_per_kib);
        sheet.row("Controller", source, "Write command", write);
        if self.is_nand() {
            self.background(sheet);
        }
        let link = format!("{} / {} MB/s read / write", self.link.read_mb_s, self.link.write_mb_s);
        sheet.row("Controller", &self.link.source, "Link", link);
    }

    /// Adds the rows of the controller's background work: relocation, buffer, garbage collection.
    fn background(&self, sheet: &mut Sheet) {
        let (controller, source) = (&self.controller, &self.controller.source);
        let relocate = format!("{} us per page", controller.relocate_us);
        sheet.row("Controller", source, "Relocation", relocate);
        let buffer = Bytes::from_kib(self.buffer.kib.into()).to_string();
        sheet.row("Controller", &self.buffer.source, "Write buffer per module", buffer);
        let relocation = &self.relocation;
        let marks = format!(
            "begins at {} free superblocks, host writes wait at {}",
            relocation.watermark_high, relocation.watermark_low
        );
        sheet.row("Controller", &relocation.source, "Garbage collection", marks);
        if let Some(compression) = &self.compression {
            let text = format!(
                "each 4 KiB by itself, at most {} in 4 KiB of flash, {} bytes added",
                compression.extents_per_page, compression.header_bytes
            );
            sheet.row("Controller", &compression.source, "Compression", text);
        }
    }

    fn limits(&self, sheet: &mut Sheet) {
        if let Some(endurance) = &self.endurance {
            let cycles = endurance.pe_cycles.map(|cycles| format!("{cycles} cycles"));
            let rated = endurance.rated_pb.map(|rated| format!("{rated} PB written"));
            let known: Vec<String> = cycles.into_iter().chain(rated).collect();
            sheet.row("Limits", &endurance.source, "Endurance", known.join(", "));
            if let Some(years) = endurance.warranty_years {
                sheet.row("Limits", &endurance.source, "Warranty", format!("{years} years"));
            }
        }
        self.power(sheet);
        self.surroundings(sheet);
    }

    fn power(&self, sheet: &mut Sheet) {
        let Some(power) = &self.power else { return };
        let source = &power.source;
        sheet.row("Limits", source, "Slot power", format!("{} W", power.slot_w));
        let limits = format!("{} / {} °C", power.throttle_c, power.shutdown_c);
        sheet.row("Limits", source, "Slows down / powers off", limits);
        sheet.row("Limits", source, "Air flow", format!("{} LFM", power.airflow_lfm));
        let Some(energy) = &self.energy else { return };
        let source = &energy.source;
        sheet.row("Power", source, "Idle", format!("{} W", energy.idle_w));
        let media = format!(
            "{} / {} uJ for 4 KiB read / programmed, {} uJ for a die's erase",
            energy.read_uj, energy.program_uj, energy.erase_uj
        );
        sheet.row("Power", source, "Energy of the media", media);
        let transfer = format!("{} uJ for 4 KiB", energy.transfer_uj);
        sheet.row("Power", source, "Energy of transfers", transfer);
    }

    /// Adds the rows of cooling, air and power supply.
    fn surroundings(&self, sheet: &mut Sheet) {
        let (Some(thermal), Some(power)) = (&self.thermal, &self.power) else { return };
        let source = &thermal.source;
        let cooling = format!(
            "{} K/W at {} LFM, {} J/K",
            thermal.resistance_k_w, power.airflow_lfm, thermal.capacity_j_k
        );
        sheet.row("Power", source, "Cooling", cooling);
        let flow = thermal.airflow_lfm.unwrap_or(power.airflow_lfm);
        let air = format!("{} °C at {flow} LFM", thermal.ambient_c);
        sheet.row("Operating conditions", &self.air_source(source), "Inlet air", air);
        let supply = power.limit_w.map_or_else(
            || "as much power as it needs".to_owned(),
            |limit_w| format!("{limit_w} W from the slot, writes throttled to stay within"),
        );
        let source = match self.given.slot {
            None => power.source.clone(),
            Some(SlotPower::External) => "given: --slot-power external".into(),
            Some(SlotPower::Watts(watts)) => format!("given: --slot-power {watts}"),
        };
        sheet.row("Operating conditions", &source, "Power supply", supply);
    }

    /// Source of the air: the options that gave it, and that of the file for the rest.
    fn air_source(&self, of_file: &str) -> String {
        let Surroundings { ambient_c, airflow_lfm, .. } = self.given;
        let ambient = ambient_c.map(|celsius| format!("--ambient {celsius}"));
        let airflow = airflow_lfm.map(|lfm| format!("--airflow {lfm}"));
        let is_all = ambient.is_some() && airflow.is_some();
        let given: Vec<String> = ambient.into_iter().chain(airflow).collect();
        match given.as_slice() {
            [] => of_file.to_owned(),
            given if is_all => format!("given: {}", given.join(" ")),
            given => format!("given: {}; the rest: {of_file}", given.join(" ")),
        }
    }
}

fn disk(media: &DiskSpec, sheet: &mut Sheet) {
    let source = &media.source;
    sheet.row("Disk", source, "Speed", format!("{} revolutions a minute", media.rpm));
    sheet.row("Disk", source, "Heads", media.heads.to_string());
    let seek = |[next, average, all]: [f64; 3]| {
        format!("{average} ms on average, {next} to the next cylinder, {all} over all")
    };
    sheet.row("Disk", source, "Seek of a read", seek(media.read_seek_ms));
    sheet.row("Disk", source, "Seek of a write", seek(media.write_seek_ms));
    let rates = format!("{} MB/s outside, {} MB/s inside", media.outer_mb_s, media.inner_mb_s);
    sheet.row("Disk", source, "Sustained rate", rates);
    let queue = format!("{}, shortest positioning time first", media.queue_depth);
    sheet.row("Disk", source, "Queue", queue);
    let ahead = Bytes::from_kib(media.read_ahead_kib.into()).to_string();
    sheet.row("Disk", source, "Read ahead", ahead);
    let cache = match media.write_cache_kib {
        0 => "none: a write is acknowledged when it is on the media".to_owned(),
        kib => format!("{}, of {} writes", Bytes::from_kib(kib.into()), media.write_cache_entries),
    };
    sheet.row("Disk", source, "Write cache", cache);
}

/// Adds the rows of a tier.
fn classes(tier: &TierSpec, sheet: &mut Sheet) {
    let (policy, source) = (&tier.policy, &tier.source);
    let part = tier.fast_gb.map_or_else(String::new, |gb| format!(", {gb} GB of it"));
    sheet.row("Tier", source, "Fast class", format!("{}{part}", tier.fast));
    sheet.row("Tier", source, "Slow class", tier.slow.clone());
    let unit = Bytes::from_kib(policy.destage_kib.into());
    let write = match policy.write {
        WriteMode::Shape => format!("appended to the fast class, destaged by age in {unit}"),
        WriteMode::Back => format!("to the fast class, destaged by address in {unit}"),
        WriteMode::Around => "to the slow class, around the fast one".to_owned(),
        WriteMode::Through => "to the slow class, and through a copy on the fast one".to_owned(),
    };
    sheet.row("Tier", source, "Writes", write);
    let layout = match policy.layout {
        Layout::InPlace => "in place".to_owned(),
        Layout::Log => {
            format!("a log of bands of {} MiB, {} % spare", policy.band_mib, policy.spare_percent)
        }
    };
    sheet.row("Tier", source, "Layout of the slow class", layout);
    let cache = policy.read_cache.map_or("none", Replacement::name);
    let split = if policy.split { ", reads split by load" } else { "" };
    sheet.row("Tier", source, "Read cache", format!("{cache}{split}"));
}

fn in_place(media: &InPlaceSpec, sheet: &mut Sheet) {
    let source = &media.source;
    let line = Bytes(media.line_bytes.into()).to_string();
    sheet.row("Media", source, "Read in lines of", line);
    let unit = Bytes(media.write_unit().into()).to_string();
    sheet.row("Media", source, "Written in place, in units of", unit);
    let times = format!("{} / {} us read / write", media.read_us, media.write_us);
    sheet.row("Media", source, "Latency", times);
    let rates = format!("{} / {} MB/s read / write", media.read_mb_s, media.write_mb_s);
    sheet.row("Media", source, "Rate of a module", rates);
    let queue = Bytes::from_kib(media.queue_kib.into()).to_string();
    sheet.row("Media", source, "Protected write queue per module", queue);
}

#[cfg(test)]
mod tests {
    use crate::{SlotPower, Surroundings, catalogue};

    #[test]
    fn values_that_were_given_have_no_published_source() {
        let spec = catalogue::find("iodrive-duo").expect("the catalogue has it");
        let source = |surroundings: &Surroundings, name: &str| {
            let spec = spec.clone().surrounded_by(surroundings).expect("it fits");
            let sheet = spec.sheet("stock");
            sheet.into_iter().find(|fact| fact.name == name).expect("it is there").source
        };
        let slot = Surroundings { slot: Some(SlotPower::Watts(15)), ..Default::default() };
        assert_eq!(source(&slot, "Power supply"), "given: --slot-power 15");
        assert!(!source(&slot, "Inlet air").contains("given"));
        assert!(!source(&slot, "Slot power").contains("given"), "that of the file");
        let air =
            Surroundings { ambient_c: Some(45), airflow_lfm: Some(100), ..Default::default() };
        assert_eq!(source(&air, "Inlet air"), "given: --ambient 45 --airflow 100");
        let warm = Surroundings { airflow_lfm: None, ..air.clone() };
        assert!(source(&warm, "Inlet air").starts_with("given: --ambient 45; the rest: "));
    }

    #[test]
    fn every_row_of_every_drive_has_a_source() {
        for spec in catalogue::drives() {
            for format in spec.formats() {
                for fact in spec.sheet(&format) {
                    assert!(!fact.source.is_empty(), "{}: {}", spec.name, fact.name);
                }
            }
        }
    }
}
