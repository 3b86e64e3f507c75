//! Places of clients: those whose handshake is under way, and those that are served.
//!
//! ```text
//!   arrive ──► handshaking ──► begin_service ──► served ──► leave
//!                  └── displaced by a newer one, where there are too many
//! ```
//!
//! **Invariants**
//! - No peer and no front end can take all places, unless there are too few to share.
//! - A handshake costs no place of those that are served; of too many the oldest of the peer that
//!   has the most is displaced.

use std::collections::BTreeMap;

use crate::limits::Room;
use crate::socket::Peer;

/// Clients at once whose handshake is under way.
pub(crate) const HANDSHAKES_MAX: usize = 64;

/// A client with the handle of its connection.
#[derive(Debug)]
pub(crate) struct SeatedClient<S> {
    /// Handle of its connection.
    pub(crate) socket: S,
    /// Name of the protocol that it speaks.
    pub(crate) front_end: &'static str,
    /// Origin of its connection.
    pub(crate) peer: Peer,
}

/// Clients by number.
#[derive(Debug)]
pub(crate) struct Seats<S> {
    handshaking: BTreeMap<u64, SeatedClient<S>>,
    served: BTreeMap<u64, SeatedClient<S>>,
}

/// Reason why a client is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// All places are taken.
    #[error("the limit of {0} clients is reached (--max-connections)")]
    All(usize),
    /// Its front end has as many as leave some for the others.
    #[error("{0} clients use this front end, and the other places are those of the other one")]
    FrontEnd(usize),
    /// Its peer has as many as leave some for others.
    #[error(
        "the limit of {0} clients of one program or machine is reached \
         (--max-connections-per-peer)"
    )]
    Peer(usize),
}

/// Reason why a handshake that was completed is in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeatRefusal {
    /// There is no place among those that are served.
    Full(Full),
    /// A newer one took its place among the handshakes.
    Displaced,
}

impl<S> Default for Seats<S> {
    fn default() -> Self {
        Self { handshaking: BTreeMap::new(), served: BTreeMap::new() }
    }
}

impl<S> Seats<S> {
    /// Checks that a client of a front end and a peer could be served now.
    ///
    /// # Errors
    /// Fails with the limit that is reached.
    pub(crate) fn check(
        &self,
        room: Room,
        front_end: &'static str,
        peer: Peer,
    ) -> Result<(), Full> {
        let count = |is_meant: &dyn Fn(&SeatedClient<S>) -> bool| {
            self.served.values().filter(|it| is_meant(it)).count()
        };
        if self.served.len() >= room.all {
            return Err(Full::All(room.all));
        }
        if count(&|it| it.front_end == front_end) >= room.of_front_end {
            return Err(Full::FrontEnd(room.of_front_end));
        }
        if count(&|it| it.peer == peer) >= room.of_peer {
            return Err(Full::Peer(room.of_peer));
        }
        Ok(())
    }

    /// Adds a client whose handshake begins. Returns the one that it displaces, if it does.
    pub(crate) fn arrive(
        &mut self,
        client: u64,
        seated: SeatedClient<S>,
    ) -> Option<SeatedClient<S>> {
        self.handshaking.insert(client, seated);
        if self.handshaking.len() <= HANDSHAKES_MAX {
            return None;
        }
        let count = |peer: Peer| self.handshaking.values().filter(|it| it.peer == peer).count();
        let counted = self.handshaking.iter().map(|(client, it)| (count(it.peer), *client));
        // Of equal peers the oldest client.
        let (_, oldest) = counted.max_by_key(|(count, client)| (*count, u64::MAX - client))?;
        self.handshaking.remove(&oldest)
    }

    /// Gives a client that has completed its handshake a place among those that are served.
    ///
    /// # Errors
    /// Fails if there is none, or it was displaced.
    pub(crate) fn begin_service(&mut self, client: u64, room: Room) -> Result<(), SeatRefusal> {
        let SeatedClient { front_end, peer, .. } =
            self.handshaking.get(&client).ok_or(SeatRefusal::Displaced)?;
        self.check(room, front_end, *peer).map_err(SeatRefusal::Full)?;
        let seated = self.handshaking.remove(&client).ok_or(SeatRefusal::Displaced)?;
        self.served.insert(client, seated);
        Ok(())
    }

    /// Removes a client that is gone.
    pub(crate) fn leave(&mut self, client: u64) {
        self.handshaking.remove(&client);
        self.served.remove(&client);
    }

    /// True while the handshake of a client is under way.
    pub(crate) fn is_handshaking(&self, client: u64) -> bool {
        self.handshaking.contains_key(&client)
    }

    /// Number of clients whose handshake is under way.
    #[cfg(test)]
    pub(crate) fn handshakes(&self) -> usize {
        self.handshaking.len()
    }

    /// True if there is no client.
    pub(crate) fn is_empty(&self) -> bool {
        self.handshaking.is_empty() && self.served.is_empty()
    }

    /// The connection of a client that is served.
    pub(crate) fn served(&self, client: u64) -> Option<&S> {
        self.served.get(&client).map(|it| &it.socket)
    }

    /// The connections of all clients.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &S> {
        self.handshaking.values().chain(self.served.values()).map(|it| &it.socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { all: 8, of_front_end: 6, of_peer: 5 };

    /// Serves so many clients of a front end and a process more; returns the reason for the first
    /// that is not.
    fn served(
        seats: &mut Seats<()>,
        front_end: &'static str,
        process: i32,
        clients: usize,
    ) -> Result<(), SeatRefusal> {
        for _ in 0..clients {
            let client = seats.served.len() as u64;
            let peer = Peer::Process(process);
            seats.arrive(client, SeatedClient { socket: (), front_end, peer });
            let begun = seats.begin_service(client, ROOM);
            seats.handshaking.clear();
            begun?;
        }
        Ok(())
    }

    #[test]
    fn no_peer_and_no_front_end_takes_all_places() {
        let mut seats = Seats::default();
        served(&mut seats, "nbd", 1, 5).unwrap();
        let full = |full| Err(SeatRefusal::Full(full));
        assert_eq!(served(&mut seats, "nbd", 1, 1), full(Full::Peer(5)));
        assert_eq!(served(&mut seats, "nvme", 1, 1), full(Full::Peer(5)), "a peer is one");
        served(&mut seats, "nbd", 2, 1).unwrap();
        assert_eq!(served(&mut seats, "nbd", 3, 1), full(Full::FrontEnd(6)));
        served(&mut seats, "nvme", 2, 2).unwrap();
        assert_eq!(served(&mut seats, "nvme", 3, 1), full(Full::All(8)));
        seats.leave(7);
        served(&mut seats, "nvme", 3, 1).unwrap();
    }

    #[test]
    fn of_too_many_handshakes_the_oldest_of_the_peer_with_the_most_goes() {
        let mut seats = Seats::default();
        let seated = |process| SeatedClient {
            socket: process,
            front_end: "nbd",
            peer: Peer::Process(process),
        };
        assert!(seats.arrive(0, seated(7)).is_none(), "the oldest of all");
        let many = HANDSHAKES_MAX as u64;
        for client in 1..many {
            assert!(seats.arrive(client, seated(8)).is_none());
        }
        let displaced = seats.arrive(many, seated(9)).unwrap();
        assert_eq!(displaced.socket, 8);
        assert!(seats.is_handshaking(0) && !seats.is_handshaking(1));
        assert_eq!(seats.begin_service(1, ROOM), Err(SeatRefusal::Displaced));
        assert_eq!(seats.begin_service(0, ROOM), Ok(()));
    }
}
