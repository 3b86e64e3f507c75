//! The status of a drive that no process has open, and what its folder adds to any status.

use std::fs;
use std::path::Path;

use blockio::text::shown;
use status::{
    Health, LOST_LBAS_MAX, Led, LeftBuffer, MaintenanceStatus, SCHEMA, State, Status, drive_id,
};

use crate::description;
use crate::engine::core::lost::LostPages;
use crate::engine::core::write_buffer::BufferContents;
use crate::engine::dies::gathering::{GatheredDies, gather_proven};
use crate::engine::log::recovery::{condemn_known, take_up, view};
use crate::engine::store::Store;
use crate::format::header::Header;
use crate::volume::damage_list;
use crate::volume::folder::{
    die_paths, is_purge_unfinished, name_of, namespaces, rated_cycles, unerased_media,
};
use crate::volume::folder_witness::FolderWitness;
use crate::volume::hot_spares::hot_spares;
use crate::volume::identity::MediumIdentity;
use crate::volume::lifetime::load_life;
use crate::volume::listed_dies::open_dies;
use crate::volume::locate;
use crate::volume::opening::view_buffer;
use crate::volume::operations::refusal;
use crate::{FileMedium, OpenError};

/// The status of the drive of a folder that no process has open; nothing is changed.
///
/// # Errors
/// Fails if there is none, it is in use, or it is damaged.
pub fn inspect(volume: &Path) -> Result<Status, OpenError> {
    let (media, listing) = open_dies(volume, FileMedium::view)?;
    let witness = Some(FolderWitness::attached(volume));
    let (gathered, listing) = listing.explained(gather_proven(media, witness))?;
    let GatheredDies { mut store, header, unused } = gathered;
    let write_buffer = left_buffer(volume, &mut store, &header)?;
    let unused: Vec<String> = unused.into_iter().map(|it| it.text).collect();
    let absent_dies = listing.absences(store.dies.lost(), &unused);
    let closed = if header.is_open { None } else { view(&store, &header)? };
    let (mut ftl, lost) = closed.unzip();
    if let Some(ftl) = &mut ftl {
        condemn_known(&store, ftl);
    }
    let units = store.layout.data_units_left(store.dies.removed());
    let status = Status {
        schema: SCHEMA,
        drive: drive_id(store.drive),
        name: String::new(),
        folder: String::new(),
        health: Health::default(),
        state: if header.is_open { State::Unclosed } else { State::Closed },
        reason: None,
        refusal: refusal(volume)?,
        led: Led::Off,
        is_locate_led_on: false,
        format: description::format(&header, units),
        smart: description::smart(&header, ftl.as_ref()),
        pages_lost: lost.as_ref().map(LostPages::count),
        lost_lbas: lost.as_ref().map(|lost| lost.lbas(LOST_LBAS_MAX)).unwrap_or_default(),
        acknowledged_survives: None,
        write_through_reason: None,
        write_buffer,
        dies: store.dies.members(&header),
        hot_spares: 0,
        namespaces: namespaces(volume)?,
        space: ftl.as_ref().map(description::space),
        wear: ftl.as_ref().map(description::wear),
        writes: None,
        life: load_life(volume),
        maintenance: MaintenanceStatus {
            absent_dies,
            stale_start: store.dies.stale_start(),
            ..MaintenanceStatus::default()
        },
        server: None,
    };
    let places = store.bad_places.describe(&store.layout, ftl.as_ref());
    let status = status.with_bad_places(places).rated(rated_cycles(volume));
    Ok(describe_status(status, volume))
}

/// The write buffer that the death of a server left. The journal, which says whether it is of the
/// state that the dies hold, is not read.
fn left_buffer(
    volume: &Path,
    store: &mut Store,
    header: &Header,
) -> Result<Option<LeftBuffer>, OpenError> {
    let ignored = take_up(store, header, &*view_buffer(volume)?);
    let contents = store.buffered.as_ref().map(BufferContents::contents);
    Ok(contents.or_else(|| ignored.map(LeftBuffer::ignored)))
}

/// State of a drive that no process has open, as the headers of its dies tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineState {
    /// True if it was closed by the process that had it.
    pub is_closed: bool,
    /// Dies that have failed, or are missing.
    pub lost_dies: Vec<usize>,
}

/// Looks at the drive of a folder that no process has open; reads no more than the headers of its
/// dies, and changes nothing.
///
/// # Errors
/// As [`inspect`].
pub fn unserved(volume: &Path) -> Result<OfflineState, OpenError> {
    let media = open_dies(volume, FileMedium::view)?.0;
    let GatheredDies { store, header, .. } =
        gather_proven(media, Some(FolderWitness::attached(volume)))?;
    Ok(OfflineState { is_closed: !header.is_open, lost_dies: store.dies.lost().iter().collect() })
}

/// Adds what a drive's folder says of it to its status: its name, what its dies are on the host,
/// the hot spares that are left, an unfinished purge, and its locate LED; then judges its health.
/// To be done last.
#[must_use]
pub fn describe_status(mut status: Status, volume: &Path) -> Status {
    status.name = shown(&name_of(volume));
    let folder = fs::canonicalize(volume).unwrap_or_else(|_| volume.to_owned());
    status.folder = folder.display().to_string();
    for (die, path) in status.dies.iter_mut().zip(&die_paths(volume)) {
        let MediumIdentity { path, is_missing, model, serial } = MediumIdentity::of(path);
        die.is_missing = is_missing;
        (die.path, die.model, die.serial) = (Some(path), model, serial);
    }
    status.hot_spares = u32::try_from(hot_spares(volume).len()).unwrap_or(u32::MAX);
    status.maintenance.damage = damage_list::lately(volume);
    status.maintenance.is_purge_unfinished = is_purge_unfinished(volume);
    status.maintenance.unerased_media = unerased_media(volume);
    status.is_locate_led_on = locate::is_lit(volume);
    status.judged()
}
