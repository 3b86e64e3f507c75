//! An NVMe/TCP initiator for tests, written from the specification apart from the server: it builds
//! PDUs as bytes and reads what comes back.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use blockio::Nanos;
use export::Replies;
use export::nvme::{Session, Subsystem};

/// Longest wait for a server.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
pub(crate) const HOST_NQN: &str =
    "nqn.2014-08.org.nvmexpress:uuid:aaaaaaaa-0000-4000-8000-000000000001";

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Way to a server.
pub(crate) trait Wire {
    /// Sends bytes; a server that is gone takes none.
    fn send(&mut self, bytes: &[u8]);

    /// Receives exactly so many bytes; none if the server ended the connection before.
    fn receive(&mut self, length: usize) -> Option<Vec<u8>>;
}

/// A session in this process, without a socket.
pub(crate) struct Inner {
    pub(crate) session: Session,
    pub(crate) replies: Replies,
    input: Vec<u8>,
    output: VecDeque<u8>,
    now: Nanos,
    is_over: bool,
}

impl Inner {
    pub(crate) fn new(subsystem: &Arc<Subsystem>) -> Self {
        Self::coming_at(subsystem, 0)
    }

    /// A connection that came after so many seconds.
    pub(crate) fn coming_at(subsystem: &Arc<Subsystem>, seconds: u64) -> Self {
        let address = Some("127.0.0.1:4420".parse().unwrap());
        let now = Nanos::from_secs(seconds);
        Self {
            session: Session::new(Arc::clone(subsystem), address, now),
            now,
            replies: Replies::new(),
            input: Vec::new(),
            output: VecDeque::new(),
            is_over: false,
        }
    }

    /// Lets the time be `seconds`; returns whether the session goes on.
    pub(crate) fn advance(&mut self, seconds: u64) -> bool {
        self.now = Nanos::from_secs(seconds);
        let went_on = self.session.advance(self.now, &mut self.replies).is_ok();
        self.output.extend(self.replies.as_bytes());
        self.replies.clear();
        self.is_over |= !went_on;
        went_on
    }

    /// True if the session ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Wire for Inner {
    fn send(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
        loop {
            if self.is_over {
                return;
            }
            let taken = self.session.take(&self.input, &mut self.replies);
            if let Ok(taken) = taken {
                self.input.drain(..taken.used_bytes);
            }
            self.session.settle(&mut self.replies);
            self.session.set_time(self.now);
            self.output.extend(self.replies.as_bytes());
            self.replies.clear();
            self.is_over |= self.session.is_over() || taken.is_err();
            if taken.is_ok_and(|taken| taken.wanted_bytes > 0) {
                return;
            }
        }
    }

    fn receive(&mut self, length: usize) -> Option<Vec<u8>> {
        (self.output.len() >= length).then(|| self.output.drain(..length).collect())
    }
}

impl Wire for TcpStream {
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.write_all(bytes);
    }

    fn receive(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes).ok().map(|()| bytes)
    }
}

/// Connects to a server on the loopback.
pub(crate) fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Digests that a host asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digests {
    pub(crate) header: bool,
    pub(crate) data: bool,
}

/// A PDU that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pdu {
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Pdu {
    pub(crate) fn kind(&self) -> u8 {
        self.header[0]
    }

    pub(crate) fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }

    pub(crate) fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

/// A completion, with the data that came before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) id: u16,
    /// Status Code Type and Status Code: `0x281` is an unrecovered read error.
    pub(crate) status: u16,
    /// Bits of the status field above those: more, do not retry.
    pub(crate) is_final: bool,
    pub(crate) has_more: bool,
    pub(crate) value: u64,
    pub(crate) head: u16,
    pub(crate) data: Vec<u8>,
}

/// Data of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    None,
    /// From the controller.
    In(u32),
    /// To the controller, in the capsule.
    Capsule(&'a [u8]),
    /// To the controller, once it asks.
    Transfer(&'a [u8]),
}

/// A command to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) opcode: u8,
    pub(crate) namespace: u32,
    /// Command dwords 10 to 15.
    pub(crate) dwords: [u32; 6],
    pub(crate) data: Data<'a>,
}

impl Order<'static> {
    pub(crate) fn new(opcode: u8, namespace: u32, dwords: &[u32]) -> Self {
        let mut all = [0; 6];
        all[..dwords.len()].copy_from_slice(dwords);
        Self { opcode, namespace, dwords: all, data: Data::None }
    }
}

impl Order<'_> {
    pub(crate) fn with(self, data: Data<'_>) -> Order<'_> {
        let Self { opcode, namespace, dwords, .. } = self;
        Order { opcode, namespace, dwords, data }
    }

    /// The submission queue entry.
    pub(crate) fn entry(&self, id: u16) -> [u8; 64] {
        let mut entry = [0; 64];
        entry[0] = self.opcode;
        entry[1] = 1 << 6;
        entry[2..4].copy_from_slice(&id.to_le_bytes());
        entry[4..8].copy_from_slice(&self.namespace.to_le_bytes());
        let (length, kind) = match self.data {
            Data::None => (0, 0x5A),
            Data::In(length) => (length, 0x5A),
            Data::Capsule(bytes) => (u32::try_from(bytes.len()).unwrap(), 0x01),
            Data::Transfer(bytes) => (u32::try_from(bytes.len()).unwrap(), 0x5A),
        };
        entry[32..36].copy_from_slice(&length.to_le_bytes());
        entry[39] = kind;
        for (index, dword) in self.dwords.iter().enumerate() {
            entry[40 + 4 * index..44 + 4 * index].copy_from_slice(&dword.to_le_bytes());
        }
        entry
    }
}

/// One queue of a host.
pub(crate) struct Host<W> {
    pub(crate) wire: W,
    pub(crate) digests: Digests,
    pub(crate) largest_data: usize,
    /// Host Identifier of its Connect.
    pub(crate) identifier: [u8; 16],
    next_id: u16,
}

impl Host<Inner> {
    /// The admin queue and an I/O queue of a host with this identifier.
    pub(crate) fn queues(subsystem: &Arc<Subsystem>, identifier: [u8; 16]) -> (Self, Self) {
        let open = || {
            let mut host = Self::open(Inner::new(subsystem), Digests::default(), 0);
            host.identifier = identifier;
            host
        };
        let (mut admin, mut queue) = (open(), open());
        let controller = admin.begin(subsystem.nqn());
        queue.begin_io((1, controller), subsystem.nqn(), true);
        (admin, queue)
    }
}

impl<W: Wire> Host<W> {
    /// Initializes the connection.
    pub(crate) fn open(mut wire: W, digests: Digests, alignment: u8) -> Self {
        let mut request = vec![0; 128];
        request[2] = 128;
        request[4..8].copy_from_slice(&128_u32.to_le_bytes());
        request[10] = alignment;
        request[11] = u8::from(digests.header) | u8::from(digests.data) << 1;
        wire.send(&request);
        let answer = wire.receive(128).expect("an ICResp");
        assert_eq!((answer[0], answer[2], answer[11]), (1, 128, request[11]));
        let largest_data = u32::from_le_bytes(answer[12..16].try_into().unwrap()) as usize;
        assert!(largest_data >= 4096, "{largest_data}");
        Self { wire, digests, largest_data, identifier: [7; 16], next_id: 1 }
    }

    /// A PDU with a header whose common part is put right, and data.
    pub(crate) fn pdu(&self, kind: u8, flags: u8, rest: &[u8], data: &[u8]) -> Vec<u8> {
        let Digests { header: has_header, data: has_data } = self.digests;
        let has_data = has_data && !data.is_empty();
        let header_bytes = 8 + rest.len();
        let head_bytes = header_bytes + if has_header { 4 } else { 0 };
        let length = head_bytes + data.len() + if has_data { 4 } else { 0 };
        let flags = flags | u8::from(has_header) | u8::from(has_data) << 1;
        let offset = if data.is_empty() { 0 } else { head_bytes };
        let mut pdu =
            vec![kind, flags, u8::try_from(header_bytes).unwrap(), u8::try_from(offset).unwrap()];
        pdu.extend(u32::try_from(length).unwrap().to_le_bytes());
        pdu.extend(rest);
        if has_header {
            pdu.extend(crc32c::crc32c(&pdu).to_le_bytes());
        }
        pdu.extend(data);
        if has_data {
            pdu.extend(crc32c::crc32c(data).to_le_bytes());
        }
        pdu
    }

    /// Receives a PDU and checks its digests.
    pub(crate) fn receive(&mut self) -> Option<Pdu> {
        let common = self.wire.receive(8)?;
        let header_bytes = usize::from(common[2]);
        let length = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut pdu = common;
        pdu.extend(self.wire.receive(length - 8)?);
        let is_termination = pdu[0] == 3;
        assert_eq!(pdu[1] & 1 == 1, self.digests.header && !is_termination, "{pdu:?}");
        if pdu[1] & 1 == 1 {
            let digest = &pdu[header_bytes..header_bytes + 4];
            assert_eq!(digest, crc32c::crc32c(&pdu[..header_bytes]).to_le_bytes());
        }
        let data = match pdu[0] {
            7 => {
                let end = length - if self.digests.data { 4 } else { 0 };
                let data = pdu[usize::from(pdu[3])..end].to_vec();
                assert_eq!(pdu[1] & 2 != 0, self.digests.data);
                if self.digests.data {
                    assert_eq!(pdu[end..], crc32c::crc32c(&data).to_le_bytes());
                }
                data
            }
            3 => pdu[24..].to_vec(),
            _ => Vec::new(),
        };
        pdu.truncate(header_bytes);
        Some(Pdu { header: pdu, data })
    }

    /// Sends a command without waiting. Returns its identifier.
    pub(crate) fn submit(&mut self, order: &Order<'_>) -> u16 {
        let id = self.next_id;
        self.next_id = self.next_id % 0xFFF0 + 1;
        let data: &[u8] = if let Data::Capsule(bytes) = order.data { bytes } else { &[] };
        let pdu = self.pdu(4, 0, &order.entry(id), data);
        self.wire.send(&pdu);
        id
    }

    /// Carries out a command.
    pub(crate) fn run(&mut self, order: &Order<'_>) -> Done {
        let id = self.submit(order);
        let transfer: &[u8] = if let Data::Transfer(bytes) = order.data { bytes } else { &[] };
        self.finish(id, transfer).expect("the server answers")
    }

    /// Answers requests to transfer, until the command is completed.
    pub(crate) fn finish(&mut self, id: u16, transfer: &[u8]) -> Option<Done> {
        let mut data = Vec::new();
        loop {
            let pdu = self.receive()?;
            match pdu.kind() {
                9 => {
                    let (tag, length) = (pdu.u16_at(10), pdu.u32_at(16) as usize);
                    assert_eq!((pdu.u16_at(8), pdu.u32_at(12)), (id, 0));
                    assert_eq!(length, transfer.len());
                    self.send_data((id, tag), transfer);
                }
                7 => {
                    assert_eq!(pdu.u16_at(8), id);
                    assert_eq!(pdu.u32_at(12) as usize, data.len());
                    data.extend(&pdu.data);
                    // SUCCESS: no completion follows.
                    if pdu.header[1] & 8 != 0 {
                        let done = Done {
                            id,
                            status: 0,
                            is_final: false,
                            has_more: false,
                            value: 0,
                            head: 0,
                            data,
                        };
                        return Some(done);
                    }
                }
                5 => return Some(done(&pdu, data)),
                other => panic!("a PDU of kind {other}"),
            }
        }
    }

    /// Sends data that the server asked for, in parts as large as it takes.
    pub(crate) fn send_data(&mut self, (id, tag): (u16, u16), data: &[u8]) {
        let mut at = 0;
        for part in data.chunks(self.largest_data) {
            let mut rest = [0; 16];
            rest[..2].copy_from_slice(&id.to_le_bytes());
            rest[2..4].copy_from_slice(&tag.to_le_bytes());
            rest[4..8].copy_from_slice(&u32::try_from(at).unwrap().to_le_bytes());
            rest[8..12].copy_from_slice(&u32::try_from(part.len()).unwrap().to_le_bytes());
            at += part.len();
            let last = if at == data.len() { 4 } else { 0 };
            let pdu = self.pdu(6, last, &rest, part);
            self.wire.send(&pdu);
        }
    }

    /// Connects a queue of so many entries; `attributes` are those of the command.
    pub(crate) fn connect(
        &mut self,
        (queue, controller): (u16, u16),
        (subsystem, host): (&str, &str),
        (entries, attributes): (u16, u8),
        keep_alive_ms: u32,
    ) -> Done {
        let mut data = vec![0; 1024];
        data[..16].copy_from_slice(&self.identifier);
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        data[512..512 + host.len()].copy_from_slice(host.as_bytes());
        let dwords = [
            u32::from(queue) << 16,
            u32::from(entries - 1) | u32::from(attributes) << 16,
            keep_alive_ms,
        ];
        // The type of the fabrics command stands where the namespace does.
        self.run(&Order::new(0x7F, 1, &dwords).with(Data::Capsule(&data)))
    }

    /// Connects the admin queue and enables the controller. Returns its identifier.
    pub(crate) fn begin(&mut self, subsystem: &str) -> u16 {
        let connected = self.connect((0, 0xFFFF), (subsystem, HOST_NQN), (32, 0), 0);
        assert_eq!(connected.status, 0, "{connected:?}");
        self.set_property(0x14, 0x0046_0001);
        assert_eq!(self.property(0x1C, false) & 1, 1, "ready");
        u16::try_from(connected.value & 0xFFFF).unwrap()
    }

    /// Connects I/O queue `queue` of a controller, of 128 entries; without flow control if so.
    pub(crate) fn begin_io(&mut self, place: (u16, u16), subsystem: &str, is_unpaced: bool) {
        let attributes = if is_unpaced { 4 } else { 0 };
        let done = self.connect(place, (subsystem, HOST_NQN), (128, attributes), 0);
        assert_eq!(done.status, 0, "{done:?}");
    }

    pub(crate) fn set_property(&mut self, offset: u32, value: u32) {
        let done = self.run(&Order::new(0x7F, 0, &[0, offset, value]));
        assert_eq!(done.status, 0, "{done:?}");
    }

    pub(crate) fn property(&mut self, offset: u32, is_long: bool) -> u64 {
        let done = self.run(&Order::new(0x7F, 4, &[u32::from(is_long), offset]));
        assert_eq!(done.status, 0, "{done:?}");
        done.value
    }

    /// An Identify structure.
    pub(crate) fn identify(&mut self, structure: u32, namespace: u32) -> Done {
        self.run(&Order::new(0x06, namespace, &[structure]).with(Data::In(4096)))
    }

    /// A log page of so many bytes.
    pub(crate) fn log(&mut self, page: u32, length: u32) -> Done {
        let dword = page | (length / 4 - 1) << 16;
        self.run(&Order::new(0x02, u32::MAX, &[dword]).with(Data::In(length)))
    }
}

/// The completion in a response capsule.
pub(crate) fn done(pdu: &Pdu, data: Vec<u8>) -> Done {
    assert_eq!(pdu.kind(), 5);
    let field = pdu.u16_at(22);
    Done {
        id: pdu.u16_at(20),
        status: field >> 1 & 0x7FF,
        has_more: field & 1 << 14 != 0,
        is_final: field & 1 << 15 != 0,
        value: u64::from(pdu.u32_at(8)) | u64::from(pdu.u32_at(12)) << 32,
        head: pdu.u16_at(16),
        data,
    }
}

/// A command for I/O on so many blocks.
pub(crate) fn io(opcode: u8, namespace: u32, lba: u64, blocks: u32) -> Order<'static> {
    let low = u32::try_from(lba & 0xFFFF_FFFF).unwrap();
    Order::new(opcode, namespace, &[low, u32::try_from(lba >> 32).unwrap(), blocks - 1])
}
