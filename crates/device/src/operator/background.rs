//! Work in the background: format, sanitize, self-test, one at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::{
    Entry, KeptNamespace, Operator, PersistentState, Sectors, SharedState, check_open, find, lock,
};
use crate::{
    DeviceError, EventKind, Exit, FormatRequest, FormatResult, OperationError, OperationStatus,
    SanitizeRequest, SanitizeState, SanitizeStatus, SelfTest, SelfTestEnd, SelfTestResult, Work,
};

/// Bytes that a self-test reads at a time.
const STEP_BYTES: u64 = 256 << 10;
/// A short self-test reads one step in this number.
const SHORT_SAMPLES: u64 = 16;
/// Results of self-tests that are kept.
const RESULTS_MAX: usize = 20;

/// State of work.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// Work under way.
    running: Option<Work>,
    format_failure: Option<String>,
    sanitize: SanitizeState,
    exit_is_free: bool,
    keeps_blocks: bool,
    is_crypto: bool,
    sanitizes_ended: u64,
    /// Share that is done, in parts of 65536.
    progress: u16,
    /// Self-test under way, and the namespace that it is about.
    self_test: Option<(SelfTest, Option<u32>)>,
    /// Reason to end the self-test under way early.
    self_test_end: Option<SelfTestEnd>,
    self_tests: Vec<SelfTestResult>,
}

impl Background {
    pub(super) fn new(kept: &PersistentState) -> Self {
        Self {
            sanitize: kept.sanitize,
            exit_is_free: kept.exit_is_free,
            keeps_blocks: kept.keeps_blocks,
            is_crypto: kept.is_crypto,
            sanitizes_ended: kept.sanitizes_ended,
            self_tests: kept.self_tests.clone(),
            ..Self::default()
        }
    }

    /// Work that does not admit other work.
    pub(super) const fn work(&self) -> Option<Work> {
        match (self.running, self.sanitize) {
            (None, SanitizeState::Failed) => Some(Work::SanitizeFailed),
            (running, _) => running,
        }
    }

    /// Registers work as the one under way.
    pub(super) const fn begin(&mut self, work: Work) -> Result<(), OperationError> {
        match self.work() {
            None => {}
            Some(Work::SanitizeFailed) if matches!(work, Work::Sanitize) => {}
            Some(other) => return Err(OperationError::Busy(other)),
        }
        (self.running, self.progress) = (Some(work), 0);
        Ok(())
    }

    pub(super) fn kept(&self, namespaces: Vec<KeptNamespace>) -> PersistentState {
        PersistentState {
            namespaces,
            sanitize: self.sanitize,
            exit_is_free: self.exit_is_free,
            keeps_blocks: self.keeps_blocks,
            is_crypto: self.is_crypto,
            sanitizes_ended: self.sanitizes_ended,
            self_tests: self.self_tests.clone(),
        }
    }

    pub(super) fn status(&self, is_written: bool) -> OperationStatus {
        // Running until the gates are open again, even if its end is stored already.
        let is_running = self.running == Some(Work::Sanitize);
        let state = if is_running { SanitizeState::Running } else { self.sanitize };
        OperationStatus {
            is_formatting: self.running == Some(Work::Format),
            format_failure: self.format_failure.clone(),
            sanitize: SanitizeStatus {
                state,
                progress: if is_running { self.progress } else { u16::MAX },
                is_erased: state == SanitizeState::Done && !is_written,
                ended: self.sanitizes_ended - u64::from(is_running && self.sanitize != state),
                exit_is_free: self.exit_is_free,
                keeps_blocks: self.keeps_blocks,
                is_crypto: self.is_crypto,
            },
            self_test: self.self_test.map(|(test, _)| {
                let percent = u32::from(self.progress) * 100 / u32::from(u16::MAX);
                (test, u8::try_from(percent).expect("at most a hundred"))
            }),
            self_tests: self.self_tests.clone(),
        }
    }
}

impl Operator {
    /// Runs `work` on a thread of its own.
    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce(&Arc<SharedState>) + Send + 'static,
    ) -> Result<(), OperationError> {
        let shared = Arc::clone(&self.shared);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        let worker = spawned.map_err(|error| OperationError::Failed {
            attempted: "starting a thread",
            reason: error.to_string(),
        })?;
        let before = lock(&self.worker).replace(worker);
        if let Some(before) = before {
            // Its work has ended, or else this work would not have begun.
            let _ = before.join();
        }
        Ok(())
    }

    /// Registers work as the one under way.
    fn begin(&self, work: Work) -> Result<(), OperationError> {
        if self.is_read_only && work != Work::SelfTest {
            return Err(OperationError::ReadOnly);
        }
        match work {
            Work::Format => self.end_self_test(SelfTestEnd::Formatted),
            Work::Sanitize => self.end_self_test(SelfTestEnd::Sanitized),
            Work::SanitizeFailed | Work::SelfTest => {}
        }
        lock(&self.shared.background).begin(work)
    }

    pub(super) fn begin_formatting(
        &self,
        request: &FormatRequest,
    ) -> Result<FormatResult, OperationError> {
        let chosen = |entries: &mut Vec<Entry>| match request.namespace {
            Some(id) => find(entries, id).map(|it| vec![it.clone()]),
            None => Ok(entries.clone()),
        };
        let formatted = chosen(&mut lock(&self.shared.entries))?;
        let closed =
            if request.is_secure { lock(&self.shared.entries).clone() } else { formatted.clone() };
        check_open(&closed)?;
        let block_bytes = u64::from(request.block_bytes);
        if let Some(odd) =
            formatted.iter().find(|it| !it.portion.bytes().is_multiple_of(block_bytes))
        {
            let (what, value) = ("the size of the namespace", odd.portion.bytes());
            return Err(OperationError::Value { what, value, limit: "whole logical blocks" });
        }
        self.begin(Work::Format)?;
        lock(&self.shared.background).format_failure = None;
        let request = *request;
        for entry in &closed {
            entry.portion.gate().work = Some(Work::Format);
        }
        let names: Vec<String> = formatted.iter().map(|it| it.id.to_string()).collect();
        let text = format!(
            "A format of namespace {} to blocks of {block_bytes} bytes began{}.",
            names.join(", "),
            if request.is_secure { ", with an erasure of the whole drive" } else { "" }
        );
        self.shared.backing.note(EventKind::FormatBegan, text);
        let ids: Vec<u32> = formatted.iter().map(|it| it.id).collect();
        let result = FormatResult::default();
        let to_end = result.clone();
        let spawned = self.spawn("format", move |shared| {
            let done = shared.format(&closed, &ids, &request);
            shared.end_format(&closed, done.clone());
            to_end.end(done);
        });
        if let Err(error) = &spawned {
            lock(&self.shared.background).running = None;
            lock(&self.shared.entries).iter().for_each(|it| it.portion.gate().work = None);
            lock(&self.shared.background).format_failure = Some(error.to_string());
        }
        spawned.map(|()| result)
    }

    pub(super) fn begin_sanitizing(&self, request: SanitizeRequest) -> Result<(), OperationError> {
        check_open(&lock(&self.shared.entries))?;
        self.begin(Work::Sanitize)?;
        self.shared.close_gates(Work::Sanitize);
        let before = {
            let mut background = lock(&self.shared.background);
            background.exit_is_free = request.exit == Exit::Unrestricted;
            background.keeps_blocks = request.keeps_blocks;
            background.is_crypto = request.is_crypto;
            std::mem::replace(&mut background.sanitize, SanitizeState::Running)
        };
        // Stored before anything is erased: after a crash the next server goes on with it.
        let begun =
            self.shared.keep().and_then(|()| self.spawn("sanitize", |shared| shared.sanitize()));
        if begun.is_err() {
            let mut background = lock(&self.shared.background);
            (background.sanitize, background.running) = (before, None);
            drop(background);
            let work = (before == SanitizeState::Failed).then_some(Work::SanitizeFailed);
            lock(&self.shared.entries).iter().for_each(|it| it.portion.gate().work = work);
        }
        begun
    }

    /// Goes on with a sanitize that an earlier server did not finish.
    pub(super) fn resume_sanitize(&self) -> Result<(), OperationError> {
        lock(&self.shared.background).running = Some(Work::Sanitize);
        self.shared.close_gates(Work::Sanitize);
        self.spawn("sanitize", |shared| shared.sanitize())
    }

    pub(super) fn leave_failure(&self) -> Result<(), OperationError> {
        {
            let mut background = lock(&self.shared.background);
            match (background.work(), background.exit_is_free) {
                (Some(Work::SanitizeFailed), true) => background.sanitize = SanitizeState::Never,
                (Some(work), _) => return Err(OperationError::Busy(work)),
                (None, _) => return Ok(()),
            }
        }
        if let Err(error) = self.shared.keep() {
            // The next attempt finds the failure that it is to leave.
            lock(&self.shared.background).sanitize = SanitizeState::Failed;
            return Err(error);
        }
        lock(&self.shared.entries).iter().for_each(|it| it.portion.gate().work = None);
        Ok(())
    }

    pub(super) fn begin_testing(
        &self,
        test: SelfTest,
        namespace: Option<u32>,
    ) -> Result<(), OperationError> {
        let entries = {
            let mut entries = lock(&self.shared.entries);
            match namespace {
                Some(id) => vec![find(&mut entries, id)?.clone()],
                None => entries.clone(),
            }
        };
        self.begin(Work::SelfTest)?;
        {
            let mut background = lock(&self.shared.background);
            background.self_test = Some((test, namespace));
            background.self_test_end = None;
        }
        let spawned = self.spawn("self-test", move |shared| {
            let end = shared.test(test, namespace, &entries);
            shared.end_test(end);
        });
        if spawned.is_err() {
            let mut background = lock(&self.shared.background);
            (background.running, background.self_test) = (None, None);
        }
        spawned
    }

    /// Ends the self-test under way, if there is one, and waits until it has.
    pub(super) fn end_self_test(&self, end: SelfTestEnd) {
        {
            let mut background = lock(&self.shared.background);
            if background.self_test.is_none() {
                return;
            }
            background.self_test_end.get_or_insert(end);
        }
        let worker = lock(&self.worker).take();
        if let Some(worker) = worker {
            // A worker that panicked has ended, too.
            let _ = worker.join();
        }
    }
}

impl SharedState {
    /// Notes the progress of work. Returns whether to go on.
    fn advance(&self, done: u64, all: u64) -> bool {
        let share = u128::from(done) * u128::from(u16::MAX) / u128::from(all.max(1));
        lock(&self.background).progress = u16::try_from(share).unwrap_or(u16::MAX - 1);
        !self.is_stopping.load(Ordering::Acquire)
    }

    pub(super) fn format(
        &self,
        closed: &[Entry],
        ids: &[u32],
        request: &FormatRequest,
    ) -> Result<(), String> {
        for entry in closed {
            entry.portion.forget_from(0).map_err(|error| error.to_string())?;
        }
        if request.is_secure {
            self.backing.erase(&mut |done, all| self.advance(done, all))?;
            if self.is_stopping.load(Ordering::Acquire) {
                return Err("the server ended".to_owned());
            }
        }
        for entry in closed {
            entry.portion.gate().unreadable = Sectors::default();
        }
        for entry in lock(&self.entries).iter_mut().filter(|it| ids.contains(&it.id)) {
            entry.block_bytes = request.block_bytes;
        }
        self.keep().map_err(|error| error.to_string())
    }

    pub(super) fn end_format(&self, closed: &[Entry], done: Result<(), String>) {
        for entry in closed {
            entry.portion.gate().work = None;
        }
        self.version.fetch_add(1, Ordering::AcqRel);
        let text = match &done {
            Ok(()) => "The format ended.".to_owned(),
            Err(reason) => format!("The format failed: {reason}."),
        };
        self.backing.note(EventKind::FormatEnded, text);
        let mut background = lock(&self.background);
        background.format_failure = done.err();
        background.running = None;
    }

    /// Erases everything, and opens the gates again.
    fn sanitize(&self) {
        self.backing.note(EventKind::SanitizeBegan, "A sanitize began.".to_owned());
        let erased = self.backing.erase(&mut |done, all| self.advance(done, all));
        if self.is_stopping.load(Ordering::Acquire) {
            // The next server goes on with it.
            return;
        }
        lock(&self.entries).iter().for_each(|it| it.portion.gate().unreadable = Sectors::default());
        let state = if erased.is_ok() { SanitizeState::Done } else { SanitizeState::Failed };
        {
            let mut background = lock(&self.background);
            background.sanitize = state;
            background.sanitizes_ended += 1;
        }
        // The end is stored before it is reported: after a crash the sanitize would run again.
        let kept = self.keep().map_err(|error| error.to_string());
        let done = erased.and(kept);
        let work = done.is_err().then_some(Work::SanitizeFailed);
        let text = match &done {
            Ok(()) => "The sanitize ended: all data is erased.".to_owned(),
            Err(reason) => format!("The sanitize failed: {reason}."),
        };
        self.backing.note(EventKind::SanitizeEnded, text);
        let mut background = lock(&self.background);
        if done.is_err() {
            background.sanitize = SanitizeState::Failed;
        }
        background.running = None;
        // Writes are noticed from now on.
        self.is_written.store(false, Ordering::Release);
        lock(&self.entries).iter().for_each(|it| it.portion.gate().work = work);
    }

    /// True if the self-test goes on after `done` of `all` steps.
    fn tests_on(&self, done: u64, all: u64) -> bool {
        self.advance(done, all) && lock(&self.background).self_test_end.is_none()
    }

    /// Reads the stored data; a short test, a sample of it. Returns the end of the test.
    fn test(&self, test: SelfTest, namespace: Option<u32>, entries: &[Entry]) -> SelfTestEnd {
        let mut steps: Vec<(&Entry, u64, u64)> = Vec::new();
        for entry in entries {
            let Ok(stored) = entry.portion.stored() else {
                return SelfTestEnd::Failed { namespace: entry.id, lba: 0 };
            };
            for (from, length) in stored {
                let of_run = (0..length.div_ceil(STEP_BYTES)).map(|step| {
                    let at = from + step * STEP_BYTES;
                    (entry, at, STEP_BYTES.min(from + length - at))
                });
                steps.extend(of_run);
            }
        }
        let stride = if test == SelfTest::Short { SHORT_SAMPLES } else { 1 };
        let steps: Vec<_> = (0_u64..)
            .zip(steps)
            .filter(|(number, _)| number.is_multiple_of(stride))
            .map(|(_, step)| step)
            .collect();
        let all = steps.len() as u64 * if test == SelfTest::Extended { 2 } else { 1 };
        let mut buffer = vec![0; usize::try_from(STEP_BYTES).expect("a quarter of a MiB")];
        for (done, (entry, at, length)) in (0..).zip(&steps) {
            if !self.tests_on(done, all) {
                return SelfTestEnd::Aborted;
            }
            let length = usize::try_from(*length).expect("at most a step");
            match entry.portion.test(*at, &mut buffer[..length]) {
                Ok(()) => {}
                Err(DeviceError::Unreadable { lba, .. }) => {
                    return SelfTestEnd::Failed { namespace: entry.id, lba };
                }
                Err(_) => return SelfTestEnd::Failed { namespace: entry.id, lba: at / 512 },
            }
        }
        if test == SelfTest::Short || namespace.is_some() {
            return SelfTestEnd::Passed;
        }
        let read = steps.len() as u64;
        let verified =
            self.backing.verify(&mut |done, of| self.tests_on(read + read * done / of.max(1), all));
        let is_aborted = !self.tests_on(all, all);
        match verified {
            _ if is_aborted => SelfTestEnd::Aborted,
            Ok(()) => SelfTestEnd::Passed,
            Err(_) => SelfTestEnd::Failed { namespace: 0, lba: 0 },
        }
    }

    fn end_test(&self, end: SelfTestEnd) {
        let power_on_hours = self.backing.health().power_on_s / 3600;
        let mut background = lock(&self.background);
        let Some((test, namespace)) = background.self_test.take() else { return };
        let end = if end == SelfTestEnd::Aborted {
            background.self_test_end.take().unwrap_or(end)
        } else {
            end
        };
        let result = SelfTestResult { test, end, power_on_hours, namespace };
        background.self_tests.insert(0, result);
        background.self_tests.truncate(RESULTS_MAX);
        background.running = None;
        drop(background);
        let text = match end {
            SelfTestEnd::Passed => "A self-test passed.".to_owned(),
            SelfTestEnd::Failed { namespace, lba } => {
                format!("A self-test failed at sector {lba} of namespace {namespace}.")
            }
            SelfTestEnd::Aborted | SelfTestEnd::Formatted | SelfTestEnd::Sanitized => {
                "A self-test was aborted.".to_owned()
            }
        };
        self.backing.note(EventKind::Other, text);
        // A result that cannot be stored was reported all the same.
        let _ = self.keep();
    }
}
