//! File formats of traces, and their detection.

use std::fmt;

use super::blkparse::Blkparse;
use super::iolog::IologLines;
use super::line::Lines;
use super::msr::Msr;
use super::spc::Spc;
use super::systor::Systor;

/// File format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's iolog, version 2: order and pauses.
    IologV2,
    /// fio's iolog, version 3: a time stamp for each request.
    IologV3,
    /// Text of blkparse in its default format.
    Blkparse,
    /// CSV of the traces of Microsoft Research Cambridge.
    Msr,
    /// The trace format of the Storage Performance Council.
    Spc,
    /// CSV of the traces of SYSTOR '17.
    Systor,
    /// Made from the shape of a workload, and never written down.
    Shape,
}

impl Format {
    /// The format of a file whose first line with anything on it is `line`.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let commas: Vec<&str> = line.split(',').map(str::trim).collect();
        match line.trim() {
            "fio version 2 iolog" => return Some(Self::IologV2),
            "fio version 3 iolog" => return Some(Self::IologV3),
            _ => {}
        }
        let number = |text: &str| text.parse::<f64>().is_ok();
        let is_systor_header = commas.get(1).is_some_and(|it| it.eq_ignore_ascii_case("response"));
        let is_systor = commas.len() == 6 && matches!(commas[2], "R" | "W") && number(commas[0]);
        if is_systor_header || is_systor {
            return Some(Self::Systor);
        }
        let is_header = commas.first().is_some_and(|first| first.eq_ignore_ascii_case("timestamp"));
        if is_header || (commas.len() >= 6 && matches!(commas[3], "Read" | "Write")) {
            return Some(Self::Msr);
        }
        if commas.len() >= 5 && matches!(commas[3], "r" | "R" | "w" | "W") && number(commas[0]) {
            return Some(Self::Spc);
        }
        let device = line.split_whitespace().next()?;
        let (major, minor) = device.split_once(',')?;
        (number(major) && number(minor)).then_some(Self::Blkparse)
    }

    /// A reader of its lines; absent for what is not read from lines.
    pub(super) fn lines(self) -> Option<Box<dyn Lines>> {
        match self {
            Self::IologV2 => Some(Box::new(IologLines::v2())),
            Self::IologV3 => Some(Box::new(IologLines::v3())),
            Self::Blkparse => Some(Box::new(Blkparse::default())),
            Self::Msr => Some(Box::new(Msr::default())),
            Self::Spc => Some(Box::new(Spc)),
            Self::Systor => Some(Box::new(Systor)),
            Self::Shape => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IologV2 => "fio iolog, version 2",
            Self::IologV3 => "fio iolog, version 3",
            Self::Blkparse => "blkparse text",
            Self::Msr => "MSR Cambridge CSV",
            Self::Spc => "SPC trace",
            Self::Systor => "SYSTOR '17 CSV",
            Self::Shape => "shape of a workload",
        })
    }
}
