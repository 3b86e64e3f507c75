//! First message of a TLS client, as far as a server chooses a pre-shared key by it ([rfc-8446],
//! section 4.2.11).
//!
//! The library checks the message; here it is only read, and what cannot be read offers no key.

/// Bytes of the header of a record.
const RECORD_HEADER_BYTES: usize = 5;
/// Content type of records with messages of the handshake.
pub(crate) const HANDSHAKE: u8 = 22;
/// Bytes of the header of a message.
const MESSAGE_HEADER_BYTES: usize = 4;
/// Largest message that is taken: a client with some keys to offer needs a part of it.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
const PRE_SHARED_KEY: u16 = 41;

/// The message, whole.
pub(crate) struct ClientHello(Vec<u8>);

/// A key that a client offers, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer<'a> {
    pub(crate) identity: &'a [u8],
    /// Proof that the client has the key, for [`Offers::signed`].
    pub(crate) binder: &'a [u8],
}

/// The keys that a client offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers<'a> {
    pub(crate) each: Vec<Offer<'a>>,
    /// The part of the message that binders are made of.
    pub(crate) signed: &'a [u8],
}

impl ClientHello {
    /// The message that begins `received`, a stream of records; none until all of it is there.
    ///
    /// # Errors
    /// Fails if the stream begins with something else, or the message is too large.
    pub(crate) fn of(mut received: &[u8]) -> Result<Option<Self>, &'static str> {
        let mut message = Vec::new();
        while let Some((header, rest)) = received.split_at_checked(RECORD_HEADER_BYTES) {
            if header[0] != HANDSHAKE {
                return Err("it does not begin with a ClientHello");
            }
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            let (part, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            message.extend_from_slice(part);
            if let [kind, high, middle, low, ..] = *message {
                let body = u32::from_be_bytes([0, high, middle, low]);
                let whole = MESSAGE_HEADER_BYTES + usize::try_from(body).unwrap_or(usize::MAX);
                if kind != 1 || whole > MESSAGE_BYTES_MAX {
                    return Err("it does not begin with a ClientHello of a usual size");
                }
                if message.len() >= whole {
                    message.truncate(whole);
                    return Ok(Some(Self(message)));
                }
            }
            received = rest;
        }
        Ok(None)
    }

    /// The keys that the client offers.
    pub(crate) fn offers(&self) -> Offers<'_> {
        offers(&self.0).unwrap_or_default()
    }
}

/// Bytes that are read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A vector, after its length in so many bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.bytes(length_bytes)?;
        self.bytes(length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2).map(|it| u16::from_be_bytes([it[0], it[1]]))
    }
}

fn offers(message: &[u8]) -> Option<Offers<'_>> {
    let mut it = Reader(message.get(MESSAGE_HEADER_BYTES..)?);
    // legacy_version, random
    it.bytes(2 + 32)?;
    // legacy_session_id, cipher_suites, legacy_compression_methods
    it.vector(1)?;
    it.vector(2)?;
    it.vector(1)?;
    let mut extensions = Reader(it.vector(2)?);
    let extension = loop {
        let kind = extensions.u16()?;
        let data = extensions.vector(2)?;
        if kind == PRE_SHARED_KEY {
            break data;
        }
    };
    let mut extension = Reader(extension);
    let mut identities = Reader(extension.vector(2)?);
    // What binders are made of ends before their length, and they end the message.
    let signed = message.len().checked_sub(extension.0.len())?;
    let mut binders = Reader(extension.vector(2)?);
    let mut each = Vec::new();
    while !identities.0.is_empty() {
        let identity = identities.vector(2)?;
        // obfuscated_ticket_age
        identities.bytes(4)?;
        each.push(Offer { identity, binder: binders.vector(1)? });
    }
    Some(Offers { each, signed: &message[..signed] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(length_bytes: usize, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&length[4 - length_bytes..], bytes].concat()
    }

    /// A message with these extensions.
    fn message(extensions: &[u8]) -> Vec<u8> {
        let fields = [vector(1, &[7; 32]), vector(2, &[0x13, 1]), vector(1, &[0])].concat();
        let body = [&[3, 3][..], &[9; 32], &fields, &vector(2, extensions)].concat();
        [&[1][..], &vector(3, &body)].concat()
    }

    fn keys(offered: &[(&[u8], &[u8])]) -> (Vec<u8>, usize) {
        let identity = |it: &(&[u8], &[u8])| [vector(2, it.0), vec![0; 4]].concat();
        let identities: Vec<u8> = offered.iter().flat_map(identity).collect();
        let binders: Vec<u8> = offered.iter().flat_map(|it| vector(1, it.1)).collect();
        let binders = vector(2, &binders);
        let data = [vector(2, &identities), binders.clone()].concat();
        ([&PRE_SHARED_KEY.to_be_bytes()[..], &vector(2, &data)].concat(), binders.len())
    }

    /// The message as records of at most so many bytes.
    fn records(message: &[u8], bytes: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &vector(2, part)].concat();
        message.chunks(bytes).flat_map(record).collect()
    }

    #[test]
    fn keys_are_found_however_the_message_is_cut_into_records() {
        let (keys, binders) = keys(&[(b"one", &[1; 32]), (b"two", &[2; 48])]);
        let message = message(&[&[0, 43, 0, 3, 2, 3, 4][..], &keys].concat());
        for bytes in [1, 7, 100, 16384] {
            let stream = records(&message, bytes);
            for end in 0..stream.len() {
                assert!(ClientHello::of(&stream[..end]).unwrap().is_none(), "{end} of {bytes}");
            }
            let hello = ClientHello::of(&[&stream[..], b"more"].concat()).unwrap().unwrap();
            let Offers { each, signed } = hello.offers();
            assert_eq!(each[0], Offer { identity: b"one", binder: &[1; 32] });
            assert_eq!(each[1], Offer { identity: b"two", binder: &[2; 48] });
            assert_eq!(signed, &message[..message.len() - binders]);
        }
    }

    #[test]
    fn what_is_no_message_of_a_client_is_refused_and_one_that_is_cut_short_offers_nothing() {
        for wrong in [&[23, 3, 3, 0, 1, 1][..], &[22, 3, 1, 0, 4, 2, 0, 0, 9], b"\0\0\x80\0\x80"] {
            assert!(ClientHello::of(wrong).is_err(), "{wrong:?}");
        }
        let huge = records(&[1, 1, 0, 0], 4);
        assert!(ClientHello::of(&huge).is_err());
        let (keys, _) = keys(&[(b"one", &[1; 32])]);
        for cut in 0..keys.len() {
            let offers = ClientHello(message(&keys[..cut]));
            assert!(offers.offers().each.is_empty(), "{cut}");
        }
    }
}
