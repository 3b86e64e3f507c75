//! ATA Secure Erase through hdparm [acs-4].
//!
//! A password is set, the erase consumes it. A drive that is frozen takes none: most firmware
//! freezes drives at start, and a sleep of the machine thaws them. Whatever failed, the drive is
//! asked for a password that is left, and it is removed.

use lab::target::system::Block;

use super::{MethodResult, Unfit};
use crate::tools::Tools;

/// Temporary security password: an ATA drive erases only with one set.
const PASSWORD: &str = "floatgate";

/// ATA security state: the lines of `hdparm -I` under `Security`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Security {
    /// True if the drive has the security feature set.
    supported: bool,
    /// True if a password is set.
    enabled: bool,
    /// True if the drive refuses access until it is given the password.
    locked: bool,
    /// True if the drive takes no security commands until its next power cycle.
    frozen: bool,
    /// True if the drive has an enhanced erase, which covers reallocated sectors too.
    enhanced: bool,
}

impl Security {
    /// Reads the lines of `hdparm -I`: each word stands alone, or after `not`.
    pub(super) fn parse(text: &str) -> Self {
        let section = text.split_once("Security:").map_or("", |(_, after)| after);
        let mut found = Self::default();
        for line in section.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["supported"] => found.supported = true,
                ["enabled"] => found.enabled = true,
                ["locked"] => found.locked = true,
                ["frozen"] => found.frozen = true,
                ["supported:", "enhanced", "erase"] => found.enhanced = true,
                _ => {}
            }
        }
        found
    }

    fn of(tools: &Tools, node: &str) -> Result<Self, String> {
        Ok(Self::parse(&String::from_utf8_lossy(&tools.ask("hdparm", &["-I", node])?)))
    }

    fn check(self) -> Result<(), String> {
        let why = match self {
            Self { supported: false, .. } => "the drive has no ATA security",
            Self { frozen: true, .. } => {
                "the firmware froze the drive's security: suspend the machine once, or reconnect \
                 the drive"
            }
            // A locked drive aborts the removal of its password.
            Self { locked: true, .. } => {
                "the drive is locked with a password: unlock it with hdparm --security-unlock, \
                 then remove the password with --security-disable"
            }
            Self { enabled: true, .. } => {
                "the drive has a password already: hdparm --security-disable removes it"
            }
            _ => return Ok(()),
        };
        Err(why.into())
    }
}

/// Erases all of the drive `block`.
pub(super) fn erase(tools: &Tools, block: &Block) -> MethodResult {
    if block.is_partition() {
        return Err(format!("{} is a partition: only whole drives are erased", block.name()).into());
    }
    if block.is_on_usb() {
        return Err("behind USB a secure erase can leave the drive locked".to_owned().into());
    }
    let node = block.node();
    let security = Security::of(tools, &node)?;
    security.check()?;
    let as_user = ["--user-master", "u"];
    let command = |flag| [as_user[0], as_user[1], flag, PASSWORD, &node];
    let (flag, what) = if security.enhanced {
        ("--security-erase-enhanced", "enhanced ")
    } else {
        ("--security-erase", "")
    };
    let erased = tools.ask("hdparm", &command("--security-set-pass"));
    let erased = erased.and_then(|_| tools.ask("hdparm", &command(flag)));
    // Also a command that failed may have set the password.
    let after = Security::of(tools, &node).map_err(|why| {
        let told = format!("{why}; the drive may have the password `{PASSWORD}`: see hdparm -I");
        Unfit::Harmed(told)
    })?;
    if after.enabled {
        // Nothing was erased: the drive is given back as it was.
        tools.ask("hdparm", &command("--security-disable")).map_err(|why| {
            Unfit::Harmed(format!("{why}; the drive is left with the password `{PASSWORD}`"))
        })?;
    }
    match erased {
        Ok(_) if !after.enabled => Ok(format!("ATA {what}secure erase (hdparm {flag})")),
        Ok(_) => Err("hdparm reported success, but the drive kept its password".to_owned().into()),
        Err(why) => Err(why.into()),
    }
}
