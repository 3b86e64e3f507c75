//! Dimensions of a sweep, parsed from the command line, and the grid of all their values.
//!
//! Values are a list, `greedy,fifo`, or a range: `400..720` for five numbers evenly apart,
//! `400..720/9` for nine, `400..720:40` for one every 40.

use std::slice;

use lab::{Error, Kind};
use results::sweep::{Dimension, Value};

use super::{COMPRESSIBLE, QUEUE, READ_PERCENT, THREADS, USER_CAPACITY};

/// Numbers of a range that says nothing else.
const COUNT_DEFAULT: u32 = 5;
/// Most numbers of one range.
const COUNT_MAX: u32 = 1000;
/// Most points of a grid.
const POINTS_MAX: usize = 10_000;

/// Hint for values that are plain numbers.
const NUMBERS: &str = "values look like `400..720`, `400..720:40`, `400..720/9` or `400,512,640`";
/// Hint for values that have a unit.
const CAPACITIES: &str =
    "values look like `400G..720G`, `400G..720G:40G`, `400G..720G/9` or `400G,512G,640G`";

/// Hint for values that are percentages.
const PERCENTAGES: &str = "values look like `0..90`, `0..90:10`, `0..90/10` or `0,50,90`";
/// Hint for values that are counts of jobs or of their requests.
const COUNTS: &str = "values look like `1..32`, `1..32:1`, `1..32/6` or `1,8,32`";

/// Hint for the values of `key`.
fn form(key: &str) -> &'static str {
    match key {
        USER_CAPACITY => CAPACITIES,
        READ_PERCENT | COMPRESSIBLE => PERCENTAGES,
        THREADS | QUEUE => COUNTS,
        _ => NUMBERS,
    }
}

/// The dimension `key` with the values of `text`, whose numbers `number` reads.
///
/// # Errors
/// Fails if the text is neither a list nor a range, and names the part that is invalid.
pub fn dimension(
    key: &str,
    text: &str,
    number: fn(&str) -> Result<f64, String>,
) -> Result<Dimension, Error> {
    let refused = |why: String| {
        Error::new(Kind::Input, format!("sweeping {key} over `{text}`: {why}")).hint(form(key))
    };
    let values = match text.split_once("..") {
        Some((from, rest)) => {
            range(from, rest, number).map(|it| of_key(key, it)).map_err(refused)?
        }
        None => list(text, number).map_err(refused)?,
    };
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(refused(format!("{value} is given twice")));
        }
    }
    Ok(Dimension { key: key.to_owned(), values })
}

/// The numbers of a range as values of `key`: whole ones, each once, where only such make sense.
fn of_key(key: &str, mut numbers: Vec<f64>) -> Vec<Value> {
    if [THREADS, QUEUE].contains(&key) {
        for number in &mut numbers {
            *number = number.round();
        }
        numbers.dedup();
    }
    numbers.into_iter().map(Value::Number).collect()
}

/// A plain number.
///
/// # Errors
/// Fails if the text is not a finite number.
pub fn plain(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// A list; of plain numbers and words where `number` reads plain ones.
fn list(text: &str, number: fn(&str) -> Result<f64, String>) -> Result<Vec<Value>, String> {
    let value = |item: &str| match (item.trim(), number(item.trim())) {
        ("", _) => Err("a value is missing".to_owned()),
        (_, Ok(number)) => Ok(Value::Number(number)),
        (word, Err(_)) if is_word(word) => Ok(Value::Word(word.to_owned())),
        (_, Err(why)) => Err(why),
    };
    text.split(',').map(value).collect()
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn range(
    from: &str,
    rest: &str,
    number: fn(&str) -> Result<f64, String>,
) -> Result<Vec<f64>, String> {
    let (to, step, count) = match (rest.split_once(':'), rest.split_once('/')) {
        (Some((to, step)), None) => (to, Some(number(step)?), None),
        (None, Some((to, count))) => (to, None, Some(count)),
        (None, None) => (rest, None, None),
        (Some(_), Some(_)) => return Err("give a step or a number of points, not both".into()),
    };
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("the range is empty: {from} is not below {to}"));
    }
    match step {
        Some(step) => stepped(from, to, step),
        None => Ok(spread(from, to, count.map_or(Ok(COUNT_DEFAULT), points)?)),
    }
}

fn points(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(count) if (2..=COUNT_MAX).contains(&count) => Ok(count),
        _ => Err(format!("`{text}` points, must be from 2 to {COUNT_MAX}")),
    }
}

fn stepped(from: f64, to: f64, step: f64) -> Result<Vec<f64>, String> {
    if step <= 0.0 || (to - from) / step >= f64::from(COUNT_MAX) {
        return Err(format!("a step of {step}, must be above 0 and make at most {COUNT_MAX}"));
    }
    // A sum of steps that misses the end by rounding alone reaches it.
    let last = to + step * 1e-9;
    let values = (0..COUNT_MAX).map(|index| rounded(from + step * f64::from(index)));
    Ok(values.take_while(|value| *value <= last).collect())
}

fn spread(from: f64, to: f64, count: u32) -> Vec<f64> {
    let at = |index: u32| from + (to - from) * f64::from(index) / f64::from(count - 1);
    (0..count).map(|index| rounded(at(index))).collect()
}

/// Rounds to 9 decimals, which removes the tail of digits that binary fractions leave.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// Every combination of the values, the last dimension fastest.
///
/// # Errors
/// Fails if there are too many, or a key is swept twice.
pub fn grid(dimensions: &[Dimension]) -> Result<Vec<Vec<Value>>, Error> {
    for (index, dimension) in dimensions.iter().enumerate() {
        if dimensions[..index].iter().any(|other| other.key == dimension.key) {
            let text = format!("{} is swept twice", dimension.key);
            return Err(Error::new(Kind::Input, text).hint("give all its values at once"));
        }
    }
    let count = dimensions
        .iter()
        .map(|dimension| dimension.values.len())
        .try_fold(1_usize, |product, count| {
            product.checked_mul(count).filter(|count| *count <= POINTS_MAX)
        });
    if count.is_none() {
        let text = format!("the grid has more than {POINTS_MAX} points");
        return Err(Error::new(Kind::Input, text).hint("take fewer values, or larger steps"));
    }
    let mut points = vec![Vec::new()];
    for dimension in dimensions {
        points = points
            .iter()
            .flat_map(|point| {
                dimension
                    .values
                    .iter()
                    .map(|value| [point.as_slice(), slice::from_ref(value)].concat())
            })
            .collect();
    }
    Ok(points)
}
