//! One row of a table of figures, and reading the table.

use std::collections::BTreeSet;
use std::fmt;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::{FiguresError, Loads, Metric};
use crate::Figure;

/// The columns, in their order.
const COLUMNS: [&str; 15] = [
    "id",
    "document",
    "device",
    "capacity_gb",
    "mode",
    "os",
    "workload",
    "threads",
    "queue_per_thread",
    "phase",
    "metric",
    "value_low",
    "value_high",
    "confidence",
    "note",
];

/// One row: what was published, about which drive, under which load.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRow {
    /// Name of the row, unique in its table, such as `A084`.
    pub id: String,
    /// Document that it was published in.
    pub document: String,
    /// Name of the drive there.
    pub device: String,
    /// Capacity on its label, in decimal GB; absent where a row is about several.
    pub capacity_gb: Option<f64>,
    /// Format, such as `stock`; what the data is like, such as `compressed-2:1`; or `any`.
    pub mode: String,
    /// Operating system, or `any`.
    pub os: String,
    /// Workload of the catalogue, or a name of its own where there is none.
    pub workload: String,
    /// Jobs as published: empty, `16`, or a range `2-16`.
    pub threads: String,
    /// Outstanding a job as published.
    pub queue_per_thread: String,
    /// Phase of the test.
    pub phase: Phase,
    /// Metric with its unit last, such as `iops` or `avg_latency_ms`.
    pub metric: String,
    /// Value, lower end; absent only in a garbled row.
    pub value_low: Option<f64>,
    /// Value, upper end; the lower one where only one was published.
    pub value_high: Option<f64>,
    /// Confidence in the value.
    pub confidence: Confidence,
    /// A remark.
    pub note: String,
}

/// Phase of a test in which a figure was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// On a purged drive.
    Burst,
    /// At the end of the preconditioning.
    PreconditionEnd,
    /// After settling.
    Steady,
    /// In the primary test.
    Primary,
    /// Not at all: a data sheet says so, of the drive at its best.
    Datasheet,
    /// Not at all: a data sheet says so, of a settled drive.
    Sustained,
}

/// Confidence in a published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// As printed.
    Exact,
    /// Put right by arithmetic, see the note.
    Corrected,
    /// Could not be put right: never compared with anything.
    Garbled,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::Burst,
        Self::PreconditionEnd,
        Self::Steady,
        Self::Primary,
        Self::Datasheet,
        Self::Sustained,
    ];

    /// The phase called `name` in a table.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// True if a data sheet states the figure, and does not say at which load.
    pub const fn is_stated(self) -> bool {
        matches!(self, Self::Datasheet | Self::Sustained)
    }

    /// Its name in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::PreconditionEnd => "precondition-end",
            Self::Steady => "steady",
            Self::Primary => "primary",
            Self::Datasheet => "datasheet",
            Self::Sustained => "datasheet-sustained",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FigureRow {
    /// Reason why no run can be compared with it; absent where one could.
    pub fn obstacle(&self) -> Option<&'static str> {
        if self.confidence == Confidence::Garbled {
            return Some("the value is garbled in its source");
        }
        let unknown = self.measured_metric().is_none();
        unknown.then_some("not a metric that a run has")
    }

    /// Its metric; absent where no run has it.
    pub fn measured_metric(&self) -> Option<Metric> {
        Metric::named(&self.metric)
    }

    /// The loads that it was measured at; absent where they are not numbers or ranges.
    pub fn loads(&self) -> Option<Loads> {
        Loads::parse(&self.threads, &self.queue_per_thread)
    }

    /// The row as a run keeps it, nothing measured yet; absent for a garbled one.
    pub fn figure(&self) -> Option<Figure> {
        if self.confidence == Confidence::Garbled {
            return None;
        }
        Some(Figure {
            id: self.id.clone(),
            document: self.document.clone(),
            mode: self.mode.clone(),
            host: self.os.clone(),
            workload: self.workload.clone(),
            threads: self.threads.clone(),
            queue_per_thread: self.queue_per_thread.clone(),
            phase: self.phase.name().to_owned(),
            metric: self.metric.clone(),
            value_low: self.value_low?,
            value_high: self.value_high?,
            measured: None,
            note: self.note.clone(),
        })
    }
}

pub(super) fn parse(text: &str, file: &str) -> Result<Vec<FigureRow>, FiguresError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let at = |line| Place { file, line };
    let headers = reader.headers().map_err(|error| at(1).torn(&error))?;
    if headers != COLUMNS[..] {
        return Err(at(1).wrong("", format!("the columns are not {}", COLUMNS.join(","))));
    }
    let mut rows = Vec::new();
    let mut ids = BTreeSet::new();
    for record in reader.records() {
        let record = record.map_err(|error| at(line_of(text, error.position())).torn(&error))?;
        let place = at(line_of(text, record.position()));
        let row = row(&record, &place)?;
        if !ids.insert(row.id.clone()) {
            return Err(place.wrong("id", format!("`{}` is the id of an earlier row", row.id)));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Line, from 1, in which the record at `position` begins. The reader's own count does not know of
/// blank lines before it.
fn line_of(text: &str, position: Option<&csv::Position>) -> u64 {
    let at = position.and_then(|position| usize::try_from(position.byte()).ok()).unwrap_or(0);
    let at = at.min(text.len());
    let blank = text.as_bytes()[at..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
    let before = text.as_bytes()[..at + blank].split(|byte| *byte == b'\n').count();
    before as u64
}

fn row(record: &StringRecord, place: &Place<'_>) -> Result<FigureRow, FiguresError> {
    let cell = |column: &str| {
        let index = COLUMNS.iter().position(|name| *name == column);
        index.and_then(|index| record.get(index)).unwrap_or_default()
    };
    let filled = |column: &str| match cell(column) {
        "" => Err(place.wrong(column, "is empty".to_owned())),
        text => Ok(text.to_owned()),
    };
    let number = |column: &str| match cell(column) {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(place.wrong(column, format!("`{text}` is not a number"))),
        },
    };
    let confidence = match cell("confidence") {
        "exact" => Confidence::Exact,
        "corrected" => Confidence::Corrected,
        "garbled" => Confidence::Garbled,
        other => {
            let text = format!("`{other}` is not one of exact, corrected, garbled");
            return Err(place.wrong("confidence", text));
        }
    };
    let phase = Phase::named(cell("phase")).ok_or_else(|| {
        let names = Phase::ALL.map(Phase::name).join(", ");
        place.wrong("phase", format!("`{}` is not one of {names}", cell("phase")))
    })?;
    let value_low = number("value_low")?;
    let value_high = number("value_high")?.or(value_low);
    if value_low.is_none() && confidence != Confidence::Garbled {
        return Err(place.wrong("value_low", "is empty; only a garbled row may lack it".into()));
    }
    if value_high < value_low {
        return Err(place.wrong("value_high", "is below value_low".into()));
    }
    Ok(FigureRow {
        id: filled("id")?,
        document: cell("document").to_owned(),
        device: filled("device")?,
        capacity_gb: number("capacity_gb")?,
        mode: filled("mode")?,
        os: filled("os")?,
        workload: filled("workload")?,
        threads: cell("threads").to_owned(),
        queue_per_thread: cell("queue_per_thread").to_owned(),
        phase,
        metric: filled("metric")?,
        value_low,
        value_high,
        confidence,
        note: cell("note").to_owned(),
    })
}

/// File and line, for errors.
struct Place<'a> {
    file: &'a str,
    line: u64,
}

impl Place<'_> {
    fn wrong(&self, column: &str, text: String) -> FiguresError {
        let text = if column.is_empty() { text } else { format!("column {column}: {text}") };
        FiguresError { file: self.file.into(), line: self.line, column: column.into(), text }
    }

    fn torn(&self, error: &csv::Error) -> FiguresError {
        let text = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} columns instead of {expected_len}")
            }
            _ => "not UTF-8 text with comma-separated columns".to_owned(),
        };
        self.wrong("", text)
    }
}
