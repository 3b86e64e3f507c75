//! TLS, by a host of its own that derives its keys as the specification says, or as libnvme did
//! before version 1.16.

#![expect(unsafe_code, reason = "the library of the host is given the address of its socket")]

use std::ffi::{c_int, c_void};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::slice;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::task::Poll;
use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use export::nvme::{Subsystem, TlsKeys};
use export::{Event, Limits, Server, TlsMode};
use hmac::{Hmac, KeyInit, Mac};
use s2n_tls::config::Builder;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, PskHmac};
use s2n_tls::psk::Psk;
use s2n_tls::security::Policy;
use sha2::{Sha256, Sha384};

use crate::Rig;
use crate::host::{DISCOVERY_NQN, Data, Digests, HOST_NQN, Host, Order, Wire, dial, io};
use crate::served::start;

const PATIENCE: Duration = Duration::from_mins(2);
const OTHER_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:bbbbbbbb-0000-4000-8000-000000000002";

/// A key as an administrator configures it, and how a host derives from it.
#[derive(Clone, Copy)]
struct Key {
    bytes: &'static [u8],
    /// Hash that transforms it: 0, 1 or 2.
    hash: u8,
    /// Version of the identity.
    version: u8,
    /// True if derived as by libnvme before version 1.16.
    is_older: bool,
}

const KEY: Key = Key { bytes: &[0x31; 32], hash: 1, version: 1, is_older: false };

impl Key {
    /// Its form as text.
    fn text(&self) -> String {
        let bytes = [self.bytes, &crc32fast::hash(self.bytes).to_le_bytes()].concat();
        format!("NVMeTLSkey-1:{:02}:{}:", self.hash, Base64::encode_string(&bytes))
    }

    const fn is_long(&self) -> bool {
        self.bytes.len() == 48
    }

    fn mac(&self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        fn of<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
            mac.update(bytes);
            mac.finalize().into_bytes().to_vec()
        }
        if self.is_long() { of::<Hmac<Sha384>>(key, bytes) } else { of::<Hmac<Sha256>>(key, bytes) }
    }

    /// HKDF-Extract and HKDF-Expand-Label.
    fn derive(&self, key: &[u8], label: &str, context: &str) -> Vec<u8> {
        let length = u16::try_from(self.bytes.len()).unwrap();
        let label = format!("tls13 {label}");
        let info = if self.is_older {
            [&length.to_le_bytes()[..], label.as_bytes(), context.as_bytes(), &[1]].concat()
        } else {
            let [label_bytes, context_bytes] =
                [&*label, context].map(|it| [u8::try_from(it.len()).unwrap()]);
            let label = [&label_bytes[..], label.as_bytes()].concat();
            let context = [&context_bytes[..], context.as_bytes()].concat();
            [&length.to_be_bytes()[..], &label, &context, &[1]].concat()
        };
        self.mac(&self.mac(&vec![0; self.bytes.len()], key), &info)
    }

    /// The identity by which a host offers it for a subsystem, and the TLS PSK.
    fn tls(&self, host: &str, subsystem: &str) -> (String, Vec<u8>) {
        let retained = match self.hash {
            0 => self.bytes.to_vec(),
            _ => self.derive(self.bytes, "HostNQN", host),
        };
        let suite = if self.is_long() { "02" } else { "01" };
        let (identity, context) = if self.version == 0 {
            let identity = format!("NVMe0R{suite} {host} {subsystem}");
            (identity.clone(), identity)
        } else {
            let text = format!("{host} {subsystem} NVMe-over-Fabrics");
            let digest = Base64::encode_string(&self.mac(&retained, text.as_bytes()));
            (format!("NVMe1R{suite} {host} {subsystem} {digest}"), format!("{suite} {digest}"))
        };
        let secret = self.derive(&retained, "nvme-tls-psk", &context);
        (identity, secret)
    }
}

/// A host's side of TLS over a socket.
struct Encrypted {
    connection: Connection,
    stream: Box<TcpStream>,
}

impl Encrypted {
    /// Offers a key by an identity. None if the server refuses.
    fn offer(stream: TcpStream, (identity, secret): &(String, Vec<u8>)) -> Option<Self> {
        let mut config = Builder::new();
        config.with_system_certs(false).unwrap();
        config.set_security_policy(&Policy::from_version("default_tls13").unwrap()).unwrap();
        let mut psk = Psk::builder().unwrap();
        psk.set_identity(identity.as_bytes()).unwrap();
        psk.set_secret(secret).unwrap();
        let is_long = secret.len() == 48;
        psk.set_hmac(if is_long { PskHmac::SHA384 } else { PskHmac::SHA256 }).unwrap();
        let mut connection = Connection::new_client();
        connection.set_config(config.build().unwrap()).unwrap();
        connection.set_blinding(Blinding::SelfService).unwrap();
        connection.append_psk(&psk.build().unwrap()).unwrap();
        connection.set_receive_callback(Some(receive)).unwrap();
        connection.set_send_callback(Some(send)).unwrap();
        let stream = Box::new(stream);
        let address = (&raw const *stream).cast_mut().cast::<c_void>();
        // SAFETY: the stream lives in a box, longer than the connection.
        unsafe {
            connection.set_receive_context(address).unwrap();
            connection.set_send_context(address).unwrap();
        }
        match connection.poll_negotiate() {
            Poll::Ready(Ok(_)) => {}
            _ => return None,
        }
        let suite = if is_long { "TLS_AES_256_GCM_SHA384" } else { "TLS_AES_128_GCM_SHA256" };
        assert_eq!(connection.cipher_suite().unwrap(), suite);
        Some(Self { connection, stream })
    }
}

impl Wire for Encrypted {
    fn send(&mut self, mut bytes: &[u8]) {
        while let (false, Poll::Ready(Ok(sent))) =
            (bytes.is_empty(), self.connection.poll_send(bytes))
        {
            bytes = &bytes[sent..];
        }
    }

    fn receive(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut at = 0;
        while at < length {
            match self.connection.poll_recv(&mut bytes[at..]) {
                Poll::Ready(Ok(count)) if count > 0 => at += count,
                _ => return None,
            }
        }
        Some(bytes)
    }
}

unsafe extern "C" fn receive(context: *mut c_void, room: *mut u8, bytes: u32) -> c_int {
    // SAFETY: the address of the boxed stream, and room for so many bytes.
    let (stream, room) =
        unsafe { (&*context.cast::<TcpStream>(), slice::from_raw_parts_mut(room, bytes as usize)) };
    let mut stream = stream;
    stream.read(room).map_or(-1, |count| c_int::try_from(count).unwrap())
}

unsafe extern "C" fn send(context: *mut c_void, bytes: *const u8, count: u32) -> c_int {
    // SAFETY: the address of the boxed stream, and of so many bytes.
    let (stream, bytes) =
        unsafe { (&*context.cast::<TcpStream>(), slice::from_raw_parts(bytes, count as usize)) };
    let mut stream = stream;
    stream.write(bytes).map_or(-1, |count| c_int::try_from(count).unwrap())
}

/// A server whose host `HOST_NQN` has a key.
struct Running {
    subsystem: Arc<Subsystem>,
    server: Server,
    port: u16,
    events: Receiver<Event>,
    nqn: String,
}

impl Running {
    fn new(key: Key, mode: TlsMode) -> Self {
        let Rig { subsystem, exports, .. } = Rig::new(512);
        let keys = TlsKeys::parse(&format!(
            "{HOST_NQN} {}\n{OTHER_NQN} {}\n",
            key.text(),
            Key { bytes: &[0x32; 32], ..KEY }.text()
        ));
        let subsystem = Arc::into_inner(subsystem).unwrap().secured(keys.unwrap(), mode);
        let subsystem = Arc::new(subsystem);
        let (server, port, events) = start(&exports, &subsystem, Limits::default());
        let nqn = subsystem.nqn().to_owned();
        Self { subsystem, server, port, events, nqn }
    }

    /// A connection that a key encrypts.
    fn open(&self, key: Key) -> Host<Encrypted> {
        self.open_for(key, &self.nqn)
    }

    fn open_for(&self, key: Key, subsystem: &str) -> Host<Encrypted> {
        let wire = Encrypted::offer(dial(self.port), &key.tls(HOST_NQN, subsystem)).unwrap();
        Host::open(wire, Digests::default(), 0)
    }

    fn queues(&self, key: Key) -> (Host<Encrypted>, Host<Encrypted>) {
        let mut admin = self.open(key);
        let controller = admin.begin(&self.nqn);
        let mut queue = self.open(key);
        queue.begin_io((1, controller), &self.nqn, true);
        (admin, queue)
    }

    /// The reason why the next client was rejected, or dropped.
    fn reason(&self) -> String {
        loop {
            match self.events.recv_timeout(PATIENCE).unwrap() {
                Event::Rejected { reason, .. } | Event::Dropped { reason, .. } => return reason,
                _ => {}
            }
        }
    }

    fn is_encrypted(&self) -> Vec<bool> {
        self.subsystem.controllers().iter().map(|it| it.is_encrypted).collect()
    }
}

/// True if the server ended the connection without a byte.
fn is_refused(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn hosts_read_back_what_they_wrote_with_each_key_and_each_way_to_derive_from_it() {
    let bytes: Vec<u8> = (0..=250).cycle().take(300 << 10).collect();
    for (key_bytes, hash) in
        [(&[0x31; 32][..], 0), (&[0x31; 32], 1), (&[0x31; 48], 0), (&[0x31; 48], 2)]
    {
        let key = Key { bytes: key_bytes, hash, ..KEY };
        let running = Running::new(key, TlsMode::Required);
        for (version, is_older) in [(0, false), (0, true), (1, false), (1, true)] {
            let key = Key { version, is_older, ..key };
            let (_admin, mut queue) = running.queues(key);
            assert_eq!(queue.run(&io(0x01, 1, 3, 600).with(Data::Transfer(&bytes))).status, 0);
            let back = queue.run(&io(0x02, 1, 3, 600).with(Data::In(300 << 10)));
            assert!(back.data == bytes);
            assert!(running.is_encrypted().into_iter().all(|it| it));
        }
        running.server.stop().unwrap();
    }
}

#[test]
fn a_host_with_another_key_is_refused_and_the_reason_is_told() {
    let running = Running::new(KEY, TlsMode::Required);
    let (_admin, mut honest) = running.queues(KEY);
    let (identity, mut secret) = KEY.tls(HOST_NQN, &running.nqn);
    secret[0] ^= 1;
    assert!(Encrypted::offer(dial(running.port), &(identity, secret)).is_none());
    let reason = running.reason();
    assert!(reason.starts_with("encryption failed: ") && reason.contains("binder"), "{reason}");
    // Its key derives other identities for other subsystems, and of other hosts.
    for (host, subsystem) in [(HOST_NQN, "nqn.another"), ("nqn.nobody", &*running.nqn)] {
        // Of many at once the first reason is told alone.
        let running = Running::new(KEY, TlsMode::Required);
        assert!(Encrypted::offer(dial(running.port), &KEY.tls(host, subsystem)).is_none());
        let reason = running.reason();
        let expected = format!("no key has the identity \"NVMe1R01 {host} {subsystem} ");
        assert!(reason.contains(&expected), "{reason}");
    }
    assert_eq!(honest.run(&io(0x00, 1, 0, 1)).status, 0);
    running.server.stop().unwrap();
}

#[test]
fn a_plain_host_is_refused_where_encryption_is_required() {
    let running = Running::new(KEY, TlsMode::Required);
    let mut plain = dial(running.port);
    let mut request = [0; 128];
    (request[2], request[4]) = (128, 128);
    plain.write_all(&request).unwrap();
    assert!(is_refused(plain));
    assert_eq!(running.reason(), "TLS is required, and it did not begin with a TLS handshake");
    assert_eq!(running.queues(KEY).1.run(&io(0x00, 1, 0, 1)).status, 0);
    running.server.stop().unwrap();
}

#[test]
fn a_plain_host_is_let_in_where_encryption_is_allowed_but_not_to_an_encrypted_controller() {
    let running = Running::new(KEY, TlsMode::Allowed);
    let mut encrypted = running.open(KEY);
    let controller = encrypted.begin(&running.nqn);
    let mut plain = Host::open(dial(running.port), Digests::default(), 0);
    let done = plain.connect((1, controller), (&running.nqn, HOST_NQN), (128, 0), 0);
    assert_eq!(done.status, 0x184, "Connect Invalid Host: {done:?}");
    let mut plain = Host::open(dial(running.port), Digests::default(), 0);
    let of_plain = plain.begin(&running.nqn);
    assert_eq!(running.is_encrypted(), [true, false]);
    let mut queue = running.open(KEY);
    let done = queue.connect((1, of_plain), (&running.nqn, HOST_NQN), (128, 0), 0);
    assert_eq!(done.status, 0x184, "{done:?}");
    running.server.stop().unwrap();
}

#[test]
fn a_host_connects_as_itself_and_to_the_subsystem_of_its_key_alone() {
    let running = Running::new(KEY, TlsMode::Required);
    let mut host = running.open(KEY);
    let done = host.connect((0, 0xFFFF), (&running.nqn, OTHER_NQN), (32, 0), 0);
    assert_eq!((done.status, done.value), (0x182, 1 << 16 | 512), "{done:?}");
    let done = host.connect((0, 0xFFFF), (DISCOVERY_NQN, HOST_NQN), (32, 0), 0);
    assert_eq!((done.status, done.value), (0x182, 1 << 16 | 256), "{done:?}");
    host.begin(&running.nqn);
    running.server.stop().unwrap();
}

#[test]
fn discovery_says_whether_a_secure_channel_is_required() {
    for (mode, secure_channel) in [(TlsMode::Required, 1), (TlsMode::Allowed, 2)] {
        let running = Running::new(KEY, mode);
        let mut host = running.open_for(KEY, DISCOVERY_NQN);
        host.begin(DISCOVERY_NQN);
        let log = host.log(0x70, 3072).data;
        for entry in [1024, 2048] {
            assert_eq!(log[entry + 3], 1 << 2 | secure_channel, "TREQ");
            assert_eq!(log[entry + 768], 2, "SECTYPE: TLS 1.3");
        }
        running.server.stop().unwrap();
    }
}

/// First message of a host.
fn hello(key: Key, nqn: &str) -> Vec<u8> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dialled = dial(listener.local_addr().unwrap().port());
    let (mut accepted, _) = listener.accept().unwrap();
    let tls = key.tls(HOST_NQN, nqn);
    let host = std::thread::spawn(move || Encrypted::offer(dialled, &tls).is_none());
    let mut hello = vec![0; 4096];
    let mut end = 0;
    while end < 5 || end < 5 + usize::from(u16::from_be_bytes([hello[3], hello[4]])) {
        end += accepted.read(&mut hello[end..]).unwrap();
    }
    hello.truncate(end);
    drop(accepted);
    assert!(host.join().unwrap());
    hello
}

#[test]
fn handshakes_that_are_cut_short_changed_or_never_go_on_keep_no_client_out() {
    let running = Running::new(KEY, TlsMode::Required);
    let hello = hello(KEY, &running.nqn);
    for cut in (1..hello.len()).step_by(3) {
        let mut stream = dial(running.port);
        stream.write_all(&hello[..cut]).unwrap();
        if cut % 2 == 0 {
            // A server that refused it already has closed the connection.
            let _ = stream.shutdown(Shutdown::Write);
            stream.read_to_end(&mut Vec::new()).unwrap_or(0);
        }
    }
    for index in (0..hello.len()).step_by(5) {
        let mut changed = hello.clone();
        changed[index] ^= 0x41;
        let mut stream = dial(running.port);
        stream.write_all(&changed).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        // Whatever the server says, it says no more than the host could say itself.
        stream.read_to_end(&mut Vec::new()).unwrap_or(0);
    }
    assert!(running.is_encrypted().is_empty());
    let idle: Vec<_> = (0..200_usize)
        .map(|index| {
            let mut stream = dial(running.port);
            stream.write_all(&hello[..hello.len() * (index % 3) / 2]).unwrap();
            stream
        })
        .collect();
    assert_eq!(running.queues(KEY).1.run(&io(0x00, 1, 0, 1)).status, 0);
    drop(idle);
    running.server.stop().unwrap();
}

#[test]
fn records_that_are_changed_on_the_way_end_the_connection() {
    let running = Running::new(KEY, TlsMode::Required);
    let (_admin, mut queue) = running.queues(KEY);
    // A record of application data with nothing that the key of the host made.
    queue.wire.stream.write_all(&[&[23, 3, 3, 0, 64][..], &[0x55; 64]].concat()).unwrap();
    assert!(queue.wire.receive(1).is_none());
    let reason = running.reason();
    assert!(reason.starts_with("encryption failed: "), "{reason}");
    running.server.stop().unwrap();
}

#[test]
fn a_host_that_stops_within_a_record_loses_its_controller_in_time() {
    let running = Running::new(KEY, TlsMode::Required);
    let mut host = running.open(KEY);
    let done = host.connect((0, 0xFFFF), (&running.nqn, HOST_NQN), (32, 0), 1000);
    assert_eq!(done.status, 0);
    host.wire.stream.write_all(&[23, 3, 3, 0, 64, 1, 2]).unwrap();
    let reason = running.reason();
    assert!(reason.contains("Keep Alive"), "{reason}");
    running.server.stop().unwrap();
}

#[test]
fn many_commands_at_once_are_answered_in_an_encrypted_queue() {
    let running = Running::new(KEY, TlsMode::Required);
    let (_admin, mut queue) = running.queues(KEY);
    let block = [0x77; 4096];
    for round in 0..20 {
        let ids: Vec<_> = (0..100_u64)
            .map(|at| match (at + round) % 2 {
                0 => queue.submit(&io(0x01, 1, at * 8, 8).with(Data::Capsule(&block))),
                _ => queue.submit(&io(0x02, 1, at * 8, 8).with(Data::In(4096))),
            })
            .collect();
        for id in ids {
            assert_eq!(queue.finish(id, &[]).unwrap().status, 0);
        }
    }
    let done = queue.run(&Order::new(0x00, 1, &[]));
    assert_eq!(done.status, 0);
    running.server.stop().unwrap();
}
