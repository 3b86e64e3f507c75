//! The terminal of `floatgate volume top`: its size, and the keys that end it.
//!
//! Keys come one by one, unseen, until this is dropped. Ctrl-C stays a signal, which is taken over,
//! so that the terminal is as it was however the command ends.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use server::signals::{self, Signal};

use crate::output;

/// Enters and leaves the second screen of a terminal, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// Interval between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Columns and lines of a terminal of unknown size.
const SIZE: (usize, usize) = (80, 24);

/// A terminal that shows one screen after the other.
#[derive(Debug)]
pub(super) struct Terminal {
    before: Termios,
    signals: Receiver<Signal>,
}

impl Terminal {
    /// Takes over the terminal that the command was typed in; none where it was not.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn take() -> Result<Option<Self>> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Ok(None);
        }
        let attempted = "taking over the terminal";
        let before = tcgetattr(io::stdin()).context(attempted)?;
        let signals = signals::received()?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &keys).context(attempted)?;
        let terminal = Self { before, signals };
        output::raw(ENTER).context(attempted)?;
        Ok(Some(terminal))
    }

    /// Waits for `time`. Returns true as soon as a signal or a key asks to end.
    pub(super) fn is_over_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.signals.try_recv().is_ok() || is_ended_by_key(left.min(LOOK_EVERY)) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        let _ = output::raw(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Columns and lines of the terminal that stdout is, or those of any.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => SIZE,
    }
}

/// True if one of the keys comes in time that end the command: q, Ctrl-D.
fn is_ended_by_key(time: Duration) -> bool {
    let stdin = io::stdin();
    let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut wanted, Some(&time)) {
        Ok(1..) => {}
        _ => return false,
    }
    let mut keys = [0; 32];
    match stdin.lock().read(&mut keys) {
        // A terminal that is closed has no keys.
        Ok(0) | Err(_) => true,
        Ok(count) => keys[..count].iter().any(|key| b"qQ\x04".contains(key)),
    }
}
