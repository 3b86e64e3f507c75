//! Purges with programs that only say that they did it.

use std::path::PathBuf;

use super::ata::Security;
use super::*;
use crate::real::system::fixture::Machine;
use crate::real::tools::fake::Fakes;

/// An NVMe controller with one namespace of 1 GiB.
fn nvme() -> Machine {
    let machine = Machine::with_disk();
    machine.block("nvme0n1", "nvme0n1", "259:0");
    machine.write("sys/devices/block/nvme0n1/size", "2097152");
    machine
}

fn purged(
    machine: &Machine,
    name: &str,
    fakes: &Fakes,
    method: PurgeMethod,
) -> Result<Purged, Error> {
    let node = PathBuf::from(format!("/dev/{name}"));
    let block = machine.system().block_at(&node).unwrap();
    let device = Device { path: &node, block: Some(&block), discards: true };
    device.purged(&fakes.tools(), method)
}

/// `nvme` that answers `id-ctrl` with `controller` and does `then` for all else.
fn nvme_cli(controller: &str, then: &str) -> Fakes {
    let body = format!("case $1 in id-ctrl) echo '{controller}';; *) {then};; esac");
    Fakes::none().with("nvme", &body)
}

#[test]
fn an_nvme_namespace_is_formatted_with_secure_erase() {
    let fakes = nvme_cli(r#"{"oacs":6,"fna":0,"sanicap":3}"#, "true");
    let purged = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Auto).unwrap();
    assert_eq!(purged.how, "NVMe format with secure erase of user data (nvme format --ses=1)");
    assert_eq!(purged.shortfall, "");
    assert_eq!(
        fakes.asked(),
        [
            "nvme id-ctrl /dev/nvme0n1 --output-format=json",
            "nvme format /dev/nvme0n1 --ses=1 --force"
        ]
    );
}

#[test]
fn a_format_that_fails_falls_back_to_the_cryptographic_one() {
    let fakes = nvme_cli(
        r#"{"oacs":2,"fna":4}"#,
        r#"case "$*" in *ses=2*) true;; *) echo "NVMe status: INVALID_FORMAT" >&2; exit 1;; esac"#,
    );
    let purged = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Auto).unwrap();
    assert!(purged.how.ends_with("(nvme format --ses=2)"), "{purged:?}");
}

#[test]
fn a_format_of_all_namespaces_is_not_taken_while_there_is_another() {
    let machine = nvme();
    machine.block("nvme0n2", "nvme0n2", "259:1");
    let fakes = nvme_cli(r#"{"oacs":2,"fna":2,"sanicap":2}"#, "true").with("blkdiscard", "true");
    let purged = purged(&machine, "nvme0n1", &fakes, PurgeMethod::Auto).unwrap();
    assert_eq!(
        purged.how,
        "every block discarded (blkdiscard); before that: a format would erase nvme0n2 too; a \
         sanitize would erase nvme0n2 too"
    );
    assert!(!fakes.asked().iter().any(|line| line.contains("format /dev")), "{:?}", fakes.asked());
}

#[test]
fn a_sanitize_is_done_when_its_log_says_so() {
    let done = r"case $1 in sanitize-log) printf '\377\377\001\000';; *) true;; esac";
    let fakes = nvme_cli(r#"{"oacs":0,"fna":0,"sanicap":2}"#, done);
    let machine = nvme();
    let sanitized = purged(&machine, "nvme0n1", &fakes, PurgeMethod::Sanitize).unwrap();
    assert_eq!(sanitized.how, "NVMe sanitize by block erase (nvme sanitize --sanact=2)");
    let failed = r"case $1 in sanitize-log) printf '\377\377\003\000';; *) true;; esac";
    let fakes = nvme_cli(r#"{"oacs":0,"fna":0,"sanicap":2}"#, failed);
    let error = purged(&machine, "nvme0n1", &fakes, PurgeMethod::Sanitize).unwrap_err();
    assert_eq!(error.to_string(), "purging by sanitize: the sanitize failed (status 3)");
}

#[test]
fn a_method_that_the_drive_lacks_is_an_error_when_it_was_asked_for() {
    let fakes = Fakes::none();
    let error = purged(&Machine::with_disk(), "sda", &fakes, PurgeMethod::Format).unwrap_err();
    assert_eq!(error.to_string(), "purging by format: it is no NVMe namespace");
    let error = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Format).unwrap_err();
    assert_eq!(error.to_string(), "purging by format: nvme is not installed");
}

#[test]
fn without_any_way_the_fill_stands_for_the_purge_and_says_why() {
    let fakes = Fakes::none().with("blkdiscard", "echo 'Operation not supported' >&2; exit 1");
    let purged = purged(&Machine::with_disk(), "sda", &fakes, PurgeMethod::Auto).unwrap();
    assert_eq!(purged.how, OVERWRITTEN);
    assert_eq!(
        purged.shortfall,
        "blkdiscard failed: Operation not supported: old data was overwritten, not unmapped"
    );
}

const READY: &str = "Security: \n\tMaster password revision code = 65534\n\t\tsupported\n\tnot\t\
                     enabled\n\tnot\tlocked\n\tnot\tfrozen\n\t\tsupported: enhanced erase\n";

/// An ATA disk.
fn ata() -> Machine {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/device/vendor", "ATA");
    machine
}

#[test]
fn an_ata_drive_is_erased_with_a_password_that_the_erase_consumes() {
    let fakes = Fakes::none().with("hdparm", &format!("case $1 in -I) printf '{READY}';; esac"));
    let purged = purged(&ata(), "sda", &fakes, PurgeMethod::Auto).unwrap();
    assert_eq!(purged.how, "ATA enhanced secure erase (hdparm --security-erase-enhanced)");
    assert_eq!(
        fakes.asked(),
        [
            "hdparm -I /dev/sda",
            "hdparm --user-master u --security-set-pass floatgate /dev/sda",
            "hdparm --user-master u --security-erase-enhanced floatgate /dev/sda",
            "hdparm -I /dev/sda"
        ]
    );
}

#[test]
fn a_frozen_drive_is_discarded_and_the_result_says_why() {
    let frozen = READY.replace("not\tfrozen", "\tfrozen");
    let fakes =
        Fakes::none().with("hdparm", &format!("printf '{frozen}'")).with("blkdiscard", "true");
    let purged = purged(&ata(), "sda", &fakes, PurgeMethod::Auto).unwrap();
    assert!(purged.how.contains("before that: the firmware froze the drive's security"));
    assert!(!fakes.asked().iter().any(|line| line.contains("security-set-pass")));
}

#[test]
fn an_erase_that_failed_takes_its_password_back() {
    let enabled = READY.replace("not\tenabled", "\tenabled");
    let body = format!(
        "n=$(grep -c -e -I \"$(dirname $0)/asked\")\n\
         case \"$*\" in\n-I*) if [ $n -gt 1 ]; then printf '{enabled}'; else printf '{READY}'; fi;;\n\
         *erase*) echo 'SG_IO: bad/missing sense data' >&2; exit 5;;\nesac"
    );
    let fakes = Fakes::none().with("hdparm", &body);
    let error = purged(&ata(), "sda", &fakes, PurgeMethod::SecureErase).unwrap_err();
    assert!(error.to_string().contains("bad/missing sense data"), "{error}");
    assert!(fakes.asked().last().unwrap().contains("--security-disable floatgate"));
}

#[test]
fn security_is_read_word_by_word() {
    let security = Security::parse(READY);
    assert_eq!(
        format!("{security:?}"),
        "Security { supported: true, enabled: false, locked: false, frozen: false, enhanced: true }"
    );
    assert_eq!(Security::parse("no such section: frozen"), Security::default());
}
