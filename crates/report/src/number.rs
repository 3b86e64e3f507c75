//! Numbers as a reader wants them: few digits, thousands apart, unit by the caller.

use results::WrittenAmount;

/// `value` rounded to `digits` significant digits; zero and non-finite values stay.
pub(crate) fn round(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let place = digits - 1 - order(value);
    // Powers of ten with positive exponents are exact, so divide by them where the place is left
    // of the point; the result prints without a tail of nines.
    if place >= 0 {
        let unit = 10_f64.powi(place);
        (value * unit).round() / unit
    } else {
        let unit = 10_f64.powi(-place);
        (value / unit).round() * unit
    }
}

/// Three significant digits, whole from a hundred up, thousands apart: `0.0422`, `6.25`, `1,208`.
pub(crate) fn plain(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value.abs() >= 99.95 {
        return grouped(value.round());
    }
    let rounded = round(value, 3);
    let decimals = if rounded == 0.0 { 0 } else { (2 - order(rounded)).clamp(0, 6) };
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
}

/// A whole number with thousands apart: `42,644`.
pub(crate) fn whole(value: f64) -> String {
    if value.is_finite() { grouped(value.round()) } else { "–".into() }
}

/// An amount of money: whole, or with two digits behind the point.
pub(crate) fn money(amount: f64) -> String {
    if amount.fract().abs() < 0.005 { whole(amount) } else { format!("{amount:.2}") }
}

/// Three significant digits with K, M or G: `42.6K`.
pub(crate) fn short(value: f64) -> String {
    for (size, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "K")] {
        if value.abs() >= size * 0.9995 {
            return format!("{}{suffix}", trimmed(value / size));
        }
    }
    trimmed(value)
}

/// As few digits as tell a tick apart: `0.05`, `2.5`, `1,000`.
pub(crate) fn trimmed(value: f64) -> String {
    let shown = plain(value);
    if shown.contains('.') {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        shown
    }
}

/// Latency in milliseconds from nanoseconds.
pub(crate) fn millis(nanos: f64) -> f64 {
    nanos / 1e6
}

/// A latency in milliseconds as [`plain`] has it, or a dash where it is not known.
pub(crate) fn plain_millis(latency_ns: Option<u64>) -> String {
    latency_ns.map_or_else(|| "–".into(), |it| plain(millis(it as f64)))
}

/// A number as [`plain`] has it, or a dash where it is not known.
pub(crate) fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), plain)
}

/// A mean or a deviation of latencies in milliseconds, or a dash where it is not known.
pub(crate) fn plain_ns(latency_ns: Option<f64>) -> String {
    known(latency_ns.map(millis))
}

/// A share as a percentage: `4.2 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", trimmed(share * 100.0))
}

/// A span of protocol time: `6 h`, `1 h 35 min`, `90 s`.
pub(crate) fn span(secs: f64) -> String {
    if secs < 120.0 {
        return format!("{} s", trimmed(secs));
    }
    let minutes = (secs / 60.0).round();
    if minutes < 120.0 && minutes % 60.0 != 0.0 {
        return format!("{minutes} min");
    }
    match (minutes.div_euclid(60.0), minutes.rem_euclid(60.0)) {
        (hours, 0.0) => format!("{hours} h"),
        (hours, rest) => format!("{hours} h {rest} min"),
    }
}

/// Decimal order of magnitude: 2 for 100 to 999.
#[expect(clippy::cast_possible_truncation, reason = "the order of a finite f64 is within ±324")]
pub(crate) fn order(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    if value < 0.0 { format!("−{shown}") } else { shown }
}

/// Returns the bytes written since the purge as a multiple of the capacity: `2.4 drive writes since
/// the purge`.
pub(crate) fn written_times(written: &WrittenAmount) -> String {
    format!("{} drive writes since the purge", drive_writes(written))
}

/// Returns the bytes written since the purge as a multiple of the capacity: `2.4`.
pub(crate) fn drive_writes(written: &WrittenAmount) -> String {
    let share = written.since_purge_share;
    if share < 0.1 { format!("{share:.2}") } else { format!("{share:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown_and_thousands_are_apart() {
        assert_eq!([0.0422, 6.25, 99.97, 1208.4].map(plain), ["0.0422", "6.25", "100", "1,208"]);
        assert_eq!([0.0, 999.6, 42_644.0, 1_234_567.0].map(short), ["0", "1K", "42.6K", "1.23M"]);
        assert_eq!(whole(-42_644.4), "−42,644");
        assert_eq!(plain(f64::NAN), "–");
    }

    #[test]
    fn rounding_leaves_no_tail_of_nines() {
        assert_eq!(round(42_644.37, 4).to_string(), "42640");
        assert_eq!(round(0.042_237, 4).to_string(), "0.04224");
    }

    #[test]
    fn a_span_reads_as_people_say_it() {
        let said = [30.0, 90.0, 300.0, 3600.0, 5700.0, 21_600.0].map(span);
        assert_eq!(said, ["30 s", "90 s", "5 min", "1 h", "95 min", "6 h"]);
    }
}
