//! Values with units, as they are typed: `60s`, `4k`, `50k`.

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
    Duration::try_from_secs_f64(positive(number)? * second)
        .map_err(|_| format!("`{text}` is longer than any run"))
}

/// A size: a number and one of `b`, `k`, `m`, `g` (binary, as fio and the reviews have block
/// sizes).
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let lower = text.to_lowercase();
    let (number, unit) = split(&lower);
    let factor: u64 = match unit {
        "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "" => return Err(format!("no unit: write `{text}b` for bytes or `{text}k` for KiB")),
        other => return Err(format!("unknown unit `{other}`: use b, k, m or g")),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{number}` is not a whole number; sizes look like `4k`"))?;
    match number.checked_mul(factor) {
        Some(bytes) if bytes > 0 => Ok(Bytes(bytes)),
        Some(_) => Err("a size is above zero".into()),
        None => Err(format!("`{text}` is larger than any drive")),
    }
}

/// A capacity in decimal GB: a number and `G` or `T`, as on the label of a drive.
pub(crate) fn capacity(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    let gb = match unit.to_lowercase().as_str() {
        "g" | "gb" => 1.0,
        "t" | "tb" => 1000.0,
        "" => return Err(format!("no unit: write `{text}G` or `{text}T`")),
        other => return Err(format!("unknown unit `{other}`: use G or T")),
    };
    Ok(positive(number)? * gb)
}

/// A rate in requests a second: a number, optionally with `k` for thousands.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        other => return Err(format!("unknown unit `{other}`: write `50000` or `50k`")),
    };
    Ok(positive(number)? * factor)
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
    positive(text)
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

fn positive(number: &str) -> Result<f64, String> {
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{number}` is not a number; values look like `60s`"))?;
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
        assert_eq!(size("4096"), Err("no unit: write `4096b` for bytes or `4096k` for KiB".into()));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for text in ["", "s", "-1s", "0s", "1e9s", "5parsecs", "1..2s", "∞s"] {
            assert!(span(text).is_err(), "{text}");
        }
        for text in ["", "k", "0k", "1.5k", "4kk", "99999999999999g"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["", "k", "0", "5m", "-5"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!(size("4k"), Ok(Bytes::from_kib(4)));
        assert_eq!(size("1M"), Ok(Bytes::from_kib(1024)));
        assert_eq!(size("512b"), Ok(Bytes(512)));
        assert_eq!(rate("50k"), Ok(50_000.0));
        assert_eq!(rate("1200"), Ok(1200.0));
        assert_eq!((capacity("640G"), capacity("1.28TB")), (Ok(640.0), Ok(1280.0)));
        assert_eq!(capacity("640"), Err("no unit: write `640G` or `640T`".into()));
    }
}
