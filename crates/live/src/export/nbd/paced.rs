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

use super::connection::{Break, Connection};
use super::{Session, Terms};
use crate::{Lane, Pace};

/// How much is held before no more is received.
const HELD_BYTES_MAX: usize = 64 << 20;
/// What is nearer than this is waited for awake: sleeping and waking takes about as long.
const NEAR: Nanos = Nanos::from_micros(60);

/// Replies that are not due yet, by ticket.
#[derive(Default)]
struct Held {
    replies: BTreeMap<u32, Vec<u8>>,
    bytes: usize,
}

/// Serves a client at the pace of a model whose time began at `begun`.
pub(super) fn serve(
    connection: &mut Connection<'_>,
    terms: Terms,
    pace: &Arc<Pace>,
    begun: Instant,
) -> Result<(), Break> {
    // The system would otherwise sleep some 50 us longer than it is told to; where it refuses, it
    // does.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let Some(lane) = Lane::new(pace) else { return connection.serve(terms) };
    let now = || Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let mut session = Session::new(terms);
    let mut held = Held::default();
    let mut has_input = true;
    loop {
        let wanted_bytes = held.take(connection, &mut session, &lane, now())?;
        let next = held.release(connection, &lane, now());
        connection.send()?;
        let is_idle = next.is_none() && held.replies.is_empty();
        if is_idle && (session.is_over() || !has_input) {
            return Ok(());
        }
        let takes_more = has_input && !session.is_over() && held.bytes < HELD_BYTES_MAX;
        if wait(connection, takes_more, next, now())? {
            has_input = connection.receive(wanted_bytes)? > 0;
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
    /// Carries out what was received, and holds the replies. Returns how much the next request
    /// needs.
    fn take(
        &mut self,
        connection: &mut Connection<'_>,
        session: &mut Session,
        lane: &Lane,
        now: Nanos,
    ) -> Result<usize, Break> {
        while !session.is_over() && self.bytes < HELD_BYTES_MAX {
            let ready_bytes = connection.replies.len();
            let next = session.take_next(connection.inbox.received(), &mut connection.replies)?;
            session.settle(&mut connection.replies);
            connection.inbox.forget(next.used_bytes);
            if next.wanted_bytes > 0 {
                return Ok(next.wanted_bytes);
            }
            // What no drive was asked for is answered at once.
            let Some(asked) = next.asked else { continue };
            let reply = connection.replies.as_bytes()[ready_bytes..].to_vec();
            connection.replies.cut(ready_bytes);
            self.bytes += reply.len();
            self.replies.insert(lane.submit(now, asked), reply);
        }
        Ok(1)
    }

    /// Puts what is due among the replies to be sent. Returns when something may be due next.
    fn release(
        &mut self,
        connection: &mut Connection<'_>,
        lane: &Lane,
        now: Nanos,
    ) -> Option<Nanos> {
        let mut due = Vec::new();
        let next = lane.due(now, &mut due);
        for reply in due.iter().filter_map(|ticket| self.replies.remove(ticket)) {
            self.bytes -= reply.len();
            connection.replies.put(&reply);
        }
        next
    }
}
