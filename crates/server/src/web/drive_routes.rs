//! The page of one drive, and all paths below it. Its status comes from the drive itself, or from
//! its server over the management socket.

use std::fmt::Debug;
use std::io;
use std::sync::Weak;

use status::management::{Answer, Request as ManagementRequest};
use status::{History, HistorySpan, Status};

use super::metrics::{self, Metrics};
use super::reply::Reply;
use super::stream::Stream;
use super::visit::Visit;
use super::{action, origin_check, page};
use crate::drive_service::DriveService;

/// Error for a drive whose server is gone.
pub(super) const UNSERVED: &str = "the volume is no longer served";
/// Path of the event stream of statuses, one a second.
pub(super) const STREAM: &str = "/stream";

/// A drive that is shown.
pub trait ShownDrive: Debug + Send + Sync {
    /// Its volume ID, 16 hexadecimal digits; none once it is not served.
    fn number(&self) -> Option<String>;
    /// Returns its status; none while it is not served.
    fn status(&self) -> Option<Status>;
    /// Returns its recent activity; none while it is not served.
    fn history(&self, span: HistorySpan) -> Option<History>;
    /// Carries out an action.
    fn carry_out(&self, request: &ManagementRequest) -> Answer;
}

/// Weak, so that viewers do not keep the drive from being closed.
impl ShownDrive for Weak<DriveService> {
    fn number(&self) -> Option<String> {
        Some(self.upgrade()?.number())
    }

    fn status(&self) -> Option<Status> {
        Some(self.upgrade()?.status())
    }

    fn history(&self, span: HistorySpan) -> Option<History> {
        Some(self.upgrade()?.history(span))
    }

    fn carry_out(&self, request: &ManagementRequest) -> Answer {
        match self.upgrade() {
            Some(service) => service.answer(request),
            None => Answer::Refused { reason: "the volume is being closed".to_owned() },
        }
    }
}

/// Routes of the page of one drive.
#[derive(Debug)]
pub struct DriveRoutes {
    subject: Box<dyn ShownDrive>,
    metrics: Metrics,
    stream: Stream,
}

impl DriveRoutes {
    /// Shows a drive.
    pub fn new(subject: impl ShownDrive + 'static) -> Self {
        let (metrics, stream) = (Metrics::default(), Stream::default());
        Self { subject: Box::new(subject), metrics, stream }
    }

    /// Answers what is asked at a path below the drive's page.
    pub(super) fn answer(&self, visit: &Visit<'_>, path: &str) -> io::Result<()> {
        match path {
            STREAM if !visit.is_head() => self.stream.serve(visit, || self.subject.status()),
            origin_check::ORDERS => visit.send(&action::carry_out(visit, &*self.subject)),
            _ => visit.send(&self.shown(path)),
        }
    }

    /// Disconnects all viewers.
    pub(super) fn end(&self) {
        self.stream.end();
    }

    fn shown(&self, path: &str) -> Reply {
        if let Some(span) = history_span(path) {
            let history = self.subject.history(span);
            return history.map_or_else(|| Reply::text(503, UNSERVED), |it| Reply::json(&it));
        }
        match path {
            "/" => page::of_drive(),
            "/metrics" => self
                .looked_at(|status| Reply::new(metrics::CONTENT_TYPE, self.metrics.text(status))),
            "/status.json" => self.looked_at(Reply::json),
            _ => page::part(path).unwrap_or_else(|| {
                Reply::text(
                    404,
                    "unknown path; use /, /metrics, /status.json, /history/2min.json, \
                     /history/1h.json, /history/24h.json or /stream",
                )
            }),
        }
    }

    fn looked_at(&self, tell: impl Fn(&Status) -> Reply) -> Reply {
        match self.subject.status() {
            Some(status) => tell(&status),
            None => Reply::text(503, UNSERVED),
        }
    }
}

/// The span of a path such as `/history/24h.json`.
fn history_span(path: &str) -> Option<HistorySpan> {
    let word = path.strip_prefix("/history/")?.strip_suffix(".json")?;
    HistorySpan::ALL.into_iter().find(|span| span.word() == word)
}
