//! The prose: how to read each chart, and what each finding says.

use results::WarningKind;
use results::findings::FindingKind;

pub(crate) const THROUGHPUT: &str = "Reads and writes together in each interval: a purged drive \
    starts fast and falls off the cliff once its spare area is used up; the level that it then \
    holds is its steady-state rate.";
pub(crate) const AVERAGE: &str = "Lower is better; with a constant number of requests \
    outstanding it mirrors the throughput.";
pub(crate) const APART: &str = "The same average for reads (solid) and writes (dashed) \
    separately: reads wait for programs and erases, writes for relocation.";
pub(crate) const MAXIMUM: &str = "The slowest single request of each interval: the number of \
    peaks matters as much as their height.";
pub(crate) const MAXIMUM_LISTED: &str = "The slowest single request of each interval. The file of \
    this model lists stalls of the host by period and length, chosen to meet published maxima: \
    requests that took about as long as the longest of them are marks beside the line, and say \
    nothing about the drive.";
pub(crate) const DEVIATION: &str = "How widely the latencies of all requests scatter around the \
    average within an interval. A low, flat line is a drive with predictable latency.";
pub(crate) const BANDS: &str = "The line is the median of each interval; the filled area \
    reaches up to the 99th and, fainter, the 99.9th percentile. A thin, flat shape is a drive \
    with predictable latency.";
pub(crate) const TAILS: &str = "The 99.9th percentile of latency in each interval: a low, flat \
    line is a drive with predictable latency.";
pub(crate) const STRIP: &str = "Each interval of the preconditioning. The bar on top marks \
    the five rounds in which the drive first met the steady-state rule, or the last five if it \
    never did. The number at the end of the line is the last interval; the summary has the \
    average of the last five rounds.";
pub(crate) const DEPTH: &str = "The gain of each doubling of the queue depth: where the line \
    turns level, more outstanding requests add latency and no throughput.";
pub(crate) const SWEEP_EFFICIENCY: &str = "Requests a second for each watt that the drive draws; \
    the power of a model follows from the energies in its file, which are mostly estimated.";
pub(crate) const HEAT: &str = "The stronger the colour of a cell, the larger the share of \
    requests with this latency at this time, from the histogram of each interval. A drive with \
    predictable latency is one thin strong line; cells high above it are outliers.";
pub(crate) const AMPLIFICATION: &str = "Bytes programmed for each byte that the host wrote, \
    stacked by cause; the top edge is the write amplification, and the part above 1 is the \
    cost of sustained writing.";
pub(crate) const FREE: &str = "Erased superblocks that are ready to be written: the cliff comes \
    when a purged drive has used them up, and relocation then keeps them just above the watermark.";
pub(crate) const HIT_RATE: &str = "Share of the bytes read that the fast class held, whichever \
    class they were read from.";
pub(crate) const WRITTEN_SHARE: &str = "Share of the fast class's space for written data that is \
    in use at the end of each interval: at 100 % writes wait for destaging.";
pub(crate) const POWER: &str = "Average power in each interval; a dashed line is the power limit. \
    Where the curve touches the limit, writes are throttled. The power of a model follows from the \
    energies in its file, which are mostly estimated.";
pub(crate) const TEMPERATURE: &str = "Temperature in each interval, for a model at its end; \
    intervals without a sensor reading are left out. Dashed lines are the limits that the drive \
    reports, or at which its model throttles.";
pub(crate) const BARS: &str = "One bar for each run at one constant load; all bars start at zero.";
pub(crate) const SWEEP_THROUGHPUT: &str = "Each position is one load, threads by queue depth; a \
    good drive gains with load and does not fall back.";
pub(crate) const SWEEP_AVERAGE: &str = "Latency rises with the outstanding requests once \
    throughput no longer does; compare positions of equal T×Q.";
pub(crate) const SWEEP_MAXIMUM: &str = "The slowest single request under each load.";
pub(crate) const SWEEP_MAXIMUM_LISTED: &str = "The slowest single request under each load. The \
    file of this model lists stalls of the host by period and length, chosen to meet published \
    maxima: peaks of that length come from this list and say nothing about the drive.";
pub(crate) const SWEEP_DEVIATION: &str = "How widely the latencies of all requests scatter under \
    each load.";
pub(crate) const CURVE: &str = "Each dot is one load, from light to heavy: a good drive goes far \
    to the right before it turns up. Among loads with the same number of outstanding requests, the \
    fastest is drawn; the table has all.";
pub(crate) const LOAD_CURVE: &str = "Each dot is one requested rate, drawn at the achieved rate: \
    solid is the latency from submission, dashed the response time from the moment at which \
    requests were due. The two differ where requests wait at the host, and a line that turns \
    straight up has met the drive's limit.";
pub(crate) const ASKED: &str = "Achieved rate for each requested rate: a drive follows the line \
    of requested rates up to its limit, and then stays level.";
pub(crate) const CONVERGENCE: &str = "The tracked metric in every round: a drive is in steady \
    state once five consecutive rounds meet the steady-state rule.";
pub(crate) const WINDOW: &str = "The five rounds that were judged. In steady state, their range is \
    at most 20 % of their average, and the line fitted to them rises or falls by at most 10 %. The \
    vertical axis does not start at zero.";
pub(crate) const ROUND_HEAT: &str = "Sizes by shares of reads and writes, averages over the rounds \
    of the window; the stronger the colour of a cell, the greater its value. A percentile beyond \
    which fewer than ten requests lie is not shown (–).";
pub(crate) const TRANSACTIONS: &str = "A good drive gains with every client; where the line turns \
    level, the drive or the host is at its limit.";
pub(crate) const TRANSACTION_LATENCY: &str = "Transaction latency. Solid: the average, scaled from \
    the recording's average by replay time ÷ recording time (Little's law). Dashed: the 99th \
    percentile of the logged transactions, from begin to commit in the replay. The two are \
    computed differently; do not compare them with each other.";
pub(crate) const HOST_SHARE: &str = "Share of the host's think times in the critical path of the \
    replay. A faster drive shortens only the rest.";
pub(crate) const NODE_LATENCY: &str = "Average latency in each interval, calculated from the rate \
    by Little's law; one line for each drive. Peaks are intervals in which the drive was slow, or \
    in which the recording has few requests.";
pub(crate) const NODE_RATE: &str = "Requests completed in each interval, divided by the requests \
    per transaction of the whole recording; one line for each drive. The line falls while the \
    drive is slow, for instance during garbage collection, or while the recording has few \
    requests.";
pub(crate) const PERCENTILES: &str = "The share of requests on the x axis completed within the \
    latency on the y axis; each step of the axis is ten times rarer. A late, gentle rise is a \
    drive with few outliers.";

/// The heading of warnings about a preconditioning that wrote too little.
pub(crate) const TOO_LITTLE_WRITTEN: &str = "Preconditioning wrote too little";

/// The heading of warnings of `kind`.
pub(crate) const fn warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::Interrupted => "Stopped before the plan was finished",
        WarningKind::NotSteady => "Steady state not reached",
        WarningKind::NotPreconditioned => "Not preconditioned",
        WarningKind::UnwrittenReads => "Reads of unwritten space",
        WarningKind::Submission => "Submission took much of the latency",
        WarningKind::QueueNotFilled => "Queue not filled",
        WarningKind::LittlesLaw => "Rate, latency and queue disagree",
        WarningKind::Unfinished => "Requests are missing from the figures",
        WarningKind::Lateness => "Replies were later than in the model",
        WarningKind::PageCache => "A page cache was used",
        WarningKind::Environment => "The test environment affects the figures",
        WarningKind::Purge => "Purge only emulated",
        WarningKind::Scale => "Not at full scale",
        WarningKind::Space => "Physical space runs out",
        WarningKind::Throttled => "The drive throttled its writes",
        WarningKind::DieFailure => "A die failed",
    }
}

/// Returns the titles of a finding of `kind`: as a strength, and as a weakness.
pub(crate) const fn sentences(kind: FindingKind) -> (&'static str, &'static str) {
    match kind {
        FindingKind::BurstOverSettled => (
            "Steady-state IOPS close to those of the burst",
            "Steady-state IOPS far below those of the burst",
        ),
        FindingKind::Unsteady => ("Reaches steady state", "Did not reach steady state"),
        FindingKind::Deviation => ("Consistent latency", "Latency scatters widely"),
        FindingKind::Peak => {
            ("Slowest requests stay near the average", "Slowest requests are extreme outliers")
        }
        FindingKind::ReadOverWrite => {
            ("Writes nearly as fast as it reads", "Writes far slower than it reads")
        }
        FindingKind::Scaling => {
            ("Throughput rises with load", "Throughput gains little or nothing with load")
        }
        FindingKind::WriteAmplification => ("Low write amplification", "High write amplification"),
        FindingKind::HostDifference => ("Same speed on every host", "Depends on the host"),
        FindingKind::FormatGain => ("Large gain from the format", "Small gain from the format"),
    }
}

/// Returns the words between the title of a finding of `kind` and its cases.
pub(crate) const fn before_cases(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::BurstOverSettled | FindingKind::Unsteady => "",
        FindingKind::Deviation => "the standard deviation is ",
        FindingKind::Peak => "beside the average, the longest takes ",
        FindingKind::ReadOverWrite => "beside writes, it reads at ",
        FindingKind::Scaling => "beside the least load, the greatest gives ",
        FindingKind::WriteAmplification => "for each byte written, flash takes ",
        FindingKind::HostDifference => "of the IOPS of the faster host, the slower reaches ",
        FindingKind::FormatGain => "beside the other format, steady-state IOPS reach ",
    }
}

/// Returns the criterion of a finding of `kind` in words: a ratio, or a rule to be met.
pub(crate) const fn ratio(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::BurstOverSettled => "IOPS of the burst ÷ IOPS in steady state",
        FindingKind::Unsteady => "five rounds that meet the steady-state rule",
        FindingKind::Deviation => "standard deviation ÷ average latency at the greatest load",
        FindingKind::Peak => "longest request at any load ÷ average latency at the greatest load",
        FindingKind::ReadOverWrite => "IOPS of 4K random reads ÷ of writes at the same load",
        FindingKind::Scaling => "IOPS at the greatest load ÷ at the least",
        FindingKind::WriteAmplification => "NAND writes ÷ host writes in steady state",
        FindingKind::HostDifference => "least ÷ greatest IOPS over hosts, at the worst load",
        FindingKind::FormatGain => "steady-state IOPS of the best format ÷ of the worst",
    }
}
