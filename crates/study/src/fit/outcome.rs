//! Result of a fit, for people and programs.

use blockio::text::stated_load;
use results::published::{FigureRow, Phase};
use serde::Serialize;

use super::figures::Contradiction;
use crate::validate::tolerance;

/// Result of a fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The drive's file with the numbers that were found.
    pub drive: String,
    /// Assumption about what the figures do not state; absent where they state all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
    /// The numbers.
    pub parameters: Vec<FittedNumber>,
    /// Every figure about the drive, used or not.
    pub figures: Vec<JudgedFigure>,
    /// Figures that cannot all be true; none of them was used.
    pub contradictions: Vec<Contradiction>,
    /// Median error of the figures used, each predicted by a fit to all loads but its own (linear,
    /// about the best point); as a share, such as 0.08.
    pub left_out_error_median: Option<f64>,
    /// Median error of the rates alone, computed alike.
    pub left_out_rate_error_median: Option<f64>,
    /// Drives that were looked at.
    pub evaluations: usize,
    /// Time lapse at which they were.
    pub time_lapse_search: u32,
    /// True if the figures are what the protocols measured on the fitted drive; else the fit was
    /// stopped, and they are estimates from short looks.
    pub verified: bool,
    /// True if the fit was stopped: the numbers are the best that were found by then, and say
    /// nothing of how well they are determined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// Number that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedNumber {
    /// Path of the number in the drive's file, such as `controller.relocate_us`.
    pub path: String,
    /// Least value allowed.
    pub low: f64,
    /// Greatest value allowed.
    pub high: f64,
    /// Value in the file before the fit.
    pub start: f64,
    /// Fitted value.
    pub value: f64,
    /// One standard deviation of it, in its unit, from the scatter of the figures about the model;
    /// errors that figures share, such as a mechanism that the model lacks, are not in it.
    pub deviation: f64,
    /// True if the figures tell next to nothing of the number.
    pub undetermined: bool,
    /// Loads that fixed it, the one that tells most of it first; empty where it is undetermined.
    pub fixed_by: Vec<String>,
    /// Numbers whose errors go with its own: only together are they determined.
    pub goes_with: Vec<String>,
    /// True if the value lies at one of its bounds.
    pub at_bound: bool,
}

/// One figure beside what the drive does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedFigure {
    /// Name of the row.
    pub id: String,
    /// Format and host of the model: `stock linux`; empty where it cannot be compared.
    pub setup: String,
    /// Workload as published.
    pub workload: String,
    /// Load as published: `T16Q16`.
    pub load: String,
    /// Phase of the test, as published.
    pub phase: String,
    /// Metric, whose name implies the unit: `mb_s`.
    pub metric: String,
    /// Published value, lower end.
    pub value_low: Option<f64>,
    /// Published value, upper end.
    pub value_high: Option<f64>,
    /// Value on the drive of the file, before the fit.
    pub start: Option<f64>,
    /// Value on the fitted drive.
    pub fitted: Option<f64>,
    /// Fitted over published; over the nearest end of a range.
    pub ratio: Option<f64>,
    /// True if the ratio is within the tolerance of the metric.
    pub within: Option<bool>,
    /// The ratio that a fit without this load would give.
    pub ratio_left_out: Option<f64>,
    /// Reason why the fit did not go by the figure; empty where it did.
    pub unused: String,
}

impl JudgedFigure {
    /// `row` without anything modelled.
    pub(super) fn new(row: &FigureRow) -> Self {
        let load = stated_load(&row.threads, &row.queue_per_thread);
        Self {
            id: row.id.clone(),
            setup: String::new(),
            workload: row.workload.clone(),
            load,
            phase: row.phase.name().into(),
            metric: row.metric.clone(),
            value_low: row.value_low,
            value_high: row.value_high,
            start: None,
            fitted: None,
            ratio: None,
            within: None,
            ratio_left_out: None,
            unused: String::new(),
        }
    }

    /// Notes what the fitted drive does.
    pub(super) fn fitted(&mut self, value: Option<f64>) {
        self.fitted = value;
        let ends = self.value_low.zip(self.value_high);
        self.ratio = value.zip(ends).and_then(|(value, (low, high))| {
            let nearest = value.clamp(low, high);
            (nearest > 0.0).then(|| value / nearest)
        });
        let (least, most) = tolerance(&self.metric);
        self.within = self.ratio.map(|ratio| (least..=most).contains(&ratio));
    }

    /// Format, workload and load of the figure, and true if the drive was purged rather than
    /// settled; the same for all metrics.
    pub(super) fn place(&self) -> (&str, &str, &str, bool) {
        let format = self.setup.split(' ').next().unwrap_or_default();
        (format, &self.workload, &self.load, self.phase == Phase::Burst.name())
    }

    /// Load of the figure for a list: `4k-rand-write T16Q16`.
    pub(super) fn load_text(&self) -> String {
        let is_burst = self.phase == Phase::Burst.name();
        let burst = if is_burst { " burst" } else { "" };
        format!("{} {}{burst}", self.workload, self.load)
    }

    /// Fact that the figure states: rates, throughputs and average latencies of one load state the
    /// same.
    pub(super) fn fact(&self) -> (&str, (&str, &str, &str, bool), &str) {
        let little = self.is_rate() || self.metric == "avg_latency_ms";
        (&self.setup, self.place(), if little { "rate" } else { &self.metric })
    }

    /// True if the metric is a rate or a throughput.
    pub fn is_rate(&self) -> bool {
        ["iops", "mb_s"].contains(&self.metric.as_str())
    }
}

#[cfg(test)]
mod tests {
    use results::published::parse;

    use super::*;

    const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,\
                        phase,metric,value_low,value_high,confidence,note\n";

    /// The figure of a row given from `threads` to `value_high`.
    fn judged(row: &str) -> JudgedFigure {
        let text = format!("{HEAD}A1,a review,duo,640,stock,linux,4k-rand-write,{row},exact,\n");
        JudgedFigure::new(&parse(&text, "figures.csv").unwrap()[0])
    }

    #[test]
    fn a_load_is_written_as_far_as_it_is_stated() {
        let load = |load: &str| judged(&format!("{load},primary,iops,1,1")).load;
        assert_eq!([load("16,4"), load("16,"), load(",4"), load(",")], ["T16Q4", "T16", "Q4", ""]);
    }

    #[test]
    fn a_value_within_a_published_range_has_the_ratio_one() {
        let mut it = judged("16,16,primary,iops,100,200");
        let mut ratio = |value: f64| {
            it.fitted(Some(value));
            (it.ratio.unwrap(), it.within.unwrap())
        };
        assert_eq!(ratio(100.0), (1.0, true));
        assert_eq!(ratio(150.0), (1.0, true));
        assert_eq!(ratio(220.0), (1.1, true), "to the upper end");
        assert_eq!(ratio(50.0), (0.5, false), "to the lower end");
    }

    #[test]
    fn a_value_that_the_model_does_not_give_has_no_ratio() {
        let mut it = judged("16,16,primary,iops,100,200");
        it.fitted(None);
        assert_eq!((it.fitted, it.ratio, it.within), (None, None, None));
        let mut zero = judged("16,16,primary,iops,0,0");
        zero.fitted(Some(5.0));
        assert_eq!(zero.ratio, None, "nothing is a multiple of zero");
    }

    #[test]
    fn a_maximum_may_be_off_by_a_factor_of_two() {
        let mut it = judged("16,16,primary,max_latency_ms,10,10");
        it.fitted(Some(19.9));
        assert_eq!(it.within, Some(true));
        it.fitted(Some(20.1));
        assert_eq!(it.within, Some(false));
    }

    #[test]
    fn a_rate_and_an_average_latency_of_one_load_state_one_fact() {
        let of = |phase: &str, metric: &str| judged(&format!("16,16,{phase},{metric},1,1"));
        let (rate, latency) = (of("primary", "iops"), of("primary", "avg_latency_ms"));
        assert_eq!(rate.fact(), latency.fact());
        assert_eq!(rate.fact(), of("primary", "mb_s").fact());
        assert_ne!(rate.fact(), of("primary", "max_latency_ms").fact());
        assert_ne!(rate.fact(), of("burst", "iops").fact(), "a purged drive is another");
        assert!(rate.is_rate() && !latency.is_rate());
    }
}
