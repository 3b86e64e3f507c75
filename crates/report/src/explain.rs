//! The prose: how to read each chart, and what each finding says.

use results::WarningKind;
use results::findings::FindingKind;

pub(crate) const THROUGHPUT: &str = "Reads and writes together in each interval: a purged drive \
    starts fast, falls off the cliff once its spare area is used up, and what counts is the level \
    that it then holds.";
pub(crate) const AVERAGE: &str = "Lower is better; with a constant number of requests \
    outstanding it mirrors the throughput.";
pub(crate) const APART: &str = "The same average with reads (solid) and writes (dashed) told \
    apart: reads wait behind programs and erases, writes behind relocation, and each shows its \
    own price.";
pub(crate) const MAXIMUM: &str = "The slowest single request of each interval: watch how often \
    peaks come, not only how high they are.";
pub(crate) const DEVIATION: &str = "How widely latencies scatter around the average within an \
    interval (reads' and writes' deviations averaged): a low, flat line is a drive that an \
    application can plan for.";
pub(crate) const BANDS: &str = "The line is the median of each interval; the filled space \
    reaches up to the latency that 99 % and, fainter, 99.9 % of its requests keep. A thin, flat \
    shape is a drive that an application can plan for.";
pub(crate) const TAILS: &str = "The latency that 99.9 % of the requests of each interval keep: a \
    low, flat line is a drive that an application can plan for.";
pub(crate) const STRIP: &str = "Each interval of the preconditioning. The bar on top marks the \
    window that was judged; the summary says whether the drive had settled by then.";
pub(crate) const DEPTH: &str = "What each doubling of the queue gains: where the line turns level, \
    more waiting buys latency and no throughput.";
pub(crate) const SWEEP_EFFICIENCY: &str = "Requests a second for each watt that the drive draws.";
pub(crate) const HEAT: &str = "The darker a cell, the more of the requests of its time had its \
    latency, counted in the histogram of each interval: a drive that can be planned for is one \
    thin dark line, and what lies high above it are the requests that somebody waits for.";
pub(crate) const AMPLIFICATION: &str = "Bytes programmed for each byte that the host wrote, \
    stacked by cause; the top edge is the write amplification, and what lies above 1 is the \
    price of sustained writing.";
pub(crate) const FREE: &str = "Superblocks that are erased and ready: the cliff comes when the \
    stock of a purged drive runs out, and settled relocation holds it just above its watermark.";
pub(crate) const POWER: &str = "What the drive drew on average in each interval; a dashed line is \
    what it may draw, and where the curve lies on it, writes are held back to stay there.";
pub(crate) const TEMPERATURE: &str = "What was read in each interval, at its end for a model; \
    intervals in which no sensor was read are left out. Dashed are the limits that the drive \
    tells, or from which its model holds writes back.";
pub(crate) const BARS: &str = "One bar for each run at one constant load; all bars start at zero.";
pub(crate) const SWEEP_THROUGHPUT: &str = "Each place is one load, threads by requests that each \
    keeps outstanding; a good drive gains with load and does not fall back.";
pub(crate) const SWEEP_AVERAGE: &str = "Latency rises with what is outstanding once throughput \
    no longer does; compare places of equal T×Q.";
pub(crate) const SWEEP_MAXIMUM: &str = "The slowest single request under each load.";
pub(crate) const SWEEP_DEVIATION: &str = "How widely latencies scatter under each load (reads' \
    and writes' deviations averaged).";
pub(crate) const CURVE: &str = "Each dot is one load, from light to heavy: a good drive goes far \
    to the right before it turns up. Of loads with equally many requests outstanding the one that \
    reaches most is drawn; the numbers have all.";
pub(crate) const LOAD_CURVE: &str = "Each dot is one rate that was asked for, at the rate that \
    came of it: solid is the latency of the requests themselves, dashed their response from the \
    moment at which they were due. The two part where requests wait at the host, and a line that \
    turns straight up has met the drive's limit.";
pub(crate) const ASKED: &str = "What came of each rate that was asked for: a drive keeps to the \
    line of what was asked until it cannot, and then stays level.";
pub(crate) const CONVERGENCE: &str = "What is tracked, in every round: a drive has settled once \
    five rounds in a row hold still.";
pub(crate) const WINDOW: &str = "The five rounds that were judged: all of them lie within 20 % of \
    their average from the least to the greatest, and the line fitted to them rises or falls by at \
    most 10 % of it, or the drive has not settled. The vertical axis shows the band alone.";
pub(crate) const ROUND_HEAT: &str = "Sizes by shares of reads and writes, averages over the rounds \
    of the window; the darker a cell, the greater its number.";
pub(crate) const TRANSACTIONS: &str = "A good drive gains with every client; where the line turns \
    level, the drive or the host is at its limit.";
pub(crate) const TRANSACTION_LATENCY: &str = "How long a transaction takes from its begin to its \
    commit: the average, and dashed the latency that 99 % of them keep.";
pub(crate) const PERCENTILES: &str = "Of all requests, the share on the x axis was answered \
    within the latency on the y axis; every step of the axis is ten times rarer, and a late, \
    gentle rise is a drive without surprises.";

/// The heading of warnings of `kind`.
pub(crate) const fn warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::Interrupted => "Stopped before its plan was done",
        WarningKind::NotSteady => "Steady state not reached",
        WarningKind::NotPreconditioned => "Not preconditioned",
        WarningKind::UnwrittenReads => "Reads of unwritten space",
        WarningKind::Submission => "Submission took much of the latency",
        WarningKind::QueueNotFilled => "Queue not filled",
        WarningKind::LittlesLaw => "Rate, latency and queue disagree",
        WarningKind::PageCache => "A cache in between",
        WarningKind::Environment => "The machine was not quiet",
        WarningKind::Purge => "Purge only imitated",
        WarningKind::Scale => "Not at full scale",
        WarningKind::Space => "Physical space runs out",
        WarningKind::Throttled => "The drive held its writes back",
        WarningKind::DieFailure => "A die failed",
    }
}

/// Returns the titles of a finding of `kind`: as a strength, and as a weakness.
pub(crate) const fn sentences(kind: FindingKind) -> (&'static str, &'static str) {
    match kind {
        FindingKind::BurstOverSettled => (
            "Holds close to its burst rate once settled",
            "Falls far from its burst rate once settled",
        ),
        FindingKind::Unsteady => ("Reaches steady state", "Did not reach steady state"),
        FindingKind::Deviation => ("Consistent latency", "Latency scatters widely"),
        FindingKind::Peak => {
            ("Worst requests stay near the average", "Worst requests stand far out")
        }
        FindingKind::ReadOverWrite => {
            ("Writes nearly as fast as it reads", "Settled writes far behind reads")
        }
        FindingKind::Scaling => ("Gains throughput with load", "More load gains little"),
        FindingKind::WriteAmplification => ("Low write amplification", "High write amplification"),
        FindingKind::HostParity => ("Alike on every host", "Depends on the host"),
        FindingKind::FormatGain => ("Formatting for performance pays", "Formatting gains little"),
    }
}

/// Returns the criterion of a finding of `kind` in words: a ratio, or a rule to be met.
pub(crate) const fn ratio(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::BurstOverSettled => "IOPS of the burst ÷ IOPS of the settled window",
        FindingKind::Unsteady => "whether five rounds met the steady-state rule",
        FindingKind::Deviation => "standard deviation ÷ average latency at the greatest load",
        FindingKind::Peak => "longest request at any load ÷ average latency at the greatest load",
        FindingKind::ReadOverWrite => "IOPS of 4K random reads ÷ of writes at the same load",
        FindingKind::Scaling => "IOPS at the greatest load ÷ at the least",
        FindingKind::WriteAmplification => "NAND writes ÷ host writes in the settled window",
        FindingKind::HostParity => "least ÷ greatest IOPS over hosts, at the worst load",
        FindingKind::FormatGain => "settled IOPS of the best format ÷ of the worst",
    }
}
