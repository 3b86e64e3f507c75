//! Small drives, exhaustively: a cut of the power after every command to any disk, and what
//! survives of it in every way that can be told apart.

use blockio::Rng;

use super::disk::Disks;
use super::history::{BYTES, History};
use crate::{Device as _, Drive, Durability, Shape, format};

/// One command of a short script, on whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a page.
    Write(u32),
    /// Writes two pages, both or neither.
    WriteBoth(u32, u32),
    /// Trims a page.
    Trim(u32),
    /// Makes everything durable.
    Flush,
    /// Saves the map.
    Checkpoint,
}

/// Up to so many sectors, all their subsets are tried; beyond, each one alone and all but each one.
const SUBSETS_MAX: usize = 5;
const PAGE_SECTORS: usize = 8;

/// Runs `script` on a new drive once for each command that it sends to the disks, cuts the power
/// there, and opens what is left in every way. Returns how many states were opened.
///
/// # Errors
/// What promise was not kept, and where.
pub fn exhaust(shape: &Shape, script: &[Step]) -> Result<u64, String> {
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let fresh = Disks::new(shape.dies as usize, bytes, Rng::new(0));
    format(fresh.media(), shape, 1).map_err(|error| error.to_string())?;
    let mut states = 0;
    for cut in 0.. {
        let disks = fresh.fork();
        disks.cut_after(cut);
        let history = play(&disks, shape, script)?;
        let is_over = !disks.is_cut();
        let pending = disks.sectors_pending();
        for subset in subsets(pending) {
            let left = disks.fork();
            left.restore_by(subset);
            check(&left, history.clone()).map_err(|what| format!("cut after {cut}: {what}"))?;
            states += 1;
        }
        if is_over {
            return Ok(states);
        }
    }
    Ok(states)
}

/// Carries out a script until its end or the cut; says what may be found afterwards.
fn play(disks: &Disks, shape: &Shape, script: &[Step]) -> Result<History, String> {
    let mut history = History::new(shape.pages_logical as usize * PAGE_SECTORS);
    let sectors = history.sectors();
    let Ok(drive) = Drive::open_media(disks.media()) else {
        return if disks.is_cut() { Ok(history) } else { Err("it does not open".to_owned()) };
    };
    let from = |page: u32| u64::from(page) * (PAGE_SECTORS * BYTES) as u64;
    for step in script {
        let done = match *step {
            Step::Write(page) => {
                let bytes = history.write(page as usize * PAGE_SECTORS, PAGE_SECTORS);
                drive.write(from(page), &bytes, Durability::Volatile)
            }
            Step::WriteBoth(one, other) => {
                history.begin_group();
                let [first, second] = [one, other]
                    .map(|page| history.write(page as usize * PAGE_SECTORS, PAGE_SECTORS));
                let done = drive.atomic_write(&[(from(one), &first), (from(other), &second)]);
                done.inspect(|()| history.end_group())
            }
            Step::Trim(page) => {
                history.trim(page as usize * PAGE_SECTORS, PAGE_SECTORS);
                let length = (PAGE_SECTORS * BYTES) as u64;
                drive.trim(from(page), length, Durability::Volatile)
            }
            Step::Flush => drive.flush().inspect(|()| history.settle(0, sectors)),
            Step::Checkpoint => drive.checkpoint(),
        };
        match done {
            Ok(()) => {}
            Err(_) if disks.is_cut() => return Ok(history),
            Err(error) => return Err(format!("{step:?}: {error}")),
        }
    }
    Ok(history)
}

fn check(disks: &Disks, mut history: History) -> Result<(), String> {
    let drive = Drive::open_media(disks.media()).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; history.sectors() * BYTES];
    drive.read(0, &mut bytes).map_err(|error| error.to_string())?;
    history.check_recovered(0, &bytes)
}

/// Which of so many sectors survive: every way, or where they are too many each one alone, all but
/// each one, none and all.
fn subsets(count: usize) -> Vec<Box<dyn Fn(usize) -> bool>> {
    if count <= SUBSETS_MAX {
        let all = 0..1_usize << count;
        return all.map(|bits| subset(move |sector| bits >> sector & 1 != 0)).collect();
    }
    let mut ways = vec![subset(|_| true), subset(|_| false)];
    for one in 0..count {
        ways.push(subset(move |sector| sector == one));
        ways.push(subset(move |sector| sector != one));
    }
    ways
}

fn subset(survives: impl Fn(usize) -> bool + 'static) -> Box<dyn Fn(usize) -> bool> {
    Box::new(survives)
}
