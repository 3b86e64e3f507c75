//! Features of reservations: which notices hosts do not want, and whether registrations persist
//! through power loss. They are of namespaces, and of all controllers.

use std::sync::Arc;

use super::super::context::Context;
use super::super::reservation::ReservationGuard;
use super::super::status::Status;

/// Bits of the notices that can be masked.
const NOTICES: u32 = 7 << 1;

/// Notices of a namespace that hosts do not want.
pub(super) fn mask(context: &Context<'_>, id: u32) -> Result<u32, Status> {
    Ok(guard(context, id)?.mask())
}

pub(super) fn set_mask(context: &Context<'_>, ids: &[u32], mask: u32) -> Result<(), Status> {
    if mask & !NOTICES != 0 {
        return Err(Status::INVALID_FIELD);
    }
    for id in ids {
        guard(context, *id)?.set_mask(mask);
    }
    Ok(())
}

/// 1 if registrations with a namespace persist.
pub(super) fn persistence(context: &Context<'_>, id: u32) -> Result<u32, Status> {
    Ok(guard(context, id)?.look().is_persistent().into())
}

pub(super) fn persist(
    context: &Context<'_>,
    ids: &[u32],
    is_persistent: bool,
) -> Result<(), Status> {
    for id in ids {
        guard(context, *id)?.persist(context.drive.operations(), is_persistent)?;
    }
    Ok(())
}

fn guard(context: &Context<'_>, id: u32) -> Result<Arc<ReservationGuard>, Status> {
    let all = context.drive.directory().all();
    all.get(id).map(|it| Arc::clone(it.reservations())).ok_or(Status::INVALID_NAMESPACE)
}
