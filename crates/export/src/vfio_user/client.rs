//! One client of vfio-user: a virtual machine monitor, which passes on accesses of the machine.

use std::io;

use super::configuration::{BYTES, Configuration, REGION_BYTES};
use super::message::{self, HEADER_BYTES, Message, code};
use crate::descriptor_socket::{DescriptorSocket, Signal};
use crate::guest_memory::Place;
use crate::little_endian::{u16_at, u32_at, u64_at};
use crate::nvme::{PcieController, VECTORS};
use crate::shared_mapping::TruncatedMemory;
use crate::vm_listener::{Break, Handshake};

/// Newest version of the protocol that this server knows, and its capabilities.
const VERSION: [u16; 2] = [0, 1];
const CAPABILITIES: &str = "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":32768,\
                         \"max_dma_maps\":4096,\"pgsizes\":4096}}";
/// Most regions of DMA memory.
const DMA_REGIONS_MAX: usize = 4096;
/// Regions of a PCI device, and those that this one has.
const REGIONS: u32 = 9;
const REGISTERS: u32 = 0;
const CONFIGURATION: u32 = 7;
/// Kinds of interrupts of a PCI device, and the one that this one has.
const INTERRUPTS: u32 = 5;
const MSIX: u32 = 2;
/// Bytes of an access's description.
const ACCESS_BYTES: usize = 16;
/// Most bytes of an access.
const ACCESS_BYTES_MAX: u32 = 1 << 15;
/// Flags of a device, a region and a kind of interrupts (`linux/vfio.h`).
const IS_PCI_WITH_RESET: u32 = 1 | 2;
const IS_READABLE_AND_WRITABLE: u32 = 1 | 2;
const IS_EVENT: u32 = 1;
const IS_OF_FIXED_SIZE: u32 = 8;
/// Flag of a message about interrupts: it comes with eventfds (`VFIO_IRQ_SET_DATA_EVENTFD`).
const HAS_EVENTS: u32 = 4;
/// Flag of an unmapping: all of the memory (`VFIO_DMA_UNMAP_FLAG_ALL`).
const ALL: u32 = 2;
/// Error numbers of replies (`errno.h`).
const INVALID: u32 = 22;
const UNSUPPORTED: u32 = 95;

/// The server's side of one client.
pub(super) struct Client {
    socket: DescriptorSocket,
    controller: PcieController,
    configuration: Configuration,
    /// Handshake until it is complete.
    handshake: Option<Handshake>,
}

/// Reason why a command is answered with an error.
struct CommandRefusal(u32);

impl From<io::Error> for CommandRefusal {
    fn from(_: io::Error) -> Self {
        Self(INVALID)
    }
}

/// An access to a region.
struct Access {
    offset: u64,
    region: u32,
    length: usize,
}

impl Client {
    pub(super) fn new(
        mut socket: DescriptorSocket,
        controller: PcieController,
        handshake: Handshake,
    ) -> Self {
        socket.set_deadline(Some(handshake.deadline()));
        let (configuration, handshake) = (Configuration::new(), Some(handshake));
        Self { socket, controller, configuration, handshake }
    }

    /// Serves the client until it goes, or has truncated its memory.
    pub(super) fn serve(&mut self) -> Result<(), Break> {
        let served = self.serve_messages();
        if self.controller.memory().is_truncated() {
            return Err(Break::Violation(TruncatedMemory.to_string()));
        }
        served
    }

    fn serve_messages(&mut self) -> Result<(), Break> {
        loop {
            // Before each message too: a busy client leaves no pause in which time could pass.
            let patience = self.controller.advance();
            if !self.socket.wait(patience)? {
                continue;
            }
            let Some(message) = self.receive()? else { return Ok(()) };
            let done = self.carry_out(&message);
            self.socket.drop_descriptors();
            let is_agreed = message.code == code::VERSION && done.is_ok();
            if let Some(handshake) = self.handshake.take_if(|_| is_agreed) {
                handshake.complete()?;
                self.socket.set_deadline(None);
            }
            if message.wants_reply {
                let body = done.as_deref().map_err(|refused| refused.0);
                self.socket.send(&message::reply(&message, body), &[])?;
            }
        }
    }

    fn receive(&mut self) -> Result<Option<Message>, Break> {
        let mut header = [0; HEADER_BYTES];
        if !self.socket.receive(&mut header)? {
            return Ok(None);
        }
        let parsed = message::parse_header(&header);
        let violated = |what: &str| Break::Violation(what.to_owned());
        let (mut message, size) = parsed.ok_or_else(|| violated("an invalid command header"))?;
        message.body = vec![0; size];
        if size > 0 && !self.socket.receive(&mut message.body)? {
            return Err(violated("a truncated command"));
        }
        Ok(Some(message))
    }

    fn carry_out(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        match message.code {
            code::VERSION => version(message),
            code::DMA_MAP => self.map(message),
            code::DMA_UNMAP => self.unmap(message),
            code::DEVICE_GET_INFO => Ok(words(&[16, IS_PCI_WITH_RESET, REGIONS, INTERRUPTS])),
            code::DEVICE_GET_REGION_INFO => region_info(message),
            code::DEVICE_GET_REGION_IO_FDS => {
                let region = u32_at(&message.body, 8).filter(|region| *region < REGIONS);
                Ok(words(&[16, 0, region.ok_or(CommandRefusal(INVALID))?, 0]))
            }
            code::DEVICE_GET_IRQ_INFO => interrupt_info(message),
            code::DEVICE_SET_IRQS => self.set_interrupts(message),
            code::REGION_READ => self.read(message),
            code::REGION_WRITE => self.write(message),
            code::REGION_WRITE_MULTI => self.write_many(message),
            code::DEVICE_RESET => {
                self.reset();
                Ok(Vec::new())
            }
            _ => Err(CommandRefusal(UNSUPPORTED)),
        }
    }

    /// Resets the function.
    fn reset(&mut self) {
        self.controller.reset();
        self.configuration = Configuration::new();
    }

    fn map(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let number = |at| u64_at(&message.body, at).ok_or(CommandRefusal(INVALID));
        let place = Place { offset: number(8)?, address: number(16)?, size: number(24)? };
        // Memory without a file, such as that of a ROM, cannot be mapped, and no data goes there.
        let Some(file) = self.socket.take_descriptor() else { return Ok(Vec::new()) };
        let mut memory = self.controller.memory();
        if memory.regions() >= DMA_REGIONS_MAX {
            return Err(CommandRefusal(INVALID));
        }
        memory.add(place, file)?;
        self.controller.use_memory(memory);
        Ok(Vec::new())
    }

    fn unmap(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let flags = u32_at(&message.body, 4).ok_or(CommandRefusal(INVALID))?;
        let range = u64_at(&message.body, 8).zip(u64_at(&message.body, 16));
        let (mut address, mut size) = range.ok_or(CommandRefusal(INVALID))?;
        if flags & ALL != 0 {
            (address, size) = (0, u64::MAX);
        }
        let mut memory = self.controller.memory();
        if memory.remove(address, size) {
            self.controller.use_memory(memory);
        }
        Ok(message.body[..24].to_vec())
    }

    fn set_interrupts(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let number = |at| u32_at(&message.body, at).ok_or(CommandRefusal(INVALID));
        let (flags, kind, first, count) = (number(4)?, number(8)?, number(12)?, number(16)?);
        if kind != MSIX {
            // The other kinds have no vectors.
            return if count == 0 { Ok(Vec::new()) } else { Err(CommandRefusal(INVALID)) };
        }
        let end = first.checked_add(count).filter(|end| *end <= VECTORS.into());
        let end = end.ok_or(CommandRefusal(INVALID))?;
        if count == 0 {
            // All vectors are disabled.
            (0..VECTORS.into()).for_each(|vector| self.controller.set_interrupt(vector, None));
            return Ok(Vec::new());
        }
        if flags & HAS_EVENTS != 0 {
            for vector in first..end {
                let signal = self.socket.take_descriptor().map(Signal::of);
                self.controller.set_interrupt(vector as usize, signal);
            }
        }
        Ok(Vec::new())
    }

    fn read(&self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let Access { offset, region, length } = access(message, 0)?;
        let mut body = message.body[..ACCESS_BYTES].to_vec();
        body.resize(ACCESS_BYTES + length, 0);
        let data = &mut body[ACCESS_BYTES..];
        match region {
            CONFIGURATION => self.configuration.read(offset, data),
            _ => self.controller.read(offset, data),
        }
        Ok(body)
    }

    fn write(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let access = access(message, 0)?;
        let data = message.body.get(ACCESS_BYTES..ACCESS_BYTES + access.length);
        self.write_to(&access, data.ok_or(CommandRefusal(INVALID))?);
        Ok(message.body[..ACCESS_BYTES].to_vec())
    }

    /// Several small writes.
    fn write_many(&mut self, message: &Message) -> Result<Vec<u8>, CommandRefusal> {
        let count = u64_at(&message.body, 0).ok_or(CommandRefusal(INVALID))?;
        let entries = message.body[8..].chunks_exact(ACCESS_BYTES + 8).len() as u64;
        for index in 0..count.min(entries) {
            let at = 8 + usize::try_from(index).unwrap_or(usize::MAX) * (ACCESS_BYTES + 8);
            let access = access(message, at)?;
            let data =
                message.body.get(at + ACCESS_BYTES..at + ACCESS_BYTES + access.length.min(8));
            self.write_to(&access, data.ok_or(CommandRefusal(INVALID))?);
        }
        Ok(count.to_le_bytes().to_vec())
    }

    fn write_to(&mut self, access: &Access, data: &[u8]) {
        match access.region {
            CONFIGURATION if self.configuration.write(access.offset, data) => self.reset(),
            CONFIGURATION => {}
            _ => self.controller.write(access.offset, data),
        }
    }
}

fn version(message: &Message) -> Result<Vec<u8>, CommandRefusal> {
    let asked = u16_at(&message.body, 0).zip(u16_at(&message.body, 2));
    let (major, minor) = asked.ok_or(CommandRefusal(INVALID))?;
    if major != VERSION[0] {
        return Err(CommandRefusal(UNSUPPORTED));
    }
    // A client refuses a minor version above its own.
    let agreed = [major, minor.min(VERSION[1])];
    let mut body: Vec<u8> = agreed.iter().flat_map(|part| part.to_le_bytes()).collect();
    body.extend(CAPABILITIES.as_bytes());
    body.push(0);
    Ok(body)
}

fn region_info(message: &Message) -> Result<Vec<u8>, CommandRefusal> {
    let region = u32_at(&message.body, 8)
        .filter(|region| *region < REGIONS)
        .ok_or(CommandRefusal(INVALID))?;
    let size = match region {
        REGISTERS => REGION_BYTES,
        CONFIGURATION => BYTES as u64,
        _ => 0,
    };
    let flags = if size > 0 { IS_READABLE_AND_WRITABLE } else { 0 };
    let mut body = words(&[32, flags, region, 0]);
    body.extend(size.to_le_bytes());
    body.extend([0; 8]);
    Ok(body)
}

fn interrupt_info(message: &Message) -> Result<Vec<u8>, CommandRefusal> {
    let kind = u32_at(&message.body, 8)
        .filter(|kind| *kind < INTERRUPTS)
        .ok_or(CommandRefusal(INVALID))?;
    let count = if kind == MSIX { u32::from(VECTORS) } else { 0 };
    let flags = if kind == MSIX { IS_EVENT | IS_OF_FIXED_SIZE } else { IS_EVENT };
    Ok(words(&[16, flags, kind, count]))
}

/// The access that a message describes at an offset, within its region.
fn access(message: &Message, at: usize) -> Result<Access, CommandRefusal> {
    let offset = u64_at(&message.body, at).ok_or(CommandRefusal(INVALID))?;
    let described = u32_at(&message.body, at + 8).zip(u32_at(&message.body, at + 12));
    let (region, length) = described.ok_or(CommandRefusal(INVALID))?;
    let size = match region {
        REGISTERS => REGION_BYTES,
        CONFIGURATION => BYTES as u64,
        _ => 0,
    };
    let end = offset.checked_add(length.into()).filter(|end| *end <= size);
    if end.is_none() || length > ACCESS_BYTES_MAX {
        return Err(CommandRefusal(INVALID));
    }
    Ok(Access { offset, region, length: length as usize })
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
