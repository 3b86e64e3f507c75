//! The NVMe controller as Linux and nvme-cli of an emulated machine see it, over any transport.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::linux::Said;

/// Steps of hosts, as functions for a script that follows.
pub(super) const STEPS: &[u8] = include_bytes!("nvme.sh");

/// The value of a field that nvme-cli says as `name : value`.
pub(super) fn field<'a>(said: &'a Said, page: &str, name: &str) -> &'a str {
    let text = &said[page];
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let found = fields.map(|(name, value)| (name.trim(), value.trim())).find(|it| it.0 == name);
    found.unwrap_or_else(|| panic!("{name}: {text}")).1
}

pub(super) fn status(volume: &Path) -> Value {
    let said = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("status")
        .arg(volume)
        .arg("--json")
        .output()
        .unwrap();
    serde_json::from_slice(&said.stdout).unwrap()
}

/// Checks that each of `count` commands ended as it is to; words to this test are none.
pub(super) fn check_commands(said: &Said, words: &[&str], count: usize) {
    let fails =
        BTreeMap::from([("differs", "Compare Failure"), ("unreadable", "Unrecovered Read Error")]);
    let is_command = |name: &str| name != "boot" && !words.contains(&name);
    let commands: Vec<_> = said.iter().filter(|(name, _)| is_command(name)).collect();
    for (name, text) in &commands {
        match fails.get(name.as_str()) {
            Some(reason) => {
                assert!(
                    text.contains(reason) && text.ends_with("guest: exit 1\n"),
                    "{name}: {text}"
                );
            }
            None => assert!(text.ends_with("guest: exit 0\n"), "{name}: {text}"),
        }
    }
    assert_eq!(commands.len(), count, "{:?}", said.keys());
}

/// Checks that nvme-cli reads what the drive is.
pub(super) fn check_pages(said: &Said, status: &Value) {
    let number = status["drive"].as_str().unwrap();
    assert_eq!(field(said, "id-ctrl", "sn"), number);
    assert_eq!(field(said, "id-ctrl", "mn"), "Floatgate live drive");
    assert_eq!(field(said, "id-ns", "nsze"), format!("{:#x}", 128_000_000 / 512));
    assert_eq!(field(said, "id-ns", "nawupf"), "7");
    assert_eq!(field(said, "smart", "available_spare"), "100%");
    let power_cycles = status["smart"]["power_cycles"].to_string();
    assert_eq!(field(said, "smart", "power_cycles"), power_cycles);
    assert_eq!(field(said, "smart", "media_errors"), "0");
    assert!(field(said, "firmware", "frs1").contains(env!("CARGO_PKG_VERSION")));
    assert!(said["pages"].contains("LID 0x5"), "{}", said["pages"]);
    assert!(said["list"].contains("/dev/nvme0n2"), "{}", said["list"]);
}

/// Checks what the drive did at the order of its host.
pub(super) fn check_operations(said: &Said) {
    assert_eq!(field(said, "formatted", "flbas"), "0x1");
    // Completed; data was written since, so that no longer all of it is erased.
    assert!(said["sanitized"].contains("(SSTAT) :  0x1\n"), "{}", said["sanitized"]);
    assert!(said["namespaces"].contains("0x2"), "{}", said["namespaces"]);
    assert!(said["events"].contains("Persistent Event Log"), "{}", said["events"]);
    let tested = said["tested"].split("Self Test Result[1]").next().unwrap();
    assert!(tested.contains("Operation Result             : 0\n"), "{tested}");
}
