//! An NVMe/TCP host that does what a test needs: it connects, writes and reads a namespace.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const HEADER_BYTES: usize = 8;
const COMMAND_BYTES: usize = 64;
const CAPSULE: u8 = 4;
const RESPONSE: u8 = 5;
const FABRICS: u8 = 0x7f;

/// A queue of a controller, over a connection of its own.
pub(crate) struct Queue {
    socket: TcpStream,
    number: u16,
}

impl Queue {
    /// Connects the admin queue and an I/O queue of a new controller, which is enabled in between;
    /// `place` is HOST:PORT. Returns both: the controller lasts as long as its admin queue.
    pub(crate) fn connect(place: &str, subsystem: &str) -> [Self; 2] {
        let mut admin = Self::open(place);
        let controller = admin.connect_as((0, 0xffff), subsystem);
        // CC: entries of 64 and 16 bytes, enabled.
        let mut enable = command(FABRICS, 0);
        enable[44..48].copy_from_slice(&0x14_u32.to_le_bytes());
        enable[48..52].copy_from_slice(&0x0046_0001_u32.to_le_bytes());
        admin.ask(enable, &[], 0);
        let mut io = Self::open(place);
        io.connect_as((1, controller), subsystem);
        [admin, io]
    }

    /// Writes whole blocks of 512 bytes.
    pub(crate) fn write(&mut self, lba: u64, bytes: &[u8]) {
        self.ask(blocks(1, lba, bytes.len()), bytes, 0);
    }

    /// Deallocates blocks of 512 bytes.
    pub(crate) fn deallocate(&mut self, lba: u64, blocks: u32) {
        let mut range = vec![0; 16];
        range[4..8].copy_from_slice(&blocks.to_le_bytes());
        range[8..].copy_from_slice(&lba.to_le_bytes());
        let mut manage = command(9, 1);
        manage[44] = 1 << 2;
        self.ask(manage, &range, 0);
    }

    /// Reads whole blocks of 512 bytes.
    pub(crate) fn read(&mut self, lba: u64, length: usize) -> Vec<u8> {
        self.ask(blocks(2, lba, length), &[], length).1
    }

    fn open(place: &str) -> Self {
        let mut socket = TcpStream::connect(place).expect("the server listens");
        socket.set_nodelay(true).expect("a socket");
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        socket.write_all(&request).expect("the server takes it");
        socket.read_exact(&mut request).expect("the server answers");
        assert_eq!(request[0], 1, "it is an ICResp");
        Self { socket, number: 0 }
    }

    /// Connects the queue of a number to a controller, and returns the controller's number.
    fn connect_as(&mut self, (number, controller): (u16, u16), subsystem: &str) -> u16 {
        let mut connect = command(FABRICS, 0);
        connect[4] = 1;
        connect[42..44].copy_from_slice(&number.to_le_bytes());
        connect[44..46].copy_from_slice(&31_u16.to_le_bytes());
        let mut data = vec![0; 1024];
        data[..16].fill(7);
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        let host = b"nqn.2014-08.org.nvmexpress:uuid:07070707-0707-0707-0707-070707070707";
        data[512..512 + host.len()].copy_from_slice(host);
        let (answer, _) = self.ask(connect, &data, 0);
        self.number = number;
        u16::from_le_bytes([answer[0], answer[1]])
    }

    /// Sends a command with its data, and returns the completion and what came of data.
    fn ask(&mut self, mut command: [u8; 64], data: &[u8], wanted: usize) -> ([u8; 16], Vec<u8>) {
        let length = if data.is_empty() { wanted } else { data.len() };
        command[32..36].copy_from_slice(&u32::try_from(length).expect("short").to_le_bytes());
        command[39] = if data.is_empty() && wanted > 0 { 0x5a } else { 0x01 };
        let from = HEADER_BYTES + COMMAND_BYTES;
        let all = u32::try_from(from + data.len()).expect("short");
        let offset = if data.is_empty() { 0 } else { u8::try_from(from).expect("short") };
        let mut capsule = vec![CAPSULE, 0, 72, offset];
        capsule.extend(all.to_le_bytes());
        capsule.extend(command);
        capsule.extend(data);
        self.socket.write_all(&capsule).expect("the server takes it");
        let mut found = Vec::new();
        loop {
            let mut header = [0; HEADER_BYTES];
            self.socket.read_exact(&mut header).expect("the server answers");
            let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            let mut rest = vec![0; usize::try_from(length).expect("short") - HEADER_BYTES];
            self.socket.read_exact(&mut rest).expect("all of it comes");
            if header[0] == RESPONSE {
                let completion: [u8; 16] = rest[..16].try_into().expect("16 bytes");
                let status = u16::from_le_bytes([completion[14], completion[15]]) >> 1;
                assert_eq!(status, 0, "command {:#x} of queue {}", command[0], self.number);
                return (completion, found);
            }
            assert_eq!(header[0], 7, "it is data");
            found.extend(&rest[usize::from(header[3]) - HEADER_BYTES..]);
            // SUCCESS: no completion follows.
            if header[1] & 1 << 3 != 0 {
                return ([0; 16], found);
            }
        }
    }
}

/// A command to a namespace; 0: to none.
fn command(opcode: u8, namespace: u32) -> [u8; COMMAND_BYTES] {
    let mut command = [0; COMMAND_BYTES];
    // SGLs.
    (command[0], command[1]) = (opcode, 1 << 6);
    command[4..8].copy_from_slice(&namespace.to_le_bytes());
    command
}

fn blocks(opcode: u8, lba: u64, length: usize) -> [u8; COMMAND_BYTES] {
    let mut command = command(opcode, 1);
    command[40..48].copy_from_slice(&lba.to_le_bytes());
    let count = u16::try_from(length / 512 - 1).expect("a few");
    command[48..50].copy_from_slice(&count.to_le_bytes());
    command
}
