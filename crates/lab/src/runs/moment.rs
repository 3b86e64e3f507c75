//! An instant of the calendar, in UTC and whole seconds.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Moment {
    /// Now, by the machine's clock; a clock before 1970 reads as 1970.
    pub(super) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }

    /// Form that begins file names: `2026-11-21T101503Z`.
    pub(super) fn stamp(self) -> String {
        self.to_string().replace(':', "")
    }
}

impl fmt::Display for Moment {
    /// RFC 3339: `2026-11-21T10:15:03Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / 86_400);
        let (hour, minute, second) = (self.0 / 3_600 % 24, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years begin in March here, so that the leap day comes last (Hinnant, *chrono-compatible
/// low-level date algorithms*).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_and_turns_of_the_year_are_where_they_belong() {
        let shown = |seconds| Moment(seconds).to_string();
        assert_eq!(shown(0), "1970-01-01T00:00:00Z");
        assert_eq!(shown(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(shown(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(shown(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(shown(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_stamp_fits_a_file_name() {
        assert_eq!(Moment(1_795_256_103).stamp(), "2026-11-21T101503Z");
    }
}
