//! Columns of the catalogue, and conditions on them: `user_gb>3000 and interface=u.2`.

use std::str::FromStr;

use lab::results::published::property;
use lab::ssd::DriveSpec;

/// Value of a drive in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Number(f64),
    /// Stated neither by its file nor by a published row.
    Unknown,
}

/// Kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
}

/// Columns, in the order in which they are printed; those of numbers end in their unit.
const COLUMNS: [(&str, Kind); 18] = [
    ("name", Kind::Text),
    ("title", Kind::Text),
    ("vendor", Kind::Text),
    ("year", Kind::Number),
    ("interface", Kind::Text),
    ("media", Kind::Text),
    ("validated", Kind::Text),
    ("user_gb", Kind::Number),
    ("raw_gib", Kind::Number),
    ("over_provisioning_percent", Kind::Number),
    ("endurance_pbw", Kind::Number),
    ("endurance_dwpd", Kind::Number),
    ("warranty_years", Kind::Number),
    ("power_w", Kind::Number),
    ("weight_oz", Kind::Number),
    ("pcie_gen", Kind::Number),
    ("pcie_lanes", Kind::Number),
    ("formats", Kind::Text),
];

/// Names of the columns, in the order of [`cells`].
pub(crate) fn columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.into_iter().map(|(name, _)| name)
}

/// Days of a year, leap years included.
const DAYS_A_YEAR: f64 = 365.25;

/// The cells of a drive, one for each of [`columns`].
pub(crate) fn cells(drive: &DriveSpec) -> Vec<Cell> {
    let formats = drive.formats();
    let facts = Facts { drive, format: formats.first().map_or("", String::as_str) };
    columns().map(|column| facts.cell(column)).collect()
}

/// The cell of a drive in the column `name`, in one of its formats.
pub(crate) fn cell_of(drive: &DriveSpec, format: &str, name: &str) -> Cell {
    Facts { drive, format }.cell(name)
}

struct Facts<'a> {
    drive: &'a DriveSpec,
    format: &'a str,
}

impl Facts<'_> {
    fn cell(&self, column: &str) -> Cell {
        let drive = self.drive;
        let text = match column {
            "name" => &drive.name,
            "title" => &drive.title,
            "vendor" => &drive.vendor,
            "interface" => &drive.form,
            "media" => &drive.media,
            "formats" => &drive.formats().join(" "),
            "validated" if drive.is_validated() => "yes",
            "validated" => "no",
            _ => return self.number(column).map_or(Cell::Unknown, Cell::Number),
        };
        Cell::Text(text.to_owned())
    }

    fn number(&self, column: &str) -> Option<f64> {
        let drive = self.drive;
        match column {
            "year" => drive.year.map(f64::from),
            "user_gb" => self.user_gb(),
            "raw_gib" => drive.is_nand().then(|| drive.raw_gib()),
            "over_provisioning_percent" if drive.is_nand() => {
                let shares = drive.over_provisioning(self.format)?;
                Some(shares.of_user * 100.0)
            }
            "over_provisioning_percent" => None,
            "endurance_dwpd" => self.known(column).or_else(|| self.drive_writes_a_day()),
            metric => self.known(metric),
        }
    }

    /// Value that the drive's file states, or a published row.
    fn known(&self, metric: &str) -> Option<f64> {
        let published = || {
            let (device, gb) = self.drive.published_as()?;
            property(device, gb, metric)
        };
        self.drive.stated(metric, self.format, false).or_else(published)
    }

    fn user_gb(&self) -> Option<f64> {
        self.drive.stated("usable_capacity_gb", self.format, false)
    }

    /// Endurance over the warranty, in drive writes a day.
    fn drive_writes_a_day(&self) -> Option<f64> {
        let days = self.known("warranty_years")? * DAYS_A_YEAR;
        Some(self.known("endurance_pbw")? * 1e6 / self.user_gb()? / days)
    }
}

/// Conditions, all of which a drive meets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query(Vec<Condition>);

#[derive(Clone, Debug, PartialEq)]
struct Condition {
    column: usize,
    relation: Relation,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// Relations as they are written, those of two signs first.
const RELATIONS: [(&str, Relation); 6] = [
    ("!=", Relation::Unequal),
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    ("=", Relation::Equal),
    (">", Relation::Above),
    ("<", Relation::Below),
];

impl Query {
    /// True if a drive with these cells meets every condition; what is unknown meets none.
    pub(crate) fn is_met(&self, cells: &[Cell]) -> bool {
        self.0.iter().all(|condition| condition.is_met(&cells[condition.column]))
    }
}

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(" and ").map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let found = RELATIONS.into_iter().find_map(|(sign, relation)| {
            let (column, value) = text.split_once(sign)?;
            Some((column.trim(), relation, value.trim()))
        });
        let (name, relation, value) = found
            .filter(|(_, _, value)| !value.is_empty())
            .ok_or_else(|| format!("`{text}` is no condition, such as user_gb>3000"))?;
        let column = columns().position(|column| column == name).ok_or_else(|| {
            format!("`{name}` is no column: use {}", columns().collect::<Vec<_>>().join(", "))
        })?;
        match COLUMNS[column].1 {
            Kind::Text if !matches!(relation, Relation::Equal | Relation::Unequal) => {
                return Err(format!(
                    "`{name}` is text, which `{text}` compares as a number: use ="
                ));
            }
            Kind::Number if value.parse::<f64>().is_err() => {
                return Err(format!("`{value}` is not a number, which `{text}` compares with"));
            }
            Kind::Text | Kind::Number => {}
        }
        Ok(Self { column, relation, value: value.to_owned() })
    }
}

impl Condition {
    fn is_met(&self, cell: &Cell) -> bool {
        let number = match cell {
            Cell::Unknown => return false,
            Cell::Number(number) => *number,
            Cell::Text(text) => {
                let contains = text.to_lowercase().contains(&self.value.to_lowercase());
                return match self.relation {
                    Relation::Equal => contains,
                    Relation::Unequal => !contains,
                    _ => false,
                };
            }
        };
        let Ok(value) = self.value.parse::<f64>() else { return false };
        match self.relation {
            Relation::Equal => (number - value).abs() <= 1e-9 * value.abs(),
            Relation::Unequal => (number - value).abs() > 1e-9 * value.abs(),
            Relation::AtLeast => number >= value,
            Relation::AtMost => number <= value,
            Relation::Above => number > value,
            Relation::Below => number < value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<String> {
        let query: Query = query.parse().unwrap();
        let drives = lab::ssd::catalogue::drives();
        let met = drives.into_iter().filter(|drive| query.is_met(&cells(drive)));
        met.map(|drive| drive.name).collect()
    }

    #[test]
    fn conditions_choose_drives_by_number_and_by_text() {
        let large = names("user_gb>3000 and interface=u.2");
        assert!(large.contains(&"csd-3000-7680".to_owned()), "{large:?}");
        assert!(!large.contains(&"iodrive-duo".to_owned()), "{large:?}");
        assert_eq!(
            names("name=flashmax-ii and endurance_pbw>=33 and validated=yes"),
            ["flashmax-ii"]
        );
        assert!(names("media=slc").iter().all(|name| !names("media!=slc").contains(name)));
        assert_eq!(names("warranty_years=1000"), [""; 0]);
    }

    #[test]
    fn drive_writes_a_day_follow_from_endurance_and_warranty() {
        let drives = lab::ssd::catalogue::drives();
        let drive = drives.iter().find(|it| it.name == "flashmax-ii").unwrap();
        let at = columns().position(|it| it == "endurance_dwpd").unwrap();
        let Cell::Number(daily) = cells(drive)[at] else { panic!("it is derived") };
        // 33 PB over 2.2 TB and three years.
        assert!((daily - 33e6 / 2222.0 / (3.0 * 365.25)).abs() < 0.2, "{daily}");
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_would_be_one() {
        for (text, expected) in [
            ("user_gb", "is no condition, such as"),
            ("size>3", "is no column: use name, title"),
            ("user_gb>large", "is not a number"),
            ("user_gb!=large", "is not a number"),
            ("name>3", "`name` is text"),
            ("user_gb>3000 and ", "is no condition"),
        ] {
            let error = text.parse::<Query>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
