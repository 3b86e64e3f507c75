//! Values as fio writes them.

/// A size in bytes. Letters are binary, and `KiB` is 1000, as fio has it unless `kb_base` says
/// otherwise.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(end);
    let wrong = || format!("`{text}` is not a size such as 4k");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim_end_matches('b');
    let (letter, base) = unit.strip_suffix('i').map_or((unit, 1024_u64), |letter| (letter, 1000));
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter);
    let power = u32::try_from(power.ok_or_else(wrong)?).unwrap_or(u32::MAX);
    base.checked_pow(power).and_then(|factor| number.checked_mul(factor)).ok_or_else(wrong)
}

/// A size of a request, in bytes.
pub(super) fn transfer(text: &str) -> Result<u32, String> {
    u32::try_from(bytes(text)?).map_err(|_| format!("`{text}` is larger than any request"))
}

/// A time in whole seconds, rounded up; a bare number counts seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(end);
    let wrong = || format!("`{text}` is not a time such as 60 or 10m");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let each_us: u64 = match unit {
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "" | "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(wrong()),
    };
    let us = number.checked_mul(each_us).ok_or_else(wrong)?;
    Ok(us.div_ceil(1_000_000))
}

/// A number, such as a share or a skew.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>().ok().filter(|it| it.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

/// A share in percent, 0 to 100.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent = number(text)?;
    let is_share = (0.0..=100.0).contains(&percent);
    if is_share { Ok(percent) } else { Err(format!("`{text}` is not from 0 to 100")) }
}

/// A count.
pub(super) fn count(text: &str) -> Result<u16, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a count up to 65535"))
}

/// True if a switch is on: `1`, or nothing behind its name.
pub(super) fn is_on(text: &str) -> bool {
    !matches!(text, "0" | "0%" | "false" | "none")
}
