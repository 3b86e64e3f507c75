//! Lateness of a modelled drive that Floatgate serves: how late its replies were for the model.
//!
//! The server counts it, since no other process knows when a reply was due. It is read before and
//! after a load, and never during one:
//!
//! | target | read from |
//! |---|---|
//! | a file or a device on an NVMe drive | log page D1h, by nvme-cli (docs/internals/nvme.md) |
//! | an NBD server | metadata context `x-floatgate:lateness` (docs/internals/nbd.md) |
//!
//! A vendor-specific command does something else on each drive. So the page is read only where the
//! model number is that of a served model and the drive lists the page, and its identifier is
//! checked.

use lab::driver::LatenessCounts;
use lab::target::nbd::Uri;
use lab::target::system::Block;
use results::{Warning, WarningKind};

use crate::environment::Site;
use crate::sites::Sites;
use crate::target::Target;
use crate::tools::Tools;

/// Beginning of the model number of a model that is served over NVMe.
const MODEL: &str = "Floatgate as ";
/// Log pages, and their bytes.
const SUPPORTED: (u8, usize) = (0x00, 1024);
const LATENESS: (u8, usize) = (0xD1, 512);
/// Version and identifier of the page of lateness, at offset 494.
const SIGNATURE: [u8; 18] = [
    0x01, 0x00, 0x7D, 0x1E, 0x5B, 0xC4, 0x0F, 0x92, 0x4A, 0x63, 0xB8, 0x2C, 0x46, 0x4C, 0x54, 0x47,
    0x41, 0x54,
];
const SIGNATURE_AT: usize = 494;
/// Peaks of the page: their number, the first one, and bytes of each.
const PEAK_COUNT_AT: usize = 40;
const PEAKS_AT: usize = 48;
const PEAK_BYTES: usize = 16;
/// Metadata context of an NBD server.
const CONTEXT: &str = "x-floatgate:lateness";

/// Counts of a server since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    total: LatenessCounts,
    /// Each delay that is longer than all after it: number of the reply, from 1, and nanoseconds.
    peaks: Vec<(u64, u64)>,
}

/// Something that tells the counts.
#[derive(Clone, Debug)]
enum Source {
    /// The NVMe drive with this node.
    Nvme(String),
    /// The NBD server with the export.
    Nbd(Uri),
}

/// The served models of a target, and the counts of each when it was opened.
#[derive(Debug, Default)]
pub(super) struct Servers {
    known: Vec<(Source, Counts)>,
    /// Reason why nothing is known of a served model, one each.
    unknown: Vec<String>,
}

impl Servers {
    /// Looks for the servers behind `sites`.
    pub(super) fn of(sites: &Sites, tools: &Tools) -> Self {
        let mut found = Self::default();
        let mut serials = Vec::new();
        for site in sites.all() {
            let serial = served_model(site).and_then(|disk| disk.attribute("device/serial"));
            // Namespaces of one drive have the counts in common.
            if serial.is_some() && serials.contains(&serial) {
                continue;
            }
            serials.push(serial);
            match source(site, tools) {
                Ok(None) => {}
                Ok(Some(source)) => match source.read(tools) {
                    Ok(counts) => found.known.push((source, counts)),
                    Err(why) => found.unknown.push(why),
                },
                Err(why) => found.unknown.push(why),
            }
        }
        found
    }

    /// Counts of each now; absent where one cannot be read, and where there is none.
    pub(super) fn read(&self, tools: &Tools) -> Option<Vec<Counts>> {
        if self.known.is_empty() || !self.unknown.is_empty() {
            return None;
        }
        self.known.iter().map(|(source, _)| source.read(tools).ok()).collect()
    }

    /// Counts of all together since `before`; absent where one cannot be read, or began anew.
    pub(super) fn since(&self, before: &[Counts], tools: &Tools) -> Option<LatenessCounts> {
        let now = self.read(tools)?;
        let each = now.iter().zip(before).map(|(now, before)| now.since(before));
        each.reduce(|all, one| Some(all?.and(one?))).flatten()
    }

    /// Counts of all together since they were looked for; absent as above.
    pub(super) fn since_opened(&self, tools: &Tools) -> Option<LatenessCounts> {
        let before: Vec<Counts> = self.known.iter().map(|(_, counts)| counts.clone()).collect();
        self.since(&before, tools)
    }

    /// Warnings about servers of which nothing is known.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let warning = |why: &String| Warning {
            kind: WarningKind::Environment,
            step: String::new(),
            text: format!(
                "the drive is a model that Floatgate serves, and how late its replies were is not \
                 known: {why}"
            ),
            remedy: "install nvme-cli and run as root, or read `floatgate volume status` of the \
                     server"
                .into(),
        };
        self.unknown.iter().map(warning).collect()
    }
}

/// The disk of `site`, where it is a model that Floatgate serves over NVMe.
fn served_model(site: &Site) -> Option<Block> {
    let disk = site.target().device()?.disk();
    let model = disk.attribute("device/model").filter(|_| disk.is_nvme())?;
    model.starts_with(MODEL).then_some(disk)
}

/// Finds the source of the counts of `site`; none where it is no served model.
///
/// # Errors
/// Fails if it is one and says nothing.
fn source(site: &Site, tools: &Tools) -> Result<Option<Source>, String> {
    if let Target::Export { uri, .. } = site.target() {
        let listed = uri.contexts(CONTEXT).unwrap_or_default();
        let has_counts = listed.iter().any(|name| Counts::of_context(name).is_some());
        return Ok(has_counts.then(|| Source::Nbd(uri.clone())));
    }
    let Some(disk) = served_model(site) else { return Ok(None) };
    let node = disk.node();
    let pages = log_page(tools, &node, SUPPORTED.0, SUPPORTED.1)?;
    let entry = 4 * usize::from(LATENESS.0);
    if pages.get(entry).is_none_or(|entry| entry & 1 == 0) {
        return Err(format!("{node} lists no log page D1h; its server is older"));
    }
    Ok(Some(Source::Nvme(node)))
}

/// Reads a log page of the controller with `node`.
fn log_page(tools: &Tools, node: &str, page: u8, bytes: usize) -> Result<Vec<u8>, String> {
    let (id, length) = (format!("--log-id={page}"), format!("--log-len={bytes}"));
    let read = tools.ask("nvme", &["get-log", node, &id, &length, "--raw-binary"])?;
    if read.len() == bytes {
        Ok(read)
    } else {
        Err(format!("log page {page:02X}h of {node} has {} of {bytes} bytes", read.len()))
    }
}

impl Source {
    fn read(&self, tools: &Tools) -> Result<Counts, String> {
        match self {
            Self::Nvme(node) => {
                let page = log_page(tools, node, LATENESS.0, LATENESS.1)?;
                let unknown = || format!("log page D1h of {node} has another format");
                Counts::of_page(&page).ok_or_else(unknown)
            }
            Self::Nbd(uri) => {
                let listed = uri.contexts(CONTEXT).map_err(|error| error.to_string())?;
                let counts = listed.iter().find_map(|name| Counts::of_context(name));
                counts.ok_or_else(|| format!("{uri} does not report lateness"))
            }
        }
    }
}

impl Counts {
    /// Reads the log page; none if it is of another kind or version.
    fn of_page(page: &[u8]) -> Option<Self> {
        let signature = page.get(SIGNATURE_AT..)?.get(..SIGNATURE.len())?;
        let number = |at: usize| {
            let bytes = page.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("there are eight")))
        };
        let count = usize::from(*page.get(PEAK_COUNT_AT)?);
        let peaks = (0..count).map(|index| PEAKS_AT + index * PEAK_BYTES);
        let counts = Self {
            total: LatenessCounts {
                replies: number(0)?,
                late: number(8)?,
                modelled_ns: number(16)?,
                late_by_ns: number(24)?,
                late_by_ns_max: number(32)?,
            },
            peaks: peaks.map(|at| Some((number(at)?, number(at + 8)?))).collect::<Option<_>>()?,
        };
        (signature == SIGNATURE).then_some(counts)
    }

    /// Reads the name of the metadata context; none if it is another.
    fn of_context(name: &str) -> Option<Self> {
        let fields = name.strip_prefix(CONTEXT)?.strip_prefix('/')?;
        let text = |wanted: &str| {
            let mut pairs = fields.split(',').filter_map(|field| field.split_once('='));
            pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
        };
        let number = |wanted: &str| text(wanted)?.parse().ok();
        let peak = |text: &str| {
            let (reply, late_by_ns) = text.split_once(':')?;
            Some((reply.parse().ok()?, late_by_ns.parse().ok()?))
        };
        let peaks = text("peaks")?.split('+').filter(|text| !text.is_empty());
        Some(Self {
            total: LatenessCounts {
                replies: number("replies")?,
                late: number("late")?,
                modelled_ns: number("modelled_ns")?,
                late_by_ns: number("late_by_ns")?,
                late_by_ns_max: number("late_by_ns_max")?,
            },
            peaks: peaks.map(peak).collect::<Option<_>>()?,
        })
    }

    /// Counts since `before`; none where the server began anew since then.
    fn since(&self, before: &Self) -> Option<LatenessCounts> {
        let (now, then) = (&self.total, &before.total);
        let later = self.peaks.iter().find(|(reply, _)| *reply > then.replies);
        Some(LatenessCounts {
            replies: now.replies.checked_sub(then.replies)?,
            late: now.late.checked_sub(then.late)?,
            modelled_ns: now.modelled_ns.checked_sub(then.modelled_ns)?,
            late_by_ns: now.late_by_ns.checked_sub(then.late_by_ns)?,
            late_by_ns_max: later.map_or(0, |(_, late_by_ns)| *late_by_ns),
        })
    }
}

#[cfg(test)]
mod tests;
