//! Persistent Event log ([nvme-base-2021]): the drive's own history as NVMe events.

use device::{DriveEvent, EventKind};

use super::super::context::Context;
use super::super::controller::Controller;
use super::super::transport::VENDOR;
use super::super::wire::Structure;

/// Bytes of the header of the log, and of that of an event.
const HEADER_BYTES: usize = 512;
const EVENT_HEADER_BYTES: usize = 24;
/// Bytes of the longest text of an event.
const TEXT_BYTES_MAX: usize = 1024;
/// Revision of the log: that of the base specification 2.0.
const REVISION: u8 = 2;

/// Types of events.
mod kind {
    pub(super) const HEALTH: u8 = 0x01;
    pub(super) const POWER_ON: u8 = 0x04;
    pub(super) const NAMESPACE: u8 = 0x06;
    pub(super) const FORMAT_BEGAN: u8 = 0x07;
    pub(super) const FORMAT_ENDED: u8 = 0x08;
    pub(super) const SANITIZE_BEGAN: u8 = 0x09;
    pub(super) const SANITIZE_ENDED: u8 = 0x0A;
    pub(super) const VENDOR: u8 = 0xDE;
    pub(super) const ALL: [u8; 8] = [
        HEALTH,
        POWER_ON,
        NAMESPACE,
        FORMAT_BEGAN,
        FORMAT_ENDED,
        SANITIZE_BEGAN,
        SANITIZE_ENDED,
        VENDOR,
    ];
}

/// The log as it is now: a snapshot of the health, then what happened, the latest first.
pub(super) fn page(controller: &Controller, context: &Context<'_>, health: &[u8]) -> Vec<u8> {
    let operations = context.drive.operations();
    let mut events = operations.events();
    events.reverse();
    let mut it = header(context);
    if !controller.transport().is_fabrics() {
        it.put_u16(52, VENDOR);
    }
    let controller = controller.id();
    let mut body = Vec::new();
    put_event(&mut body, kind::HEALTH, controller, operations.now_unix_ms(), health);
    for event in &events {
        let (kind, data) = described(context, event);
        put_event(&mut body, kind, controller, event.at_unix_ms, &data);
        if kind != kind::VENDOR {
            // What its fields have no room for.
            put_event(&mut body, kind::VENDOR, controller, event.at_unix_ms, &text(event));
        }
    }
    let of_kind = |event: &&DriveEvent| event.kind != EventKind::Other;
    let count = 1 + events.len() + events.iter().filter(of_kind).count();
    it.put_u32(4, u32::try_from(count).expect("a few dozens"));
    it.put_u64(8, (HEADER_BYTES + body.len()) as u64);
    let mut page = it.into_bytes();
    page.extend(body);
    page
}

/// The header, without what it says of the controller and of the events.
fn header(context: &Context<'_>) -> Structure {
    let subsystem = context.drive;
    let (identity, health) = (subsystem.identity(), subsystem.operations().health());
    let mut it = Structure::new(HEADER_BYTES);
    it.put_u8(0, 0x0D);
    it.put_u8(16, REVISION);
    it.put_u16(18, 492);
    it.put_u64(20, subsystem.operations().now_unix_ms());
    it.put_u128(28, (health.power_on_s / 3600).into());
    it.put_u64(44, health.power_cycles);
    it.put_padded(56, 20, &format!("{:016x}", identity.number));
    it.put_padded(76, 40, &identity.model);
    it.put_terminated(116, 256, subsystem.nqn());
    for kind in kind::ALL {
        let (byte, bit) = (480 + usize::from(kind / 8), kind % 8);
        it.or_u8(byte, 1 << bit);
    }
    it
}

fn put_event(body: &mut Vec<u8>, kind: u8, controller: u16, at_unix_ms: u64, data: &[u8]) {
    let mut it = Structure::new(EVENT_HEADER_BYTES);
    it.put_u8(0, kind);
    it.put_u8(1, 1);
    // EHL: what follows of the header.
    it.put_u8(2, 21);
    it.put_u16(4, controller);
    it.put_u64(6, at_unix_ms);
    it.put_u16(22, u16::try_from(data.len()).expect("events are short"));
    body.extend(it.into_bytes());
    body.extend(data);
}

/// The type and the data of an event; what the history does not know is zero.
fn described(context: &Context<'_>, event: &DriveEvent) -> (u8, Vec<u8>) {
    match event.kind {
        EventKind::Started => {
            let mut it = Structure::new(8);
            it.put_padded(0, 8, &context.drive.identity().firmware);
            (kind::POWER_ON, it.into_bytes())
        }
        EventKind::Namespace => (kind::NAMESPACE, vec![0; 48]),
        EventKind::FormatBegan => (kind::FORMAT_BEGAN, vec![0; 12]),
        EventKind::FormatEnded => (kind::FORMAT_ENDED, vec![0; 12]),
        EventKind::SanitizeBegan => {
            let mut it = Structure::new(12);
            let operations = context.drive.operations();
            it.put_u32(0, super::super::identify::sanitize_capabilities(operations));
            (kind::SANITIZE_BEGAN, it.into_bytes())
        }
        EventKind::SanitizeEnded => (kind::SANITIZE_ENDED, vec![0; 8]),
        EventKind::Other => (kind::VENDOR, text(event)),
    }
}

/// A descriptor of a vendor-specific event: its text, in ASCII.
fn text(event: &DriveEvent) -> Vec<u8> {
    let shown = event.text.chars().map(|it| if it.is_ascii() { it } else { '?' });
    let text: String = shown.take(TEXT_BYTES_MAX).collect();
    let mut it = Structure::new(6);
    it.put_u16(0, 1);
    it.put_u8(2, 2);
    it.put_u16(4, u16::try_from(text.len()).expect("bounded"));
    let mut data = it.into_bytes();
    data.extend(text.as_bytes());
    data
}
