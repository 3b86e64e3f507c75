//! Subject of a measurement, found by the name that was given for it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use blockio::nearest;
use results::published::{ANY, FigureRow};
use results::{Figure, Run, published};
use ssd::{DriveSpec, Surroundings};

use crate::expression;
use crate::plan::Plan;
use crate::target::address::Address;
use crate::target::nbd;
use crate::wanted::{Precision, TargetSetup, words};
use crate::{Error, Kind};

/// Stands for every format, or every host, of a drive.
const ALL: &str = "all";
/// Names that are suggested where none is near.
const SUGGESTIONS_MAX: usize = 4;

/// A drive, modelled or real.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A modelled drive.
    Model {
        /// Name in the catalogue, or path of its file.
        name: String,
        /// Model of the drive.
        spec: Box<DriveSpec>,
    },
    /// A file, a block device, or an NBD server.
    Real {
        /// Its path or address.
        path: String,
    },
}

/// Setups of a subject that are to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Name of a format, `all`, or the first one if absent.
    pub format: Option<String>,
    /// Name of a model's host driver, `all`, or the first one if absent.
    pub host: Option<String>,
    /// Machines that a real drive is on, `a,b:8766`, or this one if absent.
    pub clients: Option<String>,
    /// Time lapse, or the drive's own if absent.
    pub time_lapse: Option<u32>,
    /// Most that the drive's own is; absent: any.
    pub time_lapse_max: Option<u32>,
    /// Ambient temperature, airflow and slot power of a model, where they differ from its file.
    pub surroundings: Surroundings,
    /// Precision to which a model is sampled; absent: it is simulated in detail.
    pub precision: Option<Precision>,
}

impl Choice {
    /// This choice within the time lapse that `plan` is for.
    #[must_use]
    pub fn for_plan(self, plan: &Plan) -> Self {
        Self { time_lapse_max: plan.time_lapse_max, ..self }
    }
}

impl Subject {
    /// `plan` as it is carried out on `wanted`, a setup of this drive: every step, in order. See
    /// [`Plan::for_drive`] and [`Plan::for_real`].
    pub fn plan(&self, plan: Plan, wanted: &TargetSetup) -> Plan {
        match self {
            Self::Model { spec, .. } => plan.for_drive(spec),
            Self::Real { .. } => {
                let address = Address::parse(&wanted.target, &wanted.host);
                plan.for_real(address.is_ok_and(|it| it.is_file()))
            }
        }
    }

    /// The subject named `name`: of the catalogue, a drive's TOML file, an NBD address, or a path.
    ///
    /// # Errors
    /// Names the nearest drive, or says what is wrong with the file.
    pub fn find(name: &str) -> Result<Self, Error> {
        if let Some(spec) = ssd::catalogue::find(name) {
            return Ok(Self::Model { name: name.into(), spec: Box::new(spec) });
        }
        if nbd::is_uri(name) {
            nbd::Uri::parse(name)?;
            return Ok(Self::Real { path: name.into() });
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Ok(Self::Model { name: name.into(), spec: Box::new(read_drive(path)?) });
        }
        if name.contains('/') || path.exists() {
            return Ok(Self::Real { path: name.into() });
        }
        let known = ssd::catalogue::drives();
        let kind = ("drive", "floatgate drives");
        Err(unknown(kind, name, known.iter().map(|drive| &*drive.name)))
    }

    /// The setups that `choice` means, in the subject's order.
    ///
    /// # Errors
    /// Names the format or host that the subject does not have.
    pub fn setups(&self, choice: &Choice) -> Result<Vec<TargetSetup>, Error> {
        match self {
            Self::Model { name, .. } if choice.clients.is_some() => {
                let text = format!("{name} is a modelled drive: --client applies to real drives");
                Err(Error::new(Kind::Input, text).hint("leave out --client"))
            }
            Self::Model { name, spec } => {
                let hosts = match choice.host.as_deref() {
                    Some(ALL) => spec.hosts(),
                    other => vec![chosen("host", other, &spec.all_hosts(), name)?],
                };
                let time_lapse = choice.time_lapse.unwrap_or_else(|| {
                    spec.time_lapse_default().min(choice.time_lapse_max.unwrap_or(u32::MAX))
                });
                let formats = match choice.format.as_deref() {
                    Some(ALL) => spec.formats_for_any_data(),
                    other => vec![chosen("format", other, &spec.formats(), name)?],
                };
                let wanted = |format: &String, host: &String| TargetSetup {
                    target: name.clone(),
                    format: format.clone(),
                    host: host.clone(),
                    time_lapse,
                    surroundings: choice.surroundings.clone(),
                    precision: choice.precision,
                };
                let of_format = |format| hosts.iter().map(move |host| wanted(format, host));
                Ok(formats.iter().flat_map(of_format).collect())
            }
            Self::Real { path } => real_setup(path, choice).map(|wanted| vec![wanted]),
        }
    }

    /// The one setup that `choice` means.
    ///
    /// # Errors
    /// As [`Subject::setups`], and where it means several.
    pub fn setup(&self, choice: &Choice) -> Result<TargetSetup, Error> {
        let mut setups = self.setups(choice)?;
        match setups.len() {
            1 => Ok(setups.remove(0)),
            count => {
                let text =
                    format!("`all` selects {count} configurations; this command measures one");
                let hint = "name one with --format and --host; `floatgate review` takes all";
                Err(Error::new(Kind::Input, text).hint(hint))
            }
        }
    }
}

/// The setup of the real target at `path` that `choice` means.
fn real_setup(path: &str, choice: &Choice) -> Result<TargetSetup, Error> {
    let refused = |what: &str, hint: &str| {
        Err(Error::new(Kind::Input, format!("{path} is a real drive: {what}")).hint(hint))
    };
    if choice.surroundings != Surroundings::default() {
        let what = "--ambient, --airflow, --slot-power and --fail-die apply to models only";
        return refused(what, "leave these options out");
    }
    if choice.precision.is_some() {
        return refused("its requests are all measured", "leave out --precision");
    }
    let format = choice.format.as_deref().filter(|format| *format != ALL);
    if format.is_some() || choice.time_lapse.is_some() {
        let hint = "leave out --format, --time-lapse and --full-scale";
        return refused("it has no format or time lapse", hint);
    }
    if choice.host.is_some() {
        let hint = "leave out --host, or name machines that run `fio --server`: --client a,b";
        return refused("it has one host, this machine", hint);
    }
    let hosts = choice.clients.clone().unwrap_or_default();
    match Address::parse(path, &hosts)? {
        Address::Local(path) => check_device_is_there(&path)?,
        Address::Group { paths, .. } => {
            paths.iter().try_for_each(|path| check_device_is_there(path))?;
        }
        Address::Export(_) | Address::Fleet { .. } => {}
    }
    Ok(TargetSetup::of_real(path.to_owned(), hosts))
}

/// Name of a run of `wanted` in file names: target and format, and the host of a model where that
/// is not the drive's first.
pub(crate) fn slug(wanted: &TargetSetup) -> String {
    let slug = wanted.slug();
    match Subject::find(&wanted.target) {
        Ok(Subject::Model { spec, .. }) => match spec.hosts().first() {
            Some(first) if *first != wanted.host => format!("{slug}-{}", words(&wanted.host)),
            _ => slug,
        },
        _ => slug,
    }
}

/// Published figures of the drive that `wanted` models, for its format and host, that `plan`
/// expresses, beside what `run` measured for them; none in surroundings that were not the
/// reviewers', and none for a real target.
pub(crate) fn published(wanted: &TargetSetup, plan: &Plan, run: &Run) -> Vec<Figure> {
    let Some((spec, rows)) = published_rows(wanted) else { return Vec::new() };
    let of_document = rows.into_iter().filter(|row| plan.expresses_document(&row.document));
    of_document
        .filter_map(|row| {
            let host = expression::host(row, plan, &spec.hosts()).to_owned();
            let figure = Figure { host, ..row.figure()? };
            let reading = expression::reading(row, plan).ok()?;
            let is_about = figure.is_about(&run.target);
            is_about.then(|| Figure { measured: reading.of(run), ..figure })
        })
        .collect()
}

/// Figures of the drive that `wanted` models, published of workloads that `run` measured but by a
/// protocol that `plan` does not express.
pub(crate) fn published_elsewhere(wanted: &TargetSetup, plan: &Plan, run: &Run) -> Vec<Figure> {
    let Some((_, rows)) = published_rows(wanted) else { return Vec::new() };
    let is_measured = |row: &FigureRow| {
        let mut steps = run.steps.iter().filter(|step| step.is_primary());
        !row.phase.is_stated() && steps.any(|step| step.workload == row.workload)
    };
    let others = rows.into_iter().filter(|row| !plan.expresses_document(&row.document));
    let figures = others.filter(|row| is_measured(row) && row.measured_metric().is_some());
    let host = |figure: Figure| Figure { host: ANY.to_owned(), ..figure };
    // Another protocol ran under another system: the figure says which, and is about the drive.
    let is_about = |figure: &Figure| host(figure.clone()).is_about(&run.target);
    figures.filter_map(FigureRow::figure).filter(is_about).collect()
}

/// The model of `wanted` and the published figures of its drive; absent for a real target, in
/// surroundings that were not the reviewers', and where nothing is published.
fn published_rows(wanted: &TargetSetup) -> Option<(Box<DriveSpec>, Vec<&'static FigureRow>)> {
    if !wanted.is_model() || wanted.surroundings != Surroundings::default() {
        return None;
    }
    let Ok(Subject::Model { spec, .. }) = Subject::find(&wanted.target) else { return None };
    let (device, capacity_gb) = spec.published_as()?;
    let rows = published::figures_for(published::figures(), device, capacity_gb).collect();
    Some((spec, rows))
}

/// A device of this machine must be there: else a file of that name would be made among the
/// devices, in memory. A file system below them, such as `/dev/shm`, takes files.
fn check_device_is_there(path: &Path) -> Result<(), Error> {
    let file_system = |path: &Path| path.metadata().ok().map(|it| it.dev());
    let folder = path.parent().unwrap_or(path);
    let is_among_devices = path.starts_with("/dev")
        && (!folder.is_dir() || file_system(folder) == file_system(Path::new("/dev")));
    if is_among_devices && !path.exists() {
        let text = format!("there is no device {}", path.display());
        return Err(Error::new(Kind::Input, text).hint("`lsblk` lists the block devices"));
    }
    Ok(())
}

/// The drive of the catalogue, or of the TOML file, named `name`.
///
/// # Errors
/// Names the nearest drive, or says what is wrong with the file.
pub fn find_drive(name: &str) -> Result<DriveSpec, Error> {
    match Subject::find(name)? {
        Subject::Model { spec, .. } => Ok(*spec),
        Subject::Real { path } => {
            let text = format!("{path} is not a modelled drive");
            Err(Error::new(Kind::Input, text).hint("`floatgate drives` lists them"))
        }
    }
}

/// The text of the drive of the catalogue, or of the TOML file, named `name`.
///
/// # Errors
/// As [`find_drive`].
pub fn find_drive_text(name: &str) -> Result<String, Error> {
    find_drive(name)?;
    ssd::catalogue::text(name).map_or_else(|| read_text(Path::new(name)), |text| Ok(text.into()))
}

pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    fs::read_to_string(path)
        .map_err(|source| Error::new(Kind::Input, format!("reading {shown}")).source(source))
}

fn read_drive(path: &Path) -> Result<DriveSpec, Error> {
    DriveSpec::parse(&read_text(path)?, &path.display().to_string())
        .map_err(|source| Error::new(Kind::Input, "reading a drive").source(source))
}

fn chosen(what: &str, asked: Option<&str>, known: &[String], drive: &str) -> Result<String, Error> {
    match asked {
        None => Ok(known.first().cloned().unwrap_or_default()),
        Some(asked) if known.iter().any(|name| name == asked) => Ok(asked.to_owned()),
        Some(asked) => {
            let error = Error::new(Kind::Input, format!("{drive} has no {what} `{asked}`"));
            Err(match nearest(asked, known.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("it has {}", known.join(", "))),
            })
        }
    }
}

/// Error that nothing of a kind, with the command that lists its like, is named `name`.
pub(crate) fn unknown<'a>(
    (what, listing): (&str, &str),
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Error {
    let error = Error::new(Kind::Input, format!("unknown {what} `{name}`"));
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("{}`{listing}` lists all", like(name, &known))),
    }
}

/// The few of `known` that begin most like `name`, as the beginning of a hint; empty where none
/// begins with its first two letters.
fn like(name: &str, known: &[&str]) -> String {
    let name = name.to_lowercase();
    let shared = |other: &str| name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let mut alike: Vec<&str> = known.iter().copied().filter(|other| shared(other) > 1).collect();
    alike.sort_by_key(|other| std::cmp::Reverse(shared(other)));
    alike.truncate(SUGGESTIONS_MAX);
    match alike.as_slice() {
        [] => String::new(),
        names => format!("similar names: {}; ", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_drives_name_gets_the_nearest_one() {
        let error = Subject::find("iodrive-dou").unwrap_err();
        assert_eq!(error.to_string(), "unknown drive `iodrive-dou`");
        assert_eq!(error.remedy(), "did you mean `iodrive-duo`?");
    }

    #[test]
    fn all_formats_are_set_up_in_the_drives_order_at_its_own_time_lapse() {
        let subject = Subject::find("iodrive-duo").unwrap();
        let choice = Choice { format: Some("all".into()), ..Choice::default() };
        let wanted = subject.setups(&choice).unwrap();
        let formats: Vec<&str> = wanted.iter().map(|it| &*it.format).collect();
        assert_eq!(formats, ["stock", "high-performance"]);
        assert!(wanted.iter().all(|wanted| wanted.time_lapse > 16));
        let of = |time_lapse| {
            let choice = Choice { time_lapse, time_lapse_max: Some(16), ..Choice::default() };
            subject.setups(&choice).unwrap()[0].time_lapse
        };
        assert_eq!((of(None), of(Some(64))), (16, 64), "what is asked for is not bounded");
    }

    #[test]
    fn all_hosts_are_set_up_side_by_side_for_each_format() {
        let subject = Subject::find("iodrive-duo").unwrap();
        let all = || Some("all".to_owned());
        let choice = Choice { format: all(), host: all(), ..Choice::default() };
        let wanted = subject.setups(&choice).unwrap();
        let slugs: Vec<String> = wanted.iter().map(slug).collect();
        let expect = ["", "-windows"].map(|host| format!("iodrive-duo-stock{host}"));
        assert_eq!(slugs[..2], expect, "runs are told apart by their names");
        assert_eq!((wanted.len(), &*wanted[3].host), (4, "windows"));
        assert!(wanted[2..].iter().all(|wanted| wanted.format == "high-performance"));
        let error = subject.setup(&Choice { host: all(), ..Choice::default() }).unwrap_err();
        assert!(error.to_string().starts_with("`all` selects 2 configurations"), "{error}");
        assert_eq!(subject.setup(&Choice::default()).unwrap().host, "linux");
    }

    #[test]
    fn a_real_drive_has_one_host() {
        let choice = Choice { host: Some("all".into()), ..Choice::default() };
        let error = Subject::find("./disk.img").unwrap().setups(&choice).unwrap_err();
        assert_eq!(error.to_string(), "./disk.img is a real drive: it has one host, this machine");
        assert!(error.remedy().starts_with("leave out --host"), "{}", error.remedy());
        let choice = Choice { clients: Some("a,b".into()), ..Choice::default() };
        let error = Subject::find("iodrive-duo").unwrap().setups(&choice).unwrap_err();
        assert_eq!(error.remedy(), "leave out --client");
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_known_ones() {
        let subject = Subject::find("iodrive-duo").unwrap();
        let choice = Choice { format: Some("turbo".into()), ..Choice::default() };
        let error = subject.setups(&choice).unwrap_err();
        assert_eq!(error.to_string(), "iodrive-duo has no format `turbo`");
        assert_eq!(error.remedy(), "it has stock, high-performance");
    }

    #[test]
    fn an_unknown_drive_gets_those_that_begin_like_it() {
        let error = Subject::find("p330m").unwrap_err();
        assert_eq!(error.to_string(), "unknown drive `p330m`");
        assert!(error.remedy().starts_with("similar names: p320h-700"), "{}", error.remedy());
        assert!(error.remedy().ends_with("; `floatgate drives` lists all"), "{}", error.remedy());
        let error = Subject::find("zzzzzzzzzz").unwrap_err();
        assert_eq!(error.remedy(), "`floatgate drives` lists all");
        // One letter in common is no similarity: nytro-warpdrive-800 is not meant.
        assert_eq!(Subject::find("nosuch").unwrap_err().remedy(), "`floatgate drives` lists all");
    }

    #[test]
    fn an_nbd_address_is_a_real_drive_and_a_broken_one_is_refused() {
        let found = Subject::find("nbd+unix:///?socket=/run/it.sock").unwrap();
        assert!(matches!(found, Subject::Real { .. }));
        assert_eq!(found.setups(&Choice::default()).unwrap()[0].slug(), "it");
        assert_eq!(Subject::find("nbd+unix:///it").unwrap_err().kind(), Kind::Input);
    }

    #[test]
    fn a_device_that_is_not_there_becomes_no_file() {
        let subject = Subject::find("/dev/nvme99n1").unwrap();
        let error = subject.setups(&Choice::default()).unwrap_err();
        assert_eq!(error.to_string(), "there is no device /dev/nvme99n1");
        let shm = Path::new("/dev/shm");
        if shm.metadata().is_ok_and(|it| it.dev() != fs::metadata("/dev").unwrap().dev()) {
            check_device_is_there(&shm.join("a-new-file")).unwrap();
        }
        let choice = Choice { clients: Some("a,b".into()), ..Choice::default() };
        assert_eq!(subject.setups(&choice).unwrap()[0].host, "a,b", "it may be there on others");
    }

    #[test]
    fn surroundings_that_would_make_no_difference_are_refused() {
        let surroundings = Surroundings { ambient_c: Some(45), ..Surroundings::default() };
        let choice = Choice { surroundings, ..Choice::default() };
        let error = Subject::find("./disk.img").unwrap().setups(&choice).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("./disk.img is a real drive: --ambient, "), "{said}");
        assert!(said.ends_with(" apply to models only"), "{said}");
    }

    #[test]
    fn a_real_drive_has_no_formats() {
        let subject = Subject::find("./disk.img").unwrap();
        let choice = Choice { format: Some("stock".into()), ..Choice::default() };
        assert_eq!(subject.setups(&choice).unwrap_err().kind(), Kind::Input);
        let choice = Choice { format: Some("all".into()), ..Choice::default() };
        assert_eq!(subject.setups(&choice).unwrap().len(), 1);
    }
}
