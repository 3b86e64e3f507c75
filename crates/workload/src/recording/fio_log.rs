//! Recordings of fio jobs: the iolog of a job has its requests, its latency log their latencies
//! (fio's HOWTO, `write_iolog`, `write_lat_log` with `log_offset`, and "Log File Formats").
//!
//! ```text
//! iolog     255 /dev/sda read 1011712 4096     us of the issue, file, action, offset, bytes
//! latency   0, 298039, 0, 4096, 1011712, 0     ms of the completion, ns, 0 read 1 write 2 trim,
//!                                              bytes, offset, priority
//! ```
//!
//! A request has the latency of the first unused entry with its direction, size and offset. The log
//! has no latencies of syncs: a job waits for its sync, so that one ends before the job's next
//! request.

use std::collections::{BTreeMap, VecDeque};

use blockio::{Nanos, Op, SECTOR_BYTES};

use super::{DeviceTrace, RecordedRequest};

/// First line of an iolog with times.
const VERSION_3: &str = "fio version 3 iolog";

/// Logs of a job of fio.
#[derive(Clone, Copy, Debug)]
pub struct FioLogs<'a> {
    /// Text of its iolog, version 3.
    pub iolog: &'a str,
    /// Text of its log of latencies, with offsets and without averages.
    pub latency_log: &'a str,
}

/// Latencies by operation, offset and bytes, in order of completion.
type LatencyTable = BTreeMap<(Op, u64, u64), VecDeque<Nanos>>;

/// Reads the logs of jobs that fio ran at once on one device; each job is a client.
///
/// # Errors
/// Fails if a line is broken, the jobs are of several files, or the logs do not belong together,
/// and says which job and line and what would be right.
pub fn read_fio(jobs: &[FioLogs<'_>]) -> Result<DeviceTrace, String> {
    let mut trace = DeviceTrace::default();
    for (client, job) in (0_u16..).zip(jobs) {
        let at = |text| format!("job {}: {text}", client + 1);
        let latencies = latencies(job.latency_log).map_err(at)?;
        read_job(&mut trace, client, job.iolog, latencies).map_err(at)?;
    }
    if trace.requests.is_empty() {
        return Err("no request of the iolog has a latency in the log".to_owned());
    }
    Ok(trace.ordered())
}

fn read_job(
    trace: &mut DeviceTrace,
    client: u16,
    iolog: &str,
    mut latencies: LatencyTable,
) -> Result<(), String> {
    let mut lines = (1..).zip(iolog.lines());
    if lines.next().map(|(_, line)| line.trim_end()) != Some(VERSION_3) {
        return Err(format!("the iolog does not begin with `{VERSION_3}`: others have no times"));
    }
    let begun = (trace.requests.len(), trace.incomplete);
    // A sync ends before the next request of its job.
    let mut sync: Option<usize> = None;
    for (number, line) in lines {
        let logged = logged(line).map_err(|text| format!("line {number} of the iolog: {text}"))?;
        let Some(LoggedRequest { file, at, op, offset, bytes }) = logged else { continue };
        if trace.device.is_empty() {
            file.clone_into(&mut trace.device);
        } else if trace.device != file {
            let device = &trace.device;
            return Err(format!(
                "line {number} of the iolog: file {file} beside {device}: log one device"
            ));
        }
        if let Some(sync) = sync.take() {
            trace.requests[sync].completed_at = at;
        }
        let request = |completed_at| {
            let (lba, end) = (offset / SECTOR_BYTES, (offset + bytes).div_ceil(SECTOR_BYTES));
            let sectors = u32::try_from(end - lba)
                .map_err(|_| format!("line {number} of the iolog: {bytes} bytes at once"))?;
            let fua = false;
            Ok::<_, String>(RecordedRequest {
                issued_at: at,
                completed_at,
                op,
                fua,
                lba,
                sectors,
                client,
            })
        };
        if op == Op::Flush {
            sync = Some(trace.requests.len());
            trace.requests.push(RecordedRequest { lba: 0, sectors: 0, ..request(at)? });
            continue;
        }
        let latency = latencies.get_mut(&(op, offset, bytes));
        match latency.and_then(VecDeque::pop_front) {
            Some(latency) => trace.requests.push(request(at + latency)?),
            None => trace.incomplete += 1,
        }
    }
    let (kept, missing) = (trace.requests.len() - begun.0, trace.incomplete - begun.1);
    if missing > kept as u64 {
        return Err(format!(
            "{missing} of {} requests have no latency in the log: it is of another job, or of \
             averages (log_avg_msec)",
            missing + kept as u64
        ));
    }
    Ok(())
}

/// A request as the iolog has it.
struct LoggedRequest<'a> {
    file: &'a str,
    at: Nanos,
    op: Op,
    offset: u64,
    bytes: u64,
}

/// The request of a line; none if it opens or closes a file.
fn logged(line: &str) -> Result<Option<LoggedRequest<'_>>, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [us, file, action, rest @ ..] = fields.as_slice() else {
        let text = format!("{} fields, not a time, a file and an action", fields.len());
        return if fields.is_empty() { Ok(None) } else { Err(text) };
    };
    let op = match *action {
        "add" | "open" | "close" => return Ok(None),
        "read" => Op::Read,
        "write" => Op::Write,
        "trim" => Op::Trim,
        "sync" | "datasync" => Op::Flush,
        other => return Err(format!("`{other}` is not an action of an iolog")),
    };
    let at = Nanos(whole(Some(us), "the time")?.saturating_mul(1000));
    let offset = whole(rest.first().copied(), "the offset")?;
    let bytes = whole(rest.get(1).copied(), "the length")?;
    if offset.checked_add(bytes).is_none() {
        return Err(format!("{bytes} bytes at {offset} are beyond any device"));
    }
    Ok((bytes > 0 || op == Op::Flush).then_some(LoggedRequest { file, at, op, offset, bytes }))
}

fn latencies(log: &str) -> Result<LatencyTable, String> {
    let mut table = LatencyTable::new();
    for (number, line) in (1..).zip(log.lines()) {
        let at = |text| format!("line {number} of the latency log: {text}");
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [_, latency, direction, bytes, offset, _] = fields[..] else {
            return Err(at(format!(
                "{} fields, not 6: fio logs offsets with log_offset=1",
                fields.len()
            )));
        };
        let latency = Nanos(whole(Some(latency), "the latency").map_err(at)?);
        let op = match direction {
            "0" => Op::Read,
            "1" => Op::Write,
            "2" => Op::Trim,
            _ => return Err(at("the direction is not 0, 1 or 2".to_owned())),
        };
        let bytes = whole(Some(bytes), "the size").map_err(at)?;
        let offset = whole(Some(offset), "the offset").map_err(at)?;
        table.entry((op, offset, bytes)).or_default().push_back(latency);
    }
    Ok(table)
}

fn whole(text: Option<&str>, what: &str) -> Result<u64, String> {
    let text = text.unwrap_or_default();
    text.parse().map_err(|_| format!("{what} is `{text}`, not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 wrote them.
    const IOLOG: &str = "\
fio version 3 iolog
16 f add
255 f open
261 f read 4096 4096
370 f write 16384 8192
378 f read 4096 4096
900 f sync 16384 0
3598 f trim 0 65536
3600 f datasync 0 0
3700 f close
";
    const LATENCIES: &str = "\
0, 298039, 0, 4096, 4096, 0
0, 309055, 1, 8192, 16384, 0
0, 100000, 0, 4096, 4096, 0
3, 20000, 2, 65536, 0, 0
";

    #[test]
    fn requests_have_the_latencies_of_the_log() {
        let job = FioLogs { iolog: IOLOG, latency_log: LATENCIES };
        let trace = read_fio(&[job]).unwrap();
        assert_eq!((trace.device.as_str(), trace.incomplete, trace.end_lba()), ("f", 0, 128));
        let found: Vec<(u64, u64, Op, u64, u32)> = trace
            .requests
            .iter()
            .map(|it| (it.issued_at.0, it.completed_at.0, it.op, it.lba, it.sectors))
            .collect();
        let expected = [
            (0, 298_039, Op::Read, 8, 8),
            (109_000, 418_055, Op::Write, 32, 16),
            (117_000, 217_000, Op::Read, 8, 8),
            // Until the next request of the job.
            (639_000, 3_337_000, Op::Flush, 0, 0),
            (3_337_000, 3_357_000, Op::Trim, 0, 128),
            // Nothing came after it.
            (3_339_000, 3_339_000, Op::Flush, 0, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_job_is_a_client() {
        let job = FioLogs { iolog: IOLOG, latency_log: LATENCIES };
        let trace = read_fio(&[job, job]).unwrap();
        assert_eq!(trace.requests.len(), 12);
        assert_eq!(trace.requests.iter().filter(|it| it.client == 1).count(), 6);
    }

    #[test]
    fn logs_that_are_not_of_one_job_are_refused_with_what_would_be_right() {
        for (iolog, latency_log, said) in [
            ("fio version 2 iolog\n", LATENCIES, "job 1: the iolog does not begin with"),
            (IOLOG, "0, 1, 0, 4096, 0\n", "job 1: line 1 of the latency log: 5 fields, not 6"),
            (IOLOG, "0, 1, 3, 4096, 0, 0\n", "the direction is not 0, 1 or 2"),
            (IOLOG, "0, 1, 0, 512, 0, 0\n", "job 1: 4 of 6 requests have no latency"),
            ("fio version 3 iolog\n1 f read x 1\n", "", "line 2 of the iolog: the offset is `x`"),
            ("fio version 3 iolog\n1 f\n", "", "line 2 of the iolog: 2 fields"),
            ("fio version 3 iolog\n1 f wait 1 1\n", "", "`wait` is not an action"),
            ("fio version 3 iolog\n", "", "no request of the iolog has a latency"),
            (
                "fio version 3 iolog\n1 f sync 0 0\n1 g sync 0 0\n",
                "",
                "line 3 of the iolog: file g beside f",
            ),
        ] {
            let error = read_fio(&[FioLogs { iolog, latency_log }]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
