//! Values with units, as they are typed: `60s`, `4k`, `50k`.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use blockio::Bytes;

/// A span of time: a number and one of `ms`, `s`, `min`, `h`, `d`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let second: f64 = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" => return Err(format!("no unit: write `{text}s`, `{text}min` or `{text}h`")),
        other => return Err(format!("unknown unit `{other}`: use ms, s, min, h or d")),
    };
    Duration::try_from_secs_f64(positive(number, "60s")? * second)
        .map_err(|_| format!("`{text}` is longer than any run"))
}

/// Meaning of a size suffix without `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    /// Powers of 1000: `4G` is 4 000 000 000 bytes, as on the label of a drive.
    Decimal,
    /// Powers of 1024: `4k` is 4096 bytes, as fio and the reviews have block sizes.
    Binary,
}

/// The unit of drives in bytes: sizes of drives and files are whole ones.
const PAGE_BYTES: u64 = 4096;

/// A size of a drive or a file: `4G` and `4GB` are decimal, `4GiB` is binary. Decimal ones are
/// rounded down to whole pages of 4 KiB.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    size_asked(text).map(|(size, _)| size)
}

/// As [`size`], with what was asked for before it was rounded down.
pub(crate) fn size_asked(text: &str) -> Result<(Bytes, Bytes), String> {
    let bytes = bytes(text, Letters::Decimal)?;
    let is_exact = bytes < PAGE_BYTES || text.to_lowercase().ends_with("ib");
    let is_counted = text.to_lowercase().trim_end_matches('b').ends_with(|c: char| c.is_numeric());
    let whole = bytes / PAGE_BYTES * PAGE_BYTES;
    Ok((Bytes(if is_exact || is_counted { bytes } else { whole }), Bytes(bytes)))
}

/// A size of a request or of what is programmed at once: `4k` and `4KiB` are 4096 bytes, as fio and
/// the reviews have it.
pub(crate) fn transfer(text: &str) -> Result<Bytes, String> {
    bytes(text, Letters::Binary).map(Bytes)
}

/// A capacity in decimal GB: a number and a unit, such as `640G`, `1.28T` or `596GiB`.
pub(crate) fn capacity(text: &str) -> Result<f64, String> {
    Ok(bytes(text, Letters::Decimal)? as f64 / 1e9)
}

/// Bytes above zero: a number and a unit. `kB` is always 1000, `KiB` always 1024.
fn bytes(text: &str, letters: Letters) -> Result<u64, String> {
    let lower = text.to_lowercase();
    let (number, unit) = split(&lower);
    let (letter, base) = match (unit, letters) {
        ("", _) => {
            return Err(match letters {
                Letters::Decimal => format!("no unit: write `{text}G` or `{text}GiB`"),
                Letters::Binary => {
                    format!("no unit: write `{text}b` for bytes or `{text}k` for KiB")
                }
            });
        }
        ("b", _) => ("", 1),
        (unit, Letters::Binary) if unit.len() == 1 => (unit, 1024),
        (unit, _) => match unit.strip_suffix("ib") {
            Some(letter) => (letter, 1024),
            None => (unit.strip_suffix('b').unwrap_or(unit), 1000),
        },
    };
    let power = ["", "k", "m", "g", "t"].iter().position(|known| *known == letter);
    let power = power.filter(|power| *power > 0 || unit == "b").ok_or_else(|| {
        format!("unknown unit `{unit}`: use k, M, G or T, or KiB, MiB, GiB or TiB")
    })?;
    let factor = (0..power).fold(1_u64, |factor, _| factor * base);
    if number.starts_with('-') {
        return Err("must be above zero".into());
    }
    let bytes = times(number, factor).ok_or_else(|| {
        format!("`{number}` is not a number of {unit} that makes whole bytes; sizes look like `4k`")
    })?;
    match u64::try_from(bytes) {
        Ok(0) => Err("a size is above zero".into()),
        Ok(bytes) if bytes < 1 << 60 => Ok(bytes),
        Ok(_) | Err(_) => Err(format!("`{text}` is larger than any drive")),
    }
}

/// `number`, such as `1.28`, times `factor`, where that is whole.
fn times(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let places = u32::try_from(fraction.len()).ok()?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(factor.into())?;
    let scale = 10_u128.checked_pow(places)?;
    scaled.is_multiple_of(scale).then(|| scaled / scale)
}

/// A rate in requests a second: a number, optionally with `k` for thousands.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        other => return Err(format!("unknown unit `{other}`: write `50000` or `50k`")),
    };
    Ok(positive(number, "50k")? * factor)
}

/// A share in percent, 0 to 100.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        Ok(_) => Err("must be from 0 to 100".into()),
        Err(_) => Err(format!("`{text}` is not a number; shares look like `50`")),
    }
}

/// A plain amount above zero.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    positive(text, "1.5")
}

/// A whole number.
pub(crate) fn whole<T: TryFrom<i128>>(text: &str) -> Result<T, String> {
    let number: i128 = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
    T::try_from(number).map_err(|_| format!("`{text}` is out of range"))
}

/// A parser of a whole number in `range`.
pub(crate) fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: TryFrom<i128> + PartialOrd + Display + Copy + Send + Sync,
{
    move |text| {
        let number = whole::<i128>(text)?;
        let fitting = T::try_from(number).ok().filter(|number| range.contains(number));
        fitting.ok_or_else(|| format!("must be from {} to {}", range.start(), range.end()))
    }
}

fn split(text: &str) -> (&str, &str) {
    let is_of_number =
        |(at, c): (usize, char)| c.is_ascii_digit() || c == '.' || (at == 0 && c == '-');
    let end = text.char_indices().find(|it| !is_of_number(*it)).map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

fn positive(number: &str, example: &str) -> Result<f64, String> {
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{number}` is not a number; values look like `{example}`"))?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err("must be above zero".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_carry_their_unit() {
        assert_eq!(span("60s"), Ok(Duration::from_mins(1)));
        assert_eq!(span("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(span("5min"), span("300s"));
    }

    #[test]
    fn a_bare_number_is_no_span_and_no_size() {
        assert_eq!(span("60"), Err("no unit: write `60s`, `60min` or `60h`".into()));
        assert_eq!(size("4096"), Err("no unit: write `4096G` or `4096GiB`".into()));
        let told = "no unit: write `4096b` for bytes or `4096k` for KiB";
        assert_eq!(transfer("4096"), Err(told.into()));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for text in ["", "s", "-1s", "0s", "1e9s", "5parsecs", "1..2s", "∞s"] {
            assert!(span(text).is_err(), "{text}");
        }
        for text in ["", "k", "0k", "1.0001k", "4kk", "4ib", "99999999999999g", "1.2.3g", "-1g"] {
            assert!(size(text).is_err() && transfer(text).is_err(), "{text}");
        }
        for text in ["", "k", "0", "5m", "-5"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_told_in_words_of_no_programming_language() {
        assert_eq!((whole("16"), within(1..=64)("64")), (Ok(16_u16), Ok(64_u16)));
        for text in ["x", "", "1.5", "4k"] {
            let told = Err(format!("`{text}` is not a whole number"));
            assert_eq!((whole::<u32>(text), within(1..=9_u32)(text)), (told.clone(), told));
        }
        assert_eq!(within(1..=64_u8)("65"), Err("must be from 1 to 64".into()));
        assert_eq!(within(1..=64_u8)("0"), Err("must be from 1 to 64".into()));
        assert_eq!(within(-60..=125_i16)("-60"), Ok(-60));
        let told = "`-1` is out of range".to_owned();
        assert_eq!(whole::<usize>("-1"), Err(told));
    }

    #[test]
    fn a_letter_is_decimal_for_drives_and_binary_for_requests() {
        assert_eq!(transfer("4k"), Ok(Bytes::from_kib(4)));
        assert_eq!(transfer("1M"), Ok(Bytes::from_kib(1024)));
        assert_eq!(transfer("512b"), Ok(Bytes(512)));
        for text in ["4KiB", "4kib", "4096b", "4096B"] {
            assert_eq!((size(text), transfer(text)), (Ok(Bytes(4096)), Ok(Bytes(4096))), "{text}");
        }
        assert_eq!(transfer("4kB"), Ok(Bytes(4000)));
        assert_eq!(size("1.5GiB"), Ok(Bytes(3 << 29)));
        assert_eq!(size("4G"), Ok(Bytes(4_000_000_000 / 4096 * 4096)), "whole pages");
        assert_eq!(size("4g"), size("4GB"));
        assert_eq!(size("5001b"), Ok(Bytes(5001)), "counted in bytes: as it is");
    }

    #[test]
    fn rates_and_capacities_are_decimal() {
        assert_eq!(rate("50k"), Ok(50_000.0));
        assert_eq!(rate("1200"), Ok(1200.0));
        assert_eq!((capacity("640G"), capacity("1.28TB")), (Ok(640.0), Ok(1280.0)));
        assert_eq!(capacity("1GiB"), Ok(1.073_741_824));
        assert_eq!(capacity("640"), Err("no unit: write `640G` or `640GiB`".into()));
    }
}
