//! A virtual machine in miniature: memory, a monitor that speaks vhost-user, and a driver of
//! virtio-blk for rings of both layouts.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::super::message::{HEADER_BYTES, code};
use super::super::ring::SIZE_MAX;
use crate::descriptor_socket::{DescriptorSocket, Signal};
use crate::guest_memory::{GuestMemory, Place, memory_file};

pub(super) const MEMORY: u64 = 0x4000_0000;
pub(super) const MEMORY_BYTES: u64 = 24 << 20;
/// Address of the memory in the monitor's own process.
const USER: u64 = 0x7000_0000_0000;
const DESCRIPTORS: u64 = MEMORY;
const DRIVER: u64 = MEMORY + 0x8000;
const DEVICE: u64 = MEMORY + 0x1_0000;
const HEADERS: u64 = MEMORY + 0x2_0000;
const TABLES: u64 = MEMORY + 0x4_0000;
pub(super) const DATA: u64 = MEMORY + 0x10_0000;
/// Bytes for the data of a request.
pub(super) const DATA_BYTES: usize = 1 << 18;
pub(super) const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 << 28 | 1 << 9 | 1 << 13 | 1 << 14;
pub(super) const PACKED: u64 = 1 << 34;
pub(super) const EVENT_INDEX: u64 = 1 << 29;
pub(super) const SIZE: u16 = 64;

/// A request of a driver.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kind: u32,
    pub(super) sector: u64,
    pub(super) out: Vec<u8>,
    pub(super) in_bytes: usize,
    pub(super) is_indirect: bool,
}

pub(super) struct Driver {
    pub(super) socket: DescriptorSocket,
    pub(super) memory: GuestMemory,
    pub(super) file: OwnedFd,
    /// Memory for requests in flight, and the body of the message that describes it.
    pub(super) inflight: Option<(OwnedFd, Vec<u8>)>,
    pub(super) kick: Signal,
    call: Signal,
    features: u64,
    /// Requests by identifier: bytes that are read, slots of the ring.
    pending: BTreeMap<u16, (usize, u16)>,
    next: u16,
    next_used: u16,
    /// Free slots of a packed ring.
    free: u16,
}

impl Driver {
    pub(super) fn connect(path: &Path, features: u64) -> Self {
        let file = memory_file("guest", MEMORY_BYTES).unwrap();
        let mut memory = GuestMemory::default();
        let place = Place { address: MEMORY, size: MEMORY_BYTES, offset: 0 };
        memory.add(place, file.try_clone().unwrap()).unwrap();
        let (kick, call) = (Signal::new().unwrap(), Signal::new().unwrap());
        let driver = Self {
            socket: connected(path),
            memory,
            file,
            inflight: None,
            kick,
            call,
            features,
            pending: BTreeMap::new(),
            next: 0,
            next_used: 0,
            free: SIZE,
        };
        driver.agree();
        driver
    }

    /// Goes on with the next server at `path`, with its memory as it is.
    pub(super) fn reconnect(&mut self, path: &Path) {
        self.socket = connected(path);
        self.agree();
        if let Some((file, body)) = &self.inflight {
            self.send(code::SET_INFLIGHT_FD, body, Some(file));
        }
        let (position, is_odd) = (self.next_used % SIZE, (self.next_used / SIZE).is_multiple_of(2));
        let base = u32::from(position) | u32::from(is_odd) << 15;
        let is_packed = self.features & PACKED != 0;
        self.start_at(if is_packed { base | base << 16 } else { self.next_used.into() });
    }

    fn agree(&self) {
        self.set_u64(code::SET_FEATURES, self.features);
        self.set_u64(code::SET_PROTOCOL_FEATURES, 1 | 1 << 3 | 1 << 9 | 1 << 12);
        let numbers = [1, MEMORY, MEMORY_BYTES, USER, 0];
        self.send(code::SET_MEM_TABLE, &words(&numbers), Some(&self.file));
    }

    /// Keeps memory for requests in flight, as a client does that may reconnect.
    pub(super) fn keep_inflight(&mut self) {
        let mut asked = words(&[0, 0]);
        asked.extend(1_u16.to_le_bytes());
        asked.extend(SIZE.to_le_bytes());
        let body = self.ask(code::GET_INFLIGHT_FD, &asked);
        let file = self.socket.take_descriptor().expect("it comes with its memory");
        self.inflight = Some((file, body));
    }

    /// Has ring 0 served.
    pub(super) fn start(&mut self) {
        let base = if self.features & PACKED != 0 { 0x8000_8000 } else { 0 };
        self.start_at(base);
    }

    pub(super) fn start_at(&mut self, base: u32) {
        self.start_of(SIZE, base);
    }

    /// Has ring 0 served with so many entries, which this driver may not use.
    pub(super) fn start_of(&mut self, size: u16, base: u32) {
        self.set_pair(code::SET_VRING_NUM, size.into());
        let user = |address: u64| address - MEMORY + USER;
        let places = [0, user(DESCRIPTORS), user(DEVICE), user(DRIVER), 0];
        self.send(code::SET_VRING_ADDR, &words(&places), None);
        self.set_pair(code::SET_VRING_BASE, base);
        let call = self.call.descriptor().try_clone().unwrap();
        self.send(code::SET_VRING_CALL, &words(&[0]), Some(&call));
        let kick = self.kick.descriptor().try_clone().unwrap();
        self.send(code::SET_VRING_KICK, &words(&[0]), Some(&kick));
        self.set_pair(code::SET_VRING_ENABLE, 1);
    }

    /// Waits for a notification of the device, and takes it. Returns whether one came.
    pub(super) fn is_called(&self) -> bool {
        let call = DescriptorSocket::new(self.call.descriptor().try_clone().unwrap());
        let is_called = call.wait(Some(std::time::Duration::from_mins(2))).unwrap();
        self.call.clear();
        is_called
    }

    /// Takes notifications at another event from now on.
    pub(super) fn change_call(&mut self) {
        self.call = Signal::new().unwrap();
        let call = self.call.descriptor().try_clone().unwrap();
        self.send(code::SET_VRING_CALL, &words(&[0]), Some(&call));
    }

    fn set_u64(&self, code: u32, number: u64) {
        self.send(code, &words(&[number]), None);
    }

    pub(super) fn set_pair(&self, code: u32, number: u32) {
        self.send(code, &words(&[u64::from(number) << 32]), None);
    }

    /// Sends a message.
    pub(super) fn send(&self, code: u32, body: &[u8], file: Option<&OwnedFd>) {
        let mut bytes = Vec::new();
        for number in [code, 1, u32::try_from(body.len()).unwrap()] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(body);
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        // A server that dropped us takes nothing.
        let _ = self.socket.send(&bytes, &files);
    }

    /// Sends a message, and returns the body of its answer.
    pub(super) fn ask(&mut self, code: u32, body: &[u8]) -> Vec<u8> {
        self.send(code, body, None);
        let mut header = [0; HEADER_BYTES];
        assert!(self.socket.receive(&mut header).unwrap(), "an answer");
        let size = u32::from_le_bytes(*header[8..].first_chunk().unwrap());
        let mut body = vec![0; size as usize];
        self.socket.receive(&mut body).unwrap();
        body
    }

    /// Makes a request available, without the notification of [`Driver::ring_bell`].
    pub(super) fn submit(&mut self, request: &Request) -> u16 {
        let id = (0..12).find(|id| !self.pending.contains_key(id)).expect("there is room");
        self.submit_as(id, request);
        id
    }

    /// Makes a request available by an identifier, also if a request with it is under way.
    pub(super) fn submit_as(&mut self, id: u16, request: &Request) {
        let header = HEADERS + u64::from(id) * 64;
        let data = DATA + u64::from(id) * DATA_BYTES as u64;
        let mut head = request.kind.to_le_bytes().to_vec();
        head.extend([0; 4]);
        head.extend(request.sector.to_le_bytes());
        self.memory.write(header, &head).unwrap();
        self.memory.write(header + 16, &[0xFF]).unwrap();
        self.memory.write(data, &request.out).unwrap();
        let mut parts = vec![(header, 16, 0)];
        if !request.out.is_empty() {
            // In two buffers, cut where no sector ends.
            let cut = request.out.len() / 3;
            parts.push((data, cut, 0));
            parts.push((data + cut as u64, request.out.len() - cut, 0));
        }
        if request.in_bytes > 0 {
            parts.push((data, request.in_bytes, 2));
        }
        parts.push((header + 16, 1, 2));
        if request.is_indirect {
            let table = TABLES + u64::from(id) * 128;
            self.table(table, &parts);
            parts = vec![(table, parts.len() * 16, 4)];
        }
        let slots = u16::try_from(parts.len()).unwrap();
        self.pending.insert(id, (request.in_bytes, slots));
        if self.features & PACKED != 0 {
            self.submit_packed(id, &parts);
        } else {
            self.submit_split(id, &parts);
        }
    }

    /// A table of descriptors: linked in a split ring.
    fn table(&self, place: u64, parts: &[(u64, usize, u16)]) {
        for (index, (address, length, flags)) in (0_u16..).zip(parts) {
            let is_last = usize::from(index) + 1 == parts.len();
            let next = u16::from(!(self.features & PACKED != 0 || is_last));
            let tag = if self.features & PACKED != 0 { 0 } else { index + 1 };
            let (flags, tag) = (flags | next, tag);
            let bytes = self.descriptor(*address, *length, flags, tag);
            self.memory.write(place + u64::from(index) * 16, &bytes).unwrap();
        }
    }

    fn descriptor(&self, address: u64, length: usize, flags: u16, tag: u16) -> Vec<u8> {
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(u32::try_from(length).unwrap().to_le_bytes());
        let is_packed = self.features & PACKED != 0;
        for number in if is_packed { [tag, flags] } else { [flags, tag] } {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    fn submit_split(&mut self, id: u16, parts: &[(u64, usize, u16)]) {
        let first = id * 3 % SIZE;
        for (index, (address, length, flags)) in (0_u16..).zip(parts) {
            let is_last = usize::from(index) + 1 == parts.len();
            let flags = flags | u16::from(!is_last);
            // The head has the request's number; others lie behind all heads.
            let slot = if index == 0 { id } else { 20 + (first + index) % (SIZE - 20) };
            let next = 20 + (first + index + 1) % (SIZE - 20);
            let bytes = self.descriptor(*address, *length, flags, next);
            self.memory.write(DESCRIPTORS + u64::from(slot) * 16, &bytes).unwrap();
        }
        let place = DRIVER + 4 + 2 * u64::from(self.next % SIZE);
        self.memory.store_u16(place, id).unwrap();
        self.next = self.next.wrapping_add(1);
        self.memory.store_u16(DRIVER + 2, self.next).unwrap();
    }

    fn submit_packed(&mut self, id: u16, parts: &[(u64, usize, u16)]) {
        let count = u16::try_from(parts.len()).unwrap();
        assert!(count <= self.free, "the ring has room");
        self.free -= count;
        for index in (0..count).rev() {
            let (address, length, flags) = parts[usize::from(index)];
            let position = self.next.wrapping_add(index);
            let (slot, is_odd) = (position % SIZE, (position / SIZE).is_multiple_of(2));
            let more = u16::from(index + 1 < count);
            let flags = flags | more | if is_odd { 1 << 7 } else { 1 << 15 };
            let bytes = self.descriptor(address, length, flags, id);
            let place = DESCRIPTORS + u64::from(slot) * 16;
            self.memory.write(place, &bytes[..14]).unwrap();
            self.memory.store_u16(place + 14, flags).unwrap();
        }
        self.next = self.next.wrapping_add(count);
    }

    pub(super) fn ring_bell(&self) {
        self.kick.raise();
    }

    /// Waits for a used request. Returns its identifier, status and data.
    pub(super) fn wait(&mut self) -> (u16, u8, Vec<u8>) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let id = loop {
            if let Some(id) = self.used() {
                break id;
            }
            assert!(std::time::Instant::now() < deadline, "it is never used");
            std::thread::yield_now();
        };
        let (in_bytes, slots) = self.pending.remove(&id).expect("it was asked for");
        self.free += if self.features & PACKED != 0 { slots } else { 0 };
        let mut status = [0];
        self.memory.read(HEADERS + u64::from(id) * 64 + 16, &mut status).unwrap();
        let mut data = vec![0; in_bytes];
        self.memory.read(DATA + u64::from(id) * DATA_BYTES as u64, &mut data).unwrap();
        (id, status[0], data)
    }

    fn used(&mut self) -> Option<u16> {
        let position = self.next_used;
        if self.features & PACKED != 0 {
            let place = DESCRIPTORS + u64::from(position % SIZE) * 16;
            let flags = self.memory.load_u16(place + 14).unwrap();
            let is_odd = (position / SIZE).is_multiple_of(2);
            if (flags & 1 << 7 != 0) != is_odd || (flags & 1 << 15 != 0) != is_odd {
                return None;
            }
            let id = self.memory.load_u16(place + 12).unwrap();
            self.next_used = position.wrapping_add(self.pending[&id].1);
            return Some(id);
        }
        if self.memory.load_u16(DEVICE + 2).unwrap() == position {
            return None;
        }
        let place = DEVICE + 4 + 8 * u64::from(position % SIZE);
        self.next_used = position.wrapping_add(1);
        Some(self.memory.load_u16(place).unwrap())
    }

    /// Carries one request out.
    pub(super) fn run(&mut self, request: &Request) -> (u8, Vec<u8>) {
        let id = self.submit(request);
        self.ring_bell();
        let (done, status, data) = self.wait();
        assert_eq!(done, id);
        (status, data)
    }
}

fn connected(path: &Path) -> DescriptorSocket {
    let socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_mins(2))).unwrap();
    DescriptorSocket::new(socket.into())
}

/// Numbers as a message has them.
pub(super) fn words(numbers: &[u64]) -> Vec<u8> {
    const { assert!(SIZE <= SIZE_MAX) };
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
