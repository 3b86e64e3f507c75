//! Job files, right and wrong.

use super::*;
use crate::{Access, ByteRange, Gaps, SizeShare};

const FILE: &str = "\
; a job file
[global]
ioengine=libaio
direct=1
filename=/dev/nvme0n1
runtime=30
ramp_time=5s
time_based

[Random reads]
rw=randread
bs=4k
iodepth=32
numjobs=4
random_distribution=zipf:1.1

[mixed]
stonewall
rw=randrw
rwmixread=70
bssplit=4k/60:8k/:16k/
norandommap
size=50%
rate_iops=700,300
rate_process=poisson
";

/// Refusal of `text`.
fn told(text: &str) -> String {
    import(text, "a.fio").unwrap_err().to_string()
}

/// The one job of `text`: its workload, its measurement, and the notes.
fn one(text: &str) -> (Workload, Measure, String) {
    let ImportedProtocol { protocol, notes } = import(text, "a.fio").unwrap();
    let text = toml::to_string(&protocol).unwrap();
    assert_eq!(Protocol::parse(&text, "a.toml").unwrap(), protocol, "it is read again");
    let [measure] = protocol.suites[0].measure.as_slice() else { panic!("{protocol:?}") };
    (protocol.workloads[0].clone(), measure.clone(), notes.join("\n"))
}

#[test]
fn jobs_become_workloads_and_measurements_in_their_order() {
    let ImportedProtocol { protocol, notes } = import(FILE, "dir/Nightly.fio").unwrap();
    let [reads, mixed] = protocol.workloads.as_slice() else { panic!("{protocol:?}") };
    assert_eq!((reads.name.as_str(), reads.read_percent), ("random-reads", 100.0));
    assert_eq!(reads.access, Access::Zipf { theta: 1.1 });
    let of = |bytes, percent| SizeShare { bytes, percent };
    assert_eq!(mixed.sizes, [of(4096, 60.0), of(8192, 20.0), of(16384, 20.0)]);
    assert_eq!((mixed.read_percent, mixed.footprint_percent), (70.0, 50.0));
    let [first, second] = protocol.suites[0].measure.as_slice() else { panic!("{protocol:?}") };
    assert_eq!(first.points().collect::<Vec<_>>(), [(4, 32)]);
    assert_eq!((first.duration_s, first.ramp_s, first.rate_iops), (30, 5, None));
    assert_eq!((second.rate_iops, second.gaps), (Some(1000.0), Gaps::Exponential));
    assert_eq!(protocol.name, "nightly");
    assert!(!notes.iter().any(|note| note.contains("time_based")), "{notes:?}");
}

#[test]
fn loops_are_passes_of_a_fill_and_a_mark_of_the_encoding_is_no_text() {
    let text = "\u{feff}[fill]\nrw=write\nbs=128k\niodepth=8\nioengine=libaio\ndirect=1\nloops=3\n\
                filename=/dev/nvme0n1\n[reads]\nstonewall\nrw=randread\nioengine=libaio\ndirect=1\n\
                runtime=60\nsize=10%\nloops=2\nfilename=/dev/nvme0n1\n";
    let imported = import(text, "a.fio").unwrap();
    assert_eq!(imported.protocol.suites[0].fill_passes, 3);
    let notes = imported.notes.join("; ");
    for told in ["[reads]: loops=2 is ignored", "[reads] lacks time_based: fio ends it after"] {
        assert!(notes.contains(told), "{notes}");
    }
    for option in ["max_latency=10ms", "rate_min=1m", "rate_iops_min=100"] {
        let text = format!("[a]\nrw=randread\nruntime=5\n{option}\n");
        assert!(import(&text, "a.fio").unwrap_err().text.contains("late or few"), "{option}");
    }
}

#[test]
fn what_comes_out_is_a_protocol_that_is_read_again() {
    let protocol = import(FILE, "nightly.fio").unwrap().protocol;
    let text = toml::to_string(&protocol).unwrap();
    assert_eq!(Protocol::parse(&text, "nightly.toml").unwrap(), protocol, "{text}");
    protocol.check(&[]).unwrap();
}

#[test]
fn a_range_is_every_multiple_of_its_smallest_size() {
    let imported = import("[a]\nrw=write\nbsrange=4k-16k\n", "a.fio").unwrap();
    let sizes: Vec<u32> = imported.protocol.workloads[0].sizes.iter().map(|it| it.bytes).collect();
    assert_eq!(sizes, [4096, 8192, 12288, 16384]);
    assert_eq!(imported.protocol.workloads[0].access, Access::Sequential);
}

#[test]
fn a_rate_in_bytes_counts_every_job() {
    let text = "[a]\nrw=randwrite\nbs=8k\nnumjobs=2\nrate=80m\n";
    let measure = import(text, "a.fio").unwrap().protocol.suites[0].measure[0].clone();
    assert_eq!(measure.rate_iops, Some(2.0 * 10_240.0));
    assert_eq!(measure.gaps, Gaps::Constant);
}

#[test]
fn names_that_are_built_in_are_not_taken() {
    let text = "[4k-rand-read]\nrw=randread\n[4k-rand-read]\nstonewall\nrw=randread\n";
    let protocol = import(text, "quick.fio").unwrap().protocol;
    let names: Vec<&str> = protocol.workloads.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["fio-quick-4k-rand-read", "fio-quick-4k-rand-read-2"]);
    assert_eq!(protocol.name, "fio-quick");
}

#[test]
fn what_cannot_be_said_is_refused_with_its_line() {
    let cases = [
        ("", "a.fio: there is no job in it: a job begins with [its name]"),
        ("rw=read\n", "a.fio:1: `rw=read` stands before any [job]"),
        ("[a]\n[b]\n", "a.fio:2: [a] and [b] run at the same time, and a protocol has one load"),
        ("[a]\nrw=randread\nfsync=1\n", "a.fio:3: fsync: workloads have no flushes"),
        ("[a]\nbs=4q\n", "a.fio:2: bs: `4q` is not a size such as 4k"),
        ("[a]\nthinktime=10\n", "a.fio:2: thinktime: pauses of a job are not supported"),
        ("[a]\nrw=trim\n", "a.fio:2: rw: rw=trim is not supported"),
        ("[a]\nrw=randrw\nbs=4k,8k\n", "a.fio:3: bs: reads and writes of different sizes"),
        (
            "[a]\nrw=randrw\nrate_iops=100,100\nrwmixread=90\n",
            "a.fio:3: rate_iops: the rates make 50 %",
        ),
        ("[a]\nrw=randread\nbssplit=4k/50:8k/50\n", "a.fio:3: bssplit: fio shortens requests"),
        ("[a]\nrw=randread\nbsrange=4k-8k\n", "a.fio:1: [a]: fio shortens requests of several"),
        ("[a]\nrw=read\ndirect=0\n", "a.fio:3: direct: the page cache is not measured"),
        ("[a]\nrw=read\nbuffered=1\n", "a.fio:1: [a]: the page cache is not measured"),
        ("[a]\nrw=read\nnrfiles=4\n", "a.fio:3: nrfiles: several files that are read"),
        ("[a]\nioengine=net\n", "a.fio:2: ioengine: the engine net does not read or write"),
        ("[a]\nioengine=warp\n", "a.fio:2: ioengine: the engine warp is not known here"),
        ("[a]\nrw=write\noffset_increment=1g\n", "a.fio:3: offset_increment: jobs begin"),
        ("[a]\niodepth=8\niodepth_low=2\n", "a.fio:3: iodepth_low: each completion"),
        ("[a]\noffset=1g\nsize=5%\n", "a.fio:2: offset: offset and size are both shares"),
        ("[a]\noffset=150%\nsize=5%\n", "a.fio:2: offset: `150%` is not from 0 to 100"),
        ("[a]\nbs=64k\noffset=4k\n", "a.fio:3: offset: range begins at 4096, between aligned"),
        ("[a]\nrandom_distribution=pareto:0.2\n", "a.fio:2: random_distribution: `pareto:0.2`"),
        ("[a]\nfrobnicate=1\n", "a.fio:2: frobnicate: is not known here"),
        ("[a]\nsize=${SIZE}\n", "a.fio:2: `size=${SIZE}`: other files and variables"),
        ("[a]\nruntime=soon\n", "a.fio:2: runtime: `soon` is not a time such as 60 or 10m"),
    ];
    for (text, expected) in cases {
        let said = told(text);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn switches_that_are_off_and_what_changes_nothing_are_passed_over() {
    let text = "[a]\nrw=randread\nfsync=0\nthread=1\nnorandommap\noffset=0\ngroup_reporting\n";
    import(text, "a.fio").unwrap();
}

#[test]
fn a_synchronous_engine_has_one_request_outstanding() {
    let queue = |text: &str| {
        let (_, measure, notes) = one(&format!("[a]\nrw=randread\nruntime=9\ndirect=1\n{text}"));
        (measure.queue_per_thread[0], notes.contains("synchronous"))
    };
    assert_eq!(queue("iodepth=32\n"), (1, true), "psync is fio's default");
    assert_eq!(queue("ioengine=pvsync2\niodepth=32\n"), (1, true));
    assert_eq!(queue("ioengine=psync\n"), (1, false), "as it was asked for");
    assert_eq!(queue("iodepth=32\nioengine=io_uring\n"), (32, false));
    assert_eq!(queue("iodepth=32\nio_submit_mode=offload\n"), (32, false), "by fio's own threads");
}

#[test]
fn data_are_as_compressible_as_fio_makes_them() {
    let compressible =
        |text: &str| one(&format!("[a]\nrw=randwrite\n{text}")).0.compressible_percent;
    for (text, percent) in [
        ("", 0.0),
        ("zero_buffers\n", 100.0),
        ("zero_buffers=0\n", 0.0),
        ("refill_buffers\nscramble_buffers=0\n", 0.0),
        ("buffer_pattern=0xdeadbeef\n", 100.0),
        ("zero_buffers\nbuffer_compress_percentage=40\n", 40.0),
        ("buffer_compress_percentage=40\nbuffer_compress_chunk=4k\n", 40.0),
    ] {
        let found = compressible(text);
        assert!((found - percent).abs() < f64::EPSILON, "{text:?}: {found}");
    }
    let said = told("[a]\nbuffer_compress_percentage=40\nbuffer_compress_chunk=64k\n");
    assert!(said.starts_with("a.fio:3: buffer_compress_chunk: data is compressible in"), "{said}");
}

#[test]
fn sequential_jobs_on_one_target_begin_at_the_same_address_without_an_offset() {
    let load = "[a]\nrw=write\nbs=128k\nnumjobs=4\nruntime=9\n";
    let shared = |text: &str| one(&format!("{load}{text}")).0.shared_start;
    assert!(shared("filename=/dev/nvme0n1\n"));
    assert!(!shared("directory=/mnt\n"), "each job has a file of its own");
    assert!(!shared("filename=/dev/nvme0n1\nsize=25%\noffset_increment=25%\n"), "slices");
    assert!(!one("[a]\nrw=randwrite\nnumjobs=4\nfilename=x\n").0.shared_start);
}

#[test]
fn a_size_and_an_offset_confine_the_load() {
    let place = |text: &str| {
        let (it, ..) = one(&format!("[a]\nrw=randread\nruntime=9\n{text}"));
        (it.offset_percent, it.footprint_percent, it.range)
    };
    let range =
        |offset_bytes, size_bytes| (0.0, 100.0, Some(ByteRange { offset_bytes, size_bytes }));
    let disk = "filename=/dev/nvme0n1\n";
    let of_disk = |text: &str| place(&format!("{disk}{text}"));
    assert_eq!(of_disk("size=10g\n"), range(0, Some(10 << 30)));
    assert_eq!(of_disk("size=1m\noffset=2m\nnumjobs=4\n"), range(2 << 20, Some(1 << 20)));
    assert_eq!(of_disk("offset=2m\n"), range(2 << 20, None));
    assert_eq!(of_disk("offset=40%\n"), (40.0, 60.0, None));
    assert_eq!(of_disk("offset=40%\nsize=10%\n"), (40.0, 10.0, None));
    assert_eq!(of_disk("offset=40%\nsize=80%\n"), (40.0, 60.0, None), "up to the end");
    assert_eq!(place("size=1g\nnumjobs=4\n"), range(0, Some(4 << 30)), "a file of each job");
    let slices = "rw=write\nnumjobs=4\noffset_increment=";
    assert_eq!(of_disk(&format!("size=1g\n{slices}1g\n")), range(0, Some(4 << 30)));
    assert_eq!(of_disk(&format!("size=25%\n{slices}25%\n")), (0.0, 100.0, None));
}

#[test]
fn a_size_in_a_report_is_that_of_the_file_but_confines_the_load_on_a_device() {
    let load = |filename| {
        let options = [("rw", "randread"), ("size", "1g"), ("filename", filename)];
        reported("a", options.into_iter()).workload.unwrap()
    };
    assert_eq!((load("disk.img").range, load("disk.img").name.as_str()), (None, "4k-rand-read"));
    let size_bytes = Some(1 << 30);
    let of_device = load("/dev/nvme0n1");
    assert_eq!(of_device.range, Some(ByteRange { offset_bytes: 0, size_bytes }));
    assert_eq!(of_device.name, "a");
}

#[test]
fn each_block_comes_once_unless_norandommap_says_otherwise() {
    let map = |text: &str| one(&format!("[a]\n{text}\n")).0.random_map;
    assert!(map("rw=randwrite"));
    assert!(!map("rw=randwrite\nnorandommap"));
    assert!(map("rw=randwrite\nnorandommap=0"));
    assert!(!map("rw=randwrite\nrandom_distribution=zipf:1.1"));
    assert!(!map("rw=randwrite\nnorandommap\nbssplit=4k/50:8k/50"));
    assert!(!map("rw=randwrite\nrandom_distribution=zipf:1.1\nbssplit=4k/50:8k/50"));
    assert!(!map("rw=write"));
}

#[test]
fn files_share_the_depth_of_their_job() {
    let two = "[a]\nrw=randread\nioengine=libaio\niodepth=32\nfilename=/dev/nvme0n1:/dev/nvme1n1\n";
    let (_, measure, notes) = one(two);
    assert_eq!((measure.threads[0], measure.queue_per_thread[0]), (1, 32));
    assert!(notes.contains("[a] has 2 targets, which share its queue depth"), "{notes}");
    let (_, _, notes) = one("[a]\nrw=randread\nnrfiles=3\n");
    assert!(notes.contains("[a] has 3 files"), "{notes}");
    let (_, _, notes) = one("[a]\nrw=randread\ndirectory=C\\:\\fio\nnrfiles=1\nopenfiles=1\n");
    assert!(!notes.contains("files, which"), "{notes}");
    let (_, _, notes) = one("[a]\nrw=randread\nfilename=C\\:\\fio\n");
    assert!(!notes.contains("which share"), "an escaped colon separates nothing: {notes}");
}

#[test]
fn a_job_without_a_runtime_that_writes_everything_fills_the_target() {
    for runtime in ["", "runtime=0\n"] {
        let text = format!(
            "[global]\nfilename=/dev/fioa\ndirect=1\nioengine=libaio\n[fill]\nrw=write\nbs=1M\n\
             iodepth=16\n{runtime}[steady]\nstonewall\nrw=randwrite\nbs=4K\nruntime=30\n"
        );
        let ImportedProtocol { protocol, notes } = import(&text, "a.fio").unwrap();
        let suite = &protocol.suites[0];
        assert_eq!((suite.fill.as_deref(), suite.fill_passes), (Some("fill"), 1));
        let measured: Vec<&str> = suite.measure.iter().map(|it| it.workload.as_str()).collect();
        assert_eq!(measured, ["steady"]);
        let told = "[fill] has no runtime and writes all of the target: it fills it";
        assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
        let text = toml::to_string(&protocol).unwrap();
        assert_eq!(Protocol::parse(&text, "a.toml").unwrap(), protocol);
    }
    let (_, measure, notes) = one("[fill]\nrw=write\n");
    assert_eq!(measure.duration_s, 60);
    assert!(notes.contains("[fill] has no runtime: fio ends it once all is written"), "{notes}");
    let (_, _, notes) = one("[reads]\nrw=randread\n");
    assert!(notes.contains("[reads] has no runtime: fio ends it after one pass"), "{notes}");
}

#[test]
fn comments_may_follow_a_value() {
    let text = "[global]\nioengine=libaio   ; Linux native\n[reads] ; of 4 KiB\n\
                rw=randread # pattern\n\
                bs=8k             ; pages\niodepth=32        # deep\nruntime=30\n";
    let (workload, measure, _) = one(text);
    assert_eq!((workload.read_percent, workload.sizes[0].bytes), (100.0, 8192));
    assert_eq!((measure.queue_per_thread[0], measure.duration_s), (32, 30));
}

#[test]
fn the_order_of_options_does_not_matter() {
    for text in [
        "[a]\npercentage_random=100\nrw=randrw\n",
        "[global]\npercentage_random=100\n[a]\nrw=randrw\n",
        "[a]\nrw=randrw\npercentage_random=100\n",
    ] {
        assert_eq!(one(text).0.access, Access::Random);
    }
    assert_eq!(one("[a]\npercentage_random=0\nrw=randread\n").0.access, Access::Sequential);
    assert_eq!(one("[a]\npercentage_random=40\nrw=read\n").0.access, Access::Sequential);
    let said = told("[a]\npercentage_random=40\nrw=randread\n");
    assert!(said.starts_with("a.fio:2: percentage_random: a load is random or"), "{said}");
}

#[test]
fn odd_values_are_refused_with_their_line() {
    for value in [
        "bs=4",
        "bs=1000",
        "bs=0",
        "bs=64b",
        "bssplit=4k/30:8k/30",
        "bssplit=4k/60:8k/60",
        "buffer_compress_percentage=150",
        "size=0%",
        "size=150%",
        "random_distribution=zipf:0",
        "random_distribution=zipf:20",
        "random_distribution=zoned:50/100:50/0",
        "rate_iops=0",
        "rate=0",
        "numjobs=4096",
        "numjobs=0",
        "iodepth=0",
        "rwmixread=150",
        "rwmixread=-5",
        "rwmixwrite=101",
        "blockalign=1000",
        "ramp_time=100000000",
        "runtime=100000000",
        "percentage_random=-1",
    ] {
        let text = format!("[j]\nioengine=libaio\nrw=randrw\n{value}\n");
        let key = value.split('=').next().unwrap();
        let said = told(&text);
        assert!(said.starts_with(&format!("a.fio:4: {key}: ")), "{value}: {said}");
    }
    let (workload, ..) = one("[j]\nrw=randread\nnorandommap\nbssplit=4k/20:8k/50:4k/30\n");
    assert_eq!(workload.sizes.len(), 2, "shares of one size are added up");
}

/// Every option that fio 3.33 lists by `--cmdhelp=all` and, for each engine, by `--enghelp`.
const OPTIONS: &str = "\
allow_file_create allow_mounted_write allrandrepeat arguments atomic ba bindname \
block_error_percentiles brick bs bs_unaligned bsrange bssplit buffer_compress_chunk \
buffer_compress_percentage buffer_pattern buffered busy_poll bwavgtime cgroup \
cgroup_nodelete cgroup_weight clat_percentiles clientname clocksource clustername cmd_type \
cmdprio cmdprio_bssplit cmdprio_class cmdprio_percentage conf continue_on_error cpuchunks \
cpuload cpumask cpumode cpus_allowed cpus_allowed_policy create_fsync create_on_open \
create_only create_serialize dedupe_global dedupe_mode dedupe_percentage \
dedupe_working_set_percentage description direct directory disable_bw_measurement \
disable_clat disable_lat disable_slat disk_util do_verify donorname end_fsync error_dump \
exec_postrun exec_prerun exit_on_io_done exit_what exitall exitall_on_error \
experimental_verify fadvise_hint fallocate fdatasync file_append file_service_type filename \
filename_format filesize fill_device fixedbufs flow flow_id flow_sleep force_async fsync \
fsync_on_close gid grace_time group_reporting gtod_cpu gtod_reduce hipri hipri_percentage \
hostname hugepage-size ignore_error ignore_zone_limits inplace interface invalidate io_size \
io_submit_mode iodepth iodepth_batch iodepth_batch_complete_max iodepth_batch_complete_min \
iodepth_low ioengine iopsavgtime ioscheduler job_max_open_zones kb_base lat_percentiles \
latency_percentile latency_run latency_target latency_window listen lockfile lockmem \
log_alternate_epoch log_alternate_epoch_clock_id log_avg_msec log_compression \
log_compression_cpus log_entries log_hist_coarseness log_hist_msec log_max_value log_offset \
log_prio log_store_compressed log_unix_epoch loops max_latency max_open_zones mem \
merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars mss name new_group nice \
nodelay nonvectored norandommap nowait nrfiles numa_cpu_nodes numa_mem_policy number_ios \
numjobs offset offset_align offset_increment opendir openfiles overwrite per_job_logs \
percentage_random percentile_list pingpong pool port pre_read prio prioclass profile \
program protocol ramp_time random_distribution random_generator randrepeat randseed rate \
rate_cycle rate_ignore_thinktime rate_iops rate_iops_min rate_min rate_process rbdname \
read_beyond_wp read_iolog read_iolog_chunked readfua refill_buffers registerfiles \
replay_align replay_no_stall replay_redirect replay_scale replay_skip replay_time_scale \
runtime rw rw_sequencer rwmixread rwmixwrite scramble_buffers serialize_overlap \
sg_write_mode significant_figures single-instance size skip_bad slat_percentiles \
sqthread_poll sqthread_poll_cpu startdelay stat_type stats std_redirect steadystate \
steadystate_duration steadystate_ramp_time stonewall stream_id sync sync_file_range \
thinktime thinktime_blocks thinktime_blocks_type thinktime_iotime thinktime_spin thp thread \
time_based touch_objects trim_backlog trim_backlog_batch trim_percentage trim_verify_zero \
ttl uid uncached unified_rw_reporting unique_filename unit_base unlink unlink_each_loop uri \
userspace_reap verb verify verify_async verify_backlog verify_backlog_batch verify_dump \
verify_fatal verify_interval verify_offset verify_only verify_pattern verify_state_load \
verify_state_save volume wait_for window_size write_barrier write_bw_log write_hint \
write_hist_log write_iolog write_iops_log write_lat_log writefua zero_buffers \
zone_reset_frequency zone_reset_threshold zonecapacity zonemode zonerange zonesize zoneskip";

/// Options that are carried out.
const CARRIED_OUT: &str = "\
ba bs bs_unaligned bsrange bssplit buffer_compress_percentage buffer_pattern buffered direct \
filename fill_device io_submit_mode iodepth iodepth_low ioengine loops norandommap nrfiles numjobs \
offset offset_increment percentage_random ramp_time random_distribution rate rate_iops \
rate_process runtime rw rwmixread rwmixwrite size stonewall time_based wait_for zero_buffers";

#[test]
fn every_option_of_fio_is_carried_out_noted_as_without_effect_or_refused() {
    let mut carried_out = Vec::new();
    for option in OPTIONS.split_whitespace() {
        let mut is_noted = false;
        for value in ["", "=1", "=0", "=2", "=4k", "=randread", "=libaio", "=other"] {
            match import(&format!("[a]\n{option}{value}\n"), "a.fio") {
                Ok(ImportedProtocol { notes, .. }) => {
                    let unused = notes.iter().find_map(|it| it.split_once("effect on the load: "));
                    is_noted |=
                        unused.is_some_and(|(_, all)| all.split(", ").any(|it| it == option));
                }
                Err(refused) => {
                    assert!(!refused.text.contains("leave it out if it changes"), "{option}");
                    is_noted |= option::REFUSED.iter().any(|(keys, _)| keys.contains(&option));
                }
            }
        }
        if !is_noted {
            carried_out.push(option);
        }
    }
    assert_eq!(carried_out, CARRIED_OUT.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn options_of_a_report_are_known_by_what_is_built_in() {
    let known = "4k-rand-read";
    let options = [
        ("rw", "randread"),
        ("bs", "4k"),
        ("ioengine", "libaio"),
        ("iodepth", "16"),
        ("direct", "1"),
    ];
    let found = reported("my job", options.into_iter());
    assert_eq!(found.workload.map(|it| it.name).as_deref(), Some(known));
    assert_eq!((found.threads, found.queue_per_thread, found.is_cached), (1, 16, false));
    let other = [("rw", "randrw"), ("rwmixread", "63")];
    let found = reported("my job", other.into_iter());
    assert_eq!(found.workload.map(|it| it.name).as_deref(), Some("my-job"));
    assert!(found.is_cached, "fio's default");
}

#[test]
fn a_reported_load_that_no_workload_says_is_unknown() {
    let options = [("rw", "randwrite"), ("fsync", "1"), ("io_size", "1g")];
    let found = reported("my job", options.into_iter());
    assert_eq!((found.workload, found.unsaid), (None, vec!["fsync".to_owned()]));
}

#[test]
fn values_are_read_as_fio_reads_them() {
    assert_eq!(value::bytes("4k"), Ok(4096));
    assert_eq!(value::bytes("4kb"), Ok(4096));
    assert_eq!(value::bytes("4KiB"), Ok(4000), "the other way round, says fio's manual");
    assert_eq!((value::seconds("90"), value::seconds("1500ms")), (Ok(90), Ok(2)));
    assert_eq!(value::seconds("10m"), Ok(600));
}
