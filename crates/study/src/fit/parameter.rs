//! The numbers that a fit may choose, as coordinates from 0 to 1.

use blockio::nearest;
use lab::{Error, Kind};
use ssd::{FitScale, FitSpec};

use toml_edit::Value;

use crate::drive_file::{DriveFile, Number};

/// Ratio of default bounds to the start: a half and the double of it.
const BOUND_FACTOR: f64 = 2.0;

/// A number to choose, as asked on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// Path of the number in the drive's file: `controller.relocate_us`.
    pub path: String,
    /// Least and greatest value; absent: half and double of what the file says.
    pub bounds: Option<(f64, f64)>,
}

/// A number that the fit may choose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    /// Path of the number in the drive's file: `controller.relocate_us`.
    pub(super) path: String,
    /// Least value.
    pub(super) low: f64,
    /// Greatest value.
    pub(super) high: f64,
    /// Value in the file, where the search begins.
    pub(super) start: f64,
    /// True if the drive's format takes whole numbers only.
    pub(super) whole: bool,
    scale: FitScale,
}

impl Parameter {
    /// The value at coordinate `at`, 0 to 1.
    pub(super) fn value(&self, at: f64) -> f64 {
        let value = match self.scale {
            FitScale::Linear => self.low + at * (self.high - self.low),
            FitScale::Log => self.low * (self.high / self.low).powf(at),
        };
        let value = value.clamp(self.low, self.high);
        if self.whole { value.round() } else { significant(value) }
    }

    /// The value at coordinate `at` as the file has it.
    pub(super) fn toml(&self, at: f64) -> Value {
        let value = self.value(at);
        if self.whole { Value::from(rounded(value)) } else { Value::from(value) }
    }

    /// The coordinate of `value`.
    pub(super) fn coordinate(&self, value: f64) -> f64 {
        match self.scale {
            FitScale::Linear => (value - self.low) / (self.high - self.low),
            FitScale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Coordinate of the start.
    pub(super) fn begin(&self) -> f64 {
        self.coordinate(self.start)
    }

    /// True if the value at coordinate `at` differs from that of the start.
    pub(super) fn is_moved(&self, at: f64) -> bool {
        self.value(at).to_bits() != self.value(self.begin()).to_bits()
    }

    /// Derivative of the value with respect to the coordinate, at `at`.
    pub(super) fn slope(&self, at: f64) -> f64 {
        match self.scale {
            FitScale::Linear => self.high - self.low,
            FitScale::Log => {
                self.low * (self.high / self.low).powf(at) * (self.high / self.low).ln()
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "bounds of counts are far below")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// Six digits: more are noise, and make a file hard to read.
fn significant(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    format!("{value:.5e}").parse().expect("a number that was just printed")
}

/// The numbers of `file` that are free: those of its `[[fit]]` tables, and `asked` before them.
///
/// # Errors
/// Fails if there is none, if one is not in the file, or its bounds exclude what the file says.
pub(super) fn parameters(file: &DriveFile, asked: &[Free]) -> Result<Vec<Parameter>, Error> {
    let numbers = file.numbers();
    let mut parameters = Vec::new();
    for free in asked {
        parameters.push(of_asked(file, &numbers, free)?);
    }
    let spec = file.spec().map_err(|source| Error::new(Kind::Input, "fitting").source(source))?;
    for fit in &spec.fits {
        if !asked.iter().any(|free| free.path == fit.parameter) {
            parameters.push(of_spec(file, &numbers, fit)?);
        }
    }
    if parameters.is_empty() {
        let text = format!("{} defines no free parameter", file.name());
        return Err(Error::new(Kind::Input, text).hint(
            "add a [[fit]] table with parameter, low and high, \
             or --free controller.relocate_us=10..40",
        ));
    }
    Ok(parameters)
}

fn of_asked(file: &DriveFile, numbers: &[Number], free: &Free) -> Result<Parameter, Error> {
    let number = find(file.name(), numbers, &free.path)?;
    let (low, high) = match free.bounds {
        Some(bounds) => bounds,
        None if number.value > 0.0 => (number.value / BOUND_FACTOR, number.value * BOUND_FACTOR),
        None => {
            let text = format!(
                "{} is {}, so the default bounds (half to double) do not apply",
                free.path, number.value
            );
            let hint = format!("give bounds: --free {}=LOW..HIGH", free.path);
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
    };
    let scale = if low > 0.0 && free.bounds.is_none() { FitScale::Log } else { FitScale::Linear };
    let path = free.path.clone();
    of_spec(file, numbers, &FitSpec { parameter: path, low, high, scale, source: None })
}

/// The number of `fit`, whose value in `file` is one of `numbers`.
///
/// # Errors
/// Fails if it is not there, or its bounds exclude what the file says.
pub(super) fn of_spec(
    file: &DriveFile,
    numbers: &[Number],
    fit: &FitSpec,
) -> Result<Parameter, Error> {
    let number = find(file.name(), numbers, &fit.parameter)?;
    let FitSpec { low, high, .. } = *fit;
    if let Some(fault) = fit.fault() {
        return Err(Error::new(Kind::Input, format!("fit of {}: {fault}", fit.parameter)));
    }
    if !(low..=high).contains(&number.value) {
        let text = format!(
            "{}: {} is {}, outside its bounds from {low} to {high}",
            number.place, number.key, number.value
        );
        return Err(
            Error::new(Kind::Input, text).hint("the search starts at the value in the file")
        );
    }
    let scale = fit.scale;
    let (path, start) = (number.key.clone(), number.value);
    Ok(Parameter { whole: is_whole(file, number), path, low, high, start, scale })
}

/// True if the drive's format takes whole numbers only here: a parse with a fraction tells.
fn is_whole(file: &DriveFile, number: &Number) -> bool {
    let mut file = file.clone();
    file.replace(&number.key, (number.value + 0.5).into()).expect("a key of the file");
    let error = file.spec().err();
    error.is_some_and(|error| error.text.contains("invalid type: floating point"))
}

fn find<'a>(file: &str, numbers: &'a [Number], path: &str) -> Result<&'a Number, Error> {
    numbers.iter().find(|number| number.key == path).ok_or_else(|| {
        let error = Error::new(Kind::Input, format!("{file} has no number at `{path}`"));
        match nearest(path, numbers.iter().map(|number| number.key.as_str())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("a path is its keys joined by dots, such as `nand.t_read_us`"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUO: &str = include_str!("../../../../drives/iodrive-duo.toml");

    fn of(fit: &str, free: &[Free]) -> Result<Vec<Parameter>, Error> {
        parameters(&DriveFile::parse(&format!("{DUO}\n{fit}"), "duo.toml").unwrap(), free)
    }

    fn table(parameter: &str, low: f64, high: f64) -> String {
        format!("[[fit]]\nparameter = \"{parameter}\"\nlow = {low:?}\nhigh = {high:?}\n")
    }

    #[test]
    fn coordinates_and_values_are_each_others_inverse() {
        let log = format!("{}scale = \"log\"\n", table("nand.t_read_us", 10.0, 250.0));
        for parameter in of(&(log + &table("controller.read_us", 5.0, 20.0)), &[]).unwrap() {
            for at in [0.0, 0.25, 1.0] {
                let back = parameter.coordinate(parameter.value(at));
                assert!((back - at).abs() < 1e-4, "{parameter:?} {at} {back}");
            }
        }
    }

    #[test]
    fn counts_stay_whole_and_times_do_not() {
        let fit = table("geometry.spare_erase_blocks_per_plane", 40.0, 120.0)
            + &table("nand.t_read_us", 20.0, 100.0);
        let found = of(&fit, &[]).unwrap();
        assert_eq!([found[0].whole, found[1].whole], [true, false]);
        assert!(found[0].value(0.123).fract().abs() < 1e-9);
    }

    #[test]
    fn bounds_that_exclude_the_start_are_refused_with_file_and_line() {
        let error = of(&table("nand.t_read_us", 60.0, 100.0), &[]).unwrap_err().to_string();
        let line = DUO.lines().position(|line| line.starts_with("t_read_us")).unwrap() + 1;
        let start = format!("duo.toml:{line}: nand.t_read_us is 50, outside its bounds from 60");
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn bounds_that_exclude_what_a_file_takes_from_another_name_that_ones_line() {
        let less = include_str!("../../../../drives/px600-1300.toml");
        let text = format!("{less}\n{}", table("controller.cores", 60.0, 100.0));
        let error = parameters(&DriveFile::parse(&text, "less.toml").unwrap(), &[]).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("px600-2600.toml:"), "{error}");
        assert!(error.ends_with("outside its bounds from 60 to 100"), "{error}");
    }

    #[test]
    fn an_unknown_path_is_refused_with_the_nearest_one() {
        let error = of(&table("controller.relocat_us", 1.0, 2.0), &[]).unwrap_err();
        assert!(error.to_string().contains("no number at `controller.relocat_us`"), "{error}");
        assert_eq!(error.remedy(), "did you mean `controller.relocate_us`?");
    }

    #[test]
    fn nothing_to_choose_is_refused_with_an_example() {
        let error = of("", &[]).unwrap_err();
        assert!(error.remedy().contains("[[fit]]"), "{error}");
    }

    #[test]
    fn what_is_asked_for_by_name_alone_goes_from_half_to_double() {
        let free = Free { path: "nand.t_read_us".into(), bounds: None };
        let found = of("", &[free]).unwrap();
        assert!((found[0].low - 25.0).abs() < 1e-9 && (found[0].high - 100.0).abs() < 1e-9);
    }
}
