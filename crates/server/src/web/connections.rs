//! The connections of a server of pages, by what they are there for, each kind with a limit.
//!
//! ```text
//!   accepted ──► asking ──► answered ──► gone
//!                               └──────► viewer ──► gone
//! ```
//!
//! Where a limit is reached, the oldest that asks goes for the newest, and so does the oldest that
//! is answered: a client that asks properly is done in milliseconds and so is never the oldest for
//! long. A viewer stays, so one more is refused. No kind takes the room of another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections at once that have not sent a whole request yet.
const ASKING_MAX: usize = 64;
/// Connections at once that are being answered.
const ANSWERED_MAX: usize = 32;
/// Viewers at once of all streams.
pub(super) const VIEWERS_MAX: usize = 32;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    came: u64,
    /// By number, in order of arrival.
    asking: BTreeMap<u64, Arc<TcpStream>>,
    answered: BTreeMap<u64, Arc<TcpStream>>,
    viewers: BTreeSet<u64>,
}

/// A connection among the others, which are told when it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    all: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// Adds a connection that is about to ask for something.
    pub(super) fn enter(self: &Arc<Self>, socket: &Arc<TcpStream>) -> Entry {
        let mut table = self.lock();
        table.came += 1;
        let number = table.came;
        let oldest = insert(&mut table.asking, number, Arc::clone(socket), ASKING_MAX);
        drop(table);
        cut(oldest);
        Entry { all: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Records that its request is complete and is being answered.
    pub(super) fn begin_answer(&self) {
        let mut table = self.all.lock();
        let Some(socket) = table.asking.remove(&self.number) else { return };
        let oldest = insert(&mut table.answered, self.number, socket, ANSWERED_MAX);
        drop(table);
        cut(oldest);
    }

    /// Makes it a viewer; says whether there was room for one more.
    pub(super) fn begin_to_view(&self) -> bool {
        let mut table = self.all.lock();
        if table.viewers.len() >= VIEWERS_MAX {
            return false;
        }
        table.answered.remove(&self.number);
        table.viewers.insert(self.number)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.all.lock();
        table.asking.remove(&self.number);
        table.answered.remove(&self.number);
        table.viewers.remove(&self.number);
    }
}

/// Adds a connection; returns the oldest where there are more than `max` of them now.
fn insert(
    kind: &mut BTreeMap<u64, Arc<TcpStream>>,
    number: u64,
    socket: Arc<TcpStream>,
    max: usize,
) -> Option<Arc<TcpStream>> {
    kind.insert(number, socket);
    if kind.len() > max { kind.pop_first().map(|(_, socket)| socket) } else { None }
}

/// Ends a connection, in whatever thread it waits.
fn cut(socket: Option<Arc<TcpStream>>) {
    if let Some(socket) = socket {
        // It fails only when the other end is gone.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// A server's end of a connection, and the other one.
    fn pair(listener: &TcpListener) -> (Arc<TcpStream>, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        (Arc::new(listener.accept().unwrap().0), client)
    }

    fn is_cut(mut client: &TcpStream) -> bool {
        client.read(&mut [0]).is_ok_and(|length| length == 0)
    }

    #[test]
    fn the_oldest_that_asks_goes_and_those_that_are_answered_or_view_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let all = Arc::new(Connections::default());
        let (answered_end, answered) = pair(&listener);
        let (viewer_end, viewer) = pair(&listener);
        let entries = [all.enter(&answered_end), all.enter(&viewer_end)];
        entries.iter().for_each(Entry::begin_answer);
        assert!(entries[1].begin_to_view());
        let asking: Vec<_> = (0..=ASKING_MAX)
            .map(|_| {
                let (own_end, client) = pair(&listener);
                (all.enter(&own_end), client)
            })
            .collect();
        let cut = asking.iter().map(|(_, client)| is_cut(client));
        let expected = (0..=ASKING_MAX).map(|index| index == 0);
        assert!(cut.eq(expected), "the first one and no other");
        assert!(!is_cut(&answered) && !is_cut(&viewer));
        drop((asking, entries));
        let table = all.lock();
        assert!(table.asking.is_empty() && table.answered.is_empty() && table.viewers.is_empty());
    }

    #[test]
    fn a_viewer_beyond_the_limit_is_refused_until_another_one_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let all = Arc::new(Connections::default());
        let (own_end, _client) = pair(&listener);
        let mut viewers: Vec<Entry> = (0..=VIEWERS_MAX).map(|_| all.enter(&own_end)).collect();
        let last = viewers.pop().unwrap();
        assert!(viewers.iter().all(Entry::begin_to_view));
        assert!(!last.begin_to_view());
        viewers.pop();
        assert!(last.begin_to_view());
    }
}
