//! Dies of a drive as members of an array, and the damage that was found on them.

use blockio::text::{bytes, counted};
use status::{
    BadPlace, BadPlaceCause, BadPlaceState, CopiedStructure, Damage, DamageOutcome, Die, FoundBy,
    Member, Status,
};

use super::{StatusRow, row};

/// Returns a row for each die.
pub(super) fn die_rows(status: &Status) -> Vec<StatusRow> {
    status.dies.iter().enumerate().map(|(index, die)| die_row(index, die)).collect()
}

/// Returns a row for each die that is stale.
pub(super) fn stale_rows(status: &Status) -> Vec<StatusRow> {
    let is_stale = |die: &Die| die.member.is_some_and(|member| !member.is_current);
    let stale = status.dies.iter().enumerate().filter(|(_, die)| is_stale(die));
    stale.map(|(index, die)| die_row(index, die)).collect()
}

fn die_row(index: usize, die: &Die) -> StatusRow {
    let (read, written) = (bytes(die.read_bytes), bytes(die.written_bytes));
    let failed = counted(die.failures, "request");
    let member = die.member.as_ref().map_or_else(String::new, member_text);
    let place = die.place().map_or_else(String::new, |place| format!("; {place}"));
    let state = die.state.word();
    let heat = die.temperature_c.map_or_else(String::new, |celsius| format!(", {celsius} °C"));
    let power = die.power_w.map_or_else(String::new, |watts| format!(", {watts:.1} W"));
    row(
        &format!("die {index}"),
        format!(
            "{state}{member}{heat}{power}; read {read}, written {written}, {failed} failed{place}"
        ),
    )
}

/// The part of a die in its volume, to follow its state.
fn member_text(member: &Member) -> String {
    let Member { session, events, last_written_unix_s, is_current } = member;
    let age = if *is_current { "current" } else { "stale" };
    let events = counted(*events, "event");
    let written =
        last_written_unix_s.map_or_else(String::new, |at| format!(", last written {}", utc(at)));
    format!(", {age}: session {session}, {events}{written}")
}

/// Returns a row with the number of places that were found damaged lately; none without any.
pub(super) fn damage_row(status: &Status) -> Option<StatusRow> {
    let damage = &status.maintenance.damage;
    let last = damage.last()?;
    let places = counted(damage.len() as u64, "place");
    Some(row("damage", format!("{places} lately, the last one {}", damage_text(last))))
}

/// Returns a row for each place that was found damaged lately, the last one first.
pub(super) fn damage_rows(status: &Status) -> Vec<StatusRow> {
    status.maintenance.damage.iter().rev().map(|it| row("damaged", damage_text(it))).collect()
}

fn damage_text(damage: &Damage) -> String {
    let Damage { at_unix_s, die, row, lba, copy_of, found_by, outcome } = damage;
    let place = match (die, row, lba) {
        _ if let Some(copied) = copy_of => copy_text(*copied, *die),
        (Some(die), Some(row), _) => format!("row {row} on die {die}"),
        (_, _, Some(lba)) => format!("page of sector {lba}"),
        _ => "a page".to_owned(),
    };
    let finder = match found_by {
        FoundBy::Read => "a read",
        FoundBy::Scrub => "a scrub",
    };
    let outcome = match outcome {
        DamageOutcome::Rewritten if copy_of.is_some() => "written again",
        DamageOutcome::Rewritten => "rewritten from parity",
        DamageOutcome::Left => "not repaired",
        DamageOutcome::Lost => "lost",
    };
    format!("{}: {place}, found by {finder}, {outcome}", utc(*at_unix_s))
}

fn copy_text(copied: CopiedStructure, die: Option<u32>) -> String {
    let copied = match copied {
        CopiedStructure::Header => "the header",
        CopiedStructure::Checkpoint => "the checkpoint",
        CopiedStructure::Journal => "a batch of the journal",
    };
    let place = die.map_or_else(String::new, |die| format!(" on die {die}"));
    format!("copy of {copied}{place}")
}

/// Returns a row with the number of bad places; none without any.
pub(super) fn bad_place_row(status: &Status) -> Option<StatusRow> {
    let count = |of: fn(&Die) -> u64| status.dies.iter().map(of).sum::<u64>();
    let (all, in_use) = (count(|die| die.bad_places), count(|die| die.bad_places_in_use));
    let used = if in_use > 0 { format!("; {in_use} still used") } else { String::new() };
    let places = counted(all, "place");
    (all > 0).then(|| row("bad places", format!("{places} not to be used again{used}")))
}

/// Returns a row for each bad place.
pub(super) fn bad_place_rows(status: &Status) -> Vec<StatusRow> {
    status.maintenance.bad_places.iter().map(|it| row("bad place", bad_place_text(it))).collect()
}

fn bad_place_text(place: &BadPlace) -> String {
    let BadPlace { die, superblock, offset_bytes, length_bytes, cause, times, .. } = place;
    let cause = match cause {
        BadPlaceCause::ReadError => "read errors",
        BadPlaceCause::Rot => "rot",
    };
    let state = match place.state {
        Some(BadPlaceState::Draining) => ", being emptied",
        Some(BadPlaceState::Retired) => ", retired",
        Some(BadPlaceState::InUse) => ", still used",
        None => "",
    };
    let since = utc(place.since_unix_s);
    format!(
        "superblock {superblock} on die {die}, {length_bytes} bytes from byte {offset_bytes} on: \
         {cause} since {since}, found {}{state}",
        counted(*times, "time")
    )
}

/// A time in seconds since 1970, as `2026-11-29 03:02:11 UTC`.
fn utc(unix_s: u64) -> String {
    let (mut year, mut day) = (1970, unix_s / 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // Four centuries at once: no time takes long.
    year += 400 * (day / 146_097);
    day %= 146_097;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (unix_s / 3600 % 24, unix_s / 60 % 60, unix_s % 60);
    format!("{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_and_a_damaged_place_are_told_in_words() {
        let member = Member {
            session: 3,
            events: 12,
            last_written_unix_s: Some(951_782_400),
            is_current: false,
        };
        let die = Die { member: Some(member), ..Die::default() };
        let [_, told] = die_row(1, &die);
        let expected = "good, stale: session 3, 12 events, last written 2000-02-29 00:00:00 UTC; ";
        assert!(told.starts_with(expected), "{told}");
        let unknown = Member { last_written_unix_s: None, is_current: true, ..member };
        assert_eq!(member_text(&unknown), ", current: session 3, 12 events");
        let damage = Damage {
            at_unix_s: 0,
            die: Some(1),
            row: Some(7),
            lba: None,
            copy_of: None,
            found_by: FoundBy::Scrub,
            outcome: DamageOutcome::Rewritten,
        };
        let told = "00:00:00 UTC: row 7 on die 1, found by a scrub, rewritten from parity";
        assert_eq!(damage_text(&damage), format!("1970-01-01 {told}"));
        let page = Damage { die: None, row: None, lba: Some(8), ..damage };
        assert!(damage_text(&page).contains(": page of sector 8, "));
        let copy = Damage { row: None, copy_of: Some(CopiedStructure::Journal), ..damage };
        let told = ": copy of a batch of the journal on die 1, found by a scrub, written again";
        assert!(damage_text(&copy).ends_with(told));
    }

    #[test]
    fn times_are_told_in_utc() {
        let said = [0, 951_782_399, 951_782_400, 1_735_689_599, 4_107_542_400].map(utc);
        assert_eq!(
            said,
            [
                "1970-01-01 00:00:00 UTC",
                "2000-02-28 23:59:59 UTC",
                "2000-02-29 00:00:00 UTC",
                "2024-12-31 23:59:59 UTC",
                "2100-03-01 00:00:00 UTC",
            ]
        );
        assert!(utc(u64::MAX).ends_with("UTC"));
    }
}
