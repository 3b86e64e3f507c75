//! A drive's file from the figures of its data sheet, and a drive of its class for all else.
//!
//! Each number follows from one figure by one formula, with the media in parentheses as the class
//! has it:
//!
//! | figure | number | formula |
//! |---|---|---|
//! | capacity | dies | class, halved or doubled until raw GiB are at least the label's GB |
//! | sequential reads | link | the rate itself, which the interface must be able to carry |
//! | sequential writes | program time | dies × (unit × share without parity) ÷ rate |
//! | random reads | controller | (cores) ÷ rate |
//! | read latency | tR | latency − host, controller, link and (channel) |
//! | random writes in burst | controller | (cores) ÷ rate |
//! | write latency | acknowledgement | latency − host, controller and link |
//! | settled random writes | spares | `alpha` below, from the write amplification |
//!
//! A settled die programs, and for each unit it reads one of a victim and erases a part of a block:
//! with sequential writes of `s` bytes a second and random ones of `r`, write amplification is
//! `WA = s / r × t_program / (t_program + t_read + t_erase / units of a block)`. Greedy cleaning
//! has it at `alpha = WA ln(WA / (WA - 1))` physical pages for each logical one [menon-1995]
//! [desnoyers-2012].

mod sheet;
mod text;

use lab::{Error, Kind};
use results::published::FigureRow;
use ssd::{DriveSpec, GeometrySpec, catalogue};

use self::sheet::{Quantity, Sheet};

/// Platform of data sheets.
const RATED: &str = "rated";
/// KiB of the requests of a data sheet.
const REQUEST_KIB: f64 = 4.0;

/// A drive's file made from a data sheet.
#[derive(Clone, Debug)]
pub struct DerivedFile {
    /// Name of the drive.
    pub name: String,
    /// The file.
    pub text: String,
    /// Figures that the sheet does not state, so that their numbers are those of the class.
    pub unstated: Vec<&'static str>,
}

/// Numbers that follow from a data sheet; absent where the class's own hold.
#[derive(Clone, Debug)]
struct Numbers {
    dies_per_bank: u32,
    banks: u32,
    stripe_dies: u32,
    spare_erase_blocks: Option<u32>,
    watermarks: (u32, u32),
    buffer_kib: u32,
    time_lapse: u32,
    t_read_us: Option<f64>,
    t_program_us: Option<Vec<f64>>,
    slc_program_us: Option<f64>,
    read_us: Option<f64>,
    write_us: Option<f64>,
    acknowledge_us: Option<f64>,
    link_mb_s: Option<(f64, f64)>,
    /// Write amplification of settled random writes, and physical pages for each logical one.
    settled: Option<(f64, f64)>,
}

impl DerivedFile {
    /// Makes the file of the one drive that `rows`, the figures of its data sheet in `file`, are
    /// about, like the drive of the catalogue named `like`.
    ///
    /// # Errors
    /// Says which figure is missing, unknown, stated twice or impossible.
    pub fn new(rows: &[FigureRow], file: &str, like: &str) -> Result<Self, Error> {
        let class = catalogue::find(like).filter(DriveSpec::is_nand).ok_or_else(|| {
            let text = format!("making a drive like {like}: must be a NAND drive of the catalogue");
            Error::new(Kind::Input, text).hint("list them: floatgate drives")
        })?;
        let sheet = Sheet::new(rows, file)?;
        let numbers = Numbers::of(&sheet, &class)?;
        let text = text::written(&sheet, &numbers, &class);
        DriveSpec::parse(&text, &format!("{}.toml", sheet.name())).map_err(|source| {
            let text = format!("making a drive like {like} from {file}");
            Error::new(Kind::Input, text)
                .source(source)
                .hint("check the figures, or take another class: floatgate drives")
        })?;
        Ok(Self { name: sheet.name(), text, unstated: sheet.unstated() })
    }
}

impl Numbers {
    fn of(sheet: &Sheet<'_>, class: &DriveSpec) -> Result<Self, Error> {
        let of_class = &class.geometry;
        let size = size(sheet.capacity_gb, class);
        let dies = whole(f64::from(of_class.banks * of_class.dies_per_bank) * size).max(1);
        let dies_per_bank = of_class.dies_per_bank.min(dies);
        let banks = dies / dies_per_bank;
        let moved = |mark: u32| (mark + 2 * banks).saturating_sub(2 * of_class.banks).max(1);
        let relocation = &class.relocation;
        let mut numbers = Self {
            dies_per_bank,
            banks,
            stripe_dies: of_class.stripe_dies.min(dies_per_bank),
            spare_erase_blocks: None,
            watermarks: (moved(relocation.watermark_low), moved(relocation.watermark_high)),
            buffer_kib: whole(f64::from(class.buffer.kib) * size),
            time_lapse: whole(f64::from(class.time_lapse_default()) * size.min(1.0)).max(1),
            t_read_us: None,
            t_program_us: None,
            slc_program_us: None,
            read_us: None,
            write_us: None,
            acknowledge_us: None,
            link_mb_s: None,
            settled: None,
        };
        numbers.link(sheet)?;
        numbers.program(sheet, class);
        numbers.controller(sheet, class);
        numbers.latencies(sheet, class)?;
        numbers.spares(sheet, class)?;
        Ok(numbers)
    }

    fn link(&mut self, sheet: &Sheet<'_>) -> Result<(), Error> {
        let Some(read) = sheet.value(Quantity::SequentialRead) else { return Ok(()) };
        let write = sheet.value(Quantity::SequentialWrite).unwrap_or(read);
        let (generation, lanes) =
            (sheet.value(Quantity::PcieGen), sheet.value(Quantity::PcieLanes));
        if let Some((generation, lanes)) = generation.zip(lanes) {
            let most = lane_mb_s(generation) * lanes;
            if read.max(write) > most {
                let text = format!(
                    "{} MB/s: PCIe {generation}.0 x{lanes} carries at most {most:.0}",
                    read.max(write)
                );
                return Err(sheet.wrong(Quantity::SequentialRead, &text));
            }
        }
        self.link_mb_s = Some((read, read.max(write)));
        Ok(())
    }

    /// Time for which every die is busy with a unit of sequential writes.
    fn program(&mut self, sheet: &Sheet<'_>, class: &DriveSpec) {
        let Some(mb_s) = sheet.value(Quantity::SequentialWrite) else { return };
        let geometry = &class.geometry;
        let dies = f64::from(self.banks * self.dies_per_bank);
        let busy_us = |bytes: f64| dies * bytes * without_parity(self.stripe_dies) / mb_s;
        if class.slc_cache.is_some() {
            let pages = unit_bytes(geometry) / f64::from(geometry.pages_per_program);
            self.slc_program_us = Some(busy_us(pages));
        } else {
            let of_class = &class.nand.t_program_us;
            let factor = busy_us(unit_bytes(geometry)) / mean(of_class);
            self.t_program_us = Some(of_class.iter().map(|time| time * factor).collect());
        }
    }

    fn controller(&mut self, sheet: &Sheet<'_>, class: &DriveSpec) {
        let controller = &class.controller;
        let time = |rate: f64, per_kib: f64| {
            f64::from(controller.cores) / rate * 1e6 - per_kib * REQUEST_KIB
        };
        let read = sheet.value(Quantity::RandomRead);
        self.read_us = read.map(|rate| time(rate, controller.read_us_per_kib));
        let burst = sheet.value(Quantity::BurstWrite);
        self.write_us = burst.map(|rate| time(rate, controller.write_us_per_kib)).or_else(|| {
            self.read_us.map(|read_us| controller.write_us * read_us / controller.read_us)
        });
    }

    /// Parts of latencies that nothing else takes.
    fn latencies(&mut self, sheet: &Sheet<'_>, class: &DriveSpec) -> Result<(), Error> {
        let rated = catalogue::platform(RATED).expect("a test reads every platform");
        let host_us = rated.submit_us + rated.complete_us;
        let request = REQUEST_KIB * 1024.0;
        let controller = &class.controller;
        let (read_mb_s, write_mb_s) =
            self.link_mb_s.unwrap_or((class.link.read_mb_s, class.link.write_mb_s));
        let rest = |quantity: Quantity, others_us: f64| {
            let Some(latency_ms) = sheet.value(quantity) else { return Ok(None) };
            let rest_us = latency_ms * 1000.0 - others_us;
            let text = format!(
                "{latency_ms} ms: host, controller and transfer take {:.4} ms of it",
                others_us / 1000.0
            );
            if rest_us > 0.0 { Ok(Some(rest_us)) } else { Err(sheet.wrong(quantity, &text)) }
        };
        let read_us = self.read_us.unwrap_or(controller.read_us);
        let transfer_us = request / read_mb_s + request / class.channels.mb_s;
        self.t_read_us = rest(Quantity::ReadLatency, host_us + read_us + transfer_us)?;
        let write_us = self.write_us.unwrap_or(controller.write_us);
        let others_us = host_us + write_us + request / write_mb_s;
        self.acknowledge_us = rest(Quantity::WriteLatency, others_us)?;
        Ok(())
    }

    /// Spares from the settled rate.
    fn spares(&mut self, sheet: &Sheet<'_>, class: &DriveSpec) -> Result<(), Error> {
        let Some(rate) = sheet.value(Quantity::SettledWrite) else { return Ok(()) };
        let (nand, geometry) = (&class.nand, &class.geometry);
        let program_us = mean(self.t_program_us.as_deref().unwrap_or(&nand.t_program_us));
        let units = f64::from(geometry.pages_per_erase_block / geometry.pages_per_program);
        let dies = f64::from(self.banks * self.dies_per_bank);
        let program_mb_s =
            dies * unit_bytes(geometry) * without_parity(self.stripe_dies) / program_us;
        let read_us = self.t_read_us.unwrap_or(nand.t_read_us);
        let busy_us = program_us + read_us + nand.t_erase_us / units;
        let page_bytes = f64::from(class.indirection_kib()) * 1024.0;
        let amplification = program_mb_s * 1e6 / (rate * page_bytes) * program_us / busy_us;
        if amplification <= 1.0 {
            let text = format!(
                "{rate} a second: all dies together program {:.0} at most",
                program_mb_s * 1e6 / page_bytes
            );
            return Err(sheet.wrong(Quantity::SettledWrite, &text));
        }
        let alpha = amplification * (amplification / (amplification - 1.0)).ln();
        let superblock_bytes = f64::from(self.dies_per_bank)
            * without_parity(self.stripe_dies)
            * unit_bytes(geometry)
            * units;
        let held = f64::from(self.watermarks.0 + self.watermarks.1) / 2.0;
        let superblocks = alpha * sheet.capacity_gb * 1e9 / superblock_bytes + held;
        let used = (superblocks / f64::from(self.banks)).ceil();
        let spare = f64::from(geometry.erase_blocks_per_plane) - used;
        self.spare_erase_blocks = Some(whole(spare));
        self.settled = Some((amplification, alpha));
        Ok(())
    }
}

/// Power of two by which a class's dies are multiplied: the least with as many raw GiB as the label
/// has GB.
fn size(capacity_gb: f64, class: &DriveSpec) -> f64 {
    (capacity_gb / class.raw_gib()).log2().ceil().exp2()
}

/// Bytes that a die programs in one go.
fn unit_bytes(geometry: &GeometrySpec) -> f64 {
    f64::from(geometry.planes_per_die * geometry.page_kib * geometry.pages_per_program) * 1024.0
}

/// Share of what is programmed that is not parity.
fn without_parity(stripe_dies: u32) -> f64 {
    if stripe_dies == 0 { 1.0 } else { 1.0 - 1.0 / f64::from(stripe_dies) }
}

/// The nearest whole number, 0 below that.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Rate of a lane of `PCIe`, in MB/s: transfers a second less the line code.
fn lane_mb_s(generation: f64) -> f64 {
    if generation < 3.0 {
        250.0 * generation
    } else {
        1000.0 * 128.0 / 130.0 * (generation - 3.0).exp2()
    }
}

#[cfg(test)]
mod tests;
