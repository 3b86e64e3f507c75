//! NVMe Format and Sanitize through nvme-cli [nvme-base-2021].
//!
//! A format with secure erase (`--ses=1`, or `2` for a cryptographic one) empties one namespace,
//! unless the controller says that it empties all (`FNA`). `--ses=0` erases nothing and reports
//! success. A sanitize always works on all of the subsystem. What works on all is not used while
//! the subsystem has another namespace, also one that is attached to no controller or to others:
//! sysfs shows only those that this host can reach, Identify (`list-ns --all`) lists every one.
//!
//! A format also sets the sector size, metadata and protection information. nvme-cli takes 0 for
//! what it is not told, so that it is told what the namespace has.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use lab::target::system::Block;
use serde::Deserialize;

use super::{MethodResult, Unfit};
use crate::tools::Tools;

/// Formats of `OACS`: whether the controller formats at all.
const FORMATS: u64 = 1 << 1;
/// Namespace management of `OACS`: namespaces can be made and detached.
const MANAGES_NAMESPACES: u64 = 1 << 3;
/// `FNA`: a format works on all namespaces; so does a secure erase; cryptographic erase is there.
const FORMAT_OF_ALL: u64 = 1 << 0;
const ERASE_OF_ALL: u64 = 1 << 1;
const ERASES_BY_KEY: u64 = 1 << 2;
/// `SANICAP`: cryptographic erase, block erase.
const SANITIZES_BY_KEY: u64 = 1 << 0;
const SANITIZES_BLOCKS: u64 = 1 << 1;
/// `SSTAT`, lowest three bits.
const SANITIZED: u16 = 1;
const SANITIZING: u16 = 2;
const SANITIZED_AND_DEALLOCATED: u16 = 4;

/// Time between two reads of the sanitize log.
const POLL: Duration = Duration::from_secs(1);
/// Time that a sanitize may take.
const PATIENCE: Duration = Duration::from_hours(4);

/// Capabilities of a controller: fields of its Identify data.
#[derive(Debug, Deserialize)]
struct Controller {
    oacs: u64,
    fna: u64,
    #[serde(default)]
    sanicap: u64,
    /// `NN`: highest namespace identifier, so 1 means a single namespace; 0 where it is not told.
    #[serde(default)]
    nn: u64,
}

/// Namespaces of a subsystem, attached or not.
#[derive(Debug, Deserialize)]
struct Namespaces {
    nsid_list: Vec<serde_json::Value>,
}

impl Controller {
    fn of(tools: &Tools, node: &str) -> Result<Self, String> {
        let text = tools.ask("nvme", &["id-ctrl", node, "--output-format=json"])?;
        serde_json::from_slice(&text).map_err(|source| format!("nvme id-ctrl {node}: {source}"))
    }
}

/// Layout of the sectors of a namespace: fields of its Identify data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Layout {
    /// Number of the LBA format; whether metadata lies at the end of each sector.
    flbas: u8,
    /// Type of the protection information; whether it is in the first bytes of the metadata.
    dps: u8,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FLBAS {:#x}, DPS {:#x}", self.flbas, self.dps)
    }
}

impl Layout {
    fn of(tools: &Tools, node: &str) -> Result<Self, String> {
        let text = tools.ask("nvme", &["id-ns", node, "--output-format=json"])?;
        serde_json::from_slice(&text).map_err(|source| format!("nvme id-ns {node}: {source}"))
    }

    /// Options of `nvme format` that keep it.
    fn options(self) -> [String; 4] {
        let Self { flbas, dps } = self;
        // The number of the format has its two highest bits apart.
        let format = (flbas & 0xf) | ((flbas >> 1) & 0x30);
        [
            format!("--lbaf={format}"),
            format!("--ms={}", (flbas >> 4) & 1),
            format!("--pi={}", dps & 0b111),
            format!("--pil={}", (dps >> 3) & 1),
        ]
    }
}

/// Formats the namespace `block` with a secure erase, to the layout that it has.
pub(super) fn format(tools: &Tools, block: &Block) -> MethodResult {
    let node = whole(block)?;
    let controller = Controller::of(tools, &node)?;
    if controller.oacs & FORMATS == 0 {
        return Err("the controller has no NVMe format".to_owned().into());
    }
    if controller.fna & (FORMAT_OF_ALL | ERASE_OF_ALL) != 0 {
        check_siblings(block, "a format")?;
        check_alone(tools, block, &controller, "a format")?;
    }
    let layout = Layout::of(tools, &node)?;
    let options = layout.options();
    let erase = |setting: &str| {
        let mut words = vec!["format", &node, setting];
        words.extend(options.iter().map(String::as_str));
        // Forced: the guard holds the namespace, and the user has said that it may be destroyed.
        words.push("--force");
        tools.ask("nvme", &words)
    };
    let how = match erase("--ses=1") {
        Ok(_) => "NVMe format with secure erase of user data (nvme format --ses=1)",
        Err(_) if controller.fna & ERASES_BY_KEY != 0 => {
            erase("--ses=2")?;
            "NVMe format with cryptographic erase (nvme format --ses=2)"
        }
        Err(why) => return Err(why.into()),
    };
    match Layout::of(tools, &node) {
        Ok(after) if after == layout => Ok(how.into()),
        Ok(after) => Err(Unfit::Harmed(format!(
            "the format changed the sectors of {node} from {layout} to {after}; `nvme id-ns \
             {node}` shows them, `nvme format --lbaf` restores them"
        ))),
        Err(why) => Err(Unfit::Harmed(format!(
            "the namespace was formatted, but its LBA format could not be read afterwards: {why}"
        ))),
    }
}

/// Error of a sanitize that takes longer than this program waits for it.
const LASTS: &str = "the sanitize did not end within 4 h and goes on: wait until `nvme \
                     sanitize-log` reports its end";

/// Sanitizes the subsystem of `block`, which has no other namespace.
///
/// Once it has begun, nothing ends it: a wait that is stopped leaves the drive to it.
pub(super) fn sanitize(tools: &Tools, block: &Block, stop: &dyn Fn() -> bool) -> MethodResult {
    let node = whole(block)?;
    check_siblings(block, "a sanitize")?;
    let controller = Controller::of(tools, &node)?;
    let (action, what) = match controller.sanicap {
        can if can & SANITIZES_BLOCKS != 0 => ("--sanact=2", "block erase"),
        can if can & SANITIZES_BY_KEY != 0 => ("--sanact=4", "cryptographic erase"),
        _ => return Err("the controller has no NVMe sanitize".to_owned().into()),
    };
    check_alone(tools, block, &controller, "a sanitize")?;
    tools.ask("nvme", &["sanitize", &node, action])?;
    let how = format!("NVMe sanitize by {what} (nvme sanitize {action})");
    let began = Instant::now();
    loop {
        match status(tools, &node)? & 0b111 {
            SANITIZED | SANITIZED_AND_DEALLOCATED => break,
            SANITIZING if stop() => return Ok(format!("{how}, under way when it was stopped")),
            SANITIZING if began.elapsed() < PATIENCE => thread::sleep(POLL),
            SANITIZING => return Err(LASTS.to_owned().into()),
            other => return Err(format!("the sanitize failed (status {other})").into()),
        }
    }
    Ok(how)
}

/// `SSTAT` of the log of the last sanitize: its third and fourth byte.
fn status(tools: &Tools, node: &str) -> Result<u16, String> {
    let log = tools.ask("nvme", &["sanitize-log", node, "--raw-binary"])?;
    match log.as_slice() {
        [_, _, low, high, ..] => Ok(u16::from_le_bytes([*low, *high])),
        _ => Err("nvme sanitize-log printed nothing".into()),
    }
}

fn whole(block: &Block) -> Result<String, String> {
    if block.is_partition() {
        return Err(format!(
            "{} is a partition: only whole namespaces are formatted",
            block.name()
        ));
    }
    Ok(block.node())
}

/// Refuses `what`, which erases all namespaces of a subsystem, if `block` is not the only one,
/// attached or not.
fn check_alone(
    tools: &Tools,
    block: &Block,
    controller: &Controller,
    what: &str,
) -> Result<(), String> {
    match namespaces(tools, &block.node()) {
        Ok(1) => Ok(()),
        Ok(count) => Err(format!("{what} would erase all {count} namespaces of the subsystem")),
        // Of the only namespace that a controller can have there is no other.
        Err(_) if controller.oacs & MANAGES_NAMESPACES == 0 && controller.nn == 1 => Ok(()),
        Err(why) => Err(format!(
            "{what} could erase other namespaces of the subsystem, which could not be listed: {why}"
        )),
    }
}

/// Refuses `what`, which erases all namespaces of a subsystem, if the system has others beside
/// `block`.
fn check_siblings(block: &Block, what: &str) -> Result<(), String> {
    let siblings = block.namespaces_beside();
    if siblings.is_empty() {
        return Ok(());
    }
    Err(format!("{what} would erase {} too", siblings.join(", ")))
}

/// Number of namespaces in the subsystem of `node`, whether attached or not.
fn namespaces(tools: &Tools, node: &str) -> Result<usize, String> {
    let text = tools.ask("nvme", &["list-ns", node, "--all", "--output-format=json"])?;
    let all: Namespaces = serde_json::from_slice(&text)
        .map_err(|source| format!("nvme list-ns {node} --all: {source}"))?;
    Ok(all.nsid_list.len())
}
