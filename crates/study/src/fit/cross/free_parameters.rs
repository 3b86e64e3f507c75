//! The free parameters of the catalogue's drives, and the ranges in which they may lie.
//!
//! Free are the numbers for which figures of a review were used. What a data sheet or the file of a
//! related drive states is known before any review, and stays: the line of a controller through two
//! rates of a data sheet. Ranges belong to kinds of numbers, not to drives, so that their centres,
//! from which a refit starts, say nothing of the fitted values: equal ratios to both sides, or for
//! shares and factors equal distances.

use ssd::{DriveSpec, FitScale, FitSpec, HostSpec};

use lab::{Error, Kind};

/// One kind of number, and its range.
struct Range {
    /// Keys of the kind.
    keys: &'static [&'static str],
    low: f64,
    high: f64,
    scale: FitScale,
    /// True if the range is that of one core of the controller, of which several work at once.
    is_per_core: bool,
}

const RANGES: &[Range] = &[
    of_core(&["controller.read_us", "controller.write_us"], 0.3, 100.0),
    of_core(&["controller.read_us_per_kib", "controller.write_us_per_kib"], 0.05, 5.0),
    of_time(&["nand.t_read_us"], 10.0, 200.0),
    of_time(&["nand.suspend_us"], 5.0, 500.0),
    of_time(&["channels.mb_s"], 50.0, 1600.0),
    of_time(&["host.*.submit_us", "host.*.complete_us"], 1.0, 30.0),
    of_time(&["host.*.serial_us"], 0.1, 20.0),
    of_time(&["host.*.wake_us"], 5.0, 200.0),
    of_time(&["host.*.copy_us_per_kib"], 0.05, 5.0),
    of_share(&["host.*.controller_factor"], 1.0, 1.2),
];

/// Submission of a driver that hands over one request at a time: the whole path of a request.
const ONE_AT_A_TIME: (f64, f64) = (1.0, 150.0);

/// Shares of the stock capacity that a high-performance format may leave.
const SHRUNK: (f64, f64) = (0.7, 1.0);
const SHRUNK_KEY: &str = "format.high-performance.user_gb";

/// Shares of the erase blocks that may be bad, spare, or hold tables.
const SPARE: (f64, f64) = (0.0, 0.08);
const SPARE_KEY: &str = "geometry.spare_erase_blocks_per_plane";

const fn of_core(keys: &'static [&'static str], low: f64, high: f64) -> Range {
    Range { keys, low, high, scale: FitScale::Log, is_per_core: true }
}

const fn of_time(keys: &'static [&'static str], low: f64, high: f64) -> Range {
    Range { keys, low, high, scale: FitScale::Log, is_per_core: false }
}

const fn of_share(keys: &'static [&'static str], low: f64, high: f64) -> Range {
    Range { keys, low, high, scale: FitScale::Linear, is_per_core: false }
}

/// A number that follows from others: their sum, each so many times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    /// Key of the number.
    pub(super) key: &'static str,
    /// Keys that it is summed from.
    pub(super) terms: &'static [(&'static str, f64)],
}

/// Relocation, by a driver on the host or by a controller, costs a 4 KiB read and a 4 KiB write.
const RELOCATION: Tie = Tie {
    key: "controller.relocate_us",
    terms: &[
        ("controller.read_us", 1.0),
        ("controller.read_us_per_kib", 4.0),
        ("controller.write_us", 1.0),
        ("controller.write_us_per_kib", 4.0),
    ],
};
/// Waking takes as long under both systems of one machine.
const WAKING: Tie = Tie { key: "host.windows.wake_us", terms: &[("host.linux.wake_us", 1.0)] };
/// Half of a request's processor time for its completion, where only the whole of it shows.
const COMPLETION: Tie = Tie { key: WINDOWS_COMPLETE, terms: &[(WINDOWS_SUBMIT, 1.0)] };

/// Free parameters of one drive.
struct FreeOf {
    drive: &'static str,
    keys: &'static [&'static str],
    ties: &'static [Tie],
}

const READ: &str = "controller.read_us";
const READ_KIB: &str = "controller.read_us_per_kib";
const WRITE: &str = "controller.write_us";
const WRITE_KIB: &str = "controller.write_us_per_kib";

const T_READ: &str = "nand.t_read_us";
const SUSPEND: &str = "nand.suspend_us";
const LINUX_WAKE: &str = "host.linux.wake_us";
const LINUX_SERIAL: &str = "host.linux.serial_us";
const LINUX_SUBMIT: &str = "host.linux.submit_us";
const WINDOWS_SUBMIT: &str = "host.windows.submit_us";
const WINDOWS_COMPLETE: &str = "host.windows.complete_us";
const WINDOWS_SERIAL: &str = "host.windows.serial_us";
const WINDOWS_FACTOR: &str = "host.windows.controller_factor";

const FREE: &[FreeOf] = &[
    // Large reads and both writes are the data sheet of the 1.0 TB card.
    FreeOf { drive: "px600-2600", keys: &[READ, WINDOWS_FACTOR, SHRUNK_KEY], ties: &[RELOCATION] },
    // Reads and large writes are the data sheet.
    FreeOf {
        drive: "flashmax-ii",
        keys: &[WRITE, LINUX_WAKE, WINDOWS_SERIAL, WINDOWS_FACTOR],
        ties: &[RELOCATION, WAKING],
    },
    // Reads and writes of 512 bytes and their latency are the data sheet.
    FreeOf {
        drive: "iodrive-duo",
        keys: &[READ_KIB, WRITE_KIB, "channels.mb_s", WINDOWS_FACTOR, WINDOWS_SUBMIT],
        ties: &[RELOCATION, COMPLETION],
    },
    // Reads, mixed reads and writes and large transfers are the data sheet; the NAND's read is that
    // of the P5510, and how many requests the load generator issues is in its guide.
    FreeOf { drive: "csd-3000-7680", keys: &[SPARE_KEY, SUSPEND], ties: &[] },
    FreeOf { drive: "p5800x-pair", keys: &[WINDOWS_SUBMIT, WINDOWS_COMPLETE], ties: &[] },
    // Reads and large writes are the data sheet.
    FreeOf { drive: "p5510-eight", keys: &[WRITE, T_READ], ties: &[] },
    // Reads of a module are the data sheet, its writes a published measurement.
    FreeOf {
        drive: "optane-pmem-200",
        keys: &[WINDOWS_SUBMIT, WINDOWS_COMPLETE, "host.windows.copy_us_per_kib"],
        ties: &[],
    },
    // The device is its data sheet.
    FreeOf { drive: "p320h-700", keys: &[LINUX_WAKE], ties: &[] },
    // The controllers are what SandForce rated them for.
    FreeOf { drive: "warpdrive-slp-300", keys: &[WINDOWS_SERIAL, LINUX_SERIAL], ties: &[] },
    FreeOf { drive: "z-drive-r4-1600", keys: &[WINDOWS_SERIAL, LINUX_SUBMIT], ties: &[] },
];

/// Drives whose spare space or parity is not free here, though it was chosen with published settled
/// writes in view: predictions of these are not independent.
const SPACE_CHOSEN: &[&str] =
    &["iodrive-duo", "px600-2600", "warpdrive-slp-300", "z-drive-r4-1600"];

/// True if spare space or parity of the drive named `name` stays fixed in every refit, though it
/// was chosen with the figures in view that are predicted.
pub fn is_space_chosen(name: &str) -> bool {
    SPACE_CHOSEN.contains(&name)
}

/// Names of the drives whose free parameters are listed here.
pub fn drives_cross_validated() -> Vec<&'static str> {
    FREE.iter().map(|listed| listed.drive).collect()
}

/// Free parameters of `spec`: those of its own `[[fit]]` tables, else those listed here; and the
/// numbers that follow from them.
///
/// # Errors
/// Fails if neither knows any.
pub(super) fn free_parameters(spec: &DriveSpec) -> Result<(Vec<FitSpec>, &'static [Tie]), Error> {
    if !spec.fits.is_empty() {
        return Ok((spec.fits.clone(), &[]));
    }
    let listed = FREE.iter().find(|listed| listed.drive == spec.name).ok_or_else(|| {
        let text = format!("{} has no free parameters, so nothing can be left out", spec.name);
        let known = drives_cross_validated().join(", ");
        Error::new(Kind::Input, text)
            .hint(format!("add [[fit]] tables to its file, or name one of {known}"))
    })?;
    let fits = listed.keys.iter().map(|key| range(spec, key)).collect();
    Ok((fits, listed.ties))
}

/// The range of `key` in the file of `spec`.
fn range(spec: &DriveSpec, key: &str) -> FitSpec {
    let fit = |low, high, scale| FitSpec { parameter: key.into(), low, high, scale, source: None };
    if key == SHRUNK_KEY {
        let stock = spec.formats.first().map_or(0.0, |format| format.user_gb);
        return fit(SHRUNK.0 * stock, SHRUNK.1 * stock, FitScale::Linear);
    }
    if key == SPARE_KEY {
        let blocks = f64::from(spec.geometry.erase_blocks_per_plane);
        return fit((SPARE.0 * blocks).round(), (SPARE.1 * blocks).round(), FitScale::Linear);
    }
    let is_one_at_a_time = |host: &HostSpec| {
        host.outstanding_max == 1 && key == format!("host.{}.submit_us", host.name)
    };
    if spec.hosts.iter().any(is_one_at_a_time) {
        let (low, high) = ONE_AT_A_TIME;
        return fit(low, high, FitScale::Log);
    }
    let words = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
    let is_of = |range: &&Range| {
        range.keys.iter().any(|kind| {
            let (kind, key) = (words(kind), words(key));
            let same = |(kind, key): (&String, &String)| kind == "*" || kind == key;
            kind.len() == key.len() && kind.iter().zip(&key).all(same)
        })
    };
    let range = RANGES.iter().find(is_of).expect("every free parameter is of a kind");
    let cores = if range.is_per_core { f64::from(spec.controller.cores) } else { 1.0 };
    fit(range.low * cores, range.high * cores, range.scale)
}

#[cfg(test)]
mod tests {
    use ssd::catalogue;

    use super::*;

    fn bounds(name: &str, key: &str) -> (f64, f64, FitScale) {
        let fit = range(&catalogue::find(name).unwrap(), key);
        assert_eq!((fit.parameter.as_str(), fit.source), (key, None));
        (fit.low, fit.high, fit.scale)
    }

    /// A drive whose controller has so many cores.
    fn with_cores(cores: u32) -> DriveSpec {
        let mut spec = catalogue::find("iodrive-duo").unwrap();
        spec.controller.cores = cores;
        spec
    }

    #[test]
    fn the_time_of_a_core_may_be_longer_where_several_work_at_once() {
        let (one, four) = (range(&with_cores(1), READ), range(&with_cores(4), READ));
        assert!((one.low - 0.3).abs() < 1e-12 && (one.high - 100.0).abs() < 1e-12, "{one:?}");
        assert!((four.low - 1.2).abs() < 1e-12 && (four.high - 400.0).abs() < 1e-12, "{four:?}");
        let flash = |cores| range(&with_cores(cores), T_READ);
        assert_eq!(flash(1), flash(4), "flash takes as long whichever core asks");
    }

    #[test]
    fn a_range_of_a_host_is_that_of_every_host() {
        let of = |host: &str| bounds("iodrive-duo", &format!("host.{host}.serial_us"));
        assert_eq!(of("linux"), (0.1, 20.0, FitScale::Log));
        assert_eq!(of("linux"), of("windows"));
        let factor = bounds("iodrive-duo", WINDOWS_FACTOR);
        assert_eq!(factor, (1.0, 1.2, FitScale::Linear), "a factor is no time");
    }

    #[test]
    fn a_driver_of_one_request_at_a_time_may_take_its_whole_path() {
        let drive = catalogue::find("z-drive-r4-1600").unwrap();
        let host = drive.hosts.iter().find(|host| host.outstanding_max == 1).unwrap();
        let submit = format!("host.{}.submit_us", host.name);
        assert_eq!(bounds("z-drive-r4-1600", &submit), (1.0, 150.0, FitScale::Log));
        assert_eq!(bounds("iodrive-duo", LINUX_SUBMIT), (1.0, 30.0, FitScale::Log));
    }

    #[test]
    fn a_smaller_format_leaves_a_share_of_the_capacity_in_stock() {
        let stock = catalogue::find("px600-2600").unwrap().formats[0].user_gb;
        let (low, high, scale) = bounds("px600-2600", SHRUNK_KEY);
        assert!((low - 0.7 * stock).abs() < 1e-9 && (high - stock).abs() < 1e-9, "{low} to {high}");
        assert_eq!(scale, FitScale::Linear);
    }

    #[test]
    fn spare_erase_blocks_are_a_share_of_all() {
        let blocks = catalogue::find("csd-3000-7680").unwrap().geometry.erase_blocks_per_plane;
        let most = (0.08 * f64::from(blocks)).round();
        assert_eq!(bounds("csd-3000-7680", SPARE_KEY), (0.0, most, FitScale::Linear));
    }

    #[test]
    fn what_a_file_says_itself_goes_before_what_is_listed_here() {
        let text = catalogue::text("p5800x-pair").unwrap();
        let table = "\n[[fit]]\nparameter = \"controller.read_us\"\nlow = 1\nhigh = 9\n";
        let spec = DriveSpec::parse(&format!("{text}{table}"), "mine.toml").unwrap();
        let (fits, ties) = free_parameters(&spec).unwrap();
        assert_eq!((fits.len(), fits[0].parameter.as_str()), (1, "controller.read_us"));
        assert_eq!((fits[0].low, fits[0].high, ties.len()), (1.0, 9.0, 0));
        assert!(free_parameters(&catalogue::find("p5800x-pair").unwrap()).unwrap().0.len() > 1);
    }

    #[test]
    fn no_number_is_free_and_follows_from_others_at_once() {
        for listed in FREE {
            let drive = listed.drive;
            for tie in listed.ties {
                assert!(!listed.keys.contains(&tie.key), "{drive}: {}", tie.key);
                let is_free = |(key, _): &(&str, f64)| listed.keys.contains(key);
                assert!(tie.terms.iter().any(is_free), "{drive}: {} follows from none", tie.key);
            }
            let mut keys = listed.keys.to_vec();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), listed.keys.len(), "{drive} has a number twice");
        }
        let mut drives = drives_cross_validated();
        drives.sort_unstable();
        drives.dedup();
        assert_eq!(drives.len(), FREE.len(), "a drive is listed twice");
        for name in SPACE_CHOSEN {
            let listed = FREE.iter().find(|listed| listed.drive == *name).unwrap();
            assert!(!listed.keys.contains(&SPARE_KEY), "{name}: a free number is not fixed");
        }
    }
}
