//! Recordings of real machines: text of blkparse in its default format (`blkparse(1)`), where
//! each request is issued to its driver (`D`) and completed (`C`).
//!
//! ```text
//! 259,0    3       11     0.009507758   697  D   W 223490 + 8 [postgres]
//! 259,0    3       12     0.009587760     0  C   W 223490 + 8 [0]
//! device   cpu     number seconds       pid  action, direction, sector + sectors [process]
//! ```

use std::collections::{BTreeMap, VecDeque};

use blockio::{Nanos, Op};

use super::{DeviceTrace, RecordedRequest};

/// Operation, first sector and sectors of a request, by which issue and completion are matched.
type Key = (Op, u64, u32);

/// A request that was issued.
struct IssuedRequest {
    at: Nanos,
    op: Op,
    fua: bool,
}

/// Parses the output of blkparse.
///
/// # Errors
/// Fails if a line is malformed, it has two devices, or no request is issued and completed. Names
/// the line and the expected form.
pub fn read_blkparse(text: &str) -> Result<DeviceTrace, String> {
    let mut trace = DeviceTrace::default();
    let mut open: BTreeMap<Key, VecDeque<IssuedRequest>> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The summary begins with one of these.
        if fields.first().is_some_and(|it| it.starts_with("CPU") || it.starts_with("Total")) {
            break;
        }
        let event = event(&fields).map_err(|text| format!("line {}: {text}", index + 1))?;
        let Some(Event { device, is_issue, at, op, fua, lba, sectors }) = event else { continue };
        if trace.device.is_empty() {
            device.clone_into(&mut trace.device);
        } else if trace.device != device {
            return Err(format!(
                "line {}: device {device} beside {}: trace one device, as blktrace -d has it",
                index + 1,
                trace.device
            ));
        }
        let waiting = open.entry((op, lba, sectors)).or_default();
        if is_issue {
            waiting.push_back(IssuedRequest { at, op, fua });
        } else if let Some(IssuedRequest { at: issued_at, op, fua }) = waiting.pop_front() {
            let completed_at = at.max(issued_at);
            let request =
                RecordedRequest { issued_at, completed_at, op, fua, lba, sectors, client: 0 };
            trace.requests.push(request);
        }
    }
    if trace.requests.is_empty() {
        return Err(
            "no request is issued (D) and completed (C) in it; blkparse prints both where \
                    blktrace recorded them, as it does by default"
                .to_owned(),
        );
    }
    trace.incomplete = open.values().map(|waiting| waiting.len() as u64).sum();
    Ok(trace.ordered())
}

/// Issue or completion of a request.
struct Event<'a> {
    device: &'a str,
    is_issue: bool,
    at: Nanos,
    op: Op,
    fua: bool,
    lba: u64,
    sectors: u32,
}

/// Event of a line; none for other actions and lines without a request.
fn event<'a>(fields: &[&'a str]) -> Result<Option<Event<'a>>, String> {
    let [device, _, _, seconds, _, action, rest @ ..] = fields else {
        // Blank lines, and messages of blkparse.
        return match fields.first() {
            Some(first) if first.contains(',') => {
                Err(format!("{} fields: no action", fields.len()))
            }
            _ => Ok(None),
        };
    };
    let is_issue = match *action {
        "D" => true,
        "C" => false,
        _ => return Ok(None),
    };
    let Some(direction) = rest.first() else { return Ok(None) };
    let at = seconds.parse::<f64>().ok().filter(|it| *it >= 0.0 && it.is_finite());
    let at = at.ok_or_else(|| format!("the time is `{seconds}`, not a number of seconds"))?;
    let at = Nanos::from_secs_f64(at);
    let mut event = Event { device, is_issue, at, op: Op::Flush, fua: false, lba: 0, sectors: 0 };
    if rest.get(2) != Some(&"+") {
        // Of requests without data, only flushes reach a drive.
        return Ok(direction.starts_with('F').then_some(event));
    }
    let (_, is_written) =
        direction.split_once('W').map_or(("", None), |(it, after)| (it, Some(after)));
    event.op = match is_written {
        Some(_) => Op::Write,
        None if direction.contains('D') => Op::Trim,
        None if direction.contains('R') => Op::Read,
        None => return Ok(None),
    };
    event.fua = is_written.is_some_and(|after| after.contains('F'));
    let wrong = |what: &str, text: &str| format!("{what} is `{text}`, not a whole number");
    let (sector, sectors) =
        (rest.get(1).copied().unwrap_or(""), rest.get(3).copied().unwrap_or(""));
    event.lba = sector.parse().map_err(|_| wrong("the sector", sector))?;
    event.sectors = sectors.parse().map_err(|_| wrong("the number of sectors", sectors))?;
    let end = event.lba.checked_add(event.sectors.into());
    let end = end.filter(|end| end.checked_mul(blockio::SECTOR_BYTES).is_some());
    end.ok_or_else(|| format!("sector {sector} + {sectors} is beyond any device"))?;
    Ok((event.sectors > 0).then_some(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
259,0    1        1     5.000000000   697  Q   W 100 + 8 [postgres]
259,0    1        2     5.000001000   697  D   W 100 + 8 [postgres]
259,0    1        3     5.000002000   697  D  RA 800 + 32 [postgres]
259,0    1        4     5.000050000     0  C   W 100 + 8 [0]
259,0    1        5     5.000060000   697  D  FN [kworker]
259,0    1        6     5.000070000     0  C  RA 800 + 32 [0]
259,0    1        7     5.000090000     0  C  FN 0 [0]
259,0    1        8     5.000100000   697  D WFSM 108 + 8 [jbd2]
259,0    1        9     5.000110000   697  D   D 4096 + 64 [fstrim]
259,0    1       10     5.000120000     0  C WFSM 108 + 8 [0]
259,0    1       11     5.000130000     0  C   D 4096 + 64 [0]
259,0    1       12     5.000140000   697  D   R 0 + 8 [cat]
259,0    1       13     5.000150000   697  m   N cfq workload
CPU1 (259,0):
 Reads Queued:           2,       20KiB
";

    #[test]
    fn issues_and_completions_make_requests() {
        let trace = read_blkparse(TEXT).unwrap();
        assert_eq!((trace.device.as_str(), trace.incomplete), ("259,0", 1));
        let found: Vec<(u64, u64, Op, bool, u64, u32)> = trace
            .requests
            .iter()
            .map(|it| (it.issued_at.0, it.completed_at.0, it.op, it.fua, it.lba, it.sectors))
            .collect();
        let expected = [
            (0, 49_000, Op::Write, false, 100, 8),
            (1_000, 69_000, Op::Read, false, 800, 32),
            (59_000, 89_000, Op::Flush, false, 0, 0),
            (99_000, 119_000, Op::Write, true, 108, 8),
            (109_000, 129_000, Op::Trim, false, 4096, 64),
        ];
        assert_eq!(found, expected);
        assert_eq!(trace.end_lba(), 4160);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, said) in [
            ("", "no request is issued (D) and completed (C)"),
            ("259,0 1 1 x 1 D R 0 + 8 [a]", "line 1: the time is `x`"),
            ("259,0 1 1 1.0 1 D R z + 8 [a]", "line 1: the sector is `z`"),
            ("259,0 1 1 1.0 1 D R 1 + y [a]", "line 1: the number of sectors is `y`"),
            ("259,0 1 1 1.0", "line 1: 4 fields: no action"),
            ("259,0 1 1 1.0 1 D R 36028797018963968 + 8 [a]", "is beyond any device"),
            (
                "259,0 1 1 1.0 1 D R 0 + 8 [a]\n8,0 1 1 1.0 1 C R 0 + 8 [a]",
                "line 2: device 8,0 beside 259,0",
            ),
        ] {
            let error = read_blkparse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
