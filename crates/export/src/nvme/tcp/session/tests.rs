//! A queue whose controller goes while it comes.

use device::{Administration, DriveHealth, Identity, MemoryDevice};

use super::super::super::Secrets;
use super::super::super::host::Host;
use super::super::super::transport::Transport;
use super::*;
use crate::{Export, Exports};

const HOST: &str = "nqn.2014-08.org.host";
const NOW: Nanos = Nanos::ZERO;

#[derive(Debug)]
struct Told;

impl Administration for Told {
    fn identity(&self) -> Identity {
        Identity { number: 7, model: "test".to_owned(), firmware: "1".to_owned() }
    }

    fn health(&self) -> DriveHealth {
        DriveHealth::default()
    }
}

/// A subsystem that admits one host, by its secret.
fn subsystem() -> Arc<Subsystem> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        device: Arc::new(MemoryDevice::new(1 << 20)),
        is_read_only: false,
        pace: None,
    };
    let exports = Exports::new(vec![export]).unwrap();
    let subsystem = Subsystem::new(&exports, Arc::new(Told), 512).unwrap();
    let secret = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
    let secrets = Secrets::parse(&format!("{HOST} {secret}")).unwrap();
    Arc::new(subsystem.authenticated(secrets))
}

/// A Connect of I/O queue 1 of a controller.
fn connect(session: &mut Session, controller: u16) {
    let (mut entry, mut data) = ([0; COMMAND_BYTES], [0; 1024]);
    (entry[0], entry[4], entry[42], entry[44]) = (fabrics::OPCODE, fabrics::CONNECT, 1, 31);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    let nqn = session.subsystem.nqn().to_owned();
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    data[512..512 + HOST.len()].copy_from_slice(HOST.as_bytes());
    session.connect(&Command::of(&entry), Ok(&data), &mut Replies::new());
}

#[test]
fn a_queue_whose_controller_goes_meanwhile_must_authenticate_all_the_same() {
    let subsystem = subsystem();
    let host = Host {
        name: HOST.to_owned(),
        id: [0; 16],
        transport: Transport::Tcp,
        is_authenticated: true,
        is_encrypted: false,
    };
    let controller = subsystem.admit(Purpose::Io, host, (0, NOW)).unwrap();
    locked(&controller).configure(&subsystem.context(NOW, None), 0x0046_0001);
    let id = locked(&controller).id();
    // The admin queue is about to take the controller out of both maps, and was out of one.
    subsystem.drive().remove(id);
    let mut session = Session::new(Arc::clone(&subsystem), None, NOW);
    connect(&mut session, id);
    assert_eq!(session.queue().map(|queue| queue.number), Some(1));
    assert!(!session.is_connected(), "it has not proved who it is");
    subsystem.leave(id);
    assert!(!session.is_alive());
}
