//! A virtual machine in miniature: memory, a monitor that speaks vfio-user, and an NVMe driver.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::message::{HEADER_BYTES, code};
use crate::descriptor_socket::{DescriptorSocket, Signal};
use crate::guest_memory::{GuestMemory, Place, memory_file};
use crate::nvme::DOORBELLS_AT;

pub(super) const MEMORY: u64 = 0x8000_0000;
pub(super) const MEMORY_BYTES: u64 = 32 << 20;
/// Entries of each queue.
pub(super) const ENTRIES: u32 = 16;
/// Places in the memory: queues in steps of a page, doorbell buffer, lists, data.
const QUEUES: u64 = MEMORY;
const BUFFER: u64 = MEMORY + 0x10_0000;
const LISTS: u64 = MEMORY + 0x20_0000;
pub(super) const DATA: u64 = MEMORY + 0x100_0000;
/// Bytes for the data of a command.
pub(super) const DATA_BYTES: u64 = 0x8_0000;
const PATIENCE: Duration = Duration::from_mins(2);

/// A queue pair of the driver.
#[derive(Default)]
struct Pair {
    tail: u32,
    head: u32,
    round: u32,
    next_id: u16,
    /// Commands under way.
    pending: BTreeMap<u16, usize>,
}

pub(super) struct Driver {
    pub(super) socket: DescriptorSocket,
    pub(super) memory: GuestMemory,
    pub(super) file: OwnedFd,
    vectors: Vec<Signal>,
    pairs: Vec<Pair>,
    has_buffer: bool,
    /// Doorbells that were rung, as messages.
    pub(super) rung: u64,
}

impl Driver {
    pub(super) fn connect(path: &Path) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let file = memory_file("guest", MEMORY_BYTES).unwrap();
        let mut memory = GuestMemory::default();
        let place = Place { address: MEMORY, size: MEMORY_BYTES, offset: 0 };
        memory.add(place, file.try_clone().unwrap()).unwrap();
        let vectors: Vec<Signal> = (0..4).map(|_| Signal::new().unwrap()).collect();
        let pairs = (0..4).map(|_| Pair::default()).collect();
        let socket = DescriptorSocket::new(socket.into());
        let mut it = Self { socket, memory, file, vectors, pairs, has_buffer: false, rung: 0 };
        let version = it.ask(code::VERSION, b"\0\0\x01\0{\"capabilities\":{}}\0", &[]).unwrap();
        assert_eq!(version[..4], [0, 0, 1, 0]);
        let mut body = words(&[32, 3]);
        body.extend([0, MEMORY, MEMORY_BYTES].iter().flat_map(|it: &u64| it.to_le_bytes()));
        let shared = it.file.try_clone().unwrap();
        it.ask(code::DMA_MAP, &body, &[shared.as_fd()]).unwrap();
        let events: Vec<_> =
            it.vectors.iter().map(|it| it.descriptor().try_clone().unwrap()).collect();
        let events: Vec<BorrowedFd<'_>> = events.iter().map(|it| it.as_fd()).collect();
        it.ask(code::DEVICE_SET_IRQS, &words(&[20, 4 | 32, 2, 0, 4]), &events).unwrap();
        it
    }

    /// Sends a command, and returns the body of its reply, or the number of an error.
    pub(super) fn ask(
        &mut self,
        code: u16,
        body: &[u8],
        files: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
        let size = u32::try_from(HEADER_BYTES + body.len()).unwrap();
        let mut bytes = vec![7, 0];
        bytes.extend(code.to_le_bytes());
        bytes.extend(words(&[size, 0, 0]));
        bytes.extend(body);
        self.socket.send(&bytes, files).unwrap();
        let mut header = [0; HEADER_BYTES];
        assert!(self.socket.receive(&mut header).unwrap(), "a reply");
        assert_eq!(header[..4], bytes[..4]);
        let number = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().unwrap());
        let mut body = vec![0; number(4) as usize - HEADER_BYTES];
        self.socket.receive(&mut body).unwrap();
        if number(8) & 0x20 != 0 { Err(number(12)) } else { Ok(body) }
    }

    pub(super) fn read_region(&mut self, region: u32, offset: u64, length: u32) -> Vec<u8> {
        let mut body = offset.to_le_bytes().to_vec();
        body.extend(words(&[region, length]));
        self.ask(code::REGION_READ, &body, &[]).unwrap()[16..].to_vec()
    }

    pub(super) fn write_region(&mut self, region: u32, offset: u64, bytes: &[u8]) {
        let mut body = offset.to_le_bytes().to_vec();
        body.extend(words(&[region, u32::try_from(bytes.len()).unwrap()]));
        body.extend(bytes);
        self.ask(code::REGION_WRITE, &body, &[]).unwrap();
    }

    pub(super) fn status(&mut self) -> u32 {
        u32::from_le_bytes(*self.read_region(0, 0x1C, 4).first_chunk().unwrap())
    }

    /// Enables the controller with its admin queue.
    pub(super) fn enable(&mut self) {
        self.write_region(0, 0x24, &words(&[(ENTRIES - 1) | ((ENTRIES - 1) << 16)]));
        self.write_region(0, 0x28, &queue(0).0.to_le_bytes());
        self.write_region(0, 0x30, &queue(0).1.to_le_bytes());
        self.write_region(0, 0x14, &words(&[4 << 20 | 6 << 16 | 1]));
        assert_eq!(self.status(), 1, "ready");
    }

    /// Creates an I/O queue pair.
    pub(super) fn create(&mut self, number: u32) {
        let (submissions, completions) = queue(number);
        let shape = number | (ENTRIES - 1) << 16;
        let create = |opcode, place: u64, rest| {
            let mut entry = command(opcode, 0, &[(10, shape), (11, rest)]);
            entry[24..32].copy_from_slice(&place.to_le_bytes());
            entry
        };
        assert_eq!(self.admin(&create(5, completions, number << 16 | 3)).0, 0);
        assert_eq!(self.admin(&create(1, submissions, number << 16 | 1)).0, 0);
    }

    /// Has doorbells lie in memory.
    pub(super) fn use_buffer(&mut self) {
        let mut entry = command(0x7C, 0, &[]);
        entry[24..32].copy_from_slice(&BUFFER.to_le_bytes());
        entry[32..40].copy_from_slice(&(BUFFER + 0x1000).to_le_bytes());
        assert_eq!(self.admin(&entry).0, 0);
        self.has_buffer = true;
    }

    /// Carries out an admin command. Returns its status and dword 0.
    pub(super) fn admin(&mut self, entry: &[u8; 64]) -> (u16, u32) {
        self.submit(0, *entry);
        self.ring(0);
        let (_, status, value) = self.wait(0);
        (status, value)
    }

    /// Puts a command into a queue, with a number of its own, which is returned.
    pub(super) fn submit(&mut self, number: u32, entry: [u8; 64]) -> u16 {
        let pending = &self.pairs[number as usize].pending;
        assert!(pending.len() + 1 < ENTRIES as usize, "the queue has room");
        self.force(number, entry)
    }

    /// Puts a command into a queue, however many commands are under way.
    pub(super) fn force(&mut self, number: u32, mut entry: [u8; 64]) -> u16 {
        let pair = &mut self.pairs[number as usize];
        let id = pair.next_id;
        pair.next_id = pair.next_id.wrapping_add(1);
        entry[2..4].copy_from_slice(&id.to_le_bytes());
        self.memory.write(queue(number).0 + u64::from(pair.tail) * 64, &entry).unwrap();
        pair.tail = (pair.tail + 1) % ENTRIES;
        pair.pending.insert(id, 0);
        id
    }

    /// Rings the doorbell of a queue's submissions, if the controller wants it rung.
    pub(super) fn ring(&mut self, number: u32) {
        let tail = self.pairs[number as usize].tail;
        self.ring_one(2 * number, tail);
    }

    /// Rings the doorbell of a queue's submissions by a message, and waits for no reply.
    pub(super) fn ring_blindly(&self, number: u32) {
        let mut body = (DOORBELLS_AT + 8 * u64::from(number)).to_le_bytes().to_vec();
        body.extend(words(&[0, 4, self.pairs[number as usize].tail]));
        let mut bytes = vec![7, 0];
        bytes.extend(code::REGION_WRITE.to_le_bytes());
        bytes.extend(words(&[u32::try_from(HEADER_BYTES + body.len()).unwrap(), 0, 0]));
        bytes.extend(body);
        // A server that polls may have dropped the client already.
        let sent = self.socket.send(&bytes, &[]);
        assert!(sent.is_ok() || sent.is_err_and(|it| it.kind() == io::ErrorKind::BrokenPipe));
    }

    fn ring_one(&mut self, index: u32, value: u32) {
        let offset = 4 * u64::from(index);
        if self.has_buffer && index >= 2 {
            let before = self.memory.load_u32(BUFFER + offset).unwrap();
            self.memory.store_u32(BUFFER + offset, value).unwrap();
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            let event = self.memory.load_u32(BUFFER + 0x1000 + offset).unwrap();
            let low = |number: u32| u16::try_from(number & 0xFFFF).unwrap();
            let passed = low(value).wrapping_sub(low(event)).wrapping_sub(1);
            if passed >= low(value).wrapping_sub(low(before)) {
                return;
            }
        }
        self.rung += 1;
        self.write_region(0, DOORBELLS_AT + offset, &words(&[value]));
    }

    /// True if a completion is there.
    pub(super) fn has_completed(&self, number: u32) -> bool {
        let pair = &self.pairs[number as usize];
        let place = queue(number).1 + u64::from(pair.head) * 16;
        let phase = u16::from(pair.round.is_multiple_of(2));
        self.memory.load_u16(place + 14).unwrap() & 1 == phase
    }

    /// Waits for a completion and makes room for another. Returns its command, status without the
    /// phase, and dword 0.
    pub(super) fn wait(&mut self, number: u32) -> (u16, u16, u32) {
        let taken = self.take(number);
        self.make_room(number);
        taken
    }

    /// Tells the controller that the completions that were taken may be overwritten.
    pub(super) fn make_room(&mut self, number: u32) {
        let head = self.pairs[number as usize].head;
        self.ring_one(2 * number + 1, head);
    }

    /// Waits for a completion, whose place stays occupied.
    pub(super) fn take(&mut self, number: u32) -> (u16, u16, u32) {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_completed(number) {
            assert!(Instant::now() < deadline, "it is never completed");
            std::thread::yield_now();
        }
        let place = queue(number).1 + u64::from(self.pairs[number as usize].head) * 16;
        let mut entry = [0; 16];
        self.memory.read(place, &mut entry).unwrap();
        let pair = &mut self.pairs[number as usize];
        pair.head = (pair.head + 1) % ENTRIES;
        pair.round += u32::from(pair.head == 0);
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        assert!(pair.pending.remove(&half(12)).is_some(), "it was asked for");
        assert_eq!(u32::from(half(10)), number);
        let value = u32::from_le_bytes(*entry.first_chunk().unwrap());
        (half(12), half(14) >> 1, value)
    }

    /// True if a vector was raised since the last call.
    pub(super) fn was_interrupted(&self, vector: usize) -> bool {
        let mut bytes = [0; 8];
        rustix::io::read(self.vectors[vector].descriptor(), &mut bytes).is_ok()
    }

    /// Gives a command pages for `length` bytes, from a place that begins in a page.
    pub(super) fn with_pages(&self, entry: &mut [u8; 64], (place, length): (u64, u64), list: u64) {
        entry[24..32].copy_from_slice(&place.to_le_bytes());
        let first = 4096 - place % 4096;
        let pages = length.saturating_sub(first).div_ceil(4096);
        let second = place - place % 4096 + 4096;
        if pages == 1 {
            entry[32..40].copy_from_slice(&second.to_le_bytes());
        } else if pages > 1 {
            let list = LISTS + list * 0x2000;
            for page in 0..pages {
                let at = list + 8 * page;
                self.memory.write(at, &(second + page * 4096).to_le_bytes()).unwrap();
            }
            entry[32..40].copy_from_slice(&list.to_le_bytes());
        }
    }

    /// A command to move `blocks` blocks of 512 bytes from or to slot `slot` of the data.
    pub(super) fn moves(&self, opcode: u8, lba: u64, blocks: u32, slot: u64) -> [u8; 64] {
        let low = u32::try_from(lba & 0xFFFF_FFFF).unwrap();
        let high = u32::try_from(lba >> 32).unwrap();
        let mut entry = command(opcode, 1, &[(10, low), (11, high), (12, blocks - 1)]);
        self.with_pages(&mut entry, (place(slot), u64::from(blocks) * 512), slot);
        entry
    }

    /// Carries out one command of queue 1. Returns its status.
    pub(super) fn run(&mut self, entry: [u8; 64]) -> u16 {
        let id = self.submit(1, entry);
        self.ring(1);
        let (done, status, _) = self.wait(1);
        assert_eq!(done, id);
        status
    }
}

/// Place of the data of a slot, which begins within a page.
pub(super) const fn place(slot: u64) -> u64 {
    DATA + slot * DATA_BYTES + 512
}

/// Places of a queue's submissions and completions.
const fn queue(number: u32) -> (u64, u64) {
    let base = QUEUES + number as u64 * 0x2000;
    (base, base + 0x1000)
}

/// A command with these dwords.
pub(super) fn command(opcode: u8, namespace: u32, dwords: &[(usize, u32)]) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry[4..8].copy_from_slice(&namespace.to_le_bytes());
    for (number, value) in dwords {
        entry[4 * number..][..4].copy_from_slice(&value.to_le_bytes());
    }
    entry
}

pub(super) fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
