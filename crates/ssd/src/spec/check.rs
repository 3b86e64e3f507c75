//! Reading a drive: every fault is one sentence with file, line and what would be right.

use crate::event::PAGES_MAX;
use crate::spec::{
    DiskSpec, DriveSpec, FormatSpec, InPlaceSpec, MappingUnit, SpecError, StallSpec,
};

/// Most flash of one module, in decimal TB.
const RAW_TB_MAX: f64 = 1000.0;

/// Text of the file, for the lines that errors name.
struct Text<'a> {
    text: &'a str,
    file: &'a str,
}

impl DriveSpec {
    /// Reads a drive from the text of a TOML file; `file` names it in errors.
    ///
    /// # Errors
    /// Says which line is not understood or out of range, and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        let spec = Self::read(text, file)?;
        let at = Text { text, file };
        spec.check_identity(&at)?;
        spec.check_ranges(&at)?;
        spec.check_media(&at)?;
        spec.check_mechanisms(&at)?;
        spec.check_compression(&at)?;
        spec.check_climate(&at)?;
        spec.check_sources(&at)?;
        spec.check_fits(&at)?;
        spec.check_tier(&at)?;
        for (index, format) in spec.formats.iter().enumerate() {
            spec.check_format(&at, index, format)?;
        }
        Ok(spec)
    }

    fn check_identity(&self, at: &Text<'_>) -> Result<(), SpecError> {
        at.require(self.schema == 1, "", "schema", &format!("{}, must be 1", self.schema))?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let named = !self.name.is_empty() && self.name.chars().all(plain);
        let limit = format!("{:?}, must be lower-case letters, digits and hyphens", self.name);
        at.require(named, "", "name", &limit)?;
        at.require(!self.formats.is_empty(), "", "format", "missing, at least one is needed")?;
        at.require(!self.hosts.is_empty(), "", "host", "missing, at least one is needed")
    }

    /// Media is NAND or written in place, and described as one of them only.
    fn check_media(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let nand = [
            ("geometry", &self.geometry.source),
            ("nand", &self.nand.source),
            ("channels", &self.channels.source),
            ("buffer", &self.buffer.source),
            ("relocation", &self.relocation.source),
        ];
        for (table, source) in nand {
            let text = match (&self.in_place, &self.disk) {
                _ if self.tier.is_some() => "not allowed with tier: its drives have media",
                (None, None) => "missing, required unless the media is in_place or a disk",
                (Some(_), _) => "not allowed with in_place: media is NAND or written in place",
                (None, Some(_)) => "not allowed with disk: media is NAND or a disk",
            };
            at.require(self.is_nand() != source.is_empty(), "", table, text)?;
        }
        let both = self.in_place.is_some() && self.disk.is_some();
        at.require(!both, "", "disk", "not allowed with in_place: the media is one of the two")?;
        match (&self.in_place, &self.disk) {
            _ if self.tier.is_some() => Ok(()),
            (Some(in_place), _) => check_in_place(at, in_place),
            (None, Some(disk)) => check_disk(at, disk),
            (None, None) => {
                self.check_nand(at)?;
                self.check_indirection(at)?;
                self.check_slc_cache(at)
            }
        }
    }

    fn check_ranges(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let controller = &self.controller;
        let times = [
            ("controller", "read_us", controller.read_us, 1e6),
            ("controller", "read_us_per_kib", controller.read_us_per_kib, 1e6),
            ("controller", "write_us", controller.write_us, 1e6),
            ("controller", "write_us_per_kib", controller.write_us_per_kib, 1e6),
            ("controller", "relocate_us", controller.relocate_us, 1e6),
            ("link", "read_mb_s", self.link.read_mb_s, 1e6),
            ("link", "write_mb_s", self.link.write_mb_s, 1e6),
        ];
        for (table, key, value, limit) in times {
            let least = if table == "link" { 1.0 } else { 0.0 };
            at.within(table, key, value, (least, limit))?;
        }
        let piece_kib = controller.piece_kib;
        at.within("controller", "piece_kib", f64::from(piece_kib), (0.0, 65_536.0))?;
        let text = "only media that is written in place has it";
        at.require(piece_kib == 0 || self.in_place.is_some(), "controller", "piece_kib", text)?;
        for host in &self.hosts {
            at.within("host", "copy_us_per_kib", host.copy_us_per_kib, (0.0, 1e6))?;
        }
        let counts = [
            ("", "time_lapse", self.time_lapse, 4096),
            ("devices", "count", self.device_count(), 64),
            ("modules", "count", self.modules.count, 64),
            ("controller", "cores", controller.cores, 1024),
        ];
        for (table, key, value, limit) in counts {
            at.within(table, key, f64::from(value), (1.0, f64::from(limit)))?;
        }
        let port_mb_s = self.modules.port_mb_s.unwrap_or(1.0);
        at.within("modules", "port_mb_s", port_mb_s, (1.0, 1e6))?;
        let stripe_kib = self.modules.stripe_kib;
        let whole = stripe_kib > 0 && stripe_kib.is_multiple_of(4);
        at.require(
            whole,
            "modules",
            "stripe_kib",
            &format!("{stripe_kib}, must be a multiple of 4"),
        )
    }

    fn check_mechanisms(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let unmapped = self.mapping.as_ref().and_then(|mapping| mapping.unmapped_read_us);
        at.within("mapping", "unmapped_read_us", unmapped.unwrap_or(0.0), (0.0, 1e6))?;
        if let Some(placement) = &self.placement {
            let handles = placement.handles.into();
            at.within("placement", "handles", handles, (1.0, 128.0))?;
            let text = "only NAND drives have placement";
            at.require(self.is_nand(), "", "placement", text)?;
        }
        for (table, is_given) in
            [("slc_cache", self.slc_cache.is_some()), ("read_retry", self.read_retry.is_some())]
        {
            let text = "only NAND drives have it";
            at.require(self.is_nand() || !is_given, "", table, text)?;
        }
        if let Some(retry) = &self.read_retry {
            at.within("read_retry", "step_us", retry.step_us, (0.0, 1e6))?;
            at.within("read_retry", "worn_cycles", retry.worn_cycles, (0.0, 1e6))?;
            at.within("read_retry", "rested_days", retry.rested_days, (0.0, 1e5))?;
            let fault = retry.fault();
            at.require(fault.is_none(), "", "read_retry", &fault.unwrap_or_default())?;
        }
        for host in &self.hosts {
            let times = [
                ("submit_us", host.submit_us),
                ("complete_us", host.complete_us),
                ("interrupt_us", host.interrupt_us),
                ("wake_us", host.wake_us),
                ("serial_us", host.serial_us),
                ("controller_factor", host.controller_factor),
            ];
            for (key, value) in times {
                at.within("host", key, value, (0.0, 1e6))?;
            }
        }
        for stall in self.stalls() {
            at.within("host.stall", "every_s", stall.every_s, (0.001, 1e6))?;
            at.within("host.stall", "span_ms", stall.span_ms, (0.0, stall.every_s * 1e3))?;
        }
        Ok(())
    }

    fn check_climate(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let (energy, thermal, power) = match (&self.energy, &self.thermal, &self.power) {
            (Some(energy), Some(thermal), Some(power)) => (energy, thermal, power),
            (None, None, _) => return Ok(()),
            (None, Some(_), _) => {
                return at.require(false, "", "energy", "missing, required with thermal");
            }
            (Some(_), None, _) => {
                return at.require(false, "", "thermal", "missing, required with energy");
            }
            (Some(_), Some(_), None) => {
                return at.require(false, "", "power", "missing, required with thermal");
            }
        };
        let numbers = [
            ("energy", "idle_w", energy.idle_w, (0.0, 1e3)),
            ("energy", "read_uj", energy.read_uj, (0.0, 1e6)),
            ("energy", "program_uj", energy.program_uj, (0.0, 1e6)),
            ("energy", "erase_uj", energy.erase_uj, (0.0, 1e6)),
            ("energy", "transfer_uj", energy.transfer_uj, (0.0, 1e6)),
            ("thermal", "resistance_k_w", thermal.resistance_k_w, (1e-3, 1e3)),
            ("thermal", "capacity_j_k", thermal.capacity_j_k, (1.0, 1e6)),
            ("thermal", "ambient_c", thermal.ambient_c, (-60.0, 125.0)),
            ("thermal", "still_air_lfm", thermal.still_air_lfm, (1.0, 1e4)),
            ("thermal", "airflow_lfm", thermal.airflow_lfm.unwrap_or(1.0), (0.0, 1e4)),
            ("power", "airflow_lfm", power.airflow_lfm, (1.0, 1e4)),
            ("power", "shutdown_c", power.shutdown_c, (power.throttle_c, 200.0)),
        ];
        for (table, key, value, limits) in numbers {
            at.within(table, key, value, limits)?;
        }
        let text = format!("{}, must be above the {} W of idling", power.slot_w, energy.idle_w);
        at.require(power.slot_w > energy.idle_w, "power", "slot_w", &text)?;
        let limit_w = power.limit_w.unwrap_or(f64::INFINITY);
        let text = format!("{limit_w}, must be above the {} W of idling", energy.idle_w);
        at.require(limit_w > energy.idle_w, "power", "limit_w", &text)?;
        let time_constant_s = thermal.resistance_k_w * thermal.capacity_j_k;
        let text = format!(
            "{}: with a resistance of {} K/W it follows within {time_constant_s} s, must be 10 s \
             or more",
            thermal.capacity_j_k, thermal.resistance_k_w
        );
        at.require(time_constant_s >= 10.0, "thermal", "capacity_j_k", &text)
    }

    fn check_compression(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let multiplied = self.formats.iter().find(|format| format.physical_gb.is_some());
        let Some(compression) = &self.compression else {
            let text = "given, but there is no [compression] to reach user_gb with";
            return at.require(multiplied.is_none(), "format", "physical_gb", text);
        };
        let table = "compression";
        let extents = f64::from(compression.extents_per_page);
        at.within(table, "extents_per_page", extents, (2.0, 64.0))?;
        at.within(table, "header_bytes", f64::from(compression.header_bytes), (0.0, 2048.0))?;
        for percent in &compression.warn_percent {
            at.within(table, "warn_percent", *percent, (0.0, 100.0))?;
        }
        Ok(())
    }

    fn stalls(&self) -> impl Iterator<Item = &StallSpec> {
        self.hosts.iter().flat_map(|host| &host.stalls)
    }

    /// Counts whose products fit: everything after this multiplies them.
    fn check_geometry(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let geometry = &self.geometry;
        let counts = [
            ("banks", geometry.banks, (1, 65_535)),
            ("dies_per_bank", geometry.dies_per_bank, (1, 65_535)),
            ("planes_per_die", geometry.planes_per_die, (1, 64)),
            ("erase_blocks_per_plane", geometry.erase_blocks_per_plane, (1, 1 << 24)),
            ("pages_per_erase_block", geometry.pages_per_erase_block, (1, 65_535)),
            ("page_kib", geometry.page_kib, (1, 1024)),
            ("pages_per_program", geometry.pages_per_program, (1, 64)),
        ];
        for (key, value, (least, most)) in counts {
            at.within("geometry", key, value.into(), (f64::from(least), f64::from(most)))?;
        }
        let product = |counts: [u32; 3]| counts.map(f64::from).iter().product::<f64>();
        let limit = f64::from(u32::MAX);
        let dies = product([geometry.banks, geometry.dies_per_bank, 1]);
        let superblocks = product([geometry.banks, geometry.erase_blocks_per_plane, 1]);
        let stripe_kib = product([geometry.dies_per_bank, geometry.planes_per_die, 1])
            * product([geometry.pages_per_erase_block, geometry.page_kib, 1]);
        let raw_tb = superblocks * stripe_kib * 1024.0 / 1e12;
        let sums = [
            ("banks", dies, 65_535.0, "dies"),
            ("erase_blocks_per_plane", superblocks, limit, "superblocks"),
            ("pages_per_erase_block", stripe_kib / 4.0, limit, "pages of 4 KiB in a superblock"),
            ("erase_blocks_per_plane", raw_tb, RAW_TB_MAX, "TB in all"),
        ];
        for (key, value, most, of) in sums {
            let text = format!("too large: there are {value:.0} {of}, must be at most {most:.0}");
            at.require(value <= most, "geometry", key, &text)?;
        }
        Ok(())
    }

    fn check_nand(&self, at: &Text<'_>) -> Result<(), SpecError> {
        self.check_geometry(at)?;
        let nand = &self.nand;
        let times = [
            ("nand", "t_read_us", nand.t_read_us),
            ("nand", "t_erase_us", nand.t_erase_us),
            ("nand", "suspend_us", nand.suspend_us),
            ("relocation", "price_max", self.relocation.price_max),
            ("relocation", "burst", self.relocation.burst),
            ("buffer", "acknowledge_us", self.buffer.acknowledge_us),
        ];
        for (table, key, value) in times {
            at.within(table, key, value, (0.0, 1e6))?;
        }
        self.check_program(at)?;
        at.require(!nand.t_program_us.is_empty(), "nand", "t_program_us", "empty")?;
        for time in &nand.t_program_us {
            at.within("nand", "t_program_us", *time, (0.0, 1e6))?;
        }
        at.within("channels", "mb_s", self.channels.mb_s, (1.0, 1e6))?;
        at.within("channels", "count", self.channels.count.into(), (1.0, 1024.0))?;
        let (modules, channels) = (self.device_count() * self.modules.count, self.channels.count);
        let text = format!("{channels} in each of {modules} modules, must be below 65536 in all");
        at.require(modules * channels < 65_536, "channels", "count", &text)?;
        let extents_per_page = self.compression.as_ref().map_or(1, |it| it.extents_per_page);
        let geometry = self.ftl_geometry();
        let extents = geometry.planes_per_die * geometry.page_kib / 4 * extents_per_page;
        let limit = u32::from(PAGES_MAX);
        let text = format!("too large: a program unit holds {extents} pages, at most {limit}");
        at.require(extents <= limit, "geometry", "page_kib", &text)?;
        let batch_pages = self.relocation.batch_pages.into();
        at.within("relocation", "batch_pages", batch_pages, (1.0, f64::from(1 << 20)))?;
        let buffer_kib = self.relocation.buffer_kib.unwrap_or(1).into();
        at.within("relocation", "buffer_kib", buffer_kib, (1.0, f64::from(1 << 24)))?;
        at.within("buffer", "kib", self.buffer.kib.into(), (1.0, f64::from(1 << 24)))
    }

    fn check_indirection(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        let (kib, table) = (mapping.indirection_kib, "mapping");
        let fits = kib.is_power_of_two() && (4..=64).contains(&kib);
        let text = format!("{kib}, must be a power of two from 4 to 64");
        at.require(fits, table, "indirection_kib", &text)?;
        let together = self.geometry.planes_per_die * self.geometry.page_kib;
        let text = format!("{kib}, must divide the {together} KiB that a die reads at a time");
        at.require(together.is_multiple_of(kib), table, "indirection_kib", &text)?;
        let text = format!("{kib}, must be 4 where sectors are mapped or pages compressed");
        let by_page = mapping.unit == MappingUnit::Page && self.compression.is_none();
        at.require(by_page || kib == 4, table, "indirection_kib", &text)?;
        let stripe_kib = self.modules.stripe_kib;
        let text = format!("{stripe_kib}, must be a multiple of the indirection unit of {kib} KiB");
        at.require(stripe_kib.is_multiple_of(kib), "modules", "stripe_kib", &text)?;
        let gather_kib = f64::from(mapping.gather_kib);
        at.within(table, "gather_kib", gather_kib, (0.0, f64::from(kib) * 1024.0))
    }

    fn check_slc_cache(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let Some(cache) = &self.slc_cache else { return Ok(()) };
        let numbers = [
            ("static_gb", cache.static_gb, (0.0, 1e6)),
            ("dynamic_gb", cache.dynamic_gb, (0.0, 1e6)),
            ("full_at_percent", cache.full_at_percent, (1.0, 100.0)),
            ("t_read_us", cache.t_read_us, (0.0, 1e6)),
            ("t_program_us", cache.t_program_us, (0.0, 1e6)),
            ("idle_ms", cache.idle_ms, (0.0, 1e9)),
        ];
        for (key, value, limits) in numbers {
            at.within("slc_cache", key, value, limits)?;
        }
        let bits = self.geometry.pages_per_program;
        let text = format!("{bits}, must be the 2 to 8 bits of a cell where there is an slc_cache");
        at.require((2..=8).contains(&bits), "geometry", "pages_per_program", &text)?;
        let text = "given, but pages of a program unit in SLC mode are not compressed";
        at.require(self.compression.is_none(), "", "slc_cache", text)
    }

    fn check_program(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let geometry = &self.geometry;
        let (pages, together) = (geometry.pages_per_erase_block, geometry.pages_per_program);
        let divides = together > 0 && pages.is_multiple_of(together);
        let text = format!("{together}, must be a divisor of pages_per_erase_block ({pages})");
        at.require(divides, "geometry", "pages_per_program", &text)
    }

    fn check_physical(&self, at: &Text<'_>, format: &FormatSpec) -> Result<(), SpecError> {
        let (Some(physical_gb), Some(compression)) = (format.physical_gb, &self.compression) else {
            return Ok(());
        };
        let extents = compression.extents_per_page;
        let text = format!(
            "{physical_gb} for {:?}, must be at most user_gb ({}) and at least 1/{extents} of it, \
             since a page holds {extents} extents",
            format.name, format.user_gb
        );
        let times = format.user_gb / physical_gb;
        let fits = physical_gb > 0.0 && (1.0..=f64::from(extents)).contains(&times);
        at.require(fits, "format", "physical_gb", &text)
    }

    fn check_sources(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let nand = self.is_nand();
        let sources = [
            ("published", self.published.as_ref().map(|published| &published.source)),
            ("mapping", self.mapping.as_ref().map(|mapping| &mapping.source)),
            ("placement", self.placement.as_ref().map(|placement| &placement.source)),
            ("modules", Some(&self.modules.source)),
            ("devices", self.devices.as_ref().map(|devices| &devices.source)),
            ("in_place", self.in_place.as_ref().map(|in_place| &in_place.source)),
            ("disk", self.disk.as_ref().map(|disk| &disk.source)),
            ("tier", self.tier.as_ref().map(|tier| &tier.source)),
            ("read_retry", self.read_retry.as_ref().map(|retry| &retry.source)),
            ("slc_cache", self.slc_cache.as_ref().map(|cache| &cache.source)),
            ("geometry", nand.then_some(&self.geometry.source)),
            ("nand", nand.then_some(&self.nand.source)),
            ("channels", nand.then_some(&self.channels.source)),
            ("controller", Some(&self.controller.source)),
            ("link", Some(&self.link.source)),
            ("compression", self.compression.as_ref().map(|it| &it.source)),
            ("buffer", nand.then_some(&self.buffer.source)),
            ("relocation", nand.then_some(&self.relocation.source)),
            ("power", self.power.as_ref().map(|power| &power.source)),
            ("energy", self.energy.as_ref().map(|energy| &energy.source)),
            ("thermal", self.thermal.as_ref().map(|thermal| &thermal.source)),
            ("endurance", self.endurance.as_ref().map(|endurance| &endurance.source)),
        ];
        let formats = self.formats.iter().map(|format| ("format", Some(&format.source)));
        let hosts = self.hosts.iter().map(|host| ("host", Some(&host.source)));
        let stalls = self.stalls().map(|stall| ("host.stall", Some(&stall.source)));
        let fits = self.fits.iter().map(|fit| ("fit", fit.source.as_ref()));
        let many = formats.chain(hosts).chain(stalls).chain(fits);
        for (table, source) in sources.into_iter().chain(many) {
            let Some(source) = source else { continue };
            let kind = source.split(':').next().unwrap_or_default();
            let known = matches!(kind, "published" | "derived" | "estimated");
            let text = format!("{source:?}, must begin with published:, derived: or estimated:");
            at.require(known, table, "source", &text)?;
        }
        Ok(())
    }

    /// A tier has classes, and nothing else of its own but a host.
    fn check_tier(&self, at: &Text<'_>) -> Result<(), SpecError> {
        let Some(tier) = &self.tier else { return Ok(()) };
        let own = [
            ("in_place", self.in_place.is_some()),
            ("disk", self.disk.is_some()),
            ("devices", self.devices.is_some()),
            ("mapping", self.mapping.is_some()),
            ("placement", self.placement.is_some()),
            ("compression", self.compression.is_some()),
            ("power", self.power.is_some()),
            ("energy", self.energy.is_some()),
            ("thermal", self.thermal.is_some()),
            ("fit", !self.fits.is_empty()),
        ];
        for (table, is_given) in own {
            let text = "not allowed with tier: give it to the drive that is a class";
            at.require(!is_given, "", table, text)?;
        }
        let modules = format!("{}, must be 1 with tier", self.modules.count);
        at.require(self.modules.count == 1, "modules", "count", &modules)?;
        for format in &self.formats {
            let physical = format.physical_gb.is_none();
            at.require(physical, "format", "physical_gb", "not allowed with tier")?;
        }
        self.check_classes(tier, &at.place_of_text("[tier]"))
    }

    fn check_fits(&self, at: &Text<'_>) -> Result<(), SpecError> {
        for (index, fit) in self.fits.iter().enumerate() {
            let parameter = &fit.parameter;
            let fault = |text: String| SpecError {
                place: at.place_of_text(&format!("\"{parameter}\"")),
                text: format!("fit of {parameter}: {text}"),
            };
            if let Some(text) = fit.fault() {
                return Err(fault(text));
            }
            if self.fits[..index].iter().any(|earlier| earlier.parameter == *parameter) {
                return Err(fault("named twice, once is enough".into()));
            }
        }
        Ok(())
    }

    fn check_format(
        &self,
        at: &Text<'_>,
        index: usize,
        format: &FormatSpec,
    ) -> Result<(), SpecError> {
        self.check_physical(at, format)?;
        let raw_gb = self.raw_device_capacity().as_gb_f64();
        let (key, gb) = match format.physical_gb {
            Some(gb) => ("physical_gb", gb),
            None => ("user_gb", format.user_gb),
        };
        // A disk offers all that it has, and a tier what disks do.
        let offers_all = self.disk.is_some() || self.tier.is_some();
        let fits = gb > 0.0 && (gb < raw_gb || (offers_all && gb <= raw_gb));
        if !fits {
            let text = format!(
                "format.{key} is {gb} for {:?}, must be above 0 and below the raw capacity of \
                 {raw_gb:.0} GB",
                format.name
            );
            return Err(SpecError { place: at.place("format", index, key), text });
        }
        for time_lapse in [1, self.time_lapse] {
            let place = || at.place("format", index, "user_gb");
            self.module_sectors(format, time_lapse)
                .map_err(|error| SpecError { place: place(), ..error })?;
        }
        Ok(())
    }
}

fn check_in_place(at: &Text<'_>, in_place: &InPlaceSpec) -> Result<(), SpecError> {
    let numbers = [
        ("gib", in_place.gib.into(), 1.0, 65_536.0),
        ("read_us", in_place.read_us, 0.0, 1e6),
        ("write_us", in_place.write_us, 0.0, 1e6),
        ("read_mb_s", in_place.read_mb_s, 1.0, 1e6),
        ("write_mb_s", in_place.write_mb_s, 1.0, 1e6),
        ("queue_kib", in_place.queue_kib.into(), 0.0, f64::from(1 << 24)),
    ];
    for (key, value, least, most) in numbers {
        at.within("in_place", key, value, (least, most))?;
    }
    let line = in_place.line_bytes;
    let whole = line.is_power_of_two() && (64..=65_536).contains(&line);
    let text = format!("{line}, must be a power of two from 64 to 65536");
    at.require(whole, "in_place", "line_bytes", &text)?;
    let unit = in_place.write_unit();
    let is_unit = unit.is_power_of_two() && (line..=65_536).contains(&unit);
    let text = format!("{unit}, must be a power of two from line_bytes, {line}, to 65536");
    at.require(is_unit, "in_place", "write_unit_bytes", &text)
}

fn check_disk(at: &Text<'_>, disk: &DiskSpec) -> Result<(), SpecError> {
    let numbers = [
        ("gb", disk.gb, 1.0, 1e6),
        ("rpm", disk.rpm, 60.0, 1e6),
        ("heads", disk.heads.into(), 1.0, 1000.0),
        ("outer_mb_s", disk.outer_mb_s, 1.0, 1e6),
        ("inner_mb_s", disk.inner_mb_s, 1.0, disk.outer_mb_s),
        ("queue_depth", disk.queue_depth.into(), 1.0, 1024.0),
        ("wait_max_ms", disk.wait_max_ms, 1.0, 1e6),
        ("read_ahead_kib", disk.read_ahead_kib.into(), 0.0, f64::from(1 << 24)),
        ("write_cache_kib", disk.write_cache_kib.into(), 0.0, f64::from(1 << 24)),
        ("write_cache_entries", disk.write_cache_entries.into(), 1.0, 4096.0),
    ];
    for (key, value, least, most) in numbers {
        at.within("disk", key, value, (least, most))?;
    }
    for (key, seek) in [("read_seek_ms", disk.read_seek_ms), ("write_seek_ms", disk.write_seek_ms)]
    {
        let is_positive = seek.iter().all(|ms| ms.is_finite() && *ms > 0.0);
        let is_curve = is_positive && crate::disk::seek_curve(seek).is_some();
        let text = format!("{seek:?}, must be times of a seek curve that rises ever more slowly");
        at.require(is_curve, "disk", key, &text)?;
    }
    Ok(())
}

impl Text<'_> {
    fn require(&self, holds: bool, table: &str, key: &str, text: &str) -> Result<(), SpecError> {
        if holds {
            return Ok(());
        }
        let name = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
        Err(SpecError { place: self.place(table, 0, key), text: format!("{name} is {text}") })
    }

    fn within(
        &self,
        table: &str,
        key: &str,
        value: f64,
        (least, most): (f64, f64),
    ) -> Result<(), SpecError> {
        let holds = value.is_finite() && value >= least && value <= most;
        self.require(holds, table, key, &format!("{value}, must be from {least} to {most}"))
    }

    /// `file:line` of the last line that contains `part`.
    fn place_of_text(&self, part: &str) -> String {
        let lines = self.text.lines().enumerate();
        let last = lines.filter(|(_, line)| line.contains(part)).last();
        last.map_or(self.file.to_owned(), |(index, _)| format!("{}:{}", self.file, index + 1))
    }

    /// `file:line` of the first `key` in the `table` with that number among those of its name.
    fn place(&self, table: &str, number: usize, key: &str) -> String {
        let headings = [format!("[{table}]"), format!("[[{table}]]")];
        let mut inside = table.is_empty();
        let mut before = 0;
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with('[') {
                let is_named = headings.iter().any(|heading| line.starts_with(heading.as_str()));
                inside = is_named && before == number;
                before += usize::from(is_named);
            }
            let names =
                line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
            if inside && names {
                return format!("{}:{}", self.file, index + 1);
            }
        }
        self.file.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUO: &str = include_str!("../../../../drives/iodrive-duo.toml");

    fn check(from: &str, to: &str, expected: &str) {
        let text = DUO.replacen(from, to, 1);
        assert_ne!(text, DUO, "nothing replaced");
        let error = DriveSpec::parse(&text, "duo.toml").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  lacks {expected}");
    }

    #[test]
    fn the_duo_is_a_drive() {
        let duo = DriveSpec::parse(DUO, "duo.toml").unwrap();
        assert_eq!(duo.raw_capacity(), blockio::Bytes(2 * 25 * (16 << 30)));
    }

    #[test]
    fn faults_name_line_value_and_limit() {
        check("t_read_us = 50", "t_read_us = -5", "nand.t_read_us is -5, must be from 0");
        check("t_read_us = 50", "t_read_ms = 50", "unknown field `t_read_ms`");
        check("user_gb = 640", "user_gb = 6400", "below the raw capacity of 859 GB");
        check("user_gb = 640", "user_gb = 790", "kept for relocation");
        check("source = \"estimated: two", "source = \"two", "must begin with published:");
        check("schema = 1", "schema = 2", "duo.toml:9: schema is 2, must be 1");
        check("cores = 1", "cores = 0", "controller.cores is 0, must be from 1 to 1024");
        check(
            "page_kib = 4",
            "page_kib = 4\npages_per_program = 3",
            "a divisor of pages_per_erase",
        );
        check("slot_w = 25", "slot_w = -25", "power.slot_w is -25, must be above the 11 W");
        check("idle_w = 11", "idle_w = 30", "power.slot_w is 25, must be above the 30 W");
        check("burst = 0.3", "burst = 0.3\nbuffer_kib = 0", "relocation.buffer_kib is 0, must be");
        check("stripe_dies = 25", "stripe_dies = 7", "stripe_dies is 7, must be 0, or a divisor");
    }

    #[test]
    fn counts_whose_product_no_number_holds_are_refused_before_they_are_multiplied() {
        let dies = "geometry.dies_per_bank is 4000000000, must be from 1 to 65535";
        check("dies_per_bank = 25", "dies_per_bank = 4000000000", dies);
        let dies = "banks is too large: there are 262140 dies, must be at most 65535";
        check("dies_per_bank = 25", "dies_per_bank = 65535", dies);
        let blocks = "erase_blocks_per_plane is too large: there are ";
        check("erase_blocks_per_plane = 2048", "erase_blocks_per_plane = 16000000", blocks);
        let modules = "modules.count is 4000000000, must be from 1 to 64";
        check("\ncount = 2", "\ncount = 4000000000", modules);
    }

    #[test]
    fn a_format_that_cannot_be_is_refused_with_its_own_line() {
        let line = DUO.lines().position(|line| line == "user_gb = 512").unwrap() + 1;
        let place = format!("duo.toml:{line}: ");
        check("user_gb = 512", "user_gb = 860", &format!("{place}format.user_gb is 860 for"));
        check("user_gb = 512", "user_gb = 790", &place);
    }

    #[test]
    fn bounds_that_enclose_nothing_are_refused_with_their_line() {
        let check_fit = |fit: &str, expected: &str| {
            let text = format!("{DUO}\n[[fit]]\nparameter = \"nand.t_read_us\"\n{fit}\n");
            let error = DriveSpec::parse(&text, "duo.toml").unwrap_err().to_string();
            let line = DUO.lines().count() + 3;
            assert!(
                error.starts_with(&format!("duo.toml:{line}: fit of nand.t_read_us")),
                "{error}"
            );
            assert!(error.contains(expected), "{error}\n  lacks {expected}");
        };
        check_fit("low = 50\nhigh = 50", "low must be below");
        check_fit("low = 0\nhigh = 50\nscale = \"log\"", "low 0 has no logarithm");
    }
}
