//! Drive files that say only where they differ from a drive of the catalogue.

use blockio::text::in_toml_types;
use toml::{Table, Value};

use crate::catalogue;
use crate::spec::{DriveSpec, SpecError, classes};

/// Key that names the drive of the catalogue.
const LIKE: &str = "like";
/// Key of a host that names a platform of the catalogue.
const PLATFORM: &str = "platform";
/// Keys that are never taken over: published figures were measured on the drive that they name, and
/// confirm the model of no other.
const OWN: [&str; 2] = ["published", "validated"];

impl DriveSpec {
    /// The drive that `text` describes, as far as its form is right.
    ///
    /// Where it is `like` another, each key that it lacks is that drive's, also within a table.
    /// A host on a platform has what it lacks from there.
    pub(crate) fn read(text: &str, file: &str) -> Result<Self, SpecError> {
        let (mut table, is_like) = merged(text, file)?;
        let is_tier = table.contains_key("tier");
        if is_tier {
            classes::complete(&mut table, file)?;
        }
        let has_platforms = add_platforms(&mut table, file)?;
        // Only errors about the text itself name a line of it.
        let is_merged = is_like || has_platforms || is_tier;
        let read = if is_merged { table.try_into() } else { toml::from_str(text) };
        read.map_err(|error| fault(&error, file))
    }
}

/// The table of a text, with what it lacks of the drive that it is like; whether it is like any.
fn merged(text: &str, file: &str) -> Result<(Table, bool), SpecError> {
    let mut table: Table = toml::from_str(text).map_err(|error| fault(&error, file))?;
    let Some(like) = table.remove(LIKE) else { return Ok((table, false)) };
    let mut whole = other(like.as_str().unwrap_or_default(), file)?;
    for (key, value) in table {
        match (whole.get_mut(&key), value) {
            (Some(Value::Table(theirs)), Value::Table(own)) => {
                if !own.contains_key("source") {
                    let text = format!("{key} has no source: say where its changes come from");
                    return Err(SpecError { place: file.to_owned(), text });
                }
                theirs.extend(own);
            }
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
    Ok((whole, true))
}

/// Adds to each host that names a platform what it lacks; true if there is any.
fn add_platforms(table: &mut Table, file: &str) -> Result<bool, SpecError> {
    let mut is_any = false;
    let hosts = table.get_mut("host").and_then(Value::as_array_mut);
    for host in hosts.into_iter().flatten().filter_map(Value::as_table_mut) {
        let Some(name) = host.remove(PLATFORM) else { continue };
        let name = name.as_str().unwrap_or_default();
        let platform = catalogue::platform(name).ok_or_else(|| {
            let near = blockio::nearest(name, catalogue::platform_names());
            let meant = near.map_or(String::new(), |near| format!(", did you mean {near}?"));
            let text = format!("{PLATFORM} is {name:?}, must be one of the catalogue{meant}");
            SpecError { place: file.to_owned(), text }
        })?;
        for (key, value) in platform.keys() {
            host.entry(key).or_insert(value);
        }
        is_any = true;
    }
    Ok(is_any)
}

fn fault(error: &toml::de::Error, file: &str) -> SpecError {
    SpecError { place: file.to_owned(), text: in_toml_types(error.to_string().trim_end()) }
}

/// Keys that a drive of the catalogue gives to one that is `like` it.
fn other(name: &str, file: &str) -> Result<Table, SpecError> {
    let fault = |text: String| SpecError { place: file.to_owned(), text };
    let text = catalogue::text(name).ok_or_else(|| {
        let near = blockio::nearest(name, catalogue::names());
        let meant = near.map_or(String::new(), |near| format!(", did you mean {near}?"));
        fault(format!("{LIKE} is {name:?}, must be a drive of the catalogue{meant}"))
    })?;
    let mut other: Table = toml::from_str(text).expect("tested: every file is a drive");
    if let Some(further) = other.get(LIKE).and_then(Value::as_str) {
        return Err(fault(format!("{LIKE} is {name:?}, which is like {further:?}: name that one")));
    }
    for key in OWN {
        other.remove(key);
    }
    Ok(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = include_str!("../../../../drives/p5800x-pair.toml");

    fn refused(from: &str, to: &str) -> String {
        let text = PAIR.replacen(from, to, 1);
        assert_ne!(text, PAIR, "nothing replaced");
        DriveSpec::parse(&text, "pair.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_drive_like_another_differs_in_what_it_says_and_in_figures() {
        let (pair, one) =
            (catalogue::find("p5800x-pair").unwrap(), catalogue::find("p5800x").unwrap());
        assert_eq!((pair.device_count(), one.device_count()), (2, 1));
        assert_eq!((&pair.in_place, &pair.hosts), (&one.in_place, &one.hosts));
        let text = PAIR
            .replace("[published]", "[power]")
            .replace("device = ", "#")
            .replace("capacity_gb = ", "#");
        let text = text.replacen(
            "source = ",
            "slot_w = 25\nthrottle_c = 70\nshutdown_c = 80\nairflow_lfm = 300\nsource = ",
            1,
        );
        assert!(DriveSpec::parse(&text, "pair.toml").unwrap().published.is_none());
    }

    #[test]
    fn a_drive_like_none_of_the_catalogue_is_refused_with_the_nearest() {
        let error = refused("like = \"p5800x\"", "like = \"p5800\"");
        let expected =
            "pair.toml: like is \"p5800\", must be a drive of the catalogue, did you mean";
        assert!(error.starts_with(expected), "{error}");
        let error = refused("like = \"p5800x\"", "like = \"p5800x-pair\"");
        assert!(error.ends_with("which is like \"p5800x\": name that one"), "{error}");
    }

    #[test]
    fn a_drive_like_a_validated_one_is_not_validated_by_that() {
        let text = "like = \"px600-2600\"\nname = \"mine\"";
        assert!(catalogue::find("px600-2600").unwrap().is_validated());
        assert!(!DriveSpec::parse(text, "mine.toml").unwrap().is_validated());
        let claimed = DriveSpec::parse(&format!("{text}\nvalidated = true"), "mine.toml").unwrap();
        assert!(claimed.is_validated(), "its author may know of rates");
        let sister = catalogue::find("px600-1300").unwrap();
        assert!(!sister.is_validated() && sister.published.is_some());
    }

    #[test]
    fn a_changed_copy_of_a_validated_drive_is_not_validated_unless_it_says_so() {
        for name in ["px600-2600", "p5510"] {
            let text = catalogue::text(name).unwrap();
            let of = |text: &str| DriveSpec::parse(text, "mine.toml").unwrap();
            let mut changed = of(text);
            assert!(changed.is_validated());
            changed.title = "Mine".into();
            assert!(changed.is_validated(), "another title is no other drive");
            changed.controller.read_us += 1.0;
            assert!(!changed.is_validated());
            changed.name = "mine".into();
            assert!(changed.is_validated(), "its author claims it");
        }
        let mut fitted = catalogue::find("px600-2600").unwrap();
        fitted.controller.read_us += 1.0;
        fitted.validated = Some(true);
        assert!(fitted.is_validated(), "a key that the catalogue's file does not have");
    }

    #[test]
    fn within_a_table_only_what_differs_is_stated_with_its_source() {
        let (less, whole) =
            (catalogue::find("px600-1300").unwrap(), catalogue::find("px600-2600").unwrap());
        assert_eq!((less.geometry.banks, whole.geometry.banks), (4, 8));
        assert_eq!(less.geometry.dies_per_bank, whole.geometry.dies_per_bank);
        let text = include_str!("../../../../drives/px600-1300.toml");
        let text = text.replace("source = \"estimated: half the banks", "# \"");
        let error = DriveSpec::parse(&text, "less.toml").unwrap_err().to_string();
        assert_eq!(error, "less.toml: geometry has no source: say where its changes come from");
    }

    #[test]
    fn media_of_both_kinds_is_refused() {
        let error =
            refused("[devices]", "[buffer]\nkib = 4\nsource = \"estimated: x\"\n\n[devices]");
        assert!(error.contains("buffer is not allowed with in_place"), "{error}");
    }
}
