//! Counts of servers that say what a test wants, and drives that are not to be asked.

use std::fs;

use lab::target::system::DeviceNumber;
use tempfile::TempDir;

use super::*;
use crate::guard::Permit;
use crate::machine_fixture::Machine;
use crate::tools::fake::Fakes;

/// Log page with these counts, and the peaks 300 ns (reply 40) and 200 ns (reply 90).
fn page(numbers: [u64; 5]) -> Vec<u8> {
    let mut page = vec![0; 512];
    let peaks = [2, 40, 300, 90, 200];
    for (at, number) in (0..).step_by(8).zip(numbers.into_iter().chain(peaks)) {
        page[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    page[SIGNATURE_AT..][..SIGNATURE.len()].copy_from_slice(&SIGNATURE);
    page
}

const THEN: [u64; 5] = [50, 1, 5000, 300, 300];
const NOW: [u64; 5] = [150, 3, 25_000, 600, 300];

#[test]
fn page_and_context_have_the_same_counts() {
    let of_page = Counts::of_page(&page(NOW)).unwrap();
    let name = "x-floatgate:lateness/replies=150,late=3,modelled_ns=25000,late_by_ns=600,\
                late_by_ns_max=300,peaks=40:300+90:200";
    assert_eq!(Counts::of_context(name), Some(of_page));
    let none = "x-floatgate:lateness/replies=0,late=0,modelled_ns=0,late_by_ns=0,\
                late_by_ns_max=0,peaks=";
    assert_eq!(Counts::of_context(none), Some(Counts::default()));
}

#[test]
fn what_is_something_else_has_no_counts() {
    let mut other = page(NOW);
    other[SIGNATURE_AT] = 2;
    assert_eq!(Counts::of_page(&other), None, "a later version");
    assert_eq!(Counts::of_page(&[0; 512]), None);
    assert_eq!(Counts::of_page(&page(NOW)[..500]), None);
    let mut overlong = page(NOW);
    overlong[PEAK_COUNT_AT] = 255;
    assert_eq!(Counts::of_page(&overlong), None);
    for name in ["base:allocation", "x-floatgate:lateness", "x-floatgate:lateness/replies=1"] {
        assert_eq!(Counts::of_context(name), None, "{name}");
    }
}

#[test]
fn the_largest_delay_is_that_since_the_load_began() {
    let [then, now] = [THEN, NOW].map(|numbers| Counts::of_page(&page(numbers)).unwrap());
    let since = now.since(&then).unwrap();
    let expected = LatenessCounts {
        replies: 100,
        late: 2,
        modelled_ns: 20_000,
        late_by_ns: 300,
        late_by_ns_max: 200,
    };
    assert_eq!(since, expected);
    assert_eq!(then.since(&now), None, "the server began anew");
    let figures = since.figures();
    assert_eq!((figures.late_by_ns_mean, figures.late_by_ns_max), (150, 200));
    assert!((figures.latency_ns_avg - 200.0).abs() < 1e-9);
    assert!((figures.slowdown - 0.015).abs() < 1e-9 && figures.is_harmful());
}

/// A drive of `model`, and an nvme-cli that reads the pages from files.
struct Bench {
    machine: Machine,
    pages: TempDir,
    fakes: Fakes,
}

impl Bench {
    fn new(model: &str) -> Self {
        let machine = Machine::with_disk();
        machine.block("nvme0n1", "nvme0n1", "259:0");
        machine.write("sys/devices/block/nvme0n1/device/model", model);
        machine.write("sys/devices/block/nvme0n1/device/serial", "0123456789abcdef");
        let pages = TempDir::new().unwrap();
        let body = format!("cat {}/${{3#--log-id=}}", pages.path().display());
        Self { machine, pages, fakes: Fakes::none().with("nvme", &body) }
    }

    fn sites(&self) -> Sites {
        let number = DeviceNumber { major: 259, minor: 0 };
        let permit = Permit::of_null("/dev/nvme0n1");
        let system = self.machine.system();
        Site::of_device(system, "/dev/nvme0n1".into(), permit, number).into()
    }

    fn put(&self, page: u8, bytes: &[u8]) {
        fs::write(self.pages.path().join(page.to_string()), bytes).unwrap();
    }

    /// Log page 00h, which lists page D1h or not.
    fn list(&self, is_listed: bool) {
        let mut pages = vec![0; 1024];
        pages[4 * 0xD1] = u8::from(is_listed);
        self.put(0, &pages);
    }
}

#[test]
fn a_served_model_is_asked_before_and_after() {
    let bench = Bench::new("Floatgate as p5800x");
    bench.list(true);
    bench.put(0xD1, &page(THEN));
    let tools = bench.fakes.tools();
    let servers = Servers::of(&bench.sites(), &tools);
    assert!(servers.warnings().is_empty());
    let before = servers.read(&tools).unwrap();
    bench.put(0xD1, &page(NOW));
    let since = servers.since(&before, &tools).unwrap();
    assert_eq!((since.replies, since.late), (100, 2));
    assert_eq!(servers.since_opened(&tools), Some(since));
    bench.put(0xD1, &page(THEN)[..100]);
    assert_eq!(servers.since(&before, &tools), None, "cut short");
}

#[test]
fn a_drive_of_another_maker_is_sent_no_command() {
    for model in ["Samsung SSD 980 PRO 1TB", "Floatgate live drive"] {
        let bench = Bench::new(model);
        bench.list(true);
        bench.put(0xD1, &page(NOW));
        let servers = Servers::of(&bench.sites(), &bench.fakes.tools());
        assert_eq!(bench.fakes.asked(), [""; 0], "{model}");
        assert_eq!(servers.read(&bench.fakes.tools()), None);
        assert!(servers.warnings().is_empty());
    }
}

#[test]
fn the_page_is_read_only_where_it_is_listed_and_its_lack_is_told() {
    let bench = Bench::new("Floatgate as p5800x");
    bench.list(false);
    let servers = Servers::of(&bench.sites(), &bench.fakes.tools());
    let asked = ["nvme get-log /dev/nvme0n1 --log-id=0 --log-len=1024 --raw-binary"];
    assert_eq!(bench.fakes.asked(), asked);
    assert!(servers.warnings()[0].text.ends_with("lists no log page D1h; its server is older"));
    let without = Servers::of(&bench.sites(), &Fakes::none().tools());
    assert!(without.warnings()[0].text.ends_with("nvme is not installed"));
}

#[test]
fn namespaces_of_one_drive_are_counted_once() {
    let bench = Bench::new("Floatgate as p5800x");
    bench.machine.block("nvme0n2", "nvme0n2", "259:1");
    for (name, text) in [("model", "Floatgate as p5800x"), ("serial", "0123456789abcdef")] {
        bench.machine.write(&format!("sys/devices/block/nvme0n2/device/{name}"), text);
    }
    bench.list(true);
    bench.put(0xD1, &page(THEN));
    let site = |name: &str, minor| {
        let number = DeviceNumber { major: 259, minor };
        Site::of_device(bench.machine.system(), name.into(), Permit::of_null(name), number)
    };
    let both = vec![site("/dev/nvme0n1", 0), site("/dev/nvme0n2", 1)];
    let sites = Sites::of_group("/dev/nvme0n1,/dev/nvme0n2", both);
    let servers = Servers::of(&sites, &bench.fakes.tools());
    assert_eq!(servers.known.len(), 1);
}
