//! One client's requests, carried out on a device one after the other.
//!
//! Reads that come one after the other are asked of the device together: the header of each reply
//! is put down, room left behind it, and [`Device::read_many`] fills all the buffers.
//!
//! A request whose answer promises durability, a flush or one with force unit access, is carried
//! out at once but answered by [`Session::settle`]: one flush of the device answers all that came
//! in together. Its owner settles when nothing more can be taken, after it has sent what needs no
//! promise.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blockio::Op;

use super::request::{self, Kind, Request};
use super::terms::{Dialect, Terms, Violation};
use super::wire::{self, Errno, allocation, chunk, flag};
use crate::conversation::{Conversation, Next, ReceiveProgress};
use crate::limits::REQUEST_BYTES_MAX;
use crate::{PacedCommand, Replies};
use device::{Allocation, Device, DeviceError, Durability, ReadPart};

/// Most runs in one answer about what is stored.
const RUNS_MAX: usize = 1 << 15;
/// Longest range that one answer about what is stored covers, in bytes.
const STATUS_BYTES_MAX: u64 = 4 << 30;
/// Most bytes that stand before the data of a reply.
const REPLY_HEAD_BYTES_MAX: usize = 64;
/// Longest text that goes with an error, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// The server's side of one connection after the handshake.
#[derive(Debug)]
pub struct Session {
    terms: Terms,
    /// Size of the device, which does not change while it is served.
    size: u64,
    /// A write with too long a payload, and the bytes of it that are still to come. It is answered
    /// after them: some clients do not expect an answer to what they are still sending.
    refused: Option<(Request, u64)>,
    /// Reads whose replies have headers, and room for the data that is yet to be read.
    reads: Vec<WaitingRead>,
    /// Requests that are answered once what they promise holds.
    unsettled: Vec<Request>,
    /// Commands whose replies are there, for the recorder; absent where there is none.
    answered: Option<Vec<PacedCommand>>,
    is_over: bool,
    /// Raised once no reply reaches the client any more.
    is_cut: Arc<AtomicBool>,
}

/// A read whose data goes into the replies.
#[derive(Debug)]
struct WaitingRead {
    request: Request,
    /// Offset of its reply in the buffer of replies.
    start: usize,
    /// Range of that buffer for its data.
    room: Range<usize>,
}

/// Failure of a request.
struct Failure {
    errno: Errno,
    /// First byte that the failure concerns, if it is known.
    offset: Option<u64>,
    text: String,
}

impl Session {
    /// Begins to serve on these terms.
    pub fn new(terms: Terms) -> Self {
        let size = terms.export.device.size();
        Self {
            terms,
            size,
            refused: None,
            reads: Vec::new(),
            unsettled: Vec::new(),
            answered: None,
            is_over: false,
            is_cut: Arc::default(),
        }
    }

    /// Takes nothing more once `is_cut` is raised, and gives up what takes long.
    pub(crate) fn end_with(&mut self, is_cut: Arc<AtomicBool>) {
        self.is_cut = is_cut;
    }

    fn note_answered(&mut self, request: &Request) {
        let origin = self.terms.export.device.origin();
        if let Some(answered) = &mut self.answered {
            answered.extend(asked(request, origin));
        }
    }

    /// Takes the complete requests among the received bytes, until many replies wait.
    ///
    /// # Errors
    /// Fails if the client is to be dropped.
    pub fn take(
        &mut self,
        input: &[u8],
        replies: &mut Replies,
    ) -> Result<ReceiveProgress, Violation> {
        Conversation::take(self, input, replies)
    }

    /// Flushes what must be durable, and answers the commands that wait for it.
    pub fn settle(&mut self, replies: &mut Replies) {
        Conversation::settle(self, replies);
    }

    /// True if the client announced that it disconnects, or no reply reaches it any more.
    pub fn is_over(&self) -> bool {
        self.is_over || self.is_cut.load(Ordering::Acquire)
    }

    /// True if requests wait for [`Session::settle`].
    pub fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Skips what comes of a refused payload, and answers its request at the end. Returns the bytes
    /// of `input` that belong to it.
    fn skip(&mut self, input: &[u8], replies: &mut Replies) -> usize {
        let Some((request, left_bytes)) = &mut self.refused else { return 0 };
        let here = usize::try_from(*left_bytes).unwrap_or(usize::MAX).min(input.len());
        *left_bytes -= here as u64;
        if *left_bytes == 0 {
            let refused = *request;
            self.refused = None;
            self.finish_reads(replies);
            put_failure(replies, self.terms.dialect, &refused, &too_long(refused.length));
        }
        here
    }

    /// Carries a request out, or answers why not. Returns whether it was; reads may still fail.
    fn carry_out(&mut self, request: &Request, payload: &[u8], replies: &mut Replies) -> bool {
        let checked = self.check(request);
        // A read that fails takes back what stands behind it, so nothing but reads may.
        if checked.is_err() || request.kind != Kind::Read || request.length == 0 {
            self.finish_reads(replies);
        }
        let start = replies.len();
        let done = checked.and_then(|()| match request.kind {
            Kind::Read => {
                self.begin_read(request, replies);
                Ok(())
            }
            Kind::BlockStatus => self.tell_status(request, replies),
            Kind::Write => self.change(request, replies, |device, _| {
                Ok(device.write(request.offset, payload, Durability::Volatile)?)
            }),
            Kind::WriteZeroes if request.flags & flag::NO_HOLE != 0 => {
                self.change(request, replies, |device, is_cut| {
                    write_zeroes(device, request, is_cut)
                })
            }
            Kind::Trim | Kind::WriteZeroes => self.change(request, replies, |device, _| {
                Ok(device.trim(request.offset, request.length, Durability::Volatile)?)
            }),
            Kind::Flush => {
                self.unsettled.push(*request);
                Ok(())
            }
            Kind::Cache => {
                put_done(replies, self.terms.dialect, request);
                Ok(())
            }
            Kind::Disconnect => {
                self.is_over = true;
                Ok(())
            }
            Kind::Unknown(number) => Err(invalid(format!("request {number} is unknown"))),
        });
        if let Err(failure) = done {
            replies.cut(start);
            put_failure(replies, self.terms.dialect, request, &failure);
            return false;
        }
        let waits = self.unsettled.last().is_some_and(|waiting| waiting == request);
        if !waits && request.kind != Kind::Read {
            self.note_answered(request);
        }
        true
    }

    /// Refuses what no device needs to see.
    fn check(&self, request: &Request) -> Result<(), Failure> {
        let Request { kind, flags, offset, length, .. } = *request;
        let known = self.flags_of(kind);
        if flags & !known != 0 {
            return Err(invalid(format!("unsupported flags {:#x}", flags & !known)));
        }
        let changes = matches!(kind, Kind::Write | Kind::Trim | Kind::WriteZeroes);
        if changes && self.terms.export.is_read_only {
            let text = "the export is read-only".into();
            return Err(Failure { errno: Errno::NotPermitted, offset: None, text });
        }
        if matches!(kind, Kind::Flush | Kind::Disconnect | Kind::Unknown(_)) {
            return Ok(());
        }
        let end = offset.checked_add(length).filter(|end| *end <= self.size);
        if end.is_none() {
            let grows = matches!(kind, Kind::Write | Kind::WriteZeroes);
            let errno = if grows { Errno::NoSpace } else { Errno::Invalid };
            let text = format!("{length} bytes at {offset} exceed the size of {}", self.size);
            return Err(Failure { errno, offset: None, text });
        }
        if kind == Kind::Read && length > u64::from(REQUEST_BYTES_MAX) {
            return Err(too_long(length));
        }
        if flags & flag::FAST_ZERO != 0 && flags & flag::NO_HOLE != 0 {
            let text = "FAST_ZERO together with NO_HOLE is not supported".into();
            return Err(Failure { errno: Errno::NotSupported, offset: None, text });
        }
        Ok(())
    }

    /// Flags that a request may carry. Force unit access is allowed, and means nothing, where
    /// nothing is changed.
    fn flags_of(&self, kind: Kind) -> u16 {
        let is_simple = self.terms.dialect == Dialect::Simple;
        flag::FUA
            | match kind {
                Kind::Read if !is_simple => flag::DONT_FRAGMENT,
                Kind::Write if self.terms.dialect == Dialect::Extended => flag::PAYLOAD,
                Kind::WriteZeroes => flag::NO_HOLE | flag::FAST_ZERO,
                Kind::BlockStatus => flag::REQUEST_ONE,
                _ => 0,
            }
    }

    /// Puts down the header of a reply, and leaves room for the data.
    fn begin_read(&mut self, request: &Request, replies: &mut Replies) {
        let start = replies.len();
        let length = usize::try_from(request.length).expect("checked against the limit");
        if length == 0 {
            put_done(replies, self.terms.dialect, request);
            return;
        }
        if self.terms.dialect == Dialect::Simple {
            put_simple(replies, request, 0);
        } else {
            put_chunk(replies, self.terms.dialect, request, chunk::DATA, 8 + length);
            replies.put_u64(request.offset);
        }
        let from = replies.len();
        replies.room(length);
        self.reads.push(WaitingRead { request: *request, start, room: from..replies.len() });
    }

    fn tell_status(&self, request: &Request, replies: &mut Replies) -> Result<(), Failure> {
        if !self.terms.reports_allocation {
            return Err(invalid(format!("negotiate {} first", allocation::NAME)));
        }
        if request.length == 0 {
            return Err(invalid("the length is 0".into()));
        }
        let covered = request.length.min(STATUS_BYTES_MAX);
        let mut runs = self.terms.export.device.allocations(request.offset, covered)?;
        let is_one = request.flags & flag::REQUEST_ONE != 0;
        runs.truncate(if is_one { 1 } else { RUNS_MAX });
        put_status(replies, self.terms.dialect, request, &runs);
        Ok(())
    }

    /// Changes the device; what must be durable is answered when it is.
    fn change(
        &mut self,
        request: &Request,
        replies: &mut Replies,
        act: impl FnOnce(&dyn Device, &AtomicBool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let device = self.terms.export.device.as_ref();
        act(device, &self.is_cut)?;
        if request.flags & flag::FUA == 0 && !device.is_write_through() {
            put_done(replies, self.terms.dialect, request);
        } else {
            self.unsettled.push(*request);
        }
        Ok(())
    }
}

impl Conversation for Session {
    type Violation = Violation;

    fn begin_next(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Violation> {
        let skipped_bytes = self.skip(input, replies);
        let rest = &input[skipped_bytes..];
        let header_bytes = request::header_bytes(self.terms.dialect);
        let wants = |wanted_bytes| Ok(Next { wanted_bytes, ..Next::used(skipped_bytes) });
        let Some(request) = request::parse(rest, self.terms.dialect)? else {
            return wants(header_bytes);
        };
        if request.payload_bytes > u64::from(REQUEST_BYTES_MAX) {
            self.refused = Some((request, request.payload_bytes));
            return Ok(Next::used(skipped_bytes + header_bytes));
        }
        let room_bytes = room_bytes(&request);
        if !replies.has_room(room_bytes) {
            return Ok(Next { room_bytes, ..Next::used(skipped_bytes) });
        }
        let payload_bytes =
            usize::try_from(request.payload_bytes).expect("checked against the limit");
        let request_bytes = header_bytes + payload_bytes;
        let Some(whole) = rest.get(..request_bytes) else { return wants(request_bytes) };
        let is_done = self.carry_out(&request, &whole[header_bytes..], replies);
        let used_bytes = skipped_bytes + request_bytes;
        let origin = self.terms.export.device.origin();
        Ok(Next { asked: asked(&request, origin), is_done, ..Next::used(used_bytes) })
    }

    /// From the first one on that fails, their replies are made anew.
    fn finish_reads(&mut self, replies: &mut Replies) {
        if self.reads.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.reads);
        let buffers = replies.parts(waiting.iter().map(|waiting| waiting.room.clone()));
        let read = |(waiting, buffer): (&WaitingRead, _)| ReadPart {
            offset: waiting.request.offset,
            buffer,
        };
        let mut reads: Vec<ReadPart<'_>> = waiting.iter().zip(buffers).map(read).collect();
        let answers = self.terms.export.device.read_many(&mut reads);
        let read = answers.iter().take_while(|answer| answer.is_ok()).count();
        for WaitingRead { request, .. } in &waiting[..read] {
            self.note_answered(request);
        }
        let answers = waiting.iter().zip(answers);
        let mut rest = answers.skip_while(|(_, answer)| answer.is_ok()).peekable();
        if let Some((first, _)) = rest.peek() {
            replies.cut(first.start);
        }
        for (WaitingRead { request, .. }, answer) in rest {
            if let Err(error) = answer {
                put_failure(replies, self.terms.dialect, request, &error.into());
            } else {
                self.carry_out(request, &[], replies);
                self.finish_reads(replies);
            }
        }
    }

    fn settle(&mut self, replies: &mut Replies) {
        if self.unsettled.is_empty() {
            return;
        }
        let flushed = self.terms.export.device.flush().map_err(Failure::from);
        for request in std::mem::take(&mut self.unsettled) {
            self.note_answered(&request);
            match &flushed {
                Ok(()) => put_done(replies, self.terms.dialect, &request),
                Err(failure) => put_failure(replies, self.terms.dialect, &request, failure),
            }
        }
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn answered(&mut self) -> &mut Option<Vec<PacedCommand>> {
        &mut self.answered
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        let text = error.to_string();
        let (errno, offset) = match error {
            DeviceError::OutOfRange { .. } => (Errno::Invalid, None),
            _ if error.is_no_space() => (Errno::NoSpace, None),
            DeviceError::ReadOnly | DeviceError::Reserved | DeviceError::Locked => {
                (Errno::NotPermitted, None)
            }
            DeviceError::Unreadable { lba, .. } => (Errno::Io, Some(lba * 512)),
            DeviceError::NoSpace { .. }
            | DeviceError::HostFull { .. }
            | DeviceError::Poisoned { .. }
            | DeviceError::Transient { .. }
            | DeviceError::InProgress(_)
            | DeviceError::Gone
            | DeviceError::Medium { .. } => (Errno::Io, None),
        };
        Self { errno, offset, text }
    }
}

fn invalid(text: String) -> Failure {
    Failure { errno: Errno::Invalid, offset: None, text }
}

fn too_long(length: u64) -> Failure {
    invalid(format!("a request of {length} bytes, the limit is {REQUEST_BYTES_MAX}"))
}

/// Room that the reply to a request takes; zero where it is refused.
fn room_bytes(request: &Request) -> usize {
    match u32::try_from(request.length) {
        Ok(length) if request.kind == Kind::Read && length <= REQUEST_BYTES_MAX => {
            REPLY_HEAD_BYTES_MAX + length as usize
        }
        _ => 0,
    }
}

/// Converts a request to a command for the modelled drive; `origin` is the export's first byte on
/// the drive. None if drives have no such command.
fn asked(request: &Request, origin: u64) -> Option<PacedCommand> {
    let Request { kind, flags, offset, length, .. } = *request;
    let op = match kind {
        Kind::Read => Op::Read,
        Kind::Write => Op::Write,
        Kind::WriteZeroes if flags & flag::NO_HOLE != 0 => Op::Write,
        Kind::Trim | Kind::WriteZeroes => Op::Trim,
        Kind::Flush => Op::Flush,
        Kind::Cache | Kind::BlockStatus | Kind::Disconnect | Kind::Unknown(_) => return None,
    };
    let fua = flags & flag::FUA != 0;
    Some(PacedCommand { op, offset: offset.saturating_add(origin), length, fua })
}

/// Zeroes that take space, so that later writes cannot fail for want of it. They may take hours, so
/// the rest is given up once no reply reaches the client any more.
fn write_zeroes(
    device: &dyn Device,
    request: &Request,
    is_cut: &AtomicBool,
) -> Result<(), Failure> {
    let goes_on = || !is_cut.load(Ordering::Acquire);
    if device.write_zeroes(request.offset, request.length, &goes_on)? {
        return Ok(());
    }
    let text = "the server is stopping".into();
    Err(Failure { errno: Errno::Shutdown, offset: None, text })
}

fn put_simple(replies: &mut Replies, request: &Request, error: u32) {
    replies.put_u32(wire::SIMPLE_REPLY);
    replies.put_u32(error);
    replies.put_u64(request.cookie);
}

/// The header of the only chunk of a reply: its kind, and the bytes that follow.
fn put_chunk(
    replies: &mut Replies,
    dialect: Dialect,
    request: &Request,
    kind: u16,
    payload_bytes: usize,
) {
    let is_extended = dialect == Dialect::Extended;
    replies.put_u32(if is_extended { wire::EXTENDED_CHUNK } else { wire::CHUNK });
    replies.put_u16(chunk::DONE);
    replies.put_u16(kind);
    replies.put_u64(request.cookie);
    if is_extended {
        replies.put_u64(request.offset);
        replies.put_u64(payload_bytes as u64);
    } else {
        replies.put_length(payload_bytes);
    }
}

fn put_done(replies: &mut Replies, dialect: Dialect, request: &Request) {
    match dialect {
        Dialect::Simple => put_simple(replies, request, 0),
        _ => put_chunk(replies, dialect, request, chunk::NONE, 0),
    }
}

fn put_failure(replies: &mut Replies, dialect: Dialect, request: &Request, failure: &Failure) {
    let errno = failure.errno as u32;
    if dialect == Dialect::Simple {
        put_simple(replies, request, errno);
        return;
    }
    let text = &failure.text[..failure.text.floor_char_boundary(TEXT_BYTES_MAX)];
    let kind = if failure.offset.is_some() { chunk::ERROR_OFFSET } else { chunk::ERROR };
    let offset_bytes = if failure.offset.is_some() { 8 } else { 0 };
    put_chunk(replies, dialect, request, kind, 6 + text.len() + offset_bytes);
    replies.put_u32(errno);
    replies.put_u16(u16::try_from(text.len()).expect("texts are cut"));
    replies.put(text.as_bytes());
    if let Some(offset) = failure.offset {
        replies.put_u64(offset);
    }
}

fn put_status(replies: &mut Replies, dialect: Dialect, request: &Request, runs: &[Allocation]) {
    let is_extended = dialect == Dialect::Extended;
    if is_extended {
        let kind = chunk::BLOCK_STATUS_EXTENDED;
        put_chunk(replies, dialect, request, kind, 8 + 16 * runs.len());
        replies.put_u32(allocation::ID);
        replies.put_length(runs.len());
    } else {
        put_chunk(replies, dialect, request, chunk::BLOCK_STATUS, 4 + 8 * runs.len());
        replies.put_u32(allocation::ID);
    }
    for run in runs {
        let state = if run.is_stored { 0 } else { allocation::HOLE_ZERO };
        if is_extended {
            replies.put_u64(run.length);
            replies.put_u64(state.into());
        } else {
            let length = u32::try_from(run.length);
            replies.put_u32(length.expect("no run is longer than a request, which has 32 bits"));
            replies.put_u32(state.into());
        }
    }
}

#[cfg(test)]
mod tests;
