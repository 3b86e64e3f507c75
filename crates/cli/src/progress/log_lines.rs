//! Progress where the output is a log: a line at least every so often, so that a reader can tell
//! work from a hang.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time from one line to the next.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Prints a line.
type Print = Box<dyn Fn(&str) + Send + Sync>;

/// Lines of progress, printed by a thread of their own where no step ends for long.
#[derive(Debug)]
pub(super) struct LogLines {
    state: Arc<State>,
    ticker: Option<JoinHandle<()>>,
}

struct State {
    print: Print,
    latest: Mutex<Latest>,
    ended: Condvar,
}

#[derive(Debug)]
struct Latest {
    /// State of the work in words; none before it begins and after it ends.
    line: Option<String>,
    told_at: Instant,
    is_over: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State").field("latest", &self.latest).finish_non_exhaustive()
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the state of the work each time that nothing was printed for `silence_max`.
    fn tick(&self, silence_max: Duration) {
        let mut latest = self.lock();
        while !latest.is_over {
            let left = silence_max.saturating_sub(latest.told_at.elapsed());
            if left.is_zero() {
                latest.line.iter().for_each(|line| (self.print)(line));
                latest.told_at = Instant::now();
                continue;
            }
            let waited = self.ended.wait_timeout(latest, left);
            latest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl LogLines {
    /// Begins to print, with `print`, at least every `silence_max`.
    ///
    /// # Errors
    /// Fails if the system has no thread.
    pub(super) fn start(silence_max: Duration, print: Print) -> io::Result<Self> {
        let latest = Latest { line: None, told_at: Instant::now(), is_over: false };
        let (latest, ended) = (Mutex::new(latest), Condvar::new());
        let state = Arc::new(State { print, latest, ended });
        let own = Arc::clone(&state);
        let builder = thread::Builder::new().name("progress".to_owned());
        let ticker = builder.spawn(move || own.tick(silence_max))?;
        Ok(Self { state, ticker: Some(ticker) })
    }

    /// Sets the state of the work, which is printed when it is time.
    pub(super) fn note(&self, line: String) {
        self.state.lock().line = Some(line);
    }

    /// Prints a line now.
    pub(super) fn tell(&self, line: String) {
        let mut latest = self.state.lock();
        (self.state.print)(&line);
        (latest.line, latest.told_at) = (Some(line), Instant::now());
    }

    /// Prints nothing until there is work again.
    pub(super) fn rest(&self) {
        self.state.lock().line = None;
    }
}

impl Drop for LogLines {
    fn drop(&mut self) {
        self.state.lock().is_over = true;
        self.state.ended.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // One that panicked prints nothing any more.
            let _ = ticker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_that_goes_on_is_told_again_and_again_until_it_rests() {
        let (sender, receiver) = mpsc::channel();
        let print = move |line: &str| {
            // The receiver is gone once the test is over.
            let _ = sender.send(line.to_owned());
        };
        let lines = LogLines::start(Duration::from_millis(1), Box::new(print)).unwrap();
        lines.note("half".to_owned());
        let patience = Duration::from_secs(20);
        for _ in 0..2 {
            assert_eq!(receiver.recv_timeout(patience).unwrap(), "half");
        }
        lines.rest();
        lines.tell("done".to_owned());
        let told = std::iter::repeat_with(|| receiver.recv_timeout(patience).unwrap());
        assert!(told.take(1000).any(|line| line == "done"));
        drop(lines);
    }
}
