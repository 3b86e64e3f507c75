//! Tokens of messages, and the values that they make up (TCG Core 2.01, 3.2.2.3).
//!
//! **Invariants**
//! - What is cut off, nested deeper than [`DEPTH_MAX`] or of a reserved form is an error.

/// Deepest nesting of lists and names. Those of clients have five.
const DEPTH_MAX: u32 = 12;

/// Token of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Begin of a list.
    StartList = 0xF0,
    /// End of a list.
    EndList = 0xF1,
    /// Begin of a named value.
    StartName = 0xF2,
    /// End of a named value.
    EndName = 0xF3,
    /// Call of a method.
    Call = 0xF8,
    /// End of the parameters or results of a method.
    EndOfData = 0xF9,
    /// End of a session.
    EndOfSession = 0xFA,
    /// Begin of a transaction.
    StartTransaction = 0xFB,
    /// End of a transaction.
    EndTransaction = 0xFC,
}

const CONTROLS: [Control; 9] = [
    Control::StartList,
    Control::EndList,
    Control::StartName,
    Control::EndName,
    Control::Call,
    Control::EndOfData,
    Control::EndOfSession,
    Control::StartTransaction,
    Control::EndTransaction,
];
/// Token without meaning, which may stand anywhere.
const EMPTY: u8 = 0xFF;

/// Token of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// Unsigned integer.
    Unsigned(u64),
    /// Signed integer.
    Signed(i64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Token of control.
    Control(Control),
}

/// Reason why tokens cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// The bytes end within a token or a value.
    #[error("the tokens are cut off at byte {0}")]
    Truncated(usize),
    /// A token that is reserved, too long, or continued in another one.
    #[error("the token at byte {0} is not supported")]
    Unsupported(usize),
    /// A token that cannot stand there.
    #[error("the token before byte {0} is out of place")]
    Misplaced(usize),
    /// Nested too deeply.
    #[error("values are nested more deeply than 12 times")]
    Depth,
}

/// Value of a message (TCG Core 2.01, 3.2.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Unsigned integer.
    Unsigned(u64),
    /// Signed integer.
    Signed(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// List of values.
    List(Vec<Value>),
    /// Named value: name, and value.
    Named(Box<(Value, Value)>),
}

impl Value {
    /// A named value.
    pub fn named(name: impl Into<Self>, value: impl Into<Self>) -> Self {
        Self::Named(Box::new((name.into(), value.into())))
    }

    /// The unsigned integer that it is.
    pub const fn unsigned(&self) -> Option<u64> {
        if let Self::Unsigned(number) = self { Some(*number) } else { None }
    }

    /// The bytes that it is.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The values of the list that it is.
    pub fn list(&self) -> Option<&[Self]> {
        if let Self::List(values) = self { Some(values) } else { None }
    }

    /// Appends its tokens.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unsigned(number) => encode_unsigned(*number, out),
            Self::Signed(number) => encode_signed(*number, out),
            Self::Bytes(bytes) => encode_bytes(bytes, out),
            Self::List(values) => {
                out.push(Control::StartList as u8);
                for value in values {
                    value.encode(out);
                }
                out.push(Control::EndList as u8);
            }
            Self::Named(named) => {
                out.push(Control::StartName as u8);
                named.0.encode(out);
                named.1.encode(out);
                out.push(Control::EndName as u8);
            }
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Self {
        Self::Unsigned(is_so.into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<Vec<Self>> for Value {
    fn from(values: Vec<Self>) -> Self {
        Self::List(values)
    }
}

fn encode_unsigned(number: u64, out: &mut Vec<u8>) {
    if number < 0x40 {
        out.push(u8::try_from(number).expect("six bits"));
        return;
    }
    let bytes = number.to_be_bytes();
    let skipped = bytes.iter().take_while(|it| **it == 0).count();
    out.push(0x80 | u8::try_from(bytes.len() - skipped).expect("at most eight"));
    out.extend(&bytes[skipped..]);
}

fn encode_signed(number: i64, out: &mut Vec<u8>) {
    if (-32..32).contains(&number) {
        out.push(0x40 | u8::try_from(number & 0x3F).expect("six bits"));
        return;
    }
    out.push(0x98);
    out.extend(number.to_be_bytes());
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).expect("a message has less than 16 MiB");
    let [_, high, middle, low] = length.to_be_bytes();
    match length {
        0..16 => out.push(0xA0 | low),
        16..2048 => out.extend([0xD0 | middle, low]),
        _ => {
            assert!(length < 1 << 24, "a message has less than 16 MiB");
            out.extend([0xE2, high, middle, low]);
        }
    }
    out.extend(bytes);
}

/// Reader of tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of these bytes.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], TokenError> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length));
        let taken = taken.ok_or(TokenError::Truncated(self.at))?;
        self.at += length;
        Ok(taken)
    }

    /// Reads the next token; none at the end.
    ///
    /// # Errors
    /// Fails if it is cut off or not supported.
    pub(crate) fn token(&mut self) -> Result<Option<Token<'a>>, TokenError> {
        while self.bytes.get(self.at) == Some(&EMPTY) {
            self.at += 1;
        }
        let begin = self.at;
        let Some(first) = self.bytes.get(begin).copied() else { return Ok(None) };
        self.at += 1;
        let (is_bytes, is_signed, length) = match first {
            0x00..=0x3F => return Ok(Some(Token::Unsigned(first.into()))),
            0x40..=0x7F => {
                let number = i64::from(first & 0x3F);
                return Ok(Some(Token::Signed(if number < 32 { number } else { number - 64 })));
            }
            0x80..=0xBF => (first & 0x20 != 0, first & 0x10 != 0, usize::from(first & 0xF)),
            0xC0..=0xDF => {
                let low = self.take(1)?[0];
                let length = usize::from(first & 7) << 8 | usize::from(low);
                (first & 0x10 != 0, first & 0x08 != 0, length)
            }
            0xE0..=0xE3 => {
                let length = self.take(3)?.iter().fold(0, |all, it| all << 8 | usize::from(*it));
                (first & 2 != 0, first & 1 != 0, length)
            }
            _ => {
                let control = CONTROLS.into_iter().find(|it| *it as u8 == first);
                let control = control.ok_or(TokenError::Unsupported(begin))?;
                return Ok(Some(Token::Control(control)));
            }
        };
        match (is_bytes, is_signed, length) {
            (true, false, _) => Ok(Some(Token::Bytes(self.take(length)?))),
            (false, _, 1..=8) => Ok(Some(integer(self.take(length)?, is_signed))),
            // Bytes that go on in the next token, and integers beyond 64 bits.
            _ => Err(TokenError::Unsupported(begin)),
        }
    }

    /// Reads the next value; none if there is another token, which is read.
    ///
    /// # Errors
    /// Fails if it is cut off, not supported or nested too deeply.
    pub(crate) fn value(&mut self) -> Result<Value, TokenError> {
        match self.value_or_end(0)? {
            Ok(value) => Ok(value),
            Err(_) => Err(TokenError::Misplaced(self.at)),
        }
    }

    /// Reads a value, or a token of control that begins none.
    fn value_or_end(&mut self, depth: u32) -> Result<Result<Value, Control>, TokenError> {
        if depth > DEPTH_MAX {
            return Err(TokenError::Depth);
        }
        let token = self.token()?.ok_or(TokenError::Truncated(self.at))?;
        Ok(Ok(match token {
            Token::Unsigned(number) => Value::Unsigned(number),
            Token::Signed(number) => Value::Signed(number),
            Token::Bytes(bytes) => bytes.into(),
            Token::Control(Control::StartList) => {
                let mut values = Vec::new();
                loop {
                    match self.value_or_end(depth + 1)? {
                        Ok(value) => values.push(value),
                        Err(Control::EndList) => return Ok(Ok(Value::List(values))),
                        Err(_) => return Err(TokenError::Misplaced(self.at)),
                    }
                }
            }
            Token::Control(Control::StartName) => {
                let (name, value) = (self.value_or_end(depth + 1)?, self.value_or_end(depth + 1)?);
                let end = self.value_or_end(depth + 1)?;
                match (name, value, end) {
                    (Ok(name), Ok(value), Err(Control::EndName)) => Value::named(name, value),
                    _ => return Err(TokenError::Misplaced(self.at)),
                }
            }
            Token::Control(other) => return Ok(Err(other)),
        }))
    }
}

fn integer(bytes: &[u8], is_signed: bool) -> Token<'_> {
    let is_negative = is_signed && bytes.first().is_some_and(|it| it & 0x80 != 0);
    let mut all = [if is_negative { 0xFF } else { 0 }; 8];
    all[8 - bytes.len()..].copy_from_slice(bytes);
    if is_signed {
        Token::Signed(i64::from_be_bytes(all))
    } else {
        Token::Unsigned(u64::from_be_bytes(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Value, TokenError> {
        Tokens::new(bytes).value()
    }

    #[test]
    fn values_of_every_form_are_read_as_they_were_written() {
        let long = vec![7; 3000];
        let values: Vec<Value> = vec![
            0.into(),
            63.into(),
            64.into(),
            0xFFFF.into(),
            u64::MAX.into(),
            Value::Signed(-1),
            Value::Signed(-33),
            Value::Signed(i64::MIN),
            "".into(),
            "fifteen letters".into(),
            "sixteen letters!".into(),
            long.as_slice().into(),
            Value::named(3, vec![Value::named("a", 5), true.into()]),
        ];
        let value = Value::List(values);
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(read(&bytes), Ok(value));
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "cut off at {end}");
        }
    }

    #[test]
    fn atoms_have_the_bytes_of_the_specification() {
        let encoded = |value: Value| {
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            bytes
        };
        assert_eq!(encoded(105.into()), [0x81, 105]);
        assert_eq!(encoded(0x0006_0000.into()), [0x83, 6, 0, 0]);
        assert_eq!(encoded(Value::Signed(-2)), [0x7E]);
        assert_eq!(encoded("ab".into()), [0xA2, b'a', b'b']);
        assert_eq!(encoded([1; 16].as_slice().into())[..3], [0xD0, 16, 1]);
        assert_eq!(encoded([1; 2048].as_slice().into())[..5], [0xE2, 0, 8, 0, 1]);
        // A client may write integers with leading zeroes, and in longer atoms.
        assert_eq!(read(&[0x84, 0, 0, 1, 2]), Ok(258.into()));
        assert_eq!(read(&[0xC0, 2, 1, 2]), Ok(258.into()));
        assert_eq!(read(&[0xFF, 0xFF, 0xE0, 0, 0, 1, 9]), Ok(9.into()));
    }

    #[test]
    fn reserved_and_misplaced_tokens_are_errors() {
        assert_eq!(read(&[0xE4]), Err(TokenError::Unsupported(0)));
        assert_eq!(read(&[0xF5]), Err(TokenError::Unsupported(0)));
        assert_eq!(read(&[0x80]), Err(TokenError::Unsupported(0)));
        assert_eq!(read(&[0xB1, 1]), Err(TokenError::Unsupported(0)));
        assert_eq!(read(&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(TokenError::Unsupported(0)));
        assert_eq!(read(&[0xF1]), Err(TokenError::Misplaced(1)));
        assert_eq!(read(&[0xF0, 0xF3]), Err(TokenError::Misplaced(2)));
        assert!(read(&[0xF2, 1, 0xF3]).is_err());
        assert_eq!(read(&[0xF0; 40]), Err(TokenError::Depth));
        assert_eq!(read(&[0xF0; 10]), Err(TokenError::Truncated(10)));
    }
}
