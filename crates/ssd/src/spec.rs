//! Specification of a drive: a TOML file, checked on reading.
//!
//! No code asks which drive it is; everything that tells drives apart is a number here, and every
//! table of numbers names its source.

mod check;
mod classes;
mod climate;
mod devices;
mod disk;
mod fit;
mod in_place;
mod like;
mod placement;
mod platform;
mod read_retry;
mod sheet;
mod slc_cache;
mod stated;
mod tier;

use blockio::{Bytes, SECTOR_BYTES};
use ftl::{Config, Geometry, VictimPolicy, Watermarks};
use serde::Deserialize;
use thiserror::Error;

use crate::catalogue;
use crate::die_failure::DieFailure;

pub use climate::{EnergySpec, SlotPower, Surroundings, ThermalSpec};
pub use devices::DevicesSpec;
pub use disk::DiskSpec;
pub use fit::{FitScale, FitSpec};
pub use in_place::InPlaceSpec;
pub use placement::{IsolationSpec, PlacementSpec};
pub use platform::PlatformSpec;
pub use read_retry::ReadRetrySpec;
pub use sheet::Fact;
pub use slc_cache::SlcCacheSpec;
pub use stated::OverProvisioning;
pub use tier::TierSpec;

/// A drive of the catalogue, or a user's own.
///
/// The numbers are public, so a drive can be changed before it is built. Here it offers less of its
/// flash:
///
/// ```
/// use ssd::{DriveSpec, catalogue};
///
/// let text = catalogue::text("iodrive-duo").expect("it is in the catalogue");
/// let mut spec = DriveSpec::parse(text, "my-drive.toml")?;
/// let before = spec.over_provisioning("stock").expect("its capacity is known");
/// spec.formats[0].user_gb = 480.0;
/// let after = spec.over_provisioning("stock").expect("its capacity is known");
/// assert!(after.of_user > before.of_user);
///
/// let wrong = text.replace("t_read_us = 50", "t_reed_us = 50");
/// let refused = DriveSpec::parse(&wrong, "my-drive.toml").unwrap_err();
/// assert!(refused.to_string().starts_with("my-drive.toml:"), "{refused}");
/// # Ok::<(), ssd::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name in the catalogue, such as `iodrive-duo`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
    /// Maker.
    pub vendor: String,
    /// Year of release.
    pub year: Option<u32>,
    /// Kind of media, in words.
    pub media: String,
    /// Form of the device, in words.
    pub form: String,
    /// Largest accepted k: steady-state 4 KiB write rates are within 3 % of those at a smaller k,
    /// if 1/k of the capacity is simulated for 1/k of the time.
    pub time_lapse: u32,
    /// True if published rates confirm the model, false if none does. Absent: true if `published`
    /// is given, and the file is no changed copy of one of the catalogue.
    pub validated: Option<bool>,
    /// Identity of the drive in published figures.
    pub published: Option<PublishedSpec>,
    /// Formats, the default one first.
    #[serde(rename = "format")]
    pub formats: Vec<FormatSpec>,
    /// Devices that form one target; one if absent.
    pub devices: Option<DevicesSpec>,
    /// Independent halves.
    pub modules: ModulesSpec,
    /// Media written in place; then the four tables of NAND and the buffer's are absent.
    pub in_place: Option<InPlaceSpec>,
    /// A hard disk as each module; then the tables of NAND and the buffer's are absent.
    pub disk: Option<DiskSpec>,
    /// Two drives as one; then all tables of media are absent.
    pub tier: Option<TierSpec>,
    /// NAND arrangement of one module.
    #[serde(default)]
    pub geometry: GeometrySpec,
    /// NAND timing.
    #[serde(default)]
    pub nand: NandSpec,
    /// Read retries; absent where NAND never retries.
    pub read_retry: Option<ReadRetrySpec>,
    /// SLC cache; absent where there is none.
    pub slc_cache: Option<SlcCacheSpec>,
    /// Channels of one module.
    #[serde(default)]
    pub channels: ChannelsSpec,
    /// Controller of one module.
    pub controller: ControllerSpec,
    /// Mapping granularity; units of 4 KiB if absent.
    pub mapping: Option<MappingSpec>,
    /// Placement of writes by the host (FDP); absent where the drive decides alone.
    pub placement: Option<PlacementSpec>,
    /// Link between host and drive.
    pub link: LinkSpec,
    /// Compression; absent where data is stored as it comes.
    pub compression: Option<CompressionSpec>,
    /// Write buffer of one module.
    #[serde(default)]
    pub buffer: BufferSpec,
    /// Garbage collection of one module.
    #[serde(default)]
    pub relocation: RelocationSpec,
    /// Host drivers, the default one first.
    #[serde(rename = "host")]
    pub hosts: Vec<HostSpec>,
    /// Power and thermal limits.
    pub power: Option<PowerSpec>,
    /// Energy of its operations; given with `thermal` alone.
    pub energy: Option<EnergySpec>,
    /// Thermal model; absent if nothing is known of it.
    pub thermal: Option<ThermalSpec>,
    /// Rated endurance.
    pub endurance: Option<EnduranceSpec>,
    /// Numbers that a fit may choose.
    #[serde(rename = "fit", default)]
    pub fits: Vec<FitSpec>,
    /// Dies that are to fail under load; no part of a file.
    #[serde(skip)]
    pub die_failures: Vec<DieFailure>,
    /// Surroundings that the caller gave instead of those of the file; no part of a file.
    #[serde(skip)]
    pub given: Surroundings,
}

/// Identity of the drive in published figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSpec {
    /// Column `device`.
    pub device: String,
    /// Column `capacity_gb`.
    pub capacity_gb: f64,
    /// Hours for which the reviewer preconditioned it, where not as long as others.
    #[serde(default)]
    pub precondition_hours: Option<f64>,
    /// Source.
    pub source: String,
}

/// One low-level format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatSpec {
    /// Name, such as `stock`.
    pub name: String,
    /// User capacity of the whole drive in decimal GB, of each device of a group.
    pub user_gb: f64,
    /// Flash that the user's data may take in decimal GB, where a drive that compresses offers more
    /// than it could store whole; else as much as `user_gb`.
    #[serde(default)]
    pub physical_gb: Option<f64>,
    /// Source.
    pub source: String,
}

/// Independent halves of a drive, each with a controller and NAND of its own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModulesSpec {
    /// Number of modules, at least 1.
    pub count: u32,
    /// Layout of the modules in the address space.
    pub layout: ModuleLayout,
    /// Stripe unit in KiB, a multiple of 4.
    pub stripe_kib: u32,
    /// Rate of the port by which a bridge reaches each module, in decimal MB/s, each direction by
    /// itself; absent where none bounds it.
    #[serde(default)]
    pub port_mb_s: Option<f64>,
    /// Source.
    pub source: String,
}

/// Layout of several modules in the address space of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleLayout {
    /// One address space, stripe unit by stripe unit in turn.
    Striped,
    /// One address space, module after module.
    Jbod,
}

/// NAND arrangement of one module; see [`ftl::Geometry`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    /// Sets of dies that form superblocks together.
    pub banks: u32,
    /// Dies of a bank.
    pub dies_per_bank: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane, good and bad.
    pub erase_blocks_per_plane: u32,
    /// Erase blocks of a plane that form no superblock: bad, spare, or the drive's own.
    pub spare_erase_blocks_per_plane: u32,
    /// NAND pages of an erase block.
    pub pages_per_erase_block: u32,
    /// NAND page in KiB, a multiple of 4.
    pub page_kib: u32,
    /// NAND pages of an erase block that are programmed in one go, as the three of TLC's cells may
    /// be; each is read by itself.
    #[serde(default = "one")]
    pub pages_per_program: u32,
    /// Dies of a parity stripe, one of which holds parity; 0: none.
    pub stripe_dies: u32,
    /// Source.
    pub source: String,
}

/// Compression by the drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressionSpec {
    /// Most compressed pages that 4 KiB of flash hold, 2 to 64.
    pub extents_per_page: u32,
    /// Header that the drive adds to each compressed page, in bytes.
    pub header_bytes: u32,
    /// Shares of physical space, in percent, at which a drive that offers more than it holds warns.
    #[serde(default)]
    pub warn_percent: Vec<f64>,
    /// Source.
    pub source: String,
}

/// NAND timing, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandSpec {
    /// tR: a page from the array into the die's register.
    pub t_read_us: f64,
    /// tPROG of the page types, in the order in which an erase block's pages take turns; of all
    /// that are programmed in one go.
    pub t_program_us: Vec<f64>,
    /// tBERS: an erase block.
    pub t_erase_us: f64,
    /// Time to suspend a program or erase for a read; 0: not possible.
    pub suspend_us: f64,
    /// Source.
    pub source: String,
}

/// Channels of one module.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelsSpec {
    /// Number of channels; dies are assigned to them in turn.
    pub count: u32,
    /// Transfer rate of each in decimal MB/s.
    pub mb_s: f64,
    /// Source.
    pub source: String,
}

/// Controller of one module: what every command costs it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Commands that it works on at the same time.
    pub cores: u32,
    /// Pieces, in KiB, in which cores work on one command side by side; 0: one core does it whole.
    #[serde(default)]
    pub piece_kib: u32,
    /// Time for a read command, whatever its size.
    pub read_us: f64,
    /// Time for each KiB of a read.
    pub read_us_per_kib: f64,
    /// Time for a write command, whatever its size.
    pub write_us: f64,
    /// Time for each KiB of a write.
    pub write_us_per_kib: f64,
    /// Time to relocate one page of 4 KiB.
    pub relocate_us: f64,
    /// True if reads overtake writes and relocation.
    pub read_first: bool,
    /// True if it runs on the host's processor: scaled by the host's `controller_factor`.
    pub on_host: bool,
    /// True if `write_us_per_kib` is for data as compressed, on a controller that compresses before
    /// all else. What that saves of the flash is [`CompressionSpec`]'s.
    #[serde(default)]
    pub compresses_first: bool,
    /// Source.
    pub source: String,
}

/// Granularity of the map, and reads that it answers without the media.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingSpec {
    /// The smallest piece that is mapped.
    pub unit: MappingUnit,
    /// Indirection unit in KiB, a power of two from 4 to 64: what an entry of the map places; 4 if
    /// absent.
    #[serde(default = "four")]
    pub indirection_kib: u32,
    /// Memory in which parts of a larger indirection unit wait for the rest of it, in KiB; 0: none.
    #[serde(default)]
    pub gather_kib: u32,
    /// Controller's time for a read of sectors of which none was ever written, whatever its size;
    /// that for a read command if absent.
    pub unmapped_read_us: Option<f64>,
    /// Source.
    pub source: String,
}

/// The smallest piece that a drive maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MappingUnit {
    /// 4 KiB: a unit is read as a whole, and written in part only after it was read.
    #[default]
    Page,
    /// 512 bytes: parts of units are packed into pages, nothing is read first.
    Sector,
}

/// Link between host and drive, each direction by itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// To the host, in decimal MB/s.
    pub read_mb_s: f64,
    /// From the host, in decimal MB/s.
    pub write_mb_s: f64,
    /// Source.
    pub source: String,
}

/// Write buffer of one module.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Size in KiB.
    pub kib: u32,
    /// True if a write is acknowledged when it has been programmed, not when the buffer has it.
    #[serde(default)]
    pub write_through: bool,
    /// Time from a write's end on the controller to its acknowledgement, in microseconds: it delays
    /// each write and keeps nothing busy.
    #[serde(default)]
    pub acknowledge_us: f64,
    /// Source.
    pub source: String,
}

/// Garbage collection of one module; see [`ftl::Watermarks`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelocationSpec {
    /// Policy by which victims are selected.
    pub victim: VictimSpec,
    /// Room, in superblocks, at which host writes wait.
    pub watermark_low: u32,
    /// Room, in superblocks, at which relocation begins to keep pace.
    pub watermark_high: u32,
    /// Room gained while host writes wait, in superblocks.
    pub burst: f64,
    /// Most pages relocated for each page gained while keeping pace; dearer victims are put off.
    pub price_max: f64,
    /// Pages that are relocated in a go while keeping pace, once that many are owed.
    #[serde(default = "one")]
    pub batch_pages: u32,
    /// Memory for relocated data in KiB, from its read to the end of its program: how far
    /// relocation may run ahead of the NAND. As much as the write buffer if absent.
    #[serde(default)]
    pub buffer_kib: Option<u32>,
    /// Difference of erase counts at which static wear levelling begins; 0: never.
    pub wear_spread_max: u32,
    /// Source.
    pub source: String,
}

/// Policy by which victims are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VictimSpec {
    /// Fewest valid pages.
    #[default]
    Greedy,
    /// Fewest valid pages of ten drawn at random.
    DChoices,
    /// Benefit over cost, by age.
    CostBenefit,
    /// Oldest.
    Fifo,
}

/// One host driver, on the reviewers' machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Name, such as `linux`.
    pub name: String,
    /// System and driver, with versions.
    pub title: String,
    /// Processors of the machine.
    pub processor: String,
    /// Processor time of the submitting thread for each request.
    pub submit_us: f64,
    /// Processor time of the submitting thread for each completion.
    pub complete_us: f64,
    /// Processor time of the submitting thread for an interrupt. What completes while its processor
    /// is busy costs none: it is reaped in the same pass.
    #[serde(default)]
    pub interrupt_us: f64,
    /// Time that the processor of a thread takes to wake up for a completion, once it has had
    /// nothing to do; 0: it never sleeps.
    #[serde(default)]
    pub wake_us: f64,
    /// Time in a section that only one request may be in.
    pub serial_us: f64,
    /// Multiplies the controller's times where it runs on the host.
    pub controller_factor: f64,
    /// Requests that it hands to the drive at a time, the rest waiting in order; 0: no limit.
    #[serde(default)]
    pub outstanding_max: u32,
    /// Stalls, if any.
    #[serde(rename = "stall")]
    #[serde(default)]
    pub stalls: Vec<StallSpec>,
    /// Processor time of the submitting thread for each KiB, where the processor itself copies.
    #[serde(default)]
    pub copy_us_per_kib: f64,
    /// True if a thread carries out its requests one after the other, as where it copies.
    #[serde(default)]
    pub one_at_a_time: bool,
    /// Processors that the threads of all devices share; 0: never too few.
    #[serde(default)]
    pub processors: u32,
    /// Reviews that were measured on this machine, as published figures name them; none: any. The
    /// figures of other reviews are compared with the platform of the same name.
    #[serde(default)]
    pub documents: Vec<String>,
    /// Source.
    pub source: String,
}

/// Completions that now and then reach the program late.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallSpec {
    /// Time from one stall to the next, in seconds.
    pub every_s: f64,
    /// Duration of a stall, in milliseconds.
    pub span_ms: f64,
    /// Completions that it delays.
    pub holds: StallHolds,
    /// State of the drive in which it occurs.
    #[serde(default)]
    pub during: StallDuring,
    /// Source.
    pub source: String,
}

/// State of a drive in which a stall occurs; one that is due otherwise waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallDuring {
    /// Any.
    #[default]
    Always,
    /// Free space is below the high watermark, and the next victim costs more than `price_max`.
    DearRelocation,
}

/// Completions that a stall delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallHolds {
    /// Every completion of a thread, whose processor does something else: each thread once every
    /// `every_s` on the drive's own clock, whatever the time lapse.
    Thread,
    /// One completion, which was missed and is found later, once every `every_s` of protocol time.
    /// In time lapse k it is delayed by 1/k of `span_ms`: at k = 32, a stall of 400 ms every 600 s
    /// delays one request in 600 s of protocol time by 12.5 ms.
    Request,
}

/// Power and thermal limits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerSpec {
    /// Power that the slot gives, in watts.
    pub slot_w: f64,
    /// Power that it may draw on average, in watts: writes are throttled to stay within it. Absent
    /// where a cable or the slot gives what it needs.
    pub limit_w: Option<f64>,
    /// Internal temperature at which the drive slows down, in degrees Celsius.
    pub throttle_c: f64,
    /// Internal temperature at which it powers off.
    pub shutdown_c: f64,
    /// Air flow that it needs, in linear feet a minute.
    pub airflow_lfm: f64,
    /// Source.
    pub source: String,
}

/// Endurance of a drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnduranceSpec {
    /// Program/erase cycles that every erase block lasts; absent where unknown.
    pub pe_cycles: Option<u32>,
    /// Host writes that the maker rates it for, in decimal PB; absent where unknown.
    pub rated_pb: Option<f64>,
    /// Warranty in years; absent where unknown.
    pub warranty_years: Option<f64>,
    /// Source.
    pub source: String,
}

/// Error in a drive's file, or in a setup that the drive does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {text}")]
pub struct SpecError {
    /// File, with line where known: `drives/x.toml:12`.
    pub place: String,
    /// Description of what is wrong and what would be right.
    pub text: String,
}

impl DriveSpec {
    /// Names of its formats, the default one first.
    pub fn formats(&self) -> Vec<String> {
        self.formats.iter().map(|format| format.name.clone()).collect()
    }

    /// Names of the formats that take any data: those that offer no more than they hold.
    pub fn formats_for_any_data(&self) -> Vec<String> {
        let formats = self.formats.iter().filter(|format| format.physical_gb.is_none());
        formats.map(|format| format.name.clone()).collect()
    }

    /// Names of its host drivers, the default one first.
    pub fn hosts(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Name by which published figures know the drive, and the capacity on its label in GB.
    pub fn published_as(&self) -> Option<(&str, f64)> {
        self.published.as_ref().map(|published| (published.device.as_str(), published.capacity_gb))
    }

    /// True if published rates confirm the model: reports mark the figures of any other.
    ///
    /// Published rates were compared with the drives of the catalogue as they are. A file that has
    /// the name of one, but describes another drive, must claim to be validated by a key of its
    /// own.
    pub fn is_validated(&self) -> bool {
        let claimed = self.validated.unwrap_or(self.published.is_some());
        let Some(listed) = catalogue::find(&self.name).filter(|_| claimed) else { return claimed };
        self.behaves_like(&listed) || (self.validated == Some(true) && listed.validated.is_none())
    }

    /// True if the model does what that of `other` does, whatever is said or known of either.
    fn behaves_like(&self, other: &Self) -> bool {
        let described = Self {
            title: self.title.clone(),
            vendor: self.vendor.clone(),
            year: self.year,
            media: self.media.clone(),
            form: self.form.clone(),
            time_lapse: self.time_lapse,
            validated: self.validated,
            published: self.published.clone(),
            fits: self.fits.clone(),
            die_failures: self.die_failures.clone(),
            given: self.given.clone(),
            ..other.clone()
        };
        *self == described
    }

    /// Hours for which its reviewer preconditioned it, where not as long as others.
    pub fn precondition_hours(&self) -> Option<f64> {
        self.published.as_ref()?.precondition_hours
    }

    /// Largest time lapse at which its steady-state figures stay within 3 % of full scale.
    pub const fn time_lapse_default(&self) -> u32 {
        self.time_lapse
    }

    /// The format named `name`.
    ///
    /// # Errors
    /// Names the formats there are.
    pub fn format(&self, name: &str) -> Result<&FormatSpec, SpecError> {
        let found = self.formats.iter().find(|format| format.name == name);
        found.ok_or_else(|| self.unknown("format", name, &self.formats()))
    }

    /// The host named `name`: a host driver of its file, or its driver on a platform of the
    /// catalogue.
    ///
    /// # Errors
    /// Names the hosts there are.
    pub fn host(&self, name: &str) -> Result<HostSpec, SpecError> {
        if let Some(own) = self.hosts.iter().find(|host| host.name == name) {
            return Ok(own.clone());
        }
        let platform = catalogue::platform(name);
        let platform = platform.ok_or_else(|| self.unknown("host", name, &self.all_hosts()))?;
        Ok(platform.with_driver_of(self))
    }

    /// Names of the hosts that it can have: its own, then platforms.
    pub fn all_hosts(&self) -> Vec<String> {
        [self.hosts(), self.platforms()].concat()
    }

    /// Names of the platforms of the catalogue that are not those of its own hosts.
    pub fn platforms(&self) -> Vec<String> {
        let is_own = |name: &&str| self.hosts.iter().any(|own| own.name == **name);
        catalogue::platform_names().filter(|name| !is_own(name)).map(str::to_owned).collect()
    }

    /// The host on which figures of `document` that name `system` were measured: its own, unless
    /// that is the machine of other reviews; else the platform of that name or system.
    pub fn host_of_figure(&self, system: &str, document: &str) -> Option<HostSpec> {
        let own = self.hosts.iter().find(|host| host.name == system);
        let is_of_it = |host: &&HostSpec| {
            host.documents.is_empty() || host.documents.iter().any(|name| name == document)
        };
        let is_meant = |it: &PlatformSpec| it.name == system || (it.generic && it.system == system);
        match own.filter(is_of_it) {
            Some(own) => Some(own.clone()),
            None => catalogue::platforms()
                .iter()
                .find(|platform| is_meant(platform))
                .map(|platform| platform.with_driver_of(self))
                .or_else(|| own.cloned()),
        }
    }

    /// The smallest piece that it maps.
    pub(crate) fn mapping_unit(&self) -> MappingUnit {
        self.mapping.as_ref().map_or_else(MappingUnit::default, |mapping| mapping.unit)
    }

    /// Indirection unit in KiB.
    pub fn indirection_kib(&self) -> u32 {
        self.mapping.as_ref().map_or(4, |mapping| mapping.indirection_kib)
    }

    /// True if the compressibility of data makes a difference.
    pub const fn compresses(&self) -> bool {
        self.compression.is_some() || self.controller.compresses_first
    }

    /// True if the media is NAND, with a map.
    pub const fn is_nand(&self) -> bool {
        self.in_place.is_none() && self.disk.is_none() && self.tier.is_none()
    }

    /// True if what was written before changes what it does: of NAND, and of two classes.
    pub const fn settles(&self) -> bool {
        self.is_nand() || self.tier.is_some()
    }

    /// Devices that are one target, at least one.
    pub fn device_count(&self) -> u32 {
        self.devices.as_ref().map_or(1, |devices| devices.count)
    }

    /// All media of the drive, of all devices of a group; bad and spare erase blocks and parity
    /// included.
    pub fn raw_capacity(&self) -> Bytes {
        Bytes(self.raw_device_capacity().0 * u64::from(self.device_count()))
    }

    /// All media of one device.
    pub(crate) fn raw_device_capacity(&self) -> Bytes {
        if let Some(tier) = &self.tier {
            let raw = self.classes(tier).map(|classes| classes.map(|it| it.raw_capacity().0));
            return Bytes(raw.map_or(0, |raw| raw.iter().sum()));
        }
        let module = match (&self.in_place, &self.disk) {
            (Some(in_place), _) => in_place.raw_capacity(),
            (None, Some(disk)) => disk.raw_capacity(),
            (None, None) => {
                let blocks = self.geometry.erase_blocks_per_plane;
                let geometry = Geometry { erase_blocks_per_plane: blocks, ..self.ftl_geometry() };
                geometry.raw_capacity()
            }
        };
        Bytes(module.0 * u64::from(self.modules.count))
    }

    /// Sectors that the host sees of one module, at 1/`time_lapse` of its capacity.
    pub(crate) fn module_sectors(
        &self,
        format: &FormatSpec,
        time_lapse: u32,
    ) -> Result<u64, SpecError> {
        if !self.is_nand() {
            return Ok(self.mapless_sectors(format, time_lapse));
        }
        let config = self.ftl_config(format, time_lapse)?;
        let page_sectors = config.geometry.page_bytes() / SECTOR_BYTES;
        Ok(u64::from(config.pages_logical) * page_sectors)
    }

    /// Sectors that the host sees of one module of media that has no map, at 1/`time_lapse`: whole
    /// stripe units, at least one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    fn mapless_sectors(&self, format: &FormatSpec, time_lapse: u32) -> u64 {
        let unit = u64::from(self.modules.stripe_kib) * 1024 / SECTOR_BYTES;
        let module_bytes = format.user_gb * 1e9 / f64::from(self.modules.count);
        let sectors = module_bytes / SECTOR_BYTES as f64 / f64::from(time_lapse);
        (sectors as u64 / unit).max(1) * unit
    }

    /// Returns the FTL configuration of one module; `None` if the media has no map.
    pub(crate) fn nand_config(
        &self,
        format: &str,
        time_lapse: u32,
    ) -> Result<Option<Config>, SpecError> {
        let format = self.format(format)?;
        self.is_nand().then(|| self.ftl_config(format, time_lapse)).transpose()
    }

    /// Returns the FTL configuration of one module, at 1/`time_lapse` of its capacity.
    ///
    /// Superblocks keep their size, so that every pause is as long as at full scale; their number
    /// shrinks. Those that garbage collection keeps free or open do not shrink, so they are taken
    /// off before scaling and put back after: effective over-provisioning stays the same.
    ///
    /// # Errors
    /// Fails if the scale leaves too few superblocks, or the format is not feasible.
    pub fn ftl_config(&self, format: &FormatSpec, time_lapse: u32) -> Result<Config, SpecError> {
        let geometry = self.ftl_geometry();
        let (pages, superblocks) = (geometry.pages_per_superblock(), geometry.superblocks());
        let held = self.superblocks_held();
        let scaled = (f64::from(superblocks) - held) / f64::from(time_lapse) + held;
        let erase_blocks_per_plane = round(scaled / f64::from(geometry.banks));
        let geometry = Geometry { erase_blocks_per_plane, ..geometry };
        let physical_gb = format.physical_gb.unwrap_or(format.user_gb);
        let module_bytes = physical_gb * 1e9 / f64::from(self.modules.count);
        let pages_full = (module_bytes / geometry.page_bytes() as f64).floor();
        // Effective over-provisioning at full scale, applied to what the scaled module has.
        let usable_full = (f64::from(superblocks) - held) * f64::from(pages);
        let usable = (f64::from(geometry.superblocks()) - held) * f64::from(pages);
        let stripe_pages = (self.modules.stripe_kib / geometry.indirection_kib).max(1);
        let pages_stored = (pages_full * usable / usable_full).floor();
        let pages_logical = round((pages_stored * format.user_gb / physical_gb).floor());
        let pages_logical = pages_logical / stripe_pages * stripe_pages;
        let config = Config {
            geometry,
            pages_logical,
            pages_stored_max: match format.physical_gb {
                Some(_) => round(pages_stored).min(pages_logical),
                None => pages_logical,
            },
            extents_per_page: self.compression.as_ref().map_or(1, |it| it.extents_per_page),
            victim: self.relocation.victim.policy(),
            watermarks: self.relocation.watermarks(),
            wear_spread_max: self.relocation.wear_spread_max,
            handles: self.reclaim_unit_handles(),
            slc_cache: self.slc_cache_of_module(&geometry, time_lapse),
            seed: 0,
        };
        config.check().map_err(|error| SpecError {
            place: self.name.clone(),
            text: format!("format {} at time lapse {time_lapse}: {error}", format.name),
        })?;
        Ok(config)
    }

    /// Superblocks of room that a settled module has, on average: half-way between the watermarks.
    fn superblocks_held(&self) -> f64 {
        f64::from(self.relocation.watermark_low + self.relocation.watermark_high) / 2.0
    }

    fn ftl_geometry(&self) -> Geometry {
        let geometry = &self.geometry;
        Geometry {
            banks: geometry.banks,
            dies_per_bank: geometry.dies_per_bank,
            planes_per_die: geometry.planes_per_die,
            erase_blocks_per_plane: geometry
                .erase_blocks_per_plane
                .saturating_sub(geometry.spare_erase_blocks_per_plane),
            pages_per_erase_block: geometry.pages_per_erase_block / geometry.pages_per_program,
            page_kib: geometry.page_kib * geometry.pages_per_program,
            indirection_kib: self.indirection_kib(),
            stripe_dies: geometry.stripe_dies,
        }
    }

    fn unknown(&self, what: &str, name: &str, known: &[String]) -> SpecError {
        let near = blockio::nearest(name, known.iter().map(String::as_str));
        let meant = near.map_or(String::new(), |near| format!(", did you mean {near}?"));
        let known = known.join(", ");
        let text = format!("no {what} named {name:?}{meant} (there are: {known})");
        SpecError { place: self.name.clone(), text }
    }
}

impl VictimSpec {
    const fn policy(self) -> VictimPolicy {
        match self {
            Self::Greedy => VictimPolicy::Greedy,
            Self::DChoices => VictimPolicy::DChoices { choices: 10 },
            Self::CostBenefit => VictimPolicy::CostBenefit,
            Self::Fifo => VictimPolicy::Fifo,
        }
    }
}

impl RelocationSpec {
    const fn watermarks(&self) -> Watermarks {
        Watermarks {
            low: self.watermark_low,
            high: self.watermark_high,
            burst: self.burst,
            price_max: self.price_max,
            batch_pages: self.batch_pages,
        }
    }
}

const fn one() -> u32 {
    1
}

const fn four() -> u32 {
    4
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn round(number: f64) -> u32 {
    number.round() as u32
}
