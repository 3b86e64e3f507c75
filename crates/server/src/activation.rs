//! Sockets passed by whatever started the server (systemd socket activation).
//!
//! The protocol is that of `sd_listen_fds(3)`: `LISTEN_PID` names this process, and `LISTEN_FDS`
//! says how many sockets there are from descriptor 3 on.

use std::net::{SocketAddr, TcpListener};
use std::str::FromStr;

use anyhow::{Context as _, Result, anyhow};
use export::{Address, AddressError, Listener};
use listenfd::ListenFd;

/// Prefix of a place that names a passed descriptor.
const PREFIX: &str = "fd:";
/// The first descriptor that is passed.
const FIRST: usize = 3;

/// Kind of address that a server listens at.
pub trait Listening: Sized {
    /// Reads an address; the error says what one looks like.
    ///
    /// # Errors
    /// Fails if the text is none.
    fn read(text: &str) -> Result<Self, String>;
}

impl Listening for Address {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: AddressError| error.to_string())
    }
}

impl Listening for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| {
            format!("`{text}` is not an IP address and a port, such as 127.0.0.1:8480")
        })
    }
}

/// Place that a server listens at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place<A> {
    /// At an address of its own choice.
    At(A),
    /// At the socket behind a descriptor, by its position among those that were passed.
    Passed(usize),
}

impl<A: Listening> FromStr for Place<A> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_prefix(PREFIX) else {
            return A::read(text).map(Self::At);
        };
        let index = number.parse::<usize>().ok().and_then(|it| it.checked_sub(FIRST));
        index.map(Self::Passed).ok_or_else(|| {
            format!("`{text}` is not a descriptor that can be passed; the first is {PREFIX}{FIRST}")
        })
    }
}

/// The sockets that were passed, each until it is taken.
#[expect(missing_debug_implementations, reason = "the library's type has none")]
pub struct PassedSockets(ListenFd);

impl PassedSockets {
    /// Takes over the sockets passed to this process.
    pub fn of_process() -> Self {
        Self(ListenFd::from_env())
    }

    /// The socket that clients come to, at a position.
    ///
    /// # Errors
    /// Fails if there is none, or it is none that a server could use.
    pub fn clients(&mut self, index: usize) -> Result<Listener> {
        let attempted = || format!("taking over the socket {PREFIX}{}", FIRST + index);
        let listener = match self.0.take_unix_listener(index) {
            Ok(Some(socket)) => Listener::of_unix(socket),
            Ok(None) => return Err(missing(index)),
            // What is no Unix socket stays where it was.
            Err(_) => Listener::of_tcp(self.http(index)?),
        };
        listener.with_context(attempted)
    }

    /// The socket that browsers come to, at a position.
    ///
    /// # Errors
    /// Fails if there is none, or it is none of TCP.
    pub fn http(&mut self, index: usize) -> Result<TcpListener> {
        let attempted = || format!("taking over the socket {PREFIX}{}", FIRST + index);
        let socket = self.0.take_tcp_listener(index).with_context(attempted)?;
        let socket = socket.ok_or_else(|| missing(index))?;
        socket.set_nonblocking(false).with_context(attempted)?;
        Ok(socket)
    }
}

fn missing(index: usize) -> anyhow::Error {
    anyhow!(
        "no socket {PREFIX}{} was passed, or it is taken already; a socket unit of systemd passes \
         one for each ListenStream=",
        FIRST + index
    )
}

#[cfg(test)]
mod tests {
    use export::Address;

    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_descriptor_from_three_on() {
        let place = |text: &str| text.parse::<Place<Address>>();
        assert_eq!(place("fd:4"), Ok(Place::Passed(1)));
        assert_eq!(place("unix:s"), Ok(Place::At(Address::Unix("s".into()))));
        for text in ["fd:", "fd:2", "fd:x"] {
            assert!(place(text).unwrap_err().contains("the first is fd:3"), "{text}");
        }
        assert!(place("none").unwrap_err().contains("`none` is not an address"));
    }
}
