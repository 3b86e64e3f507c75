//! Clients of protocols on streams: NBD and NVMe/TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{Failure, Load, OUTSTANDING, PAGE, page};

/// A protocol, as a load needs it.
trait Front {
    /// Adds a request for a page; `number` tells it from others that are outstanding.
    fn request(&self, out: &mut Vec<u8>, number: u16, page: u64, is_write: bool);

    /// Bytes of an answer, and the offset of its number, where all of its header is there.
    fn answer(&self, input: &[u8], is_write: bool) -> Option<usize>;
}

struct Nbd;

impl Front for Nbd {
    fn request(&self, out: &mut Vec<u8>, number: u16, page: u64, is_write: bool) {
        out.extend(0x2560_9513_u32.to_be_bytes());
        out.extend([0, 0, 0, u8::from(is_write)]);
        out.extend(u64::from(number).to_be_bytes());
        out.extend((page * PAGE as u64).to_be_bytes());
        out.extend(4096_u32.to_be_bytes());
        if is_write {
            out.extend([7; PAGE]);
        }
    }

    fn answer(&self, _: &[u8], is_write: bool) -> Option<usize> {
        Some(if is_write { 16 } else { 16 + PAGE })
    }
}

struct Nvme;

impl Front for Nvme {
    fn request(&self, out: &mut Vec<u8>, number: u16, page: u64, is_write: bool) {
        let mut entry = [0; 64];
        (entry[0], entry[1], entry[4]) = (if is_write { 1 } else { 2 }, 0x40, 1);
        entry[2..4].copy_from_slice(&number.to_le_bytes());
        entry[32..36].copy_from_slice(&4096_u32.to_le_bytes());
        entry[39] = if is_write { 0x01 } else { 0x5A };
        entry[40..48].copy_from_slice(&(page * 8).to_le_bytes());
        entry[48] = 7;
        out.extend(capsule(&entry, if is_write { &[7; PAGE] } else { &[] }));
    }

    fn answer(&self, input: &[u8], _: bool) -> Option<usize> {
        let length = input.get(4..8)?.try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(length)).ok()
    }
}

/// A command capsule without digests.
fn capsule(entry: &[u8; 64], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(72 + data.len()).expect("a page at most");
    let mut pdu = vec![4, 0, 72, if data.is_empty() { 0 } else { 72 }];
    pdu.extend(length.to_le_bytes());
    pdu.extend(entry);
    pdu.extend(data);
    pdu
}

/// Connects an NBD client of a Unix socket.
pub(crate) fn nbd_unix(path: &Path) -> Result<Stream<UnixStream>, Failure> {
    Ok(Stream::new(nbd(UnixStream::connect(path)?)?, Box::new(Nbd)))
}

/// Connects an NBD client of the loopback.
pub(crate) fn nbd_tcp(port: u16) -> Result<Stream<TcpStream>, Failure> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    Ok(Stream::new(nbd(stream)?, Box::new(Nbd)))
}

/// Shakes hands as an NBD client, in the shortest way.
fn nbd<S: Read + Write>(mut stream: S) -> Result<S, Failure> {
    let mut hello = 3_u32.to_be_bytes().to_vec();
    hello.extend(b"IHAVEOPT");
    hello.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; 28])?;
    Ok(stream)
}

/// Connects a queue. Returns it with the identifier of its controller.
fn queue(port: u16, nqn: &str, number: u16, controller: u16) -> Result<(TcpStream, u16), Failure> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let mut request = [0; 128];
    (request[2], request[4]) = (128, 128);
    stream.write_all(&request)?;
    stream.read_exact(&mut [0; 128])?;
    let (mut entry, mut data) = ([0; 64], [0; 1024]);
    (entry[0], entry[1], entry[4], entry[39]) = (0x7F, 0x40, 1, 0x01);
    entry[32..36].copy_from_slice(&1024_u32.to_le_bytes());
    entry[42..44].copy_from_slice(&number.to_le_bytes());
    // 128 entries, without flow control.
    (entry[44], entry[46]) = (127, 1 << 2);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    data[512..529].copy_from_slice(b"nqn.2014-08.org.x");
    stream.write_all(&capsule(&entry, &data))?;
    let mut answer = [0; 24];
    stream.read_exact(&mut answer)?;
    if answer[22..] != [0, 0] {
        return Err(format!("Connect was answered {answer:?}").into());
    }
    Ok((stream, u16::from_le_bytes([answer[8], answer[9]])))
}

/// Connects both queues of a controller; the admin queue has to stay.
pub(crate) fn nvme(port: u16, nqn: &str) -> Result<(TcpStream, Stream<TcpStream>), Failure> {
    let (mut admin, controller) = queue(port, nqn, 0, 0xFFFF)?;
    let mut enable = [0; 64];
    (enable[0], enable[1], enable[44]) = (0x7F, 0x40, 0x14);
    enable[48..52].copy_from_slice(&0x0046_0001_u32.to_le_bytes());
    admin.write_all(&capsule(&enable, &[]))?;
    admin.read_exact(&mut [0; 24])?;
    let stream = queue(port, nqn, 1, controller)?.0;
    stream.set_nodelay(true)?;
    Ok((admin, Stream::new(stream, Box::new(Nvme))))
}

/// A client on a stream.
pub(crate) struct Stream<S> {
    socket: S,
    front: Box<dyn Front>,
    input: Vec<u8>,
    /// True if requests that are due at once are sent in one call, as hardly a client does.
    is_together: bool,
}

impl<S> Stream<S> {
    fn new(stream: S, front: Box<dyn Front>) -> Self {
        Self { socket: stream, front, input: vec![0; 1 << 20], is_together: false }
    }

    /// Sends requests that are due at once in one call.
    pub(crate) fn together(self) -> Self {
        Self { is_together: true, ..self }
    }
}

impl<S: Read + Write> Load for Stream<S> {
    fn run(&mut self, is_write: bool, span: Duration) -> Result<u64, Failure> {
        let Self { socket: stream, front, input, is_together } = self;
        let (begun, mut done, mut sent) = (Instant::now(), 0_u64, 0_u64);
        let (mut out, mut filled, mut due) = (Vec::new(), 0, OUTSTANDING);
        loop {
            let is_over = begun.elapsed() >= span;
            for _ in 0..if is_over { 0 } else { due } {
                front.request(&mut out, u16::try_from(sent % 1000)?, page(sent), is_write);
                sent += 1;
                if !*is_together {
                    stream.write_all(&out)?;
                    out.clear();
                }
            }
            stream.write_all(&out)?;
            out.clear();
            if is_over && done == sent {
                return Ok(done);
            }
            filled += stream.read(&mut input[filled..])?;
            let mut at = 0;
            due = 0;
            while let Some(length) = front.answer(&input[at..filled], is_write)
                && at + length <= filled
            {
                at += length;
                due += 1;
            }
            done += due as u64;
            input.copy_within(at..filled, 0);
            filled -= at;
        }
    }
}
