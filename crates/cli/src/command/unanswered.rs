//! Orders to a server that ended or fell silent before it answered: what is unfinished, and which
//! command goes on.

use std::io;

use lab::{Error, Kind};

/// Remainder of an order that a server did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnansweredRequest {
    /// State of the volume that is possible now, to follow a semicolon.
    pub(super) state: &'static str,
    /// Command that goes on, as a hint.
    pub(super) next: String,
}

impl UnansweredRequest {
    /// Returns the error of an order that failed: a refusal as the server gave it, anything else
    /// with what is unfinished.
    pub(super) fn of_order(&self, error: io::Error) -> anyhow::Error {
        match error.kind() {
            io::ErrorKind::Other => error.into(),
            _ => self.of_wait(error),
        }
    }

    /// Returns the error of a wait for the end of work that the server had accepted.
    pub(super) fn of_wait(&self, error: impl Into<anyhow::Error>) -> anyhow::Error {
        let cause = server::chain_text(&error.into());
        Error::new(Kind::Io, format!("{cause}; {}", self.state)).hint(&self.next).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_order_without_an_answer_is_said_to_be_unfinished() {
        let unanswered =
            UnansweredRequest { state: "half is done", next: "`floatgate x` goes on".into() };
        let refused = unanswered.of_order(io::Error::other("not now"));
        assert_eq!(refused.to_string(), "not now");
        let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "the server ended");
        let silent = unanswered.of_order(ended);
        assert_eq!(silent.to_string(), "the server ended; half is done");
        let remedy = silent.downcast_ref::<Error>().map(Error::remedy);
        assert_eq!(remedy, Some("`floatgate x` goes on"));
    }
}
