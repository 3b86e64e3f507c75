//! Actions on a drive: POST requests that carry the server's token and the volume ID.

use serde::Deserialize;
use status::management::{Answer, Request as ManagementRequest};

use super::drive_routes::{ShownDrive, UNSERVED};
use super::reply::Reply;
use super::visit::Visit;

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// ID of the volume that is meant, so that another one is not changed by mistake.
    drive: String,
    /// Request to carry out, as on the management socket.
    request: ManagementRequest,
}

/// Carries out a request that has the token and names the drive.
pub(super) fn carry_out(visit: &Visit<'_>, subject: &dyn ShownDrive) -> Reply {
    let Visit { request, token, connection, .. } = visit;
    let header = |name| request.header(name).ok().flatten().unwrap_or_default();
    if !header("content-type").starts_with("application/json") {
        return Reply::text(415, "the body must be application/json");
    }
    if let Err(refusal) = token.check(connection.peer(), header("authorization")) {
        return refusal;
    }
    let Order { drive, request } = match serde_json::from_slice(&request.body) {
        Ok(order) => order,
        Err(error) => return Reply::text(400, &format!("invalid request: {error}")),
    };
    match subject.number() {
        Some(number) if number == drive => match subject.carry_out(&request) {
            Answer::Refused { reason } => Reply::text(409, &reason),
            answer => Reply::json(&answer),
        },
        Some(number) => {
            Reply::text(409, &format!("the volume here has the ID {number}, not {drive}"))
        }
        None => Reply::text(503, UNSERVED),
    }
}
