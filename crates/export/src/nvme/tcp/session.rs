//! Session: one connection of NVMe/TCP, which is one queue of a host.
//!
//! ```text
//!   ICReq ──► ICResp ──► Connect ──► commands of the admin queue: Controller
//!                            └─────► commands of an I/O queue: Io, on the device of a namespace
//! ```
//!
//! It is a value: received bytes go in, commands to devices and bytes for the host come out.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use blockio::Nanos;

use super::super::admin::{self, admin_data_bytes, complete, complete_held};
use super::super::answers::Answers as _;
use super::super::authentication::{Dialogue, Progress};
use super::super::command::{COMMAND_BYTES, Command, completion, fabrics};
use super::super::context::Outcome;
use super::super::controller::Controller;
use super::super::fabrics::{AUTHENTICATION_REQUIRED, Connect, ConnectRefusal};
use super::super::host::Purpose;
use super::super::io_queue::IoQueue;
use super::super::lock::locked;
use super::super::status::Status;
use super::super::subsystem::Subsystem;
use super::super::wire::u16_at;
use super::capsules::{BegunRead, Capsules};
use super::keys::AuthenticatedHost;
use super::pdu::{
    self, ADMIN_CAPSULE_DATA_BYTES, COMMON_BYTES, Digests, Head, IO_CAPSULE_DATA_BYTES, Initialize,
    Violation, kind,
};
use super::sgl::{CommandData, found};
use super::transfer::Transfers;
use crate::conversation::{Conversation, Next, ReceiveProgress};
use crate::{PacedCommand, Replies, TlsMode};

/// SQ Head Pointer in the answer to a Connect that disables flow control: the host learns that the
/// controller agrees.
const HEAD_UNUSED: u16 = 0xFFFF;

/// Commands that were answered, for a model to pace; none where no model does.
type AnsweredCommands = Option<Vec<PacedCommand>>;

/// One queue of a host.
pub struct Session {
    subsystem: Arc<Subsystem>,
    /// Address that the host connected to.
    address: Option<SocketAddr>,
    phase: Phase,
    /// Parameters that the host asked for.
    initialize: Initialize,
    /// Host whose key encrypts the connection; none where nothing does.
    secured: Option<AuthenticatedHost>,
    transfers: Transfers,
    reads: Vec<BegunRead>,
    /// Dialogue in which the host proves who it is; none where it need not.
    dialogue: Option<Dialogue>,
    now: Nanos,
    answered: AnsweredCommands,
    is_over: bool,
    /// Raised once no reply reaches the host any more.
    is_cut: Arc<AtomicBool>,
}

/// Progress of the connection.
enum Phase {
    /// Waits for an ICReq.
    New,
    /// Waits for a Connect.
    Initialized,
    Admin(Queue, Arc<Mutex<Controller>>),
    Io(Queue, IoQueue),
}

/// The queue of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number, 0 for the admin queue.
    pub number: u16,
    /// Identifier of the controller that it belongs to.
    pub controller: u16,
    /// NQN of the host.
    pub host: String,
    /// Entries of the submission queue.
    entries: u32,
    /// SQ Head Pointer; stays 0 if the host disables flow control.
    head: u16,
    is_unpaced: bool,
}

impl Queue {
    /// Advances the head past a command that was received.
    fn take_entry(&mut self) {
        if !self.is_unpaced {
            let next = (u32::from(self.head) + 1) % self.entries;
            self.head = u16::try_from(next).expect("queues have at most 65536 entries");
        }
    }
}

impl Session {
    /// A connection accepted at `now`, before anything was received; `address` is the address that
    /// the host connected to.
    pub fn new(subsystem: Arc<Subsystem>, address: Option<SocketAddr>, now: Nanos) -> Self {
        Self {
            subsystem,
            address,
            phase: Phase::New,
            initialize: Initialize { digests: Digests::default(), alignment: 4 },
            secured: None,
            transfers: Transfers::default(),
            reads: Vec::new(),
            dialogue: None,
            now,
            answered: None,
            is_over: false,
            is_cut: Arc::default(),
        }
    }

    /// Notes whose key encrypts the connection; none where nothing does.
    pub(crate) fn secure(&mut self, secured: Option<AuthenticatedHost>) {
        self.secured = secured;
    }

    /// Takes nothing more once `is_cut` is raised.
    pub(crate) fn end_with(&mut self, is_cut: Arc<AtomicBool>) {
        self.is_cut = is_cut;
    }

    /// True if the host connected its queue, and proved who it is where it has to.
    pub fn is_connected(&self) -> bool {
        self.queue().is_some() && self.is_authenticated()
    }

    fn is_authenticated(&self) -> bool {
        self.dialogue.as_ref().is_none_or(|it| it.progress() == Progress::Authenticated)
    }

    /// Returns the connection's queue, once the host has connected it.
    pub fn queue(&self) -> Option<&Queue> {
        match &self.phase {
            Phase::Admin(queue, _) | Phase::Io(queue, _) => Some(queue),
            Phase::New | Phase::Initialized => None,
        }
    }

    /// True unless the queue's controller was reset or is gone.
    pub(crate) fn is_alive(&self) -> bool {
        match &self.phase {
            Phase::Io(_, io) => io.link().is_alive(),
            Phase::Admin(_, controller) => !locked(controller).is_lost(),
            Phase::New | Phase::Initialized => !self.subsystem.is_removed(),
        }
    }

    /// Carries out the complete PDUs among the received bytes, until many replies wait.
    ///
    /// # Errors
    /// Fails if the connection must end; the replies then contain a termination request.
    pub fn take(
        &mut self,
        input: &[u8],
        replies: &mut Replies,
    ) -> Result<ReceiveProgress, Violation> {
        Conversation::take(self, input, replies)
    }

    /// Flushes what must be durable, and completes the commands that wait for it.
    pub fn settle(&mut self, replies: &mut Replies) {
        Conversation::settle(self, replies);
    }

    /// True if the session accepts no more bytes.
    pub fn is_over(&self) -> bool {
        self.is_over || self.is_cut.load(Ordering::Acquire)
    }

    /// Sets the time to `now`, at which commands are taken and at which those before have ended.
    pub fn set_time(&mut self, now: Nanos) {
        self.now = now;
        if let Phase::Admin(_, controller) = &self.phase {
            locked(controller).pass_time(now);
        }
    }

    /// Advances time to `now`. Returns the time at which it must be called again.
    ///
    /// # Errors
    /// Fails if the Keep Alive Timeout expired, or the host never enabled its controller.
    pub fn advance(
        &mut self,
        now: Nanos,
        replies: &mut Replies,
    ) -> Result<Option<Nanos>, Violation> {
        Conversation::advance(self, now, replies)
    }

    fn take_pdu(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Violation> {
        let digests = self.initialize.digests;
        let capsule_bytes = match &self.phase {
            Phase::Io(..) => IO_CAPSULE_DATA_BYTES,
            _ => ADMIN_CAPSULE_DATA_BYTES,
        };
        let head = Head::parse(input, digests, capsule_bytes)?;
        self.check_turn(head.kind)?;
        let Some(pdu) = input.get(..head.bytes) else { return Ok(Next::wants(0, head.bytes)) };
        let mut next = Next::used(head.bytes);
        match head.kind {
            kind::INITIALIZE => {
                self.initialize = Initialize::parse(pdu)?;
                replies.put(&self.initialize.answer());
                self.phase = Phase::Initialized;
            }
            kind::HOST_TERMINATES => {
                return Err(Violation::Terminated { status: u16_at(pdu, 8) });
            }
            kind::COMMAND => {
                head.check_header(pdu, digests)?;
                let command = Command::of(&pdu[COMMON_BYTES..COMMON_BYTES + COMMAND_BYTES]);
                self.take_command(&command, head.data(pdu, digests), (replies, &mut next))?;
            }
            _ => {
                head.check_header(pdu, digests)?;
                let taken = self.transfers.take(pdu, head.data(pdu, digests))?;
                if let Some(transfer) = taken {
                    let data = if transfer.is_hurt {
                        Err(Status::TRANSPORT)
                    } else {
                        Ok(&transfer.bytes[..])
                    };
                    self.execute(&transfer.command, data, replies, &mut next);
                }
            }
        }
        Ok(next)
    }

    /// Checks that a PDU of this type is allowed in the current state.
    fn check_turn(&self, pdu: u8) -> Result<(), Violation> {
        let is_its_turn = match &self.phase {
            Phase::New => pdu == kind::INITIALIZE,
            Phase::Initialized => matches!(pdu, kind::COMMAND | kind::HOST_TERMINATES),
            Phase::Admin(..) | Phase::Io(..) => pdu != kind::INITIALIZE,
        };
        if is_its_turn || pdu == kind::HOST_TERMINATES {
            Ok(())
        } else {
            Err(Violation::Sequence { kind: pdu })
        }
    }

    /// Takes a command with its in-capsule data, and carries it out unless it waits for more data.
    fn take_command(
        &mut self,
        command: &Command,
        (capsule, is_good): (&[u8], bool),
        (replies, next): (&mut Replies, &mut Next),
    ) -> Result<(), Violation> {
        if let Phase::Admin(queue, _) | Phase::Io(queue, _) = &mut self.phase {
            queue.take_entry();
        }
        let data = if is_good {
            self.host_bytes(command).and_then(|bytes| found(command, &bytes, capsule))
        } else {
            Err(Status::TRANSPORT)
        };
        match data {
            Ok(CommandData::Here(data)) => self.execute(command, Ok(data), replies, next),
            Ok(CommandData::Later(bytes)) => {
                let entries = self.queue().map_or(1, |queue| queue.entries);
                self.transfers.add(*command, bytes, entries)?;
                if let Phase::Io(_, io) = &mut self.phase {
                    io.wait(command);
                }
            }
            Err(status) => self.execute(command, Err(status), replies, next),
        }
        Ok(())
    }

    /// Bytes that the host sends with a command, at least and at most.
    fn host_bytes(&mut self, command: &Command) -> Result<RangeInclusive<usize>, Status> {
        match &mut self.phase {
            Phase::Io(_, io) if command.opcode() != fabrics::OPCODE => {
                io.parse(command, &self.subsystem).map(|io| io.host_bytes())
            }
            _ => {
                let bytes = admin_data_bytes(command);
                Ok(bytes..=bytes)
            }
        }
    }

    /// Carries out a command with its data, or completes it with an error status.
    fn execute(
        &mut self,
        command: &Command,
        data: Result<&[u8], Status>,
        replies: &mut Replies,
        next: &mut Next,
    ) {
        if self.authenticate(command, data, replies) {
            return;
        }
        match &mut self.phase {
            Phase::New | Phase::Initialized => self.connect(command, data, replies),
            Phase::Admin(queue, controller) => {
                let mut answers = answers(queue, self.initialize, replies, &mut self.reads);
                let (subsystem, now) = (&*self.subsystem, self.now);
                let context = subsystem.context(now, self.address);
                let mut controller = locked(controller);
                let link = Arc::clone(controller.link());
                let outcome = match data {
                    Ok(data) => admin::execute(&mut controller, &context, command, data),
                    Err(status) => Outcome::Completed(status.into()),
                };
                self.is_over |= matches!(outcome, Outcome::Disconnected);
                complete(command, outcome, &mut answers);
                complete_held(&mut controller, &mut answers);
                let is_reset = !Arc::ptr_eq(&link, controller.link());
                drop(controller);
                if is_reset {
                    subsystem.cut_queues_of(queue.controller);
                }
            }
            Phase::Io(queue, io) => {
                let mut answers = answers(queue, self.initialize, replies, &mut self.reads);
                if command.opcode() == fabrics::OPCODE {
                    let outcome = of_fabrics(command);
                    self.is_over |= matches!(outcome, Outcome::Disconnected);
                    io.finish_reads(&self.subsystem, &mut answers, &mut self.answered);
                    complete(command, outcome, &mut answers);
                    return;
                }
                let kept = &mut self.answered;
                let done = io.execute(command, data, &self.subsystem, (&mut answers, kept));
                (next.asked, next.is_done) = done;
            }
        }
    }

    /// Takes a command of the dialogue, and refuses every other one until the host has proved who
    /// it is. Returns whether the command was completed.
    fn authenticate(
        &mut self,
        command: &Command,
        data: Result<&[u8], Status>,
        replies: &mut Replies,
    ) -> bool {
        let is_authenticated = self.is_authenticated();
        let Some(dialogue) = &mut self.dialogue else { return false };
        let is_send = is_fabrics(command, fabrics::AUTHENTICATION_SEND);
        let is_receive = is_fabrics(command, fabrics::AUTHENTICATION_RECEIVE);
        if is_authenticated && !is_send && !is_receive {
            return false;
        }
        // Reads come after authentication alone, and what was begun is finished by then.
        if let (Phase::Io(queue, io), true) = (&mut self.phase, is_authenticated) {
            let mut answers = answers(queue, self.initialize, &mut *replies, &mut self.reads);
            io.finish_reads(&self.subsystem, &mut answers, &mut self.answered);
        }
        let (Phase::Admin(queue, _) | Phase::Io(queue, _)) = &self.phase else { return false };
        let mut answers = answers(queue, self.initialize, replies, &mut self.reads);
        let id = command.id();
        // SECP, SPSP1 and SPSP0: authentication of NVMe.
        let is_protocol = command.dword(10) >> 8 == 0x00E9_0101;
        match data {
            Err(status) => answers.complete(id, status, 0),
            Ok(_) if !is_send && !is_receive => {
                answers.complete(id, Status::AUTHENTICATION_REQUIRED, 0);
            }
            Ok(_) if !is_protocol => answers.complete(id, Status::INVALID_FIELD, 0),
            Ok(message) if is_send => {
                dialogue.take(message);
                answers.complete(id, Status::SUCCESS, 0);
            }
            Ok(_) => match dialogue.answer() {
                Some(message) => answers.deliver(command, &message, 0),
                None => answers.complete(id, Status::COMMAND_SEQUENCE, 0),
            },
        }
        match (dialogue.progress(), &self.phase) {
            (Progress::Authenticated, Phase::Admin(_, controller)) => {
                locked(controller).authenticate();
            }
            (Progress::Failed, _) => self.is_over = true,
            _ => {}
        }
        true
    }

    /// Connects the queue, or says why not.
    fn connect(&mut self, command: &Command, data: Result<&[u8], Status>, replies: &mut Replies) {
        let is_connect =
            command.opcode() == fabrics::OPCODE && command.fabrics_type() == fabrics::CONNECT;
        let connected = match data {
            Err(status) => Err(status.into()),
            Ok(_) if !is_connect => Err(Status::COMMAND_SEQUENCE.into()),
            Ok(data) => Connect::parse(command, data).and_then(|mut connect| {
                self.check_channel(&mut connect)?;
                self.subsystem.connect(&connect, self.now).map(|found| (connect, found))
            }),
        };
        let (connect, controller) = match connected {
            Ok(connected) => connected,
            Err(ConnectRefusal { status, value }) => {
                let completion = completion(command.id(), 0, status, value);
                pdu::put_response(replies, self.initialize.digests, &completion);
                return;
            }
        };
        let (id, kind) = {
            let controller = locked(&controller);
            (controller.id(), controller.kind())
        };
        let mut queue = Queue {
            number: connect.queue,
            controller: id,
            host: connect.host.name,
            entries: connect.entries,
            head: 0,
            is_unpaced: connect.is_unpaced,
        };
        queue.take_entry();
        let secrets = self.subsystem.authentication().filter(|_| kind == Purpose::Io);
        if let Some(secrets) = secrets {
            let nqn = self.subsystem.nqn();
            self.dialogue = Dialogue::new(secrets, &queue.host, nqn);
            assert!(self.dialogue.is_some(), "a host without a secret is not let in");
        }
        let required = if self.dialogue.is_some() { AUTHENTICATION_REQUIRED } else { 0 };
        let mut answers = answers(&queue, self.initialize, replies, &mut self.reads);
        if queue.is_unpaced {
            answers.head = HEAD_UNUSED;
        }
        answers.complete(command.id(), Status::SUCCESS, u64::from(id) | required);
        self.phase = match connect.queue {
            0 => Phase::Admin(queue, controller),
            number => Phase::Io(queue, IoQueue::new(number, controller)),
        };
    }

    /// Checks that a host encrypts where it has to, and connects as the host and to the subsystem
    /// of its key.
    fn check_channel(&self, connect: &mut Connect) -> Result<(), ConnectRefusal> {
        let Some(secured) = &self.secured else {
            let channel = self.subsystem.secure_channel();
            let is_required = channel.is_some_and(|it| it.mode() == TlsMode::Required);
            return if is_required { Err(Status::CONNECT_HOST.into()) } else { Ok(()) };
        };
        if secured.host != connect.host.name {
            return Err(ConnectRefusal::data(Connect::HOST_AT));
        }
        if secured.subsystem != connect.subsystem {
            return Err(ConnectRefusal::data(Connect::SUBSYSTEM_AT));
        }
        connect.host.is_encrypted = true;
        Ok(())
    }

    /// Calls `act` on the I/O queue, if the connection is one.
    fn with_io(
        &mut self,
        replies: &mut Replies,
        act: impl FnOnce(&mut IoQueue, &Subsystem, &mut Capsules<'_>, &mut AnsweredCommands),
    ) {
        if let Phase::Io(queue, io) = &mut self.phase {
            let mut answers = answers(queue, self.initialize, replies, &mut self.reads);
            act(io, &self.subsystem, &mut answers, &mut self.answered);
        }
    }
}

impl Conversation for Session {
    type Violation = Violation;

    fn begin_next(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Violation> {
        if !self.is_alive() {
            return Err(Violation::ControllerGone);
        }
        // On its own: a model may delay the completion of a command, but not a PDU.
        if self.transfers.can_ask() {
            // A read that fails takes back what stands behind it.
            self.finish_reads(replies);
            self.transfers.ask(replies, self.initialize.digests);
            return Ok(Next::used(0));
        }
        if input.len() < COMMON_BYTES {
            return Ok(Next::wants(0, COMMON_BYTES));
        }
        let done = self.take_pdu(input, replies);
        if let Err(violation) = done {
            // Commands that were already carried out are completed first.
            self.finish_reads(replies);
            pdu::put_termination(replies, violation, input);
        }
        done
    }

    fn finish_reads(&mut self, replies: &mut Replies) {
        self.with_io(replies, |io, subsystem, answers, kept| {
            io.finish_reads(subsystem, answers, kept);
        });
    }

    fn settle(&mut self, replies: &mut Replies) {
        self.with_io(replies, |io, subsystem, answers, kept| io.settle(subsystem, answers, kept));
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn answered(&mut self) -> &mut Option<Vec<PacedCommand>> {
        &mut self.answered
    }

    fn is_timed(&self) -> bool {
        !matches!(self.phase, Phase::Io(..))
    }

    fn set_time(&mut self, now: Nanos) {
        Self::set_time(self, now);
    }

    fn advance(&mut self, now: Nanos, replies: &mut Replies) -> Result<Option<Nanos>, Violation> {
        self.now = now;
        let Phase::Admin(queue, controller) = &self.phase else { return Ok(None) };
        let context = self.subsystem.context(now, self.address);
        let mut answers = answers(queue, self.initialize, replies, &mut self.reads);
        let mut controller = locked(controller);
        let next = controller.advance(&context);
        complete_held(&mut controller, &mut answers);
        Ok(next?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        match &self.phase {
            Phase::Admin(queue, _) => self.subsystem.leave(queue.controller),
            Phase::Io(_, io) => io.leave(),
            Phase::New | Phase::Initialized => {}
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

fn answers<'a>(
    queue: &Queue,
    initialize: Initialize,
    replies: &'a mut Replies,
    reads: &'a mut Vec<BegunRead>,
) -> Capsules<'a> {
    Capsules { replies, reads, initialize, head: queue.head, is_unpaced: queue.is_unpaced }
}

/// True if a command is this one of fabrics.
fn is_fabrics(command: &Command, kind: u8) -> bool {
    command.opcode() == fabrics::OPCODE && command.fabrics_type() == kind
}

/// A fabrics command on an I/O queue.
fn of_fabrics(command: &Command) -> Outcome {
    match command.fabrics_type() {
        fabrics::DISCONNECT => Outcome::Disconnected,
        fabrics::CONNECT => Outcome::Completed(Status::COMMAND_SEQUENCE.into()),
        fabrics::PROPERTY_GET | fabrics::PROPERTY_SET => {
            Outcome::Completed(Status::INVALID_FIELD.into())
        }
        _ => Outcome::Completed(Status::INVALID_OPCODE.into()),
    }
}

#[cfg(test)]
mod tests;
