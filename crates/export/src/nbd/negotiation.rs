//! The handshake: what a client and the server agree on before the first request.
//!
//! ```text
//!   greeting ──► flags ──► option ──► option ──► ... ──► Agreed (EXPORT_NAME or GO)
//!            ▲                │                      ├─► Left   (ABORT)
//!            └─ encryption ◄──┴─ Encrypting (STARTTLS)
//! ```
//!
//! Every option but `EXPORT_NAME` is answered, an unknown or malformed one with an error; the
//! client may then go on. Texts that come with errors are for people.

use std::sync::Arc;

use super::lateness;
use super::terms::{Dialect, PREFERRED_BYTES, Terms, Violation};
use super::wire;
use super::wire::{ability, allocation, answer, handshake, info, option, u16_at, u32_at, u64_at};
use crate::{Export, Exports, Tls, TlsMode};
use crate::{REQUEST_BYTES_MAX, ReceiveProgress, Replies};

const FLAGS_BYTES: usize = 4;
const OPTION_HEADER_BYTES: usize = 16;
/// Most data of an option: the longest name and thousands of queries.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Most options of one client.
const OPTIONS_MAX: u32 = 1024;
/// Zeroes after the answer to `EXPORT_NAME`, unless the client does without.
const PADDING: [u8; 124] = [0; 124];

/// The server's side of one handshake.
#[derive(Debug)]
pub struct Negotiation {
    exports: Exports,
    stage: Stage,
    pads: bool,
    dialect: Dialect,
    /// Name of the export whose allocation the client wants to be told.
    allocation_of: Option<String>,
    options: u32,
    encryption: Encryption,
}

/// State of encryption of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    /// The server does not offer it.
    None,
    /// The client may start it.
    Allowed,
    /// The client has to start it before it is told anything.
    Required,
    /// The connection is encrypted.
    Begun,
}

#[derive(Debug)]
enum Stage {
    Flags,
    Options,
    /// The client is told to start encryption; everything that follows is encrypted.
    Encrypting,
    Agreed(Terms),
    Left,
}

/// Refusal of an option: error code of the protocol, and text for people.
struct Refusal {
    answer: u32,
    text: String,
}

/// The data of an option, read from its beginning.
struct Reader<'a>(&'a [u8]);

impl Negotiation {
    /// Begins a handshake: the greeting is the first reply.
    pub fn new(exports: Exports, replies: &mut Replies) -> Self {
        replies.put_u64(wire::GREETING);
        replies.put_u64(wire::OPTION);
        replies.put_u16(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        let encryption = match exports.tls().map(Tls::mode) {
            None => Encryption::None,
            Some(TlsMode::Allowed) => Encryption::Allowed,
            Some(TlsMode::Required) => Encryption::Required,
        };
        Self {
            exports,
            stage: Stage::Flags,
            pads: true,
            dialect: Dialect::Simple,
            allocation_of: None,
            options: 0,
            encryption,
        }
    }

    /// Takes what the client sent, as far as it is whole, until the handshake is over.
    ///
    /// # Errors
    /// Fails if the client is to be dropped.
    pub fn take(
        &mut self,
        input: &[u8],
        replies: &mut Replies,
    ) -> Result<ReceiveProgress, Violation> {
        let mut used_bytes = 0;
        loop {
            let rest = &input[used_bytes..];
            let wanted_bytes = self.wanted_bytes(rest)?;
            if wanted_bytes == 0 || rest.len() < wanted_bytes {
                return Ok(ReceiveProgress { used_bytes, wanted_bytes, room_bytes: 0 });
            }
            match self.stage {
                Stage::Flags => self.take_flags(u32_at(rest, 0))?,
                _ => self.take_option(&rest[..wanted_bytes], replies)?,
            }
            used_bytes += wanted_bytes;
        }
    }

    /// True if the handshake has ended, in agreement or because the client left.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Agreed(_) | Stage::Left)
    }

    /// True if the handshake continues once the connection is encrypted.
    pub const fn is_encrypting(&self) -> bool {
        matches!(self.stage, Stage::Encrypting)
    }

    /// Goes on with a connection that is encrypted from here on, as if nothing had been asked.
    pub fn encrypted(&mut self) {
        self.stage = Stage::Options;
        self.encryption = Encryption::Begun;
        self.dialect = Dialect::Simple;
        self.allocation_of = None;
    }

    /// Returns the agreed terms; none if the client left.
    pub fn into_terms(self) -> Option<Terms> {
        if let Stage::Agreed(terms) = self.stage { Some(terms) } else { None }
    }

    /// Bytes of what comes next, as far as that can be told; zero when the handshake is over.
    fn wanted_bytes(&self, rest: &[u8]) -> Result<usize, Violation> {
        match self.stage {
            Stage::Flags => Ok(FLAGS_BYTES),
            Stage::Encrypting | Stage::Agreed(_) | Stage::Left => Ok(0),
            Stage::Options if rest.len() < OPTION_HEADER_BYTES => Ok(OPTION_HEADER_BYTES),
            Stage::Options => {
                let (magic, option, length) = (u64_at(rest, 0), u32_at(rest, 8), u32_at(rest, 12));
                if magic != wire::OPTION {
                    return Err(Violation::OptionMagic(magic));
                }
                if length > OPTION_BYTES_MAX {
                    let limit = OPTION_BYTES_MAX;
                    return Err(Violation::LongOption { option, length, limit });
                }
                Ok(OPTION_HEADER_BYTES + length as usize)
            }
        }
    }

    fn take_flags(&mut self, flags: u32) -> Result<(), Violation> {
        if flags & !u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES) != 0 {
            return Err(Violation::HandshakeFlags(flags));
        }
        self.pads = flags & u32::from(handshake::NO_ZEROES) == 0;
        self.stage = Stage::Options;
        Ok(())
    }

    fn take_option(&mut self, bytes: &[u8], replies: &mut Replies) -> Result<(), Violation> {
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(Violation::ManyOptions(OPTIONS_MAX));
        }
        let number = u32_at(bytes, 8);
        let data = &bytes[OPTION_HEADER_BYTES..];
        let is_free = matches!(number, option::START_TLS | option::ABORT);
        if self.encryption == Encryption::Required && !is_free {
            if number == option::EXPORT_NAME {
                return Err(Violation::Unencrypted);
            }
            let text = b"this server requires TLS: send STARTTLS first";
            put_answer(replies, number, answer::ERR_TLS_REQUIRED, text);
            return Ok(());
        }
        if number == option::EXPORT_NAME {
            return self.take_export_name(data, replies);
        }
        if let Err(Refusal { answer, text }) = self.answer_option(number, data, replies) {
            put_answer(replies, number, answer, text.as_bytes());
        }
        Ok(())
    }

    /// The old way to begin, which knows no refusal.
    fn take_export_name(&mut self, name: &[u8], replies: &mut Replies) -> Result<(), Violation> {
        let shown = String::from_utf8_lossy(name);
        let export = self
            .exports
            .find(&shown)
            .ok_or_else(|| Violation::UnknownExport(shown.chars().take(80).collect::<String>()))?;
        let export = Arc::clone(export);
        replies.put_u64(export.device.size());
        replies.put_u16(abilities(&export, self.dialect));
        if self.pads {
            replies.put(&PADDING);
        }
        self.agree(export);
        Ok(())
    }

    fn agree(&mut self, export: Arc<Export>) {
        let reports_allocation = self.allocation_of.as_ref() == Some(&export.name);
        self.stage = Stage::Agreed(Terms { export, dialect: self.dialect, reports_allocation });
    }

    fn answer_option(
        &mut self,
        number: u32,
        data: &[u8],
        replies: &mut Replies,
    ) -> Result<(), Refusal> {
        match number {
            option::ABORT => self.stage = Stage::Left,
            option::LIST => self.list(data, replies)?,
            option::START_TLS if self.encryption != Encryption::None => self.start_tls(data)?,
            option::INFO => {
                self.tell(number, data, replies)?;
            }
            option::GO => {
                let export = self.tell(number, data, replies)?;
                self.agree(export);
            }
            option::STRUCTURED_REPLY => self.choose_structured(data)?,
            option::EXTENDED_HEADERS => self.choose_extended(data)?,
            option::LIST_META_CONTEXT => self.list_contexts(data, replies)?,
            option::SET_META_CONTEXT => self.set_contexts(data, replies)?,
            _ => {
                let text = "this option is not supported".to_owned();
                return Err(Refusal { answer: answer::ERR_UNSUPPORTED, text });
            }
        }
        put_answer(replies, number, answer::ACK, &[]);
        Ok(())
    }

    fn start_tls(&mut self, data: &[u8]) -> Result<(), Refusal> {
        Reader(data).end()?;
        if self.encryption == Encryption::Begun {
            return Err(invalid("the connection is encrypted already"));
        }
        self.stage = Stage::Encrypting;
        Ok(())
    }

    fn list(&self, data: &[u8], replies: &mut Replies) -> Result<(), Refusal> {
        Reader(data).end()?;
        for export in self.exports.iter() {
            let length = 4 + export.name.len() + export.description.len();
            put_answer_header(replies, option::LIST, answer::SERVER, length);
            replies.put_length(export.name.len());
            replies.put(export.name.as_bytes());
            replies.put(export.description.as_bytes());
        }
        Ok(())
    }

    /// Answers `INFO` and `GO`.
    fn tell(
        &self,
        number: u32,
        data: &[u8],
        replies: &mut Replies,
    ) -> Result<Arc<Export>, Refusal> {
        let mut reader = Reader(data);
        let name = reader.name()?;
        let count = reader.u16()?;
        let asked: Vec<u16> = (0..count).map(|_| reader.u16()).collect::<Result<_, _>>()?;
        reader.end()?;
        let export = self.export(name)?;
        put_answer_header(replies, number, answer::INFO, 12);
        replies.put_u16(info::EXPORT);
        replies.put_u64(export.device.size());
        replies.put_u16(abilities(export, self.dialect));
        put_answer_header(replies, number, answer::INFO, 14);
        replies.put_u16(info::BLOCK_SIZE);
        replies.put_u32(1);
        replies.put_u32(PREFERRED_BYTES);
        replies.put_u32(REQUEST_BYTES_MAX);
        for (kind, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if asked.contains(&kind) {
                put_answer_header(replies, number, answer::INFO, 2 + text.len());
                replies.put_u16(kind);
                replies.put(text.as_bytes());
            }
        }
        Ok(Arc::clone(export))
    }

    fn choose_structured(&mut self, data: &[u8]) -> Result<(), Refusal> {
        Reader(data).end()?;
        match self.dialect {
            Dialect::Simple => self.dialect = Dialect::Structured,
            Dialect::Structured => {
                return Err(invalid("structured replies are already negotiated"));
            }
            Dialect::Extended => {
                let text = "extended headers are already negotiated".to_owned();
                return Err(Refusal { answer: answer::ERR_EXTENDED, text });
            }
        }
        Ok(())
    }

    fn choose_extended(&mut self, data: &[u8]) -> Result<(), Refusal> {
        Reader(data).end()?;
        if self.dialect == Dialect::Extended {
            return Err(invalid("extended headers are already negotiated"));
        }
        self.dialect = Dialect::Extended;
        Ok(())
    }

    fn list_contexts(&self, data: &[u8], replies: &mut Replies) -> Result<(), Refusal> {
        let (export, queries) = self.queries(data)?;
        let is_allocation = |query: &&str| *query == allocation::NAME || *query == "base:";
        if queries.is_empty() || queries.iter().any(is_allocation) {
            put_context(replies, option::LIST_META_CONTEXT, 0, allocation::NAME);
        }
        let asks_lateness = queries.is_empty() || queries.iter().copied().any(lateness::is_meant);
        if let Some(pace) = export.pace.as_ref().filter(|_| asks_lateness) {
            put_context(replies, option::LIST_META_CONTEXT, 0, &lateness::name(pace));
        }
        Ok(())
    }

    fn set_contexts(&mut self, data: &[u8], replies: &mut Replies) -> Result<(), Refusal> {
        self.allocation_of = None;
        let (export, queries) = self.queries(data)?;
        if queries.contains(&allocation::NAME) {
            self.allocation_of = Some(export.name.clone());
            put_context(replies, option::SET_META_CONTEXT, allocation::ID, allocation::NAME);
        }
        Ok(())
    }

    /// The export that a client asks about, and the names of contexts that it asks for.
    fn queries<'a>(&self, data: &'a [u8]) -> Result<(Arc<Export>, Vec<&'a str>), Refusal> {
        if self.dialect == Dialect::Simple {
            return Err(invalid("negotiate structured replies first"));
        }
        let mut reader = Reader(data);
        let name = reader.name()?;
        let count = reader.u32()?;
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(reader.name()?);
        }
        reader.end()?;
        Ok((Arc::clone(self.export(name)?), queries))
    }

    fn export(&self, name: &str) -> Result<&Arc<Export>, Refusal> {
        self.exports.find(name).ok_or_else(|| Refusal {
            answer: answer::ERR_UNKNOWN,
            text: "no export has this name; LIST returns all names".into(),
        })
    }
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Refusal> {
        let (bytes, rest) =
            self.0.split_at_checked(length).ok_or_else(|| invalid("the option is too short"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn u16(&mut self) -> Result<u16, Refusal> {
        Ok(u16_at(self.bytes(2)?, 0))
    }

    fn u32(&mut self) -> Result<u32, Refusal> {
        Ok(u32_at(self.bytes(4)?, 0))
    }

    /// A text with its length before it.
    fn name(&mut self) -> Result<&'a str, Refusal> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| invalid("a name is not UTF-8"))
    }

    fn end(&self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid("the option is too long")) }
    }
}

fn invalid(text: &str) -> Refusal {
    Refusal { answer: answer::ERR_INVALID, text: text.to_owned() }
}

fn put_answer_header(replies: &mut Replies, option: u32, answer: u32, length: usize) {
    replies.put_u64(wire::OPTION_REPLY);
    replies.put_u32(option);
    replies.put_u32(answer);
    replies.put_length(length);
}

fn put_answer(replies: &mut Replies, option: u32, answer: u32, data: &[u8]) {
    put_answer_header(replies, option, answer, data.len());
    replies.put(data);
}

/// Puts down a context by its identifier, 0 in a list, and its name.
fn put_context(replies: &mut Replies, option: u32, id: u32, name: &str) {
    put_answer_header(replies, option, answer::META_CONTEXT, 4 + name.len());
    replies.put_u32(id);
    replies.put(name.as_bytes());
}

/// Returns the transmission flags of an export.
fn abilities(export: &Export, dialect: Dialect) -> u16 {
    // A device's flush covers what it acknowledged to any client, so several connections to it
    // are as good as one.
    let mut abilities = ability::HAS_FLAGS | ability::MULTI_CONN | ability::CACHE;
    // A device without a write cache needs neither, and carries them out all the same.
    if !export.device.is_write_through() {
        abilities |= ability::FLUSH | ability::FUA;
    }
    if export.refuses_changes() {
        abilities |= ability::READ_ONLY;
    } else {
        abilities |= ability::TRIM | ability::WRITE_ZEROES | ability::FAST_ZERO;
    }
    if dialect != Dialect::Simple {
        abilities |= ability::DONT_FRAGMENT;
    }
    abilities
}

#[cfg(test)]
mod tests;
