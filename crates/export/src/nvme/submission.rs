//! I/O queue: commands for namespaces, carried out one after the other.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use device::Read;

use super::command::{Command, DataPlace};
use super::controller::{Controller, Link};
use super::error_log::Failed;
use super::io::{Io, IoFailure, IoKind, asked_to_manage};
use super::pdu::{self, DIGEST_BYTES, flag};
use super::session::Answers;
use super::status::Status;
use super::subsystem::{Subsystem, locked};
use crate::Asked;

/// An I/O queue of a controller.
pub(super) struct IoQueue {
    number: u16,
    controller: Arc<Mutex<Controller>>,
    link: Arc<Link>,
    /// Reads of one namespace whose replies have headers, and space for data that is not read yet.
    reads: Vec<WaitingRead>,
    /// Commands that wait for the flush that makes them durable.
    unsettled: Vec<(u16, Io, Option<Asked>)>,
}

/// A pending read, whose data goes into the replies.
#[derive(Debug)]
struct WaitingRead {
    id: u16,
    io: Io,
    /// Offset of its PDU in the buffer of replies.
    start: usize,
    /// Range of the buffer for its data.
    room: Range<usize>,
}

impl IoQueue {
    pub(super) const fn new(
        number: u16,
        controller: Arc<Mutex<Controller>>,
        link: Arc<Link>,
    ) -> Self {
        Self { number, controller, link, reads: Vec::new(), unsettled: Vec::new() }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Carries out a command, or completes it with an error status. Returns the command for the
    /// modelled drive, and true if it was carried out; reads may still fail later.
    pub(super) fn execute(
        &mut self,
        command: &Command,
        data: Result<&[u8], Status>,
        subsystem: &Subsystem,
        (answers, answered): (&mut Answers<'_>, &mut Option<Vec<Asked>>),
    ) -> (Option<Asked>, bool) {
        let checked = data.and_then(|data| {
            let io = Io::parse(command, subsystem)?;
            Ok((io, data.get(..*io.host_bytes().start()).ok_or(Status::SGL_LENGTH)?))
        });
        let (io, data) = match checked {
            Ok(checked) => checked,
            Err(status) => {
                self.finish_reads(subsystem, answers, answered);
                answers.complete(command.id(), status, 0);
                return (None, false);
            }
        };
        let asked = asked(&io, data, subsystem);
        if io.kind == IoKind::Read {
            self.begin_read(command, io, subsystem, (answers, answered));
            return (asked, true);
        }
        self.finish_reads(subsystem, answers, answered);
        let done = subsystem.namespace(io.namespace).map_or(Ok(()), |it| io.carry_out(it, data));
        if let Err(failure) = done {
            self.fail(command.id(), &io, &failure, (subsystem, answers));
            return (asked, false);
        }
        let is_settled = !io.is_durable && (self.link.is_caching() || !io.changes());
        if is_settled {
            answers.complete(command.id(), Status::SUCCESS, 0);
            keep(answered, asked);
        } else {
            self.unsettled.push((command.id(), io, asked));
        }
        (asked, true)
    }

    /// Flushes what must be durable, and completes the commands that wait for it.
    pub(super) fn settle(
        &mut self,
        subsystem: &Subsystem,
        answers: &mut Answers<'_>,
        answered: &mut Option<Vec<Asked>>,
    ) {
        if self.unsettled.is_empty() {
            return;
        }
        // Namespaces may lie on one drive or on several; flushing a clean one costs little.
        let unsettled = std::mem::take(&mut self.unsettled);
        let is_concerned =
            |id: u32| unsettled.iter().any(|(_, io, _)| io.namespace == id || io.namespace == 0);
        let flushed = (1..).zip(subsystem.namespaces()).filter(|(id, _)| is_concerned(*id));
        let flushed = flushed.map(|(id, it)| (id, it.device().flush().map_err(IoFailure::from)));
        let flushed: Vec<(u32, Result<(), IoFailure>)> = flushed.collect();
        for (id, io, asked) in &unsettled {
            let mut of_it =
                flushed.iter().filter(|(of, _)| *of == io.namespace || io.namespace == 0);
            match of_it.find_map(|(_, flushed)| flushed.as_ref().err()) {
                None => {
                    answers.complete(*id, Status::SUCCESS, 0);
                    keep(answered, *asked);
                }
                Some(failure) => self.fail(*id, io, failure, (subsystem, answers)),
            }
        }
    }

    /// Appends the header of a read's data, and reserves space for the data.
    fn begin_read(
        &mut self,
        command: &Command,
        io: Io,
        subsystem: &Subsystem,
        (answers, answered): (&mut Answers<'_>, &mut Option<Vec<Asked>>),
    ) {
        let length = usize::try_from(io.length).expect("bounded by a transfer");
        let place = command.place().and_then(|place| match place {
            DataPlace::Transport { length: given } if given as usize == length => Ok(()),
            DataPlace::Transport { .. } => Err(Status::SGL_LENGTH),
            DataPlace::Capsule { .. } => Err(Status::SGL_TYPE),
        });
        if self.reads.first().is_some_and(|it| it.io.namespace != io.namespace) || place.is_err() {
            self.finish_reads(subsystem, answers, answered);
        }
        match place {
            Ok(()) => self.put_read(command.id(), io, answers),
            Err(status) => answers.complete(command.id(), status, 0),
        }
    }

    fn put_read(&mut self, id: u16, io: Io, answers: &mut Answers<'_>) {
        let length = usize::try_from(io.length).expect("bounded by a transfer");
        let start = answers.replies.len();
        let success = if answers.is_unpaced { flag::SUCCESS } else { 0 };
        let (initialize, flags) = (answers.initialize, flag::LAST | success);
        pdu::put_data_header(answers.replies, initialize, (id, flags), length);
        let from = answers.replies.len();
        answers.replies.room(length + initialize.digests.data_bytes());
        if !answers.is_unpaced {
            answers.complete(id, Status::SUCCESS, 0);
        }
        self.reads.push(WaitingRead { id, io, start, room: from..from + length });
    }

    /// Reads the data of pending reads. Replies from the first failed one on are rebuilt.
    pub(super) fn finish_reads(
        &mut self,
        subsystem: &Subsystem,
        answers: &mut Answers<'_>,
        answered: &mut Option<Vec<Asked>>,
    ) {
        let waiting = std::mem::take(&mut self.reads);
        let Some(namespace) = waiting.first().and_then(|it| subsystem.namespace(it.io.namespace))
        else {
            return;
        };
        let results = {
            let rooms = answers.replies.parts(waiting.iter().map(|waiting| waiting.room.clone()));
            let read =
                |(waiting, buffer): (&WaitingRead, _)| Read { offset: waiting.io.offset, buffer };
            let mut reads: Vec<Read<'_>> = waiting.iter().zip(rooms).map(read).collect();
            namespace.device().read_many(&mut reads)
        };
        let good = results.iter().take_while(|result| result.is_ok()).count();
        for WaitingRead { io, room, .. } in &waiting[..good] {
            if answers.initialize.digests.has_data {
                put_digest(answers, room);
            }
            keep(answered, asked(io, &[], subsystem));
        }
        if let Some(first) = waiting.get(good) {
            answers.replies.cut(first.start);
        }
        for (WaitingRead { id, io, .. }, result) in waiting.into_iter().zip(results).skip(good) {
            if let Err(error) = result {
                self.fail(id, &io, &error.into(), (subsystem, answers));
            } else {
                self.put_read(id, io, answers);
                self.finish_reads(subsystem, answers, answered);
            }
        }
    }

    /// Completes a command that failed; failures of the drive go to the error log.
    fn fail(
        &self,
        id: u16,
        io: &Io,
        failure: &IoFailure,
        (subsystem, answers): (&Subsystem, &mut Answers<'_>),
    ) {
        let namespace = subsystem.namespace(io.namespace);
        let (status, lba) = failure.status(io, namespace.map_or(9, |it| it.block_shift));
        if !status.is_of_drive() {
            answers.complete(id, status, 0);
            return;
        }
        let status = status.logged();
        let (queue, command, namespace) = (self.number, id, io.namespace);
        let failed = Failed { queue, command, status, namespace, lba };
        locked(&self.controller).note_failure(subsystem, failed);
        answers.complete(id, status, 0);
    }
}

/// The command for the modelled drive.
fn asked(io: &Io, data: &[u8], subsystem: &Subsystem) -> Option<Asked> {
    let namespace = subsystem.namespace(io.namespace);
    match io.kind {
        IoKind::Manage(true) => asked_to_manage(namespace?, data),
        _ => io.asked(namespace.map_or(0, |it| it.device().origin())),
    }
}

fn keep(answered: &mut Option<Vec<Asked>>, asked: Option<Asked>) {
    if let Some(answered) = answered {
        answered.extend(asked);
    }
}

/// Appends the digest of data behind it.
fn put_digest(answers: &mut Answers<'_>, room: &Range<usize>) {
    let digest = crc32c::crc32c(&answers.replies.as_bytes()[room.clone()]).to_le_bytes();
    let place = room.end..room.end + DIGEST_BYTES;
    for part in answers.replies.parts(std::iter::once(place)) {
        part.copy_from_slice(&digest);
    }
}
