//! One client of vhost-user: a virtual machine monitor, which sets up memory and rings.
//!
//! ```text
//!   features ──► memory ──► for each ring: size, place, position, events ──► served
//!                                  GET_VRING_BASE, or the end of the connection ──► stopped
//! ```
//!
//! The thread of the client owns all of it; each ring that is served has a thread of its own.

use std::io;
use std::mem;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::block::{RANGE_SECTORS_MAX, RANGES_MAX, SEGMENTS_MAX};
use super::inflight::{self, Inflight};
use super::message::{self, HEADER_BYTES, Message, code, protocol_feature};
use super::queue::{Common, Parts, Queue};
use super::ring::{Layout, PackedRing, Ring, SIZE_MAX, SplitRing};
use crate::descriptor_socket::{DescriptorSocket, Signal};
use crate::guest_memory::{GuestMemory, Place, memory_file};
use crate::little_endian::{u16_at, u32_at, u64_at};
use crate::shared_mapping::SharedMapping;
use crate::vm_listener::{Break, Handshake};

/// Most rings.
const RINGS_MAX: u16 = 64;
/// Most regions of the memory.
const REGIONS_MAX: usize = 509;
/// Bytes of the configuration that a driver reads.
const CONFIG_BYTES: usize = 60;
/// Place in it of whether the device may cache writes.
const WRITEBACK_AT: u32 = 32;
/// Time from one look at the size of the device to the next.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a memory region description in a message.
const REGION_BYTES: usize = 32;
/// Flag of a message about an event: none comes with it.
const NO_EVENT: u64 = 1 << 8;

/// Feature bits (sections 5.2.3 and 6).
mod feature {
    pub(super) const SEGMENTS_MAX: u64 = 1 << 2;
    pub(super) const READ_ONLY: u64 = 1 << 5;
    pub(super) const BLOCK_SIZE: u64 = 1 << 6;
    pub(super) const FLUSH: u64 = 1 << 9;
    pub(super) const TOPOLOGY: u64 = 1 << 10;
    pub(super) const CONFIG_WRITEBACK: u64 = 1 << 11;
    pub(super) const QUEUES: u64 = 1 << 12;
    pub(super) const DISCARD: u64 = 1 << 13;
    pub(super) const WRITE_ZEROES: u64 = 1 << 14;
    pub(super) const INDIRECT: u64 = 1 << 28;
    pub(super) const EVENT_INDEX: u64 = 1 << 29;
    pub(super) const PROTOCOL: u64 = 1 << 30;
    pub(super) const VERSION_1: u64 = 1 << 32;
    pub(super) const PACKED: u64 = 1 << 34;
}

/// The server's side of one client.
pub(super) struct Client {
    socket: DescriptorSocket,
    /// Channel for messages to the client: that its configuration changed.
    events: Option<DescriptorSocket>,
    common: Arc<Common>,
    memory: Vec<MappedRegion>,
    features: u64,
    protocol_features: u64,
    rings: Vec<RingState>,
    /// Memory for descriptors in flight, and the entries of the largest ring that it has room for.
    inflight: Option<(Arc<SharedMapping>, u16)>,
    /// Size of the device that the client knows.
    size: u64,
    /// Handshake until it is complete.
    handshake: Option<Handshake>,
}

/// A memory region. The addresses of rings are in the address space of the client's process.
#[derive(Clone, Copy)]
struct MappedRegion {
    place: Place,
    user: u64,
}

#[derive(Default)]
struct RingState {
    layout: Layout,
    has_layout: bool,
    base: u32,
    kick: Option<Arc<Signal>>,
    call: Option<OwnedFd>,
    is_enabled: bool,
    queue: Option<Queue>,
}

/// Answer to a message.
enum Reply {
    /// Nothing of its own; an acknowledgement where the client wants one.
    Done,
    Bytes(Vec<u8>),
    WithFile(Vec<u8>, OwnedFd),
}

fn violated(what: &str) -> Break {
    Break::Violation(what.to_owned())
}

impl Client {
    pub(super) fn new(
        mut socket: DescriptorSocket,
        common: Arc<Common>,
        handshake: Handshake,
    ) -> Self {
        socket.set_deadline(Some(handshake.deadline()));
        let size = common.block.export().device.size();
        Self {
            socket,
            events: None,
            common,
            memory: Vec::new(),
            features: 0,
            protocol_features: 0,
            rings: (0..RINGS_MAX).map(|_| RingState::default()).collect(),
            inflight: None,
            size,
            handshake: Some(handshake),
        }
    }

    /// Serves the client until it goes.
    pub(super) fn serve(&mut self) -> Result<(), Break> {
        loop {
            if !self.socket.wait(Some(LOOK_EVERY))? {
                self.look()?;
                continue;
            }
            let Some(message) = self.receive()? else { break };
            let done = self.carry_out(&message);
            self.socket.drop_descriptors();
            let has_acknowledgements = self.protocol_features & protocol_feature::REPLY_ACK != 0;
            let done = done?;
            // A monitor owns the device from its start; the driver's features may come much later.
            let is_owned = [code::SET_OWNER, code::SET_FEATURES].contains(&message.code);
            if let Some(handshake) = self.handshake.take_if(|_| is_owned) {
                handshake.complete()?;
                self.socket.set_deadline(None);
            }
            match done {
                Reply::Bytes(body) => {
                    self.socket.send(&message::reply(message.code, &body), &[])?;
                }
                Reply::WithFile(body, file) => {
                    self.socket.send(&message::reply(message.code, &body), &[file.as_fd()])?;
                }
                Reply::Done if message.needs_reply && has_acknowledgements => {
                    self.socket.send(&message::reply(message.code, &[0; 8]), &[])?;
                }
                Reply::Done => {}
            }
        }
        self.failed()
    }

    /// Stops all rings.
    pub(super) fn end(&mut self) {
        for ring in &mut self.rings {
            ring.queue.take().map(Queue::stop);
        }
    }

    fn receive(&mut self) -> Result<Option<Message>, Break> {
        let mut header = [0; HEADER_BYTES];
        if !self.socket.receive(&mut header)? {
            return Ok(None);
        }
        let parsed = message::parse_header(&header);
        let (mut message, size) = parsed.ok_or_else(|| violated("an invalid message header"))?;
        message.body = vec![0; size];
        if size > 0 && !self.socket.receive(&mut message.body)? {
            return Err(violated("a truncated message"));
        }
        Ok(Some(message))
    }

    /// Drops the client if one of its rings failed; notifies it of another size of the device.
    fn look(&mut self) -> Result<(), Break> {
        self.failed()?;
        let size = self.common.block.export().device.size();
        if mem::replace(&mut self.size, size) != size
            && let Some(events) = &self.events
        {
            events.send(&message::config_changed(), &[])?;
        }
        Ok(())
    }

    fn failed(&self) -> Result<(), Break> {
        let failure = self.common.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.clone().map_or(Ok(()), |reason| Err(Break::Violation(reason)))
    }

    fn carry_out(&mut self, message: &Message) -> Result<Reply, Break> {
        match message.code {
            code::GET_FEATURES => Ok(bytes_of(self.offered())),
            code::SET_FEATURES => self.set_features(message),
            code::GET_PROTOCOL_FEATURES => {
                let offered = protocol_feature::QUEUES
                    | protocol_feature::REPLY_ACK
                    | protocol_feature::BACKEND_REQUESTS
                    | protocol_feature::CONFIG
                    | protocol_feature::INFLIGHT
                    | protocol_feature::RESET_DEVICE
                    | protocol_feature::MEMORY_SLOTS;
                Ok(bytes_of(offered))
            }
            code::SET_PROTOCOL_FEATURES => {
                self.protocol_features = u64_at(&message.body, 0).ok_or_else(short)?;
                Ok(Reply::Done)
            }
            code::SET_OWNER => Ok(Reply::Done),
            code::RESET_OWNER | code::RESET_DEVICE => {
                self.end();
                self.rings = (0..RINGS_MAX).map(|_| RingState::default()).collect();
                Ok(Reply::Done)
            }
            code::SET_MEM_TABLE => self.set_memory(message),
            code::ADD_MEM_REG => self.add_memory(message),
            code::REM_MEM_REG => self.remove_memory(message),
            code::GET_MAX_MEM_SLOTS => Ok(bytes_of(REGIONS_MAX as u64)),
            code::GET_QUEUE_NUM => Ok(bytes_of(RINGS_MAX.into())),
            code::GET_CONFIG => self.config(message),
            code::SET_CONFIG => self.set_config(message),
            code::SET_BACKEND_REQ_FD => {
                let descriptor = self.socket.take_descriptor();
                self.events = descriptor.map(DescriptorSocket::new);
                Ok(Reply::Done)
            }
            code::GET_INFLIGHT_FD => self.inflight(message),
            code::SET_INFLIGHT_FD => self.set_inflight(message),
            _ => self.carry_out_of_ring(message),
        }
    }

    /// Carries out a message about a ring.
    fn carry_out_of_ring(&mut self, message: &Message) -> Result<Reply, Break> {
        let first = u32_at(&message.body, 0).ok_or_else(short)?;
        let is_event = matches!(
            message.code,
            code::SET_VRING_KICK | code::SET_VRING_CALL | code::SET_VRING_ERR
        );
        let index = if is_event { first & 0xFF } else { first } as usize;
        if index >= self.rings.len() {
            return Err(Break::Violation(format!("ring {index} of {RINGS_MAX}")));
        }
        let number = || u32_at(&message.body, 4).ok_or_else(short);
        match message.code {
            code::SET_VRING_NUM => {
                let size = u16::try_from(number()?).ok().filter(|it| (1..=SIZE_MAX).contains(it));
                let size = size.ok_or_else(|| violated("a ring of more than 1024 entries"))?;
                self.rings[index].layout.size = size;
            }
            code::SET_VRING_BASE => self.rings[index].base = number()?,
            code::SET_VRING_ADDR => self.set_place(index, message)?,
            code::SET_VRING_ENABLE => self.rings[index].is_enabled = number()? != 0,
            code::SET_VRING_KICK => {
                self.stop(index);
                let kick = self.event(message)?.map(Signal::of).map(Arc::new);
                let has_protocol = self.features & feature::PROTOCOL != 0;
                let ring = &mut self.rings[index];
                ring.kick = kick;
                // Without the protocol's own features a ring is enabled once it has its event.
                ring.is_enabled |= !has_protocol;
            }
            code::SET_VRING_CALL => {
                let call = self.event(message)?;
                let ring = &mut self.rings[index];
                ring.call = call;
                if let Some(queue) = &ring.queue {
                    queue.set_call(call_of(ring.call.as_ref())?);
                }
            }
            code::SET_VRING_ERR => {}
            code::GET_VRING_BASE => {
                self.stop(index);
                let ring = &mut self.rings[index];
                ring.kick = None;
                let is_packed = self.features & feature::PACKED != 0;
                let base = if is_packed { ring.base } else { ring.base & 0xFFFF };
                let mut body = first.to_le_bytes().to_vec();
                body.extend(base.to_le_bytes());
                return Ok(Reply::Bytes(body));
            }
            other => return Err(Break::Violation(format!("message {other} is unknown"))),
        }
        self.serve_ring(index)?;
        Ok(Reply::Done)
    }

    /// The event that came with a message, unless it says that none does.
    fn event(&mut self, message: &Message) -> Result<Option<OwnedFd>, Break> {
        if u64_at(&message.body, 0).ok_or_else(short)? & NO_EVENT != 0 {
            return Ok(None);
        }
        let event = self.socket.take_descriptor();
        event.map(Some).ok_or_else(|| violated("an event without its descriptor"))
    }

    fn set_place(&mut self, index: usize, message: &Message) -> Result<(), Break> {
        let place = |at| u64_at(&message.body, at).ok_or_else(short);
        let (descriptors, used, available) = (place(8)?, place(16)?, place(24)?);
        let layout = Layout {
            size: self.rings[index].layout.size,
            descriptors: self.guest_address(descriptors)?,
            driver: self.guest_address(available)?,
            device: self.guest_address(used)?,
        };
        if self.rings[index].layout != layout {
            self.stop(index);
        }
        (self.rings[index].layout, self.rings[index].has_layout) = (layout, true);
        Ok(())
    }

    /// The address that the virtual machine has for one of the client's process.
    fn guest_address(&self, user: u64) -> Result<u64, Break> {
        let within =
            |it: &&MappedRegion| user.checked_sub(it.user).is_some_and(|at| at < it.place.size);
        let mapped = self.memory.iter().find(within);
        let address = mapped.map(|it| it.place.address + (user - it.user));
        address.ok_or_else(|| violated("a ring outside of the memory"))
    }

    /// Starts or stops to serve a ring, as its state says.
    fn serve_ring(&mut self, index: usize) -> Result<(), Break> {
        let ring = &self.rings[index];
        let is_ready = ring.has_layout && ring.layout.size > 0 && ring.is_enabled;
        let Some(kick) = ring.kick.clone().filter(|_| is_ready) else {
            self.stop(index);
            return Ok(());
        };
        if ring.queue.is_some() {
            return Ok(());
        }
        let (layout, has_event_index) = (ring.layout, self.features & feature::EVENT_INDEX != 0);
        let memory = self.memory_now();
        let mut base = ring.base;
        let mut own = if self.features & feature::PACKED != 0 {
            Ring::Packed(PackedRing::new(layout, has_event_index))
        } else {
            // What was used is in the memory.
            let used = memory.load_u16(layout.device.wrapping_add(2));
            let used = used.map_err(|outside| Break::Violation(outside.to_string()))?;
            base = base & 0xFFFF | u32::from(used) << 16;
            Ring::Split(SplitRing::new(layout, has_event_index))
        };
        own.set_base(base);
        let inflight = match &self.inflight {
            Some((_, size)) if layout.size > *size => {
                return Err(violated(
                    "a ring that is larger than the memory for descriptors in flight",
                ));
            }
            Some((mapping, size)) => Inflight::of(mapping, index, *size),
            None => None,
        };
        let call = call_of(ring.call.as_ref())?;
        let parts = Parts { ring: own, inflight, kick, call };
        let queue = Queue::start(Arc::clone(&self.common), parts)?;
        self.rings[index].queue = Some(queue);
        Ok(())
    }

    fn stop(&mut self, index: usize) {
        let ring = &mut self.rings[index];
        if let Some(queue) = ring.queue.take() {
            ring.base = queue.stop();
        }
    }

    fn offered(&self) -> u64 {
        let export = self.common.block.export();
        let is_read_only = export.refuses_changes();
        let access = if is_read_only {
            feature::READ_ONLY
        } else {
            feature::DISCARD | feature::WRITE_ZEROES
        };
        let is_cached = !export.device.is_write_through();
        let writeback = if is_read_only { 0 } else { feature::CONFIG_WRITEBACK };
        let cache = if is_cached { feature::FLUSH | writeback } else { 0 };
        access
            | cache
            | feature::SEGMENTS_MAX
            | feature::BLOCK_SIZE
            | feature::TOPOLOGY
            | feature::QUEUES
            | feature::INDIRECT
            | feature::EVENT_INDEX
            | feature::PROTOCOL
            | feature::VERSION_1
            | feature::PACKED
    }

    fn set_features(&mut self, message: &Message) -> Result<Reply, Break> {
        let wanted = u64_at(&message.body, 0).ok_or_else(short)?;
        if wanted & !self.offered() != 0 {
            return Err(violated("features that were not offered"));
        }
        self.features = wanted;
        // A driver without the flush feature expects every completed write to be durable.
        self.common.block.set_writes_through(wanted & feature::FLUSH == 0);
        Ok(Reply::Done)
    }

    fn memory_now(&self) -> Arc<GuestMemory> {
        let memory = self.common.memory.lock();
        Arc::clone(&memory.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn use_memory(&self, memory: GuestMemory) {
        let now = self.common.memory.lock();
        *now.unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(memory);
    }

    fn set_memory(&mut self, message: &Message) -> Result<Reply, Break> {
        let count = u32_at(&message.body, 0).ok_or_else(short)?;
        if count as usize > 8 {
            return Err(violated("more than eight memory regions in a message"));
        }
        let (mut memory, mut parts) = (GuestMemory::default(), Vec::new());
        for index in 0..count as usize {
            parts.push(self.map(&mut memory, message, 8 + index * REGION_BYTES)?);
        }
        self.memory = parts;
        self.use_memory(memory);
        Ok(Reply::Done)
    }

    fn add_memory(&mut self, message: &Message) -> Result<Reply, Break> {
        if self.memory.len() >= REGIONS_MAX {
            return Err(violated("more than 509 memory regions"));
        }
        let mut memory = GuestMemory::clone(&self.memory_now());
        let mapped = self.map(&mut memory, message, 8)?;
        self.memory.push(mapped);
        self.use_memory(memory);
        Ok(Reply::Done)
    }

    fn remove_memory(&mut self, message: &Message) -> Result<Reply, Break> {
        let place = part_at(message, 8).ok_or_else(short)?.place;
        let mut memory = GuestMemory::clone(&self.memory_now());
        if !memory.remove(place.address, place.size) {
            return Err(violated("a memory region is to be removed that does not exist"));
        }
        self.memory.retain(|it| it.place.address != place.address);
        self.use_memory(memory);
        Ok(Reply::Done)
    }

    /// Maps the memory region that is described at an offset of a message.
    fn map(
        &mut self,
        memory: &mut GuestMemory,
        message: &Message,
        at: usize,
    ) -> Result<MappedRegion, Break> {
        let mapped = part_at(message, at).ok_or_else(short)?;
        let file = self.socket.take_descriptor();
        let file = file.ok_or_else(|| violated("memory without its descriptor"))?;
        memory.add(mapped.place, file).map_err(|error| Break::Violation(error.to_string()))?;
        Ok(mapped)
    }

    /// The configuration, or a part of it.
    fn config(&self, message: &Message) -> Result<Reply, Break> {
        let (offset, length) = range_of(message)?;
        let whole = self.whole_config();
        let mut body = message.body[..12].to_vec();
        // Bytes beyond its end read as zeroes.
        let byte = |index: usize| whole.get(offset + index).copied().unwrap_or(0);
        body.extend((0..length).map(byte));
        Ok(Reply::Bytes(body))
    }

    fn whole_config(&self) -> [u8; CONFIG_BYTES] {
        let mut config = [0; CONFIG_BYTES];
        let mut put = |at: usize, bytes: &[u8]| config[at..][..bytes.len()].copy_from_slice(bytes);
        let device = &self.common.block.export().device;
        put(0, &(device.size() / 512).to_le_bytes());
        put(12, &SEGMENTS_MAX.to_le_bytes());
        put(20, &512_u32.to_le_bytes());
        // Topology: an atomic unit is the physical block, and the smallest good write.
        let exponent = device.atomic_bytes().trailing_zeros().saturating_sub(9);
        put(24, &[u8::try_from(exponent).unwrap_or(0), 0]);
        let atomic_blocks = u16::try_from(device.atomic_bytes() / 512).unwrap_or(1);
        put(26, &atomic_blocks.to_le_bytes());
        put(32, &[u8::from(!self.common.block.writes_through())]);
        put(34, &RINGS_MAX.to_le_bytes());
        for at in [36, 48] {
            put(at, &RANGE_SECTORS_MAX.to_le_bytes());
            put(at + 4, &RANGES_MAX.to_le_bytes());
        }
        put(44, &u32::from(atomic_blocks).to_le_bytes());
        put(56, &[1]);
        config
    }

    /// Changes the only field that a driver may change: whether writes may be cached.
    fn set_config(&self, message: &Message) -> Result<Reply, Break> {
        let (offset, length) = range_of(message)?;
        let at = (WRITEBACK_AT as usize).checked_sub(offset).filter(|at| *at < length);
        if let Some(writeback) = at.and_then(|at| message.body.get(12 + at)) {
            self.common.block.set_writes_through(*writeback == 0);
        }
        Ok(Reply::Done)
    }

    /// Makes new memory for the descriptors in flight.
    fn inflight(&mut self, message: &Message) -> Result<Reply, Break> {
        let (rings, size) = shape_of(message)?;
        let bytes = inflight::bytes_of_ring(size) * u64::from(rings);
        let file = memory_file("floatgate-inflight", bytes)?;
        self.inflight = Some((inflight::map(file.try_clone()?, 0, bytes)?, size));
        self.common.block.set_may_reconnect();
        let mut body = bytes.to_le_bytes().to_vec();
        body.extend(0_u64.to_le_bytes());
        body.extend(&message.body[16..]);
        Ok(Reply::WithFile(body, file))
    }

    /// Uses the memory of an earlier server.
    fn set_inflight(&mut self, message: &Message) -> Result<Reply, Break> {
        let (rings, size) = shape_of(message)?;
        let [bytes, offset] = [0, 8].map(|at| u64_at(&message.body, at));
        let (bytes, offset) = bytes.zip(offset).ok_or_else(short)?;
        let file = self.socket.take_descriptor();
        let file = file.ok_or_else(|| violated("memory without its descriptor"))?;
        if bytes < inflight::bytes_of_ring(size) * u64::from(rings) {
            return Err(violated("too little memory for descriptors in flight"));
        }
        let mapped = inflight::map(file, offset, bytes);
        self.inflight = Some((mapped.map_err(|error| Break::Violation(error.to_string()))?, size));
        self.common.block.set_may_reconnect();
        Ok(Reply::Done)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}

fn short() -> Break {
    violated("a message that is too short")
}

fn bytes_of(number: u64) -> Reply {
    Reply::Bytes(number.to_le_bytes().to_vec())
}

fn call_of(call: Option<&OwnedFd>) -> io::Result<Option<Signal>> {
    call.map(|call| call.try_clone().map(Signal::of)).transpose()
}

fn part_at(message: &Message, at: usize) -> Option<MappedRegion> {
    let address = u64_at(&message.body, at)?;
    let (size, user) = (u64_at(&message.body, at + 8)?, u64_at(&message.body, at + 16)?);
    Some(MappedRegion {
        place: Place { address, size, offset: u64_at(&message.body, at + 24)? },
        user,
    })
}

/// Range of the configuration in a message.
fn range_of(message: &Message) -> Result<(usize, usize), Break> {
    let range = u32_at(&message.body, 0).zip(u32_at(&message.body, 4));
    let (offset, length) = range.filter(|_| message.body.len() >= 12).ok_or_else(short)?;
    if offset > 256 || length > 256 {
        return Err(violated("a part of the configuration beyond its 256 bytes"));
    }
    Ok((offset as usize, length as usize))
}

/// Rings, and entries of each, in a message about descriptors in flight.
fn shape_of(message: &Message) -> Result<(u16, u16), Break> {
    let (rings, size) =
        u16_at(&message.body, 16).zip(u16_at(&message.body, 18)).ok_or_else(short)?;
    if rings == 0 || rings > RINGS_MAX || size == 0 || size > SIZE_MAX {
        return Err(violated("memory in flight for more than 64 rings or 1024 entries"));
    }
    Ok((rings, size))
}
