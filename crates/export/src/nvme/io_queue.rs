//! I/O queue: commands for namespaces, carried out one after the other.
//!
//! Reads that come one after the other are asked of the device together. What promises durability
//! is answered by [`IoQueue::settle`], after one flush.
//!
//! **Invariants**
//! - A promise of durability is about the namespaces that its command was carried out on, also if
//!   another host detaches one before the flush.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLockReadGuard};

use device::{DeviceError, ReadPart};

use super::answers::Answers;
use super::command::Command;
use super::controller::{Controller, Link};
use super::counters::{ControllerSnapshot, QueueCounters};
use super::error_log::FailedCommand;
use super::io::{Io, IoFailure, IoKind, asked_of_ranges};
use super::lock::locked;
use super::namespace::{HostController, Namespace, Namespaces, View};
use super::repertoire::Repertoire;
use super::reservation::{HostCommand, Reservations, report};
use super::status::Status;
use super::subsystem::Subsystem;
use crate::PacedCommand;

/// An I/O queue of a controller.
pub(super) struct IoQueue {
    number: u16,
    controller: Arc<Mutex<Controller>>,
    repertoire: Repertoire,
    of: HostController,
    link: Arc<Link>,
    counters: Arc<QueueCounters>,
    /// Status of the controller outside of its lock.
    shown: Arc<ControllerSnapshot>,
    view: View,
    /// Reads that have room for their data, and the namespace of all of them.
    reads: Vec<(Command, Io)>,
    reads_of: Option<Arc<Namespace>>,
    /// Commands that wait for their data, by identifier, with the time of that in their namespace.
    waiting: BTreeMap<u16, u64>,
    /// Commands that are answered once what they promise holds.
    unsettled: Vec<PendingCommand>,
}

/// A command that was carried out, and promises that something is durable.
struct PendingCommand {
    id: u16,
    io: Io,
    of: FlushScope,
    asked: Option<PacedCommand>,
}

/// Namespaces that have to be flushed for a command.
enum FlushScope {
    One(Arc<Namespace>),
    /// All that were attached to the host when the command was carried out.
    All(Arc<Namespaces>),
}

impl FlushScope {
    fn iter(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        let (one, all) = match self {
            Self::One(namespace) => (Some(namespace), None),
            Self::All(namespaces) => (None, Some(namespaces.iter())),
        };
        one.into_iter().chain(all.into_iter().flatten())
    }
}

impl IoQueue {
    /// A queue of a controller that was just connected.
    pub(super) fn new(number: u16, controller: Arc<Mutex<Controller>>) -> Self {
        let found = locked(&controller);
        let (repertoire, of) = (found.repertoire(), found.host_controller());
        let (link, counters) = (Arc::clone(found.link()), found.counters(number));
        let shown = Arc::clone(found.shown());
        drop(found);
        Self {
            number,
            controller,
            repertoire,
            of,
            link,
            counters,
            shown,
            view: View::default(),
            reads: Vec::new(),
            reads_of: None,
            waiting: BTreeMap::new(),
            unsettled: Vec::new(),
        }
    }

    /// Leaves its controller, because its connection is gone.
    pub(super) fn leave(&self) {
        locked(&self.controller).leave_queue(self.number, &self.counters);
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Reads a command and checks it against the namespaces as they are now.
    ///
    /// # Errors
    /// Fails with the status that the command is to be completed with.
    pub(super) fn parse(&mut self, command: &Command, subsystem: &Subsystem) -> Result<Io, Status> {
        let namespaces = subsystem.drive().directory().refresh(&mut self.view, &self.of);
        Io::parse(command, self.repertoire, namespaces).map_err(|status| {
            // One that is there, but not attached, is no field that is right here.
            let is_there =
                || subsystem.drive().directory().all().get(command.namespace()).is_some();
            let is_unknown = status == Status::INVALID_NAMESPACE;
            if is_unknown && is_there() { Status::INVALID_FIELD } else { status }
        })
    }

    /// Notes that a command waits for its data, as it does at most once.
    pub(super) fn wait(&mut self, command: &Command) {
        if let Some(namespace) = self.view.namespaces().get(command.namespace()) {
            self.waiting.insert(command.id(), namespace.reservations().now());
        }
    }

    /// Carries a command out, or completes it with a status. Returns the command for the modelled
    /// drive, and whether it was carried out; reads may still fail.
    pub(super) fn execute(
        &mut self,
        command: &Command,
        data: Result<&[u8], Status>,
        subsystem: &Subsystem,
        answers: (&mut impl Answers, &mut Option<Vec<PacedCommand>>),
    ) -> (Option<PacedCommand>, bool) {
        let parsed = self.parse(command, subsystem);
        self.execute_parsed((command, parsed), data, subsystem, answers)
    }

    /// Carries out a command that was just parsed, as [`IoQueue::execute`].
    pub(super) fn execute_parsed(
        &mut self,
        (command, parsed): (&Command, Result<Io, Status>),
        data: Result<&[u8], Status>,
        subsystem: &Subsystem,
        (answers, answered): (&mut impl Answers, &mut Option<Vec<PacedCommand>>),
    ) -> (Option<PacedCommand>, bool) {
        let waits_since = self.waiting.remove(&command.id());
        let checked = data.and_then(|data| {
            let io = Io { waits_since, ..parsed? };
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
        let asked = asked(&io, data, self.view.namespaces());
        if io.kind == IoKind::Read {
            self.begin_read(command, io, subsystem, (answers, answered));
            return (asked, true);
        }
        self.finish_reads(subsystem, answers, answered);
        let namespace = self.view.namespaces().get(io.namespace);
        let done = match namespace {
            Some(namespace) => self.carry_out(namespace, &io, data, subsystem),
            None => self.check_all(&io),
        };
        if let (Ok(report), IoKind::ReportReservations { .. }) = (&done, io.kind) {
            self.counters.count(&io);
            answers.deliver(command, report, 0);
            return (None, true);
        }
        if let Err(failure) = done {
            let namespace = namespace.map(AsRef::as_ref);
            self.fail(command.id(), (&io, namespace), &failure, (subsystem, answers));
            return (asked, false);
        }
        self.counters.count(&io);
        let is_through = || namespace.is_some_and(|it| it.device().is_write_through());
        let is_caching = self.link.is_caching() && !is_through();
        let is_settled = !io.is_durable && (is_caching || !io.changes());
        if is_settled {
            answers.complete(command.id(), Status::SUCCESS, 0);
            keep(answered, asked);
        } else {
            let all = || FlushScope::All(self.view.shared());
            let of = namespace.map_or_else(all, |it| FlushScope::One(Arc::clone(it)));
            self.unsettled.push(PendingCommand { id: command.id(), io, of, asked });
        }
        (asked, true)
    }

    /// Carries out a command other than a read, while reservations admit it. Returns the report
    /// that it asks for, if it is of reservations.
    fn carry_out(
        &self,
        namespace: &Namespace,
        io: &Io,
        data: &[u8],
        subsystem: &Subsystem,
    ) -> Result<Vec<u8>, IoFailure> {
        let (drive, guard) = (subsystem.drive(), namespace.reservations());
        if let IoKind::Reserve(command) = io.kind {
            let (host, keys) = (self.shown.identity().host, command.keys(data));
            let it = HostCommand { host, command, keys };
            let is_current = || self.link.is_alive() && self.shown.identity().host == host;
            let told = guard.carry_out(drive.operations(), &it, is_current);
            let told = told.map_err(IoFailure::Refused)?;
            drive.notify(namespace.id, &told);
            return Ok(Vec::new());
        }
        let admitted = self.admit(namespace, io)?;
        if let IoKind::ReportReservations { is_extended } = io.kind {
            let report = report(&admitted, &self.shown.identity(), is_extended);
            let mut report = report.map_err(IoFailure::Refused)?;
            report.resize(usize::try_from(io.length).expect("bounded by a transfer"), 0);
            return Ok(report);
        }
        io.carry_out(namespace, data, drive.operations()).map(|()| Vec::new())
    }

    /// Admits a command to a namespace as long as what is returned lives.
    fn admit<'a>(
        &self,
        namespace: &'a Namespace,
        io: &Io,
    ) -> Result<RwLockReadGuard<'a, Reservations>, IoFailure> {
        let (guard, host) = (namespace.reservations(), || self.shown.identity().host);
        let admitted = guard.admit(host, io.access()).map_err(IoFailure::Refused)?;
        if io.waits_since.is_some_and(|then| guard.is_aborted(host(), then)) {
            return Err(IoFailure::Refused(Status::ABORTED_BY_PREEMPTION));
        }
        Ok(admitted)
    }

    /// Checks a command that is of all namespaces.
    fn check_all(&self, io: &Io) -> Result<Vec<u8>, IoFailure> {
        let mut all = self.view.namespaces().iter();
        all.try_for_each(|it| self.admit(it, io).map(drop)).map(|()| Vec::new())
    }

    /// Flushes what must be durable, and completes the commands that wait for it.
    pub(super) fn settle(
        &mut self,
        subsystem: &Subsystem,
        answers: &mut impl Answers,
        answered: &mut Option<Vec<PacedCommand>>,
    ) {
        if self.unsettled.is_empty() {
            return;
        }
        // Namespaces may lie on one drive or on several; flushing a clean one costs little.
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut flushed = BTreeMap::new();
        for namespace in unsettled.iter().flat_map(|it| it.of.iter()) {
            let flush = || namespace.device().flush().map_err(IoFailure::from);
            flushed.entry(key(namespace)).or_insert_with(flush);
        }
        for PendingCommand { id, io, of, asked } in &unsettled {
            let failed = of.iter().find_map(|it| {
                let failure = flushed.get(&key(it)).and_then(|flushed| flushed.as_ref().err());
                failure.map(|failure| (it, failure))
            });
            match failed {
                None => {
                    answers.complete(*id, Status::SUCCESS, 0);
                    keep(answered, *asked);
                }
                Some((namespace, failure)) => {
                    self.fail(*id, (io, Some(namespace)), failure, (subsystem, answers));
                }
            }
        }
    }

    /// Has the transport make room for a read's data.
    fn begin_read(
        &mut self,
        command: &Command,
        io: Io,
        subsystem: &Subsystem,
        (answers, answered): (&mut impl Answers, &mut Option<Vec<PacedCommand>>),
    ) {
        let namespace = self.view.namespaces().get(io.namespace).cloned();
        let is_other =
            |of: &Arc<Namespace>| !namespace.as_ref().is_some_and(|it| Arc::ptr_eq(it, of));
        if self.reads_of.as_ref().is_some_and(is_other) {
            self.finish_reads(subsystem, answers, answered);
        }
        self.reads_of = namespace;
        if let Err(status) = self.put_read(command, io, answers) {
            self.finish_reads(subsystem, answers, answered);
            answers.complete(command.id(), status, 0);
        }
    }

    fn put_read(
        &mut self,
        command: &Command,
        io: Io,
        answers: &mut impl Answers,
    ) -> Result<(), Status> {
        answers.begin_read(command, usize::try_from(io.length).expect("bounded by a transfer"))?;
        self.reads.push((*command, io));
        Ok(())
    }

    /// Reads what has room. From the first one on that fails, the answers are made anew.
    pub(super) fn finish_reads(
        &mut self,
        subsystem: &Subsystem,
        answers: &mut impl Answers,
        answered: &mut Option<Vec<PacedCommand>>,
    ) {
        let waiting = std::mem::take(&mut self.reads);
        let Some(namespace) = self.reads_of.take().filter(|_| !waiting.is_empty()) else { return };
        let results = self.read(&namespace, &waiting, answers);
        let good = results.iter().take_while(|result| result.is_ok()).count();
        answers.finish_reads(good);
        for (_, io) in &waiting[..good] {
            self.counters.count(io);
            keep(answered, io.asked(namespace.device().origin()));
        }
        for ((command, io), result) in waiting.into_iter().zip(results).skip(good) {
            let begun = result
                .and_then(|()| self.put_read(&command, io, answers).map_err(IoFailure::Refused));
            match begun {
                Ok(()) => {
                    self.reads_of = Some(Arc::clone(&namespace));
                    self.finish_reads(subsystem, answers, answered);
                }
                Err(failure) => {
                    let of = Some(namespace.as_ref());
                    self.fail(command.id(), (&io, of), &failure, (subsystem, answers));
                }
            }
        }
    }

    /// Fills the buffers of reads of a namespace, while reservations admit them.
    fn read(
        &self,
        namespace: &Namespace,
        waiting: &[(Command, Io)],
        answers: &mut impl Answers,
    ) -> Vec<Result<(), IoFailure>> {
        // They are alike for reservations.
        let (_, first) = &waiting[0];
        let host = || self.shown.identity().host;
        let _admitted = match namespace.reservations().admit(host, first.access()) {
            Ok(admitted) => admitted,
            Err(status) => {
                return waiting.iter().map(|_| Err(IoFailure::Refused(status))).collect();
            }
        };
        let buffers = answers.buffers();
        assert_eq!(buffers.len(), waiting.len(), "a buffer for each read");
        let read = |((_, io), buffer): (&(Command, Io), _)| ReadPart { offset: io.offset, buffer };
        let mut reads: Vec<ReadPart<'_>> = waiting.iter().zip(buffers).map(read).collect();
        let read = namespace.device().read_many(&mut reads).into_iter();
        read.map(|result| result.map_err(IoFailure::from)).collect()
    }

    /// Completes a command that failed on a namespace, none if it is of none; failures of the drive
    /// go to the error log.
    fn fail(
        &self,
        id: u16,
        (io, of): (&Io, Option<&Namespace>),
        failure: &IoFailure,
        (subsystem, answers): (&Subsystem, &mut impl Answers),
    ) {
        self.counters.count_failure();
        let shift = of.map_or(9, |it| it.block_shift);
        let (status, lba) = failure.status(io, shift);
        if !status.is_of_drive() {
            answers.complete(id, status, 0);
            return;
        }
        let passes = matches!(failure, IoFailure::Device(DeviceError::Transient { .. }));
        let status = if passes { status.passing(self.link.has_retry_delay()) } else { status };
        let status = status.logged();
        let (queue, command, namespace) = (self.number, id, io.namespace);
        let failed = FailedCommand { queue, command, status, namespace, lba };
        locked(&self.controller).note_failure(subsystem.drive(), failed);
        answers.complete(id, status, 0);
    }
}

/// The command as the modelled drive needs it.
fn asked(io: &Io, data: &[u8], namespaces: &Namespaces) -> Option<PacedCommand> {
    let namespace = namespaces.get(io.namespace);
    match io.kind {
        IoKind::Manage(true) => asked_of_ranges(namespace?, data),
        _ => io.asked(namespace.map_or(0, |it| it.device().origin())),
    }
}

/// Key of a namespace: one that was deleted and another of its identifier are two.
fn key(namespace: &Arc<Namespace>) -> (u32, *const Namespace) {
    (namespace.id, Arc::as_ptr(namespace))
}

fn keep(answered: &mut Option<Vec<PacedCommand>>, asked: Option<PacedCommand>) {
    if let Some(answered) = answered {
        answered.extend(asked);
    }
}
