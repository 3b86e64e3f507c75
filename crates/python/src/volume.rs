//! The state of live volumes, served or closed.

use std::io::ErrorKind;
use std::path::Path;

use lab::{Error, Kind};
use live::OpenError;
use pyo3::prelude::*;
use status::management::{Answer, Connection, FAULTS_NOT_ALLOWED, Request};
use status::{Fault, History, HistorySpan, Status};

use crate::failure::{exception, json, order, refused};

/// Connects to the server of the volume in `folder`. Returns nothing if it is not served.
fn server(folder: &Path) -> Result<Option<Connection>, Error> {
    // Opening the volume has the better error for a missing folder.
    if !folder.is_dir() {
        return Ok(None);
    }
    Connection::open(folder).map_err(|source| unanswered(folder, source))
}

fn unanswered(folder: &Path, source: std::io::Error) -> Error {
    let hint = "run as the user of the server; one that does not answer within five seconds hangs";
    let text = format!("asking the server of {}", folder.display());
    Error::new(Kind::Io, text).source(source).hint(hint)
}

/// Connects to the server of the volume in `folder`, which `reason` says is needed; `options` are
/// what the server has to be started with.
fn needed_server(folder: &Path, reason: &str, options: &str) -> Result<Connection, Error> {
    let shown = folder.display();
    server(folder)?.ok_or_else(|| {
        Error::new(Kind::Input, format!("{shown} is not served, and {reason}"))
            .hint(remedy(folder, options))
    })
}

/// The command that serves the volume in `folder` with options.
fn remedy(folder: &Path, options: &str) -> String {
    format!("`floatgate volume serve {}{options}`", folder.display())
}

fn status_of(folder: &Path) -> Result<Status, Error> {
    match server(folder)? {
        Some(mut server) => server.status().map_err(|source| unanswered(folder, source)),
        None => live::inspect(folder).map_err(|source| unopened(folder, source)),
    }
}

fn unopened(folder: &Path, source: OpenError) -> Error {
    let remedy = source.remedy(folder);
    let text = format!("opening {}", folder.display());
    Error::new(Kind::Input, text).source(source).hint(remedy)
}

fn history_of(folder: &Path, span: HistorySpan) -> Result<History, Error> {
    let shown = folder.display();
    let mut server = needed_server(folder, "only a server has its history", "")?;
    match server.ask(&Request::History { span }).map_err(|source| unanswered(folder, source))? {
        Answer::History { history } => Ok(*history),
        Answer::Refused { reason } => {
            Err(Error::new(Kind::Io, format!("asking the server of {shown}: {reason}")))
        }
        Answer::Status { .. } | Answer::Done => {
            Err(Error::new(Kind::Io, format!("the server of {shown} sent no history")))
        }
    }
}

/// The status of the volume in the folder `path`, as JSON, from its server or else its dies.
#[pyfunction]
pub(crate) fn volume_status(py: Python<'_>, path: &str) -> PyResult<String> {
    let status = py.detach(|| status_of(Path::new(path)));
    json(&status.map_err(|error| exception(&error))?)
}

/// Traffic of the served volume in `path` over a span, `2min`, `1h` or `24h`, as JSON.
#[pyfunction]
pub(crate) fn volume_history(py: Python<'_>, path: &str, span: &str) -> PyResult<String> {
    let Some(span) = HistorySpan::ALL.into_iter().find(|it| it.word() == span) else {
        let known = HistorySpan::ALL.map(HistorySpan::word).join(", ");
        return Err(refused(format!("no history has the span {span:?}"), &format!("give {known}")));
    };
    let history = py.detach(|| history_of(Path::new(path), span));
    json(&history.map_err(|error| exception(&error))?)
}

fn inject(folder: &Path, fault: Fault) -> Result<(), Error> {
    let options = " --fault-injection";
    let mut server = needed_server(folder, "only a server has faults injected", options)?;
    match server.order(&Request::InjectFault { fault }) {
        // A server without power does not answer.
        Err(source)
            if matches!(fault, Fault::CutPower {}) && source.kind() == ErrorKind::UnexpectedEof =>
        {
            Ok(())
        }
        done => done.map_err(|source| {
            let text = format!("injecting a fault into {}", folder.display());
            let is_allowed = source.to_string() != FAULTS_NOT_ALLOWED;
            let error = Error::new(Kind::Io, text).source(source);
            if is_allowed { error } else { error.hint(remedy(folder, options)) }
        }),
    }
}

/// Injects a fault, given as JSON as in a schedule, into the served volume in `path`.
#[pyfunction]
pub(crate) fn volume_inject(py: Python<'_>, path: &str, fault_json: &str) -> PyResult<()> {
    let fault: Fault = order(fault_json)?;
    fault.check().map_err(|limit| refused(limit, "docs/guide/inject-faults.md lists faults"))?;
    py.detach(|| inject(Path::new(path), fault)).map_err(|error| exception(&error))
}
