//! A driver of virtio-blk, with a split ring and event indexes.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::{ADDRESS, BYTES, Memory, event, raise, send, wait, words};
use crate::{Failure, Load, OUTSTANDING, PAGE, page};

/// Entries of the ring, and places in the memory.
const SIZE: usize = 64;
const AVAILABLE: usize = 0x1000;
const USED: usize = 0x2000;
const HEADERS: usize = 0x3000;
const DATA: usize = 0x8000;
/// Looks for an answer before the driver sleeps.
const LOOKS: u32 = 24;

pub(crate) struct Driver {
    _socket: UnixStream,
    memory: Memory,
    kick: OwnedFd,
    call: OwnedFd,
    next: u16,
    used: u16,
}

impl Driver {
    pub(crate) fn connect(path: &Path) -> Result<Self, Failure> {
        let socket = UnixStream::connect(path)?;
        let memory = Memory::new()?;
        let (kick, call) = (event()?, event()?);
        let tell = |code: u32, body: &[u8], file: Option<&OwnedFd>| {
            let mut bytes = Vec::new();
            for number in [code, 1, u32::try_from(body.len())?] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(body);
            let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
            send(&socket, &bytes, &files)
        };
        let place = |at: usize| ADDRESS + at as u64;
        tell(2, &words(&[1 << 32 | 1 << 30 | 1 << 29 | 1 << 9]), None)?;
        tell(16, &words(&[0]), None)?;
        tell(5, &words(&[1, ADDRESS, BYTES, ADDRESS, 0]), Some(&memory.file))?;
        tell(8, &words(&[(SIZE as u64) << 32]), None)?;
        tell(9, &words(&[0, place(0), place(USED), place(AVAILABLE), 0]), None)?;
        tell(10, &words(&[0]), None)?;
        tell(13, &words(&[0]), Some(&call))?;
        tell(12, &words(&[0]), Some(&kick))?;
        tell(18, &words(&[1 << 32]), None)?;
        Ok(Self { _socket: socket, memory, kick, call, next: 0, used: 0 })
    }

    fn submit(&mut self, slot: usize, page: u64, is_write: bool) {
        let (header, data) = (HEADERS + slot * 64, DATA + slot * PAGE);
        let mut head = u32::from(is_write).to_le_bytes().to_vec();
        head.extend([0; 4]);
        head.extend((page * 8).to_le_bytes());
        self.memory.write(header, &head);
        let flags = if is_write { 1 } else { 3 };
        let parts = [(header, 16, 1_u16), (data, PAGE, flags), (header + 16, 1, 2)];
        for (index, (at, length, flags)) in parts.into_iter().enumerate() {
            let descriptor = slot * 3 + index;
            let mut bytes = (ADDRESS + at as u64).to_le_bytes().to_vec();
            bytes.extend(u32::try_from(length).expect("a page").to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(u16::try_from(descriptor + 1).expect("few").to_le_bytes());
            self.memory.write(descriptor * 16, &bytes);
        }
        let head = u16::try_from(slot * 3).expect("few");
        self.memory.store_u16(AVAILABLE + 4 + 2 * (usize::from(self.next) % SIZE), head);
        self.next = self.next.wrapping_add(1);
    }

    /// Hands over what was submitted since `before`, and kicks if the device wants it.
    fn hand_over(&self, before: u16) -> Result<(), Failure> {
        self.memory.store_u16(AVAILABLE + 2, self.next);
        fence(Ordering::SeqCst);
        let asked = self.memory.load_u16(USED + 4 + 8 * SIZE);
        let behind = self.next.wrapping_sub(asked).wrapping_sub(1);
        if behind < self.next.wrapping_sub(before) {
            raise(&self.kick)?;
        }
        Ok(())
    }

    /// Waits until something was used. Returns the slots.
    fn completed(&mut self) -> Result<Vec<usize>, Failure> {
        let mut looks = 0;
        while self.memory.load_u16(USED + 2) == self.used {
            looks += 1;
            if looks < LOOKS {
                thread::yield_now();
                continue;
            }
            self.memory.store_u16(AVAILABLE + 4 + 2 * SIZE, self.used);
            fence(Ordering::SeqCst);
            if self.memory.load_u16(USED + 2) == self.used {
                wait(&self.call)?;
            }
        }
        let mut slots = Vec::new();
        while self.memory.load_u16(USED + 2) != self.used {
            let head = self.memory.load_u16(USED + 4 + 8 * (usize::from(self.used) % SIZE));
            slots.push(usize::from(head) / 3);
            self.used = self.used.wrapping_add(1);
        }
        Ok(slots)
    }
}

impl Load for Driver {
    fn run(&mut self, is_write: bool, span: Duration) -> Result<u64, Failure> {
        let (begun, mut done, mut sent) = (Instant::now(), 0_u64, 0_u64);
        let mut free: Vec<usize> = (0..OUTSTANDING).collect();
        loop {
            let (before, is_over) = (self.next, begun.elapsed() >= span);
            for slot in free.drain(..).filter(|_| !is_over) {
                self.submit(slot, page(sent), is_write);
                sent += 1;
            }
            self.hand_over(before)?;
            if is_over && done == sent {
                return Ok(done);
            }
            free = self.completed()?;
            done += free.len() as u64;
        }
    }
}
