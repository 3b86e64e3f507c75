//! Drives made of two: a fast class before a slow one.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, Setup, SpecError, catalogue};

const BLOCK: u32 = 8;

const TEST: &str = "estimated: for a test";
const HOST: &str = "[[host]]\nname = \"polled\"\nplatform = \"linux-polled\"\n\
                    source = \"estimated: for a test\"\n";

fn text(fast: &str, slow: &str, policy: &str) -> String {
    format!(
        "schema = 1\nname = \"both\"\ntitle = \"Both\"\n{HOST}\
         [tier]\nfast = {fast:?}\nslow = {slow:?}\n{policy}\nsource = {TEST:?}\n"
    )
}

fn tier(fast: &str, slow: &str, policy: &str) -> DriveSpec {
    DriveSpec::parse(&text(fast, slow, policy), "both.toml").expect("a tier")
}

fn at(spec: &DriveSpec, host: &str, time_lapse: u32) -> Drive {
    drive(spec, host, time_lapse).expect("a drive at that scale")
}

fn drive(spec: &DriveSpec, host: &str, time_lapse: u32) -> Result<Drive, SpecError> {
    let format = spec.formats().remove(0);
    Drive::new(spec, &Setup { format, host: host.into(), time_lapse, seed: 1 })
}

/// Tables of a QLC drive of 1.02 TB, with `prefix` before their names.
fn qlc(indirection_kib: u32, prefix: &str) -> String {
    let gather_kib = indirection_kib * 64;
    format!(
        "[[{prefix}format]]\nname = \"stock\"\nuser_gb = 1020\nsource = {TEST:?}\n\
         [{prefix}geometry]\nbanks = 1\ndies_per_bank = 8\nstripe_dies = 0\n\
         erase_blocks_per_plane = 21_846\nspare_erase_blocks_per_plane = 219\n\
         pages_per_erase_block = 96\nsource = {TEST:?}\n\
         [{prefix}mapping]\nunit = \"page\"\nindirection_kib = {indirection_kib}\n\
         gather_kib = {gather_kib}\nsource = {TEST:?}\n\
         [{prefix}relocation]\nwatermark_low = 3\nwatermark_high = 5\nsource = {TEST:?}\n\
         [[{prefix}host]]\nname = \"polled\"\nplatform = \"linux-polled\"\nsource = {TEST:?}\n"
    )
}

fn before_qlc(indirection_kib: u32, policy: &str) -> DriveSpec {
    let slow = "like = \"generic-qlc-gen4\"\nname = \"qlc\"\ntitle = \"QLC\"\n";
    let text = format!(
        "schema = 1\nname = \"both\"\ntitle = \"Both\"\n{HOST}\
         [tier]\nfast = \"p5800x\"\nfast_gb = 50\n{policy}\nsource = {TEST:?}\n\
         [tier.slow]\n{slow}{}",
        qlc(indirection_kib, "tier.slow.")
    );
    DriveSpec::parse(&text, "both.toml").expect("a tier")
}

fn qlc_alone(indirection_kib: u32) -> DriveSpec {
    let text = format!(
        "like = \"generic-qlc-gen4\"\nname = \"qlc\"\ntitle = \"QLC\"\n{}",
        qlc(indirection_kib, "")
    );
    DriveSpec::parse(&text, "qlc.toml").expect("a drive")
}

/// A closed loop of 4 KiB requests at random in the first `blocks` of a drive.
struct Load {
    threads: u16,
    queue: usize,
    blocks: u64,
    read_percent: u64,
}

impl Load {
    /// Carries out `count` requests from `now` on; returns requests a second.
    fn run(&self, drive: &mut Drive, now: &mut Nanos, count: u64) -> f64 {
        let mut rng = Rng::new(7).split_index(now.0);
        let mut request = |thread: u16| {
            let op = if rng.below(100) < self.read_percent { Op::Read } else { Op::Write };
            let lba = Lba(rng.below(self.blocks) * u64::from(BLOCK));
            Request { tag: 0, thread, op, handle: 0, lba, sectors: BLOCK }
        };
        let began = *now;
        for thread in (0..self.threads).cycle().take(usize::from(self.threads) * self.queue) {
            drive.submit(began, request(thread));
        }
        for _ in 0..count {
            let done = drive.next_completion(Nanos::MAX).expect("outstanding");
            *now = done.completed_at;
            drive.submit(*now, request(done.thread));
        }
        let seconds = (*now - began).as_secs_f64();
        while let Some(done) = drive.next_completion(Nanos::MAX) {
            *now = done.completed_at;
        }
        count as f64 / seconds
    }
}

/// Writes the first `blocks` in order, 128 KiB at a time.
fn fill(drive: &mut Drive, blocks: u64, now: &mut Nanos) {
    let sectors = 256;
    let writes = (0..blocks * u64::from(BLOCK)).step_by(256);
    for (index, lba) in writes.enumerate() {
        let op = Op::Write;
        let request = Request { tag: 0, thread: 0, op, handle: 0, lba: Lba(lba), sectors };
        drive.submit(*now, request);
        if index >= 32 {
            *now = drive.next_completion(Nanos::MAX).expect("outstanding").completed_at;
        }
    }
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        *now = done.completed_at;
    }
}

const SPLIT: &str = "write = \"around\"\nread_cache = \"lru\"\nsplit = true";

#[test]
fn reads_that_are_split_by_load_are_as_fast_as_the_better_class_or_faster() {
    let split = tier("p5800x", "p5510", SPLIT);
    let [fast, slow] = ["p5800x", "p5510"].map(|name| catalogue::find(name).expect("a drive"));
    let blocks = 20_000;
    for (threads, queue) in [(1, 1), (4, 4), (16, 16)] {
        let load = Load { threads, queue, blocks, read_percent: 100 };
        let rate = |spec: &DriveSpec, host: &str| {
            let (mut drive, mut now) = (at(spec, host, 256), Nanos::ZERO);
            fill(&mut drive, blocks, &mut now);
            load.run(&mut drive, &mut now, blocks * 20);
            load.run(&mut drive, &mut now, 100_000)
        };
        let [fast, slow] = [&fast, &slow].map(|spec| rate(spec, "linux-polled"));
        let both = rate(&split, "polled");
        // What is learned of the class that is left alone costs a request in some thousands.
        assert!(both > fast.max(slow) * 0.997, "T{threads}Q{queue}: {fast}, {slow}, {both}");
        if threads == 16 {
            assert!(both > (fast + slow) * 0.9, "busy, they add up: {fast} + {slow}, {both}");
        }
    }
}

/// Settled 4 KiB random writes a second, and media bytes for each byte that a class was sent.
fn settled_writes(spec: &DriveSpec, host: &str) -> (f64, Vec<f64>) {
    let (mut drive, mut now) = (at(spec, host, 512), Nanos::ZERO);
    let blocks = drive.user_sectors() / u64::from(BLOCK);
    fill(&mut drive, blocks, &mut now);
    let load = Load { threads: 4, queue: 32, blocks, read_percent: 0 };
    load.run(&mut drive, &mut now, blocks * 3 / 2);
    let before = drive.tier_work();
    let rate = load.run(&mut drive, &mut now, blocks / 2);
    drive.check_invariants();
    let (Some(before), Some(after)) = (before, drive.tier_work()) else { return (rate, vec![]) };
    let amplification = |class: usize| {
        let [before, after] = [&before, &after].map(|work| work.classes[class].media);
        let sent = after.host_sent_bytes - before.host_sent_bytes;
        (after.programmed_bytes() - before.programmed_bytes()) as f64 / sent as f64
    };
    (rate, vec![amplification(0), amplification(1)])
}

#[test]
fn on_coarse_qlc_destaging_by_address_helps_and_a_log_helps_more() {
    for kib in [16, 64] {
        let (alone, _) = settled_writes(&qlc_alone(kib), "polled");
        let back = before_qlc(kib, "write = \"back\"");
        let (back, _) = settled_writes(&back, "polled");
        let log = before_qlc(kib, "write = \"shape\"\nlayout = \"log\"\nband_mib = 16");
        let (log, amplifications) = settled_writes(&log, "polled");
        assert!(back > alone * 1.5, "{kib} KiB: {alone} alone, {back} by address");
        assert!(log > back * 1.5, "{kib} KiB: {back} by address, {log} in a log");
        let [fast, slow] = amplifications[..] else { panic!("two classes") };
        assert!((fast - 1.0).abs() < 1e-9 && slow < 2.0, "{kib} KiB: {fast}, {slow}");
    }
}

fn random_policy(index: usize) -> String {
    let writes = ["shape", "back", "around", "through"];
    let caches = ["lru", "sieve", "s3-fifo", "arc", "two-q"];
    let write = writes[index % 4];
    let log = if index % 4 < 2 && index.is_multiple_of(3) {
        "layout = \"log\"\nband_mib = 4\n"
    } else {
        ""
    };
    let cache = caches[index % 5];
    let split = index.is_multiple_of(2);
    format!(
        "write = {write:?}\n{log}read_cache = {cache:?}\nsplit = {split}\ndestage_kib = 64\n\
             fast_gb = 20\nadmit_after = {}",
        1 + index % 2
    )
}

#[test]
fn whatever_the_policy_requests_complete_once_and_the_same_seed_gives_the_same_drive() {
    for index in 0..12 {
        let spec = tier("p5800x", "p5510", &random_policy(index));
        let run = || {
            let (mut drive, mut now) = (at(&spec, "polled", 1024), Nanos::ZERO);
            let mut rng = Rng::new(index as u64);
            let mut completions = Vec::new();
            for tag in 0..4000 {
                let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush];
                let op = op[usize::try_from(rng.below(5)).expect("below 5")];
                let sectors = 1 + u32::try_from(rng.below(600)).expect("below 600");
                let sectors = if op == Op::Flush { 0 } else { sectors };
                let thread = u16::try_from(tag % 4).expect("below 4");
                let lba = Lba(rng.below(drive.user_sectors() / 8 - 600));
                drive.submit(now, Request { tag, thread, op, handle: 0, lba, sectors });
                if tag >= 32 {
                    let done = drive.next_completion(Nanos::MAX).expect("outstanding");
                    now = done.completed_at;
                    completions.push(done);
                }
                if tag % 500 == 0 {
                    drive.check_invariants();
                }
            }
            completions.extend(std::iter::from_fn(|| drive.next_completion(Nanos::MAX)));
            drive.check_invariants();
            let tags: std::collections::BTreeSet<u32> =
                completions.iter().map(|done| done.tag).collect();
            assert_eq!((tags.len(), completions.len()), (4000, 4000), "policy {index}");
            assert!(completions.iter().all(|done| done.status == blockio::Status::Ok));
            let counters = drive.tier_work().expect("a tier").blocks;
            drive.purge();
            let zero = drive.tier_work().expect("a tier").blocks.read;
            (completions, counters, zero)
        };
        let (first, second) = (run(), run());
        assert_eq!(first, second, "policy {index}");
        assert_eq!(first.2, 0, "a purge forgets");
        let blocks = first.1;
        assert!(blocks.held <= blocks.read && blocks.destaged + blocks.absorbed <= blocks.written);
    }
}

#[test]
fn what_is_sent_to_the_classes_is_what_the_policy_counts() {
    let spec = tier("p5800x", "p5510", "write = \"back\"\nread_cache = \"arc\"\nfast_gb = 20");
    let (mut drive, mut now) = (at(&spec, "polled", 512), Nanos::ZERO);
    let load = Load { threads: 4, queue: 8, blocks: 40_000, read_percent: 60 };
    load.run(&mut drive, &mut now, 100_000);
    let (work, sent) = (drive.tier_work().expect("a tier"), drive.counters().host_sent_bytes);
    let [fast, slow] = work.classes.map(|class| class.media.host_sent_bytes / 4096);
    let blocks = work.blocks;
    assert_eq!((fast, sent), (blocks.written + blocks.admitted, blocks.written * 4096));
    // What is being destaged has left already, by the count.
    assert!(slow <= blocks.destaged && slow + 8 * 256 > blocks.destaged, "{slow}, {blocks:?}");
    assert!(blocks.absorbed > 0 && blocks.read_fast == blocks.held && blocks.held < blocks.read);
}

#[test]
fn a_tier_in_time_lapse_settles_alike_or_is_refused_with_the_reason() {
    let policy = "write = \"back\"\nread_cache = \"lru\"\nfast_gb = 200\ndestage_kib = 128";
    let spec = tier("p5800x", "p5510", policy);
    let rate = |time_lapse: u32| {
        let (mut drive, mut now) = (at(&spec, "polled", time_lapse), Nanos::ZERO);
        // A fiftieth of the drive, about what the fast class holds.
        let blocks = drive.user_sectors() / 8 / 50;
        let load = Load { threads: 4, queue: 8, blocks, read_percent: 50 };
        load.run(&mut drive, &mut now, blocks * 5);
        load.run(&mut drive, &mut now, blocks * 2)
    };
    let (larger, smaller) = (rate(256), rate(512));
    assert!((larger / smaller - 1.0).abs() < 0.03, "{larger} and {smaller} a second");
    let error = drive(&spec, "polled", 1 << 20).expect_err("nothing is left").to_string();
    assert!(error.starts_with("both: slow class p5510: ") || error.contains("at least"), "{error}");
}

#[test]
fn wrong_tiers_are_refused_with_what_would_be_right() {
    let refused = |from: &str, to: &str| {
        let right = text("p5800x", "p5510", "write = \"back\"\nread_cache = \"lru\"");
        let wrong = right.replacen(from, to, 1);
        assert_ne!(wrong, right, "nothing replaced");
        DriveSpec::parse(&wrong, "both.toml").expect_err("it is wrong").to_string()
    };
    let error = refused("\"p5800x\"", "\"p5800\"");
    assert!(
        error.contains("tier.fast is \"p5800\", must be a drive of the catalogue, did you mean")
    );
    let error = refused("read_cache = \"lru\"", "read_cache = \"lur\"");
    assert!(error.contains("unknown variant `lur`") && error.contains("sieve"), "{error}");
    let error = refused("[tier]", "[tier]\ndestage_kib = 6");
    assert!(error.contains("tier.destage_kib is 6, must be a multiple of 4"), "{error}");
    let error = refused("[tier]", "[tier]\nfast_gb = 900");
    assert!(
        error.contains("tier.fast_gb is 900, must be above 0 and at most the 800 GB of p5800x")
    );
    let error = refused("[tier]", "[tier]\ndestage_percent = 95");
    assert!(error.contains("tier.destage_percent is 95, must be from 0 to 90"), "{error}");
    let error = refused("[tier]", "[buffer]\nkib = 4\nsource = \"estimated: x\"\n[tier]");
    assert!(error.contains("buffer is not allowed with tier: its drives have media"), "{error}");
    let error = refused("[tier]", "[tier]\nfaster = 3");
    assert!(error.contains("unknown field `faster`"), "{error}");
    let swapped = text("p5510", "p5800x", "write = \"back\"");
    let swapped = DriveSpec::parse(&swapped, "both.toml").expect_err("swapped").to_string();
    assert!(swapped.contains("fast") && swapped.contains("swapped"), "{swapped}");
}

#[test]
fn data_of_long_ago_lies_on_the_slow_class_without_time_passing() {
    for policy in ["write = \"back\"", "write = \"shape\"\nlayout = \"log\"\nband_mib = 4"] {
        let spec = tier("p5800x", "p5510", &format!("{policy}\nfast_gb = 20"));
        let mut drive = at(&spec, "polled", 1024);
        let sectors = drive.user_sectors() / 4096 * 4096;
        for lba in (0..sectors).step_by(4096) {
            assert!(drive.age(Lba(lba), 4096), "there is room for it");
        }
        let written = drive.tier_work().expect("a tier").classes.map(|it| it.media.pages_host);
        assert!(written[0] == 0 && written[1] > sectors / 8 * 99 / 100, "{written:?}");
        let mut now = Nanos::ZERO;
        let load = Load { threads: 1, queue: 1, blocks: sectors / 8, read_percent: 100 };
        load.run(&mut drive, &mut now, 1000);
        let pages = drive.pages_read().expect("it has a map");
        assert!(pages.all >= 1000 && pages.unmapped < 20, "{pages:?}");
        drive.check_invariants();
    }
}
