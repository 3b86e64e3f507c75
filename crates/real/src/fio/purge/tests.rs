//! Purges with programs that only say that they did it.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::ata::Security;
use super::*;
use crate::machine_fixture::Machine;
use crate::tools::fake::Fakes;

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
) -> Result<PurgeResult, Error> {
    let node = PathBuf::from(format!("/dev/{name}"));
    let block = machine.system().block_at(&node).unwrap();
    let device = Device { path: &node, block: Some(&block), discards: true };
    device.purged(&fakes.tools(), method, &|| false)
}

/// `nvme` that answers `id-ctrl` with `controller`, knows one namespace, and does `then` for all
/// else.
fn nvme_cli(controller: &str, then: &str) -> Fakes {
    let list = r#"echo '{"nsid_list":[{"nsid":1}]}';; id-ns) echo '{"flbas":0,"dps":0}'"#;
    nvme_cli_of(controller, list, then)
}

/// `nvme` as [`nvme_cli`], which does `list` to list namespaces.
fn nvme_cli_of(controller: &str, list: &str, then: &str) -> Fakes {
    let body =
        format!("case $1 in id-ctrl) echo '{controller}';; list-ns) {list};; *) {then};; esac");
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
            "nvme id-ns /dev/nvme0n1 --output-format=json",
            "nvme format /dev/nvme0n1 --ses=1 --lbaf=0 --ms=0 --pi=0 --pil=0 --force",
            "nvme id-ns /dev/nvme0n1 --output-format=json"
        ]
    );
}

#[test]
fn a_format_keeps_sector_size_metadata_and_protection() {
    let fakes = Fakes::none().with(
        "nvme",
        r#"case $1 in
            id-ctrl) echo '{"oacs":2,"fna":0}';;
            id-ns) echo '{"flbas":49,"dps":9}';;
        esac"#,
    );
    purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Format).unwrap();
    let format = "nvme format /dev/nvme0n1 --ses=1 --lbaf=17 --ms=1 --pi=1 --pil=1 --force";
    assert!(fakes.asked().iter().any(|line| line == format), "{:?}", fakes.asked());
}

#[test]
fn a_format_that_changed_the_sectors_is_an_error_and_nothing_else_is_tried() {
    let fakes = Fakes::none()
        .with(
            "nvme",
            r#"case $1 in
                id-ctrl) echo '{"oacs":2,"fna":0,"sanicap":2}';;
                id-ns) if grep -q 'nvme format' "$(dirname $0)/asked"
                    then echo '{"flbas":0,"dps":0}'
                    else echo '{"flbas":1,"dps":1}'; fi;;
            esac"#,
        )
        .with("blkdiscard", "true");
    let error = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Auto).unwrap_err().to_string();
    assert!(error.starts_with("purging by format: the format changed the sectors of"), "{error}");
    assert!(error.contains("from FLBAS 0x1, DPS 0x1 to FLBAS 0x0, DPS 0x0"), "{error}");
    let asked = fakes.asked();
    assert!(!asked.iter().any(|it| it.contains("sanitize") || it.starts_with("blkdiscard")));
    let format = "nvme format /dev/nvme0n1 --ses=1 --lbaf=1 --ms=0 --pi=1 --pil=0 --force";
    assert!(asked.iter().any(|line| line == format), "{asked:?}");
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
fn what_erases_all_namespaces_is_not_taken_while_one_is_detached_or_unknown() {
    let refusal = |controller: &str, list: &str, method| {
        let fakes = nvme_cli_of(controller, list, "true");
        let error = purged(&nvme(), "nvme0n1", &fakes, method).unwrap_err();
        let asked = fakes.asked();
        assert!(
            !asked.iter().any(|it| it.contains("--ses") || it.contains("--sanact")),
            "{asked:?}"
        );
        error.to_string()
    };
    let two = r#"echo '{"nsid_list":[{"nsid":1},{"nsid":2}]}'"#;
    let (shared, managing) = (r#"{"oacs":10,"fna":1}"#, r#"{"oacs":8,"fna":0,"sanicap":2,"nn":1}"#);
    let format = refusal(shared, two, PurgeMethod::Format);
    assert!(format.ends_with("a format would erase all 2 namespaces of the subsystem"), "{format}");
    let sanitize = refusal(managing, two, PurgeMethod::Sanitize);
    assert!(sanitize.ends_with("a sanitize would erase all 2 namespaces of the subsystem"));
    let failed = "echo 'NVMe status: INVALID_FIELD' >&2; exit 1";
    let unknown = refusal(managing, failed, PurgeMethod::Sanitize);
    assert!(unknown.contains("of the subsystem, which could not be listed: nvme failed"));
    let several = r#"{"oacs":2,"fna":2,"nn":32}"#;
    assert!(refusal(several, failed, PurgeMethod::Format).contains("which could not be listed"));
    let only = r#"{"oacs":2,"fna":2,"nn":1}"#;
    let fakes = nvme_cli_of(only, failed, r#"echo '{"flbas":0,"dps":0}'"#);
    purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Format).unwrap();
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
fn a_sanitize_goes_on_without_a_run_that_is_stopped() {
    let (machine, node) = (nvme(), PathBuf::from("/dev/nvme0n1"));
    let busy = r"case $1 in sanitize-log) printf '\377\377\002\000';; *) true;; esac";
    let fakes = nvme_cli(r#"{"oacs":0,"fna":0,"sanicap":2}"#, busy);
    let block = machine.system().block_at(&node).unwrap();
    let device = Device { path: &node, block: Some(&block), discards: true };
    let purged = device.purged(&fakes.tools(), PurgeMethod::Sanitize, &|| true).unwrap();
    assert!(purged.how.ends_with("under way when it was stopped"), "{purged:?}");
}

#[test]
fn a_password_that_a_failed_command_has_set_is_removed() {
    let enabled = READY.replace("not\tenabled", "\tenabled");
    let then = "*set-pass*) echo 'SG_IO: bad/missing sense data' >&2; exit 5;;";
    let (failed, fakes) = erased(&ata(), &[READY, &enabled], then);
    assert!(failed.unwrap_err().contains("bad/missing sense data"));
    let asked = fakes.asked();
    assert!(asked.last().unwrap().contains("--security-disable floatgate"), "{asked:?}");
    assert!(!asked.iter().any(|line| line.contains("--security-erase")), "{asked:?}");
    let then = "*set-pass*|*disable*) echo 'SG_IO: bad/missing sense data' >&2; exit 5;;";
    let (failed, _) = erased(&ata(), &[READY, &enabled], then);
    assert!(failed.unwrap_err().ends_with("left with the password `floatgate`"));
    let (failed, fakes) = erased(&ata(), &[READY, READY], then);
    assert!(failed.unwrap_err().contains("bad/missing sense data"));
    assert!(!fakes.asked().iter().any(|line| line.contains("--security-disable")), "none is set");
}

#[test]
fn a_method_that_the_drive_lacks_is_an_error_when_it_was_asked_for() {
    let fakes = Fakes::none();
    let error = purged(&Machine::with_disk(), "sda", &fakes, PurgeMethod::Format).unwrap_err();
    assert_eq!(error.to_string(), "purging by format: it is not an NVMe namespace");
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

/// Erases `sda` of `machine`, an ATA disk, when `hdparm -I` answers in turn with each of
/// `states`, its last answer for ever, and all else runs `then`.
fn erased(machine: &Machine, states: &[&str], then: &str) -> (Result<PurgeResult, String>, Fakes) {
    let mut answers = String::new();
    for (nth, state) in (1..).zip(states) {
        let test = if nth == states.len() { "true".into() } else { format!("[ $n -eq {nth} ]") };
        let _ = writeln!(answers, "if {test}; then printf '{state}'; exit 0; fi");
    }
    let body = format!(
        "n=$(grep -c -e -I \"$(dirname $0)/asked\")\n\
         case \"$*\" in\n-I*)\n{answers};;\n{then}\nesac"
    );
    let fakes = Fakes::none().with("hdparm", &body);
    let erased = purged(machine, "sda", &fakes, PurgeMethod::SecureErase);
    (erased.map_err(|error| error.to_string()), fakes)
}

/// Reason why the ATA disk of `machine` in the state `security` is not erased; nothing was set.
fn not_erased(machine: &Machine, security: &str) -> String {
    let (erased, fakes) = erased(machine, &[security], "*) true;;");
    let asked = fakes.asked();
    assert!(!asked.iter().any(|line| line.contains("--security")), "{asked:?}");
    erased.unwrap_err().strip_prefix("purging by secure-erase: ").unwrap().to_owned()
}

#[test]
fn a_drive_without_an_enhanced_erase_is_erased_plainly() {
    let plain = READY.replace("\t\tsupported: enhanced", "\tnot\tsupported: enhanced");
    let (erased, _) = erased(&ata(), &[&plain], "*) true;;");
    assert_eq!(erased.unwrap().how, "ATA secure erase (hdparm --security-erase)");
}

#[test]
fn no_password_is_set_on_a_drive_that_would_keep_it() {
    let machine = ata();
    let with = |was: &str, is: &str| not_erased(&machine, &READY.replace(was, is));
    let password = "the drive has a password already: hdparm --security-disable removes it";
    assert_eq!(with("not\tenabled", "\tenabled"), password);
    let locked = with("not\tlocked", "\tlocked");
    let unlock = locked.find("--security-unlock").unwrap();
    assert!(unlock < locked.find("--security-disable").unwrap(), "in this order: {locked}");
    assert_eq!(with("\t\tsupported\n", "\tnot\tsupported\n"), "the drive has no ATA security");
    assert_eq!(not_erased(&machine, "ATA device, with non-removable media"), {
        "the drive has no ATA security"
    });
    let frozen = READY.replace("not\tenabled", "\tenabled").replace("not\tfrozen", "\tfrozen");
    let said = not_erased(&machine, &frozen);
    assert!(said.contains("suspend the machine once"), "nothing else can be done first: {said}");
}

#[test]
fn a_partition_and_a_drive_behind_usb_are_not_erased() {
    let machine = ata();
    let fakes = Fakes::none().with("hdparm", "true");
    let error = purged(&machine, "sda1", &fakes, PurgeMethod::SecureErase).unwrap_err().to_string();
    assert!(error.ends_with("sda1 is a partition: only whole drives are erased"), "{error}");
    machine.block("usb1/1-4/sdb", "sdb", "8:16");
    machine.write("sys/devices/block/usb1/1-4/sdb/device/vendor", "ATA");
    let error = purged(&machine, "sdb", &fakes, PurgeMethod::SecureErase).unwrap_err().to_string();
    assert!(error.ends_with("behind USB a secure erase can leave the drive locked"), "{error}");
    assert_eq!(fakes.asked(), [""; 0], "neither was asked anything");
}

#[test]
fn an_erase_that_left_its_password_did_not_succeed_whatever_hdparm_says() {
    let enabled = READY.replace("not\tenabled", "\tenabled");
    let (erased, fakes) = erased(&ata(), &[READY, &enabled], "*) true;;");
    assert!(
        erased.unwrap_err().ends_with("hdparm reported success, but the drive kept its password")
    );
    assert!(fakes.asked().last().unwrap().contains("--security-disable floatgate"));
}

#[test]
fn a_password_that_cannot_be_taken_back_is_told_to_the_user() {
    let enabled = READY.replace("not\tenabled", "\tenabled");
    let then = "*erase*) exit 5;;\n*disable*) echo 'Input/output error' >&2; exit 5;;\n*) true;;";
    let (erased, _) = erased(&ata(), &[READY, &enabled], then);
    let said = erased.unwrap_err();
    assert!(said.contains("hdparm failed: Input/output error"), "{said}");
    assert!(said.ends_with("the drive is left with the password `floatgate`"), "{said}");
}

/// Purges `nvme0n1` by `method` when its sanitize log has the bytes `log`.
fn by_nvme(
    controller: &str,
    log: &str,
    method: PurgeMethod,
) -> (Result<PurgeResult, Error>, Fakes) {
    let then = format!("case $1 in sanitize-log) printf '{log}';; *) true;; esac");
    let fakes = nvme_cli(controller, &then);
    (purged(&nvme(), "nvme0n1", &fakes, method), fakes)
}

#[test]
fn a_controller_that_cannot_erase_blocks_is_sanitized_by_its_key() {
    let controller = r#"{"oacs":0,"fna":0,"sanicap":1}"#;
    let (sanitized, fakes) = by_nvme(controller, r"\000\000\001\000", PurgeMethod::Sanitize);
    let how = "NVMe sanitize by cryptographic erase (nvme sanitize --sanact=4)";
    assert_eq!(sanitized.unwrap().how, how);
    assert!(fakes.asked().contains(&"nvme sanitize /dev/nvme0n1 --sanact=4".to_owned()));
}

#[test]
fn a_sanitize_counts_as_done_by_the_lowest_bits_of_its_status() {
    let controller = r#"{"oacs":0,"fna":0,"sanicap":2}"#;
    let sanitized = |log: &str| {
        let (sanitized, _) = by_nvme(controller, log, PurgeMethod::Sanitize);
        sanitized.map_err(|error| error.to_string()).map(|_| ())
    };
    // Bit 8 says that nothing was written since, bits 3 to 7 count passes of an overwrite.
    assert_eq!(sanitized(r"\377\377\371\001"), Ok(()));
    assert_eq!(sanitized(r"\377\377\004\000"), Ok(()), "deallocated until the media failed");
    let never = sanitized(r"\377\377\000\000").unwrap_err();
    assert!(never.ends_with("the sanitize failed (status 0)"), "{never}");
    let silent = sanitized("").unwrap_err();
    assert!(silent.ends_with("nvme sanitize-log printed nothing"), "{silent}");
}

#[test]
fn what_a_controller_lacks_is_told_before_it_is_asked_to_do_it() {
    let controller = r#"{"oacs":4,"fna":0,"sanicap":4}"#;
    for (method, said) in [
        (PurgeMethod::Format, "purging by format: the controller has no NVMe format"),
        (PurgeMethod::Sanitize, "purging by sanitize: the controller has no NVMe sanitize"),
    ] {
        let (purged, fakes) = by_nvme(controller, "", method);
        assert_eq!(purged.unwrap_err().to_string(), said);
        assert_eq!(fakes.asked().len(), 1, "{:?}", fakes.asked());
    }
}

#[test]
fn an_answer_of_nvme_cli_that_is_no_json_is_told_with_the_command() {
    let fakes = nvme_cli("NVMe Identify Controller:", "true");
    let error = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Format).unwrap_err().to_string();
    assert!(error.starts_with("purging by format: nvme id-ctrl /dev/nvme0n1: "), "{error}");
    assert!(error.contains("line 1 column 1"), "{error}");
}

#[test]
fn a_partition_of_a_namespace_is_not_formatted() {
    let machine = nvme();
    machine.block("nvme0n1/nvme0n1p1", "nvme0n1p1", "259:1");
    machine.write("sys/devices/block/nvme0n1/nvme0n1p1/partition", "1");
    let fakes = Fakes::none().with("nvme", "true");
    for method in [PurgeMethod::Format, PurgeMethod::Sanitize] {
        let error = purged(&machine, "nvme0n1p1", &fakes, method).unwrap_err().to_string();
        assert!(error.ends_with("nvme0n1p1 is a partition: only whole namespaces are formatted"));
    }
    assert_eq!(fakes.asked(), [""; 0]);
}

#[test]
fn a_format_of_one_namespace_leaves_the_others_alone() {
    let machine = nvme();
    machine.block("nvme0n2", "nvme0n2", "259:1");
    let fakes = nvme_cli(r#"{"oacs":2,"fna":4}"#, "true");
    let formatted = purged(&machine, "nvme0n1", &fakes, PurgeMethod::Format).unwrap();
    assert!(formatted.how.ends_with("(nvme format --ses=1)"), "{formatted:?}");
}

#[test]
fn a_failed_format_without_a_key_to_forget_is_an_error_with_its_cause() {
    let then = r#"case $1 in format) echo "NVMe status: ACCESS_DENIED" >&2; exit 1;; esac"#;
    let fakes = nvme_cli(r#"{"oacs":2,"fna":0}"#, then);
    let error = purged(&nvme(), "nvme0n1", &fakes, PurgeMethod::Format).unwrap_err().to_string();
    assert_eq!(error, "purging by format: nvme failed: NVMe status: ACCESS_DENIED");
    assert!(!fakes.asked().iter().any(|line| line.contains("--ses=2")), "{:?}", fakes.asked());
}
