//! A client whose replies keep to the times of a model.
//!
//! ```text
//!   receive ──► carry out ──► hold the reply ──► is it due? ──► send
//!      ▲                                            │ not yet
//!      └──────── wait: for input, or until it is ◄──┘
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blockio::Nanos;

use crate::connection::{Break, Connection, advance, elapsed, violated};
use crate::conversation::Conversation;
use crate::limits::REQUEST_BYTES_MAX;
use crate::limits::{Loan, OWN_BUFFER_BYTES};
use crate::{Asked, Lane, Pace};

/// Most bytes of replies that are held back before receiving stops: in the client's own memory, and
/// in lent memory.
const HELD_BYTES_OWN: usize = OWN_BUFFER_BYTES;
const HELD_BYTES_LENT: usize = REQUEST_BYTES_MAX as usize;
/// Shortest wait for which the thread sleeps: sleeping and waking takes about as long. Shorter ones
/// are spent polling.
const NEAR: Nanos = Nanos::from_micros(60);

/// Replies that are not due yet, by ticket.
#[derive(Default)]
struct Held {
    replies: BTreeMap<u32, Reply>,
    bytes: usize,
    /// Commands that were answered and are not recorded yet, with the times of their issue.
    answered: Vec<(Asked, Nanos)>,
    /// Memory for what is beyond the client's own.
    loan: Option<Loan>,
}

/// A reply that is held back, with its command and the time of its issue.
struct Reply {
    bytes: Vec<u8>,
    asked: Asked,
    issued_at: Nanos,
    is_done: bool,
}

/// Serves a client at the pace of a model whose time began at `begun`.
pub(crate) fn serve<C: Conversation>(
    connection: &mut Connection<'_>,
    session: &mut C,
    pace: &Arc<Pace>,
    begun: Instant,
) -> Result<(), Break> {
    // The system would otherwise sleep some 50 us longer than it is told to; where it refuses, it
    // does.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let Some(lane) = Lane::new(pace) else { return connection.serve(session, begun) };
    let now = || elapsed(begun);
    let mut held = Held::default();
    let mut has_input = true;
    loop {
        let timed = advance(session, begun, &mut connection.replies)?;
        let wanted_bytes = held.take(connection, session, &lane, now())?;
        let next = held.release(connection, &lane, now())?;
        connection.send()?;
        held.record(connection, begun);
        if wanted_bytes.is_none() && held.replies.is_empty() {
            continue;
        }
        let is_idle = next.is_none() && held.replies.is_empty();
        let next = next.into_iter().chain(timed).min();
        if is_idle && (session.is_over() || !has_input) {
            return Ok(());
        }
        // Memory for a large request is waited for by those alone who hold nothing.
        let receives = wanted_bytes.filter(|it| {
            has_input
                && !session.is_over()
                && (*it <= OWN_BUFFER_BYTES || held.replies.is_empty())
                && held.bytes < held.bytes_max(connection)
        });
        if wait(connection, receives.is_some(), next, now())? {
            has_input = connection.receive(receives.unwrap_or(1))? > 0;
        }
    }
}

/// Waits until `next`, or until something can be received that may be. Returns whether it can.
fn wait(
    connection: &mut Connection<'_>,
    takes_more: bool,
    next: Option<Nanos>,
    now: Nanos,
) -> Result<bool, Break> {
    let left = next.map(|next| Duration::from_nanos(next.saturating_sub(now + NEAR).0));
    if takes_more {
        return connection.wait(left);
    }
    thread::sleep(left.unwrap_or_default());
    Ok(false)
}

impl Held {
    /// Returns the most bytes that may be held now. Never waits for memory: others may wait for
    /// what is held here.
    fn bytes_max(&mut self, connection: &Connection<'_>) -> usize {
        if self.bytes < HELD_BYTES_OWN {
            return HELD_BYTES_OWN;
        }
        if self.loan.is_none() {
            self.loan = connection.lend_at_once(HELD_BYTES_LENT);
        }
        match &self.loan {
            Some(loan) if !connection.memory.is_wanted() => HELD_BYTES_OWN + loan.bytes(),
            _ => HELD_BYTES_OWN,
        }
    }

    /// Carries out what was received, and holds the replies. Returns how much the next request
    /// needs; none where it needs room that is there once what is held has gone.
    fn take<C: Conversation>(
        &mut self,
        connection: &mut Connection<'_>,
        session: &mut C,
        lane: &Lane,
        now: Nanos,
    ) -> Result<Option<usize>, Break> {
        while !session.is_over() && self.bytes < self.bytes_max(connection) {
            let ready_bytes = connection.replies.len();
            let next = session.take_next(connection.inbox.received(), &mut connection.replies);
            let next = match next {
                Ok(next) => next,
                Err(violation) => {
                    // It may say why.
                    connection.send()?;
                    return Err(violated(violation));
                }
            };
            session.settle(&mut connection.replies);
            connection.inbox.forget(next.used_bytes);
            if next.room_bytes > 0 && (ready_bytes > 0 || !self.replies.is_empty()) {
                return Ok(None);
            }
            if next.room_bytes > 0 {
                connection.make_room(next.room_bytes)?;
                continue;
            }
            if next.wanted_bytes > 0 {
                return Ok(Some(next.wanted_bytes));
            }
            // What no drive was asked for is answered at once.
            let Some(asked) = next.asked else { continue };
            let reply = connection.replies.take_from(ready_bytes);
            if reply.len() > HELD_BYTES_OWN {
                self.loan = connection.end_loan();
            }
            self.bytes += reply.len();
            let reply = Reply { bytes: reply, asked, issued_at: now, is_done: next.is_done };
            self.replies.insert(lane.submit(now, asked), reply);
        }
        Ok(Some(1))
    }

    /// Records the commands that were just answered, if there is a recorder.
    fn record(&mut self, connection: &mut Connection<'_>, begun: Instant) {
        if let Some(tape) = &mut connection.tape {
            let at = |issued_at: Nanos| begun + Duration::from_nanos(issued_at.0);
            tape.keep_issued(self.answered.drain(..).map(|(asked, issued)| (asked, at(issued))));
        }
    }

    /// Sends what is due. Returns when something may be due next.
    fn release(
        &mut self,
        connection: &mut Connection<'_>,
        lane: &Lane,
        now: Nanos,
    ) -> Result<Option<Nanos>, Break> {
        let mut due = Vec::new();
        let next = lane.due(now, &mut due);
        for reply in due.iter().filter_map(|ticket| self.replies.remove(ticket)) {
            self.bytes -= reply.bytes.len();
            connection.send_held(&reply.bytes)?;
            if reply.is_done && connection.tape.is_some() {
                self.answered.push((reply.asked, reply.issued_at));
            }
            if let Some(loan) = &self.loan {
                loan.note_progress();
            }
        }
        if self.bytes < HELD_BYTES_OWN {
            self.loan = None;
        }
        Ok(next)
    }
}
