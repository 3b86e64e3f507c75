//! An NVMe driver with a doorbell buffer.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::{ADDRESS, BYTES, Memory, event, receive, send, wait, words};
use crate::{Failure, Load, OUTSTANDING, PAGE, page};

/// Entries of the queues, and places in the memory: two queues, doorbells, data.
const ENTRIES: u32 = 64;
const BUFFER: usize = 0x8000;
const DATA: usize = 0x1_0000;
/// Looks for an answer before the driver sleeps.
const LOOKS: u32 = 24;

#[derive(Default)]
struct Pair {
    tail: u32,
    head: u32,
    round: u32,
}

pub(crate) struct Driver {
    socket: UnixStream,
    memory: Memory,
    interrupts: [OwnedFd; 2],
    pairs: [Pair; 2],
    has_buffer: bool,
}

impl Driver {
    pub(crate) fn connect(path: &Path) -> Result<Self, Failure> {
        let (socket, memory) = (UnixStream::connect(path)?, Memory::new()?);
        let (interrupts, pairs) = ([event()?, event()?], Default::default());
        let mut it = Self { socket, memory, interrupts, pairs, has_buffer: false };
        it.ask(1, b"\0\0\x01\0{\"capabilities\":{}}\0", &[])?;
        it.ask(2, &words(&[0x20 | 3 << 32, 0, ADDRESS, BYTES]), &[it.memory.file.as_fd()])?;
        let events: Vec<_> = it.interrupts.iter().map(|it| it.as_fd()).collect();
        let mut body = words(&[0x14 | 0x24 << 32, 2]);
        body.extend(2_u32.to_le_bytes());
        it.ask(8, &body, &events)?;
        it.write(0x24, u64::from((ENTRIES - 1) << 16 | (ENTRIES - 1)), 4)?;
        it.write(0x28, ADDRESS, 8)?;
        it.write(0x30, ADDRESS + 0x1000, 8)?;
        it.write(0x14, 4 << 20 | 6 << 16 | 1, 4)?;
        let place = |at: usize| ADDRESS + at as u64;
        it.admin(0x7C, (place(BUFFER), place(BUFFER + 0x1000)), [0, 0])?;
        it.has_buffer = true;
        it.admin(5, (place(0x3000), 0), [(ENTRIES - 1) << 16 | 1, 1 << 16 | 3])?;
        it.admin(1, (place(0x2000), 0), [(ENTRIES - 1) << 16 | 1, 1 << 16 | 1])?;
        Ok(it)
    }

    fn ask(&self, code: u16, body: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let mut bytes = vec![0, 0];
        bytes.extend(code.to_le_bytes());
        for number in [u32::try_from(16 + body.len())?, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(body);
        send(&self.socket, &bytes, files)?;
        receive(&self.socket, (16, 4), true).map(drop)
    }

    fn write(&self, offset: u64, value: u64, length: usize) -> Result<(), Failure> {
        let mut body = words(&[offset, (length as u64) << 32]);
        body.extend(&value.to_le_bytes()[..length]);
        self.ask(10, &body, &[])
    }

    /// Carries out an admin command with these places and dwords.
    fn admin(&mut self, code: u8, places: (u64, u64), dwords: [u32; 2]) -> Result<(), Failure> {
        let mut entry = [0; 64];
        entry[0] = code;
        entry[24..40].copy_from_slice(&words(&[places.0, places.1]));
        entry[40..44].copy_from_slice(&dwords[0].to_le_bytes());
        entry[44..48].copy_from_slice(&dwords[1].to_le_bytes());
        self.submit(0, &entry);
        self.ring(0, self.pairs[0].tail)?;
        self.completed(0).map(drop)
    }

    fn submit(&mut self, queue: usize, entry: &[u8; 64]) {
        let pair = &mut self.pairs[queue];
        self.memory.write(queue * 0x2000 + pair.tail as usize * 64, entry);
        pair.tail = (pair.tail + 1) % ENTRIES;
    }

    /// Rings a doorbell, if the controller wants it rung.
    fn ring(&self, index: usize, value: u32) -> Result<(), Failure> {
        if self.has_buffer && index >= 2 {
            let place = BUFFER + 4 * index;
            let before = self.memory.load_u32(place);
            self.memory.store_u32(place, value);
            fence(Ordering::SeqCst);
            let asked = self.memory.load_u32(place + 0x1000);
            let low = |number: u32| u16::try_from(number & 0xFFFF).expect("16 bits");
            let behind = low(value).wrapping_sub(low(asked)).wrapping_sub(1);
            if behind >= low(value).wrapping_sub(low(before)) {
                return Ok(());
            }
        }
        self.write(0x1000 + 4 * index as u64, value.into(), 4)
    }

    /// Waits until something was completed. Returns the commands.
    fn completed(&mut self, queue: usize) -> Result<Vec<u16>, Failure> {
        let (mut looks, mut done) = (0, Vec::new());
        loop {
            let pair = &mut self.pairs[queue];
            let place = queue * 0x2000 + 0x1000 + pair.head as usize * 16;
            let status = self.memory.load_u16(place + 14);
            if u32::from(status & 1) != pair.round % 2 {
                if status >> 1 != 0 {
                    return Err(format!("a command was completed with {status:#x}").into());
                }
                done.push(self.memory.load_u16(place + 12));
                pair.head = (pair.head + 1) % ENTRIES;
                pair.round += u32::from(pair.head == 0);
            } else if !done.is_empty() {
                self.ring(2 * queue + 1, self.pairs[queue].head)?;
                return Ok(done);
            } else if looks < LOOKS {
                looks += 1;
                thread::yield_now();
            } else {
                wait(&self.interrupts[queue])?;
            }
        }
    }
}

impl Load for Driver {
    fn run(&mut self, is_write: bool, span: Duration) -> Result<u64, Failure> {
        let (begun, mut done, mut sent) = (Instant::now(), 0_u64, 0_u64);
        let mut free: Vec<u16> = (0..u16::try_from(OUTSTANDING)?).collect();
        loop {
            let is_over = begun.elapsed() >= span;
            let count = if is_over { 0 } else { free.len() };
            for id in free.drain(..).take(count) {
                let mut entry = [0; 64];
                (entry[0], entry[4], entry[48]) = (if is_write { 1 } else { 2 }, 1, 7);
                entry[2..4].copy_from_slice(&id.to_le_bytes());
                let data = ADDRESS + (DATA + usize::from(id) * PAGE) as u64;
                entry[24..32].copy_from_slice(&data.to_le_bytes());
                entry[40..48].copy_from_slice(&(page(sent) * 8).to_le_bytes());
                self.submit(1, &entry);
                sent += 1;
            }
            if count > 0 {
                self.ring(2, self.pairs[1].tail)?;
            }
            if is_over && done == sent {
                return Ok(done);
            }
            free = self.completed(1)?;
            done += free.len() as u64;
        }
    }
}
