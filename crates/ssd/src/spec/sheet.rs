//! The specification sheet of a drive, row by row, each with its source.

use blockio::Bytes;

use crate::spec::{DriveSpec, ModuleLayout};

/// One row of the specification sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Group, such as `NAND`.
    pub group: String,
    /// What it is.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// `published`, `derived` or `estimated`, then where from.
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
        self.layout(&mut sheet);
        self.nand(&mut sheet);
        self.control(&mut sheet);
        self.limits(&mut sheet);
        sheet.0
    }

    /// What is known of the host driver named `host` and the machine around it.
    pub fn host_sheet(&self, host: &str) -> Vec<(String, String)> {
        let Ok(host) = self.host(host) else { return Vec::new() };
        [
            ("System and driver", host.title.clone()),
            ("Processors", host.processor.clone()),
            ("Processor time a request", format!("{} us", host.submit_us + host.complete_us)),
            ("Serialised section", format!("{} us", host.serial_us)),
            ("Flash management, relative time", format!("{}", host.controller_factor)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn capacity(&self, format: &str, sheet: &mut Sheet) {
        let raw = self.raw_capacity();
        sheet.row("Drive", "published: maker", "Maker", self.vendor.clone());
        sheet.row("Drive", "published: maker", "Year", self.year.to_string());
        sheet.row("Drive", "published: maker", "Form", self.form.clone());
        sheet.row("Drive", "published: maker", "Media", self.media.clone());
        sheet.row("Capacity", &self.geometry.source, "Raw", raw.to_string());
        if let Ok(format) = self.format(format) {
            let user = format.user_gb;
            let spare = raw.as_gb_f64() - user;
            let shares = format!(
                "{:.1} % of user, {:.1} % of raw",
                spare / user * 100.0,
                spare / raw.as_gb_f64() * 100.0
            );
            sheet.row("Capacity", &format.source, "Format", format.name.clone());
            sheet.row("Capacity", &format.source, "User", format!("{user} GB"));
            sheet.row("Capacity", "derived: raw less user", "Over-provisioning", shares);
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
        sheet.row("Drive", &modules.source, "Modules", count);
        let geometry = &self.geometry;
        let source = &geometry.source;
        let dies = geometry.banks * geometry.dies_per_bank;
        sheet.row("NAND", source, "Dies a module", dies.to_string());
        sheet.row("NAND", source, "Planes a die", geometry.planes_per_die.to_string());
        let blocks = format!(
            "{}, of which {} bad or spare",
            geometry.erase_blocks_per_plane, geometry.spare_erase_blocks_per_plane
        );
        sheet.row("NAND", source, "Erase blocks a plane", blocks);
        let page = Bytes::from_kib(geometry.page_kib.into());
        let block = Bytes::from_kib((geometry.page_kib * geometry.pages_per_erase_block).into());
        sheet.row("NAND", source, "Page, erase block", format!("{page}, {block}"));
        let superblock = Bytes(u64::from(self.ftl_geometry().pages_per_superblock()) * 4096);
        sheet.row("NAND", source, "Superblock (data)", superblock.to_string());
        let parity = match geometry.stripe_dies {
            0 => "none".to_owned(),
            dies => format!("{} + 1 dies", dies - 1),
        };
        sheet.row("NAND", source, "Parity", parity);
    }

    fn nand(&self, sheet: &mut Sheet) {
        let (nand, channels) = (&self.nand, &self.channels);
        sheet.row("NAND", &nand.source, "Read (tR)", format!("{} us", nand.t_read_us));
        let programs: Vec<String> = nand.t_program_us.iter().map(ToString::to_string).collect();
        sheet.row("NAND", &nand.source, "Program (tPROG)", format!("{} us", programs.join(" / ")));
        sheet.row("NAND", &nand.source, "Erase (tBERS)", format!("{} us", nand.t_erase_us));
        let rate = format!("{} of {} MB/s", channels.count, channels.mb_s);
        sheet.row("NAND", &channels.source, "Channels a module", rate);
    }

    fn control(&self, sheet: &mut Sheet) {
        let (controller, source) = (&self.controller, &self.controller.source);
        let place = if controller.on_host { "host driver" } else { "device" };
        sheet.row("Controller", source, "Flash management by", place.to_owned());
        let read = format!("{} us + {} us/KiB", controller.read_us, controller.read_us_per_kib);
        sheet.row("Controller", source, "Read command", read);
        let write = format!("{} us + {} us/KiB", controller.write_us, controller.write_us_per_kib);
        sheet.row("Controller", source, "Write command", write);
        let relocate = format!("{} us a page", controller.relocate_us);
        sheet.row("Controller", source, "Relocation", relocate);
        let buffer = Bytes::from_kib(self.buffer.kib.into()).to_string();
        sheet.row("Controller", &self.buffer.source, "Write buffer a module", buffer);
        let relocation = &self.relocation;
        let marks = format!(
            "keeps pace from {} superblocks of room, stops the host at {}",
            relocation.watermark_high, relocation.watermark_low
        );
        sheet.row("Controller", &relocation.source, "Garbage collection", marks);
        let link = format!("{} / {} MB/s read / write", self.link.read_mb_s, self.link.write_mb_s);
        sheet.row("Controller", &self.link.source, "Link", link);
    }

    fn limits(&self, sheet: &mut Sheet) {
        let Some(power) = &self.power else { return };
        let source = &power.source;
        sheet.row("Limits", source, "Slot power", format!("{} W", power.slot_w));
        let limits = format!("{} / {} °C", power.throttle_c, power.shutdown_c);
        sheet.row("Limits", source, "Slows down / powers off", limits);
        sheet.row("Limits", source, "Air flow", format!("{} LFM", power.airflow_lfm));
    }
}
