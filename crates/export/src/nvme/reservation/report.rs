//! Reservation Report ([nvme-base-2021], "Reservation Report command"; offsets in bytes), and
//! reservations as the status of the server has them.

use device::Operations;
use status::Registrant;

use super::super::status::Status;
use super::super::wire::{Structure, uuid_text};
use super::{HostIdentity, Reservations, ReservingHost};

/// Bytes of the header, and of each registrant.
const STANDARD_BYTES: [usize; 2] = [24, 24];
/// Bytes of both with Host Identifiers of 128 bits.
const EXTENDED_BYTES: [usize; 2] = [64, 64];
/// Controller of a host where controllers come and go (the dynamic controller model).
const ANY_CONTROLLER: u16 = 0xFFFF;

/// The report for a host, with Host Identifiers of 128 bits or of 64.
///
/// # Errors
/// Fails if that is not the size of the host's own identifier, or another one has no room in 64.
pub(crate) fn report(
    reservations: &Reservations,
    asking: &HostIdentity,
    is_extended: bool,
) -> Result<Vec<u8>, Status> {
    let is_identified = matches!(asking.host, ReservingHost::Identified(_));
    if is_identified && asking.is_extended != is_extended {
        return Err(Status::HOST_ID_FORMAT);
    }
    let [header, entry] = if is_extended { EXTENDED_BYTES } else { STANDARD_BYTES };
    let registrants = &reservations.registrants;
    let mut it = Structure::new(header + entry * registrants.len());
    it.put_u32(0, reservations.generation);
    it.put_u8(4, reservations.kind().map_or(0, |kind| kind as u8));
    it.put_u16(5, u16::try_from(registrants.len()).expect("a thousand at most"));
    it.put_u8(9, u8::from(reservations.is_persistent));
    for (at, (host, key)) in (header..).step_by(entry).zip(registrants) {
        let id = match host {
            ReservingHost::Identified(id) => *id,
            ReservingHost::Anonymous { .. } => [0; 16],
        };
        it.put_u16(at, ANY_CONTROLLER);
        it.put_u8(at + 2, u8::from(reservations.holds(*host)));
        if is_extended {
            it.put_u64(at + 8, *key);
            it.put(at + 16, &id);
        } else if id[8..] == [0; 8] {
            it.put(at + 8, &id[..8]);
            it.put_u64(at + 16, *key);
        } else {
            return Err(Status::HOST_ID_FORMAT);
        }
    }
    Ok(it.into_bytes())
}

/// Reservations as the status shows them.
pub(crate) fn shown(reservations: &Reservations) -> status::Reservations {
    let registrants = reservations.registrants.iter().map(|(host, key)| {
        let (host_id, controller) = match host {
            ReservingHost::Identified(id) => (Some(uuid_text(*id)), None),
            ReservingHost::Anonymous { controller } => (None, Some(*controller)),
        };
        let (key, is_holder) = (format!("{key:#x}"), reservations.holds(*host));
        Registrant { host_id, controller, key, is_holder }
    });
    status::Reservations {
        kind: reservations.kind().map(|kind| kind.word().to_owned()),
        is_persistent: reservations.is_persistent,
        registrants: registrants.collect(),
    }
}

/// Reservations of a namespace that its drive stored, where no hosts are served.
pub fn stored_reservations(operations: &dyn Operations, namespace: u32) -> status::Reservations {
    let stored = operations.reservations(namespace);
    shown(&Reservations::restored(&stored, operations.keeps_reservations()))
}
