//! Allocation of an export: the metadata context `base:allocation` of servers that have it.

use std::io;
use std::time::{Duration, Instant};

use super::{
    CMD_DISCONNECT, OPT_STRUCTURED_REPLY, REP_ACK, REP_META_CONTEXT, Session, Stream, Uri, answer,
    greet, odd, option, with_length,
};

const OPT_SET_META_CONTEXT: u32 = 10;
const CONTEXT: &str = "base:allocation";
const CMD_BLOCK_STATUS: u16 = 7;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;
const REPLY_BLOCK_STATUS: u16 = 5;
/// The last chunk of a reply.
const FLAG_DONE: u16 = 1;
/// A stretch that takes no space, or that reads as zeroes.
const HOLE_OR_ZERO: u32 = 0b11;
/// Longest stretch that is asked for at once: a multiple of every block size.
const ASK_BYTES_MAX: u64 = 1 << 31;
/// Longest chunk that is read.
const CHUNK_BYTES_MAX: u32 = 8 << 20;

impl Uri {
    /// Stretches that hold data, in order: first byte and end of each.
    ///
    /// Absent where the server has no such context, fails, or takes longer than `patience`.
    pub fn allocated(&self, patience: Duration) -> Option<Vec<(u64, u64)>> {
        let stream = self.place.connect().ok()?;
        allocated(stream, &self.name, patience).ok().flatten()
    }
}

/// Asks a server that was connected to for the stretches of the export `name`.
fn allocated(
    mut stream: Stream,
    name: &str,
    patience: Duration,
) -> io::Result<Option<Vec<(u64, u64)>>> {
    let began = Instant::now();
    greet(&mut stream)?;
    if !has_context(&mut stream, name)? {
        return Ok(None);
    }
    let mut session = Session::go(stream, name)?;
    let size = session.export.capacity_bytes;
    let (mut data, mut at): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    while at < size {
        session.command(CMD_BLOCK_STATUS, at, (size - at).min(ASK_BYTES_MAX))?;
        for (length, flags) in stretches(&mut session.stream)? {
            let end = at.saturating_add(u64::from(length)).min(size);
            match data.last_mut() {
                _ if flags & HOLE_OR_ZERO != 0 => {}
                Some(last) if last.1 == at => last.1 = end,
                _ => data.push((at, end)),
            }
            at = end;
        }
        if began.elapsed() > patience {
            return Ok(None);
        }
    }
    // What was asked for is there, whether the server hears the farewell or not.
    let _ = session.command(CMD_DISCONNECT, 0, 0);
    Ok(Some(data))
}

/// Chooses the context; false where the server has none.
fn has_context(stream: &mut Stream, name: &str) -> io::Result<bool> {
    stream.send(&option(OPT_STRUCTURED_REPLY, &[])?)?;
    if answer(stream, OPT_STRUCTURED_REPLY)?.0 != REP_ACK {
        return Ok(false);
    }
    let queries = [&1_u32.to_be_bytes()[..], &with_length(CONTEXT)?].concat();
    stream.send(&option(OPT_SET_META_CONTEXT, &[with_length(name)?, queries].concat())?)?;
    let mut is_chosen = false;
    loop {
        match answer(stream, OPT_SET_META_CONTEXT)?.0 {
            REP_META_CONTEXT => is_chosen = true,
            REP_ACK => return Ok(is_chosen),
            _ => return Ok(false),
        }
    }
}

/// Reads the reply to one block status: length and flags of each stretch.
fn stretches(stream: &mut Stream) -> io::Result<Vec<(u32, u32)>> {
    let mut all = Vec::new();
    loop {
        if stream.u32()? != STRUCTURED_REPLY {
            return Err(odd("the reply to a block status is malformed"));
        }
        let (flags, kind) = (stream.u16()?, stream.u16()?);
        let _cookie = stream.u64()?;
        let length = stream.u32()?;
        if length > CHUNK_BYTES_MAX {
            return Err(odd("the reply to a block status is too long"));
        }
        let mut payload = vec![0; length as usize];
        stream.receive_into(&mut payload)?;
        if kind == REPLY_BLOCK_STATUS {
            let words = payload.get(4..).unwrap_or_default().as_chunks::<8>().0;
            all.extend(words.iter().map(|[a, b, c, d, e, f, g, h]| {
                (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]))
            }));
        } else if length > 0 {
            return Err(odd("the server does not tell the status of its blocks"));
        }
        if flags & FLAG_DONE != 0 {
            break;
        }
    }
    // A stretch of nothing would be asked for again without end.
    if all.iter().all(|(length, _)| *length == 0) {
        return Err(odd("the server tells the status of no block"));
    }
    Ok(all)
}
