//! The host's side of a session, for tests of what has a drive's side.
//!
//! Messages are those of sedutil-cli; answers are read by the numbers of their tokens.

use crate::discovery::COM_ID;
use crate::packet::{self, Message, SessionNumbers};
use crate::token::{Control, Token, Tokens, Value};
use crate::uid::{Method, ObjectId};

/// Host of a drive, to which `exchange` sends a message and receives its answer.
pub struct Host<E> {
    exchange: E,
    session: SessionNumbers,
}

impl<E> std::fmt::Debug for Host<E> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Host").field("session", &self.session).finish_non_exhaustive()
    }
}

impl<E: FnMut(Vec<u8>) -> Vec<u8>> Host<E> {
    /// A host without a session.
    pub fn new(exchange: E) -> Self {
        Self { exchange, session: SessionNumbers::default() }
    }

    /// Sends tokens. Returns the answer's.
    fn send(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut frame = packet::write(&Message { com_id: COM_ID, session: self.session, payload });
        frame.resize(frame.len().next_multiple_of(512), 0);
        let answer = (self.exchange)(frame);
        packet::read(&answer).map_or_else(Vec::new, |it| it.payload.to_vec())
    }

    /// Calls a method. Returns its status and its results; 255 if there is no answer.
    fn call(
        &mut self,
        invoking: ObjectId,
        method: Method,
        parameters: Vec<Value>,
    ) -> (u64, Vec<Value>) {
        let mut payload = vec![Control::Call as u8];
        Value::from(invoking).encode(&mut payload);
        Value::from(method.uid()).encode(&mut payload);
        Value::List(parameters).encode(&mut payload);
        payload.push(Control::EndOfData as u8);
        Value::List(vec![0.into(), 0.into(), 0.into()]).encode(&mut payload);
        let answer = self.send(&payload);
        read(&answer).unwrap_or((255, Vec::new()))
    }

    /// Begins a session of an SP as an authority. Returns the status.
    pub fn start(&mut self, sp: ObjectId, authority: Option<(ObjectId, &[u8])>) -> u64 {
        self.session = SessionNumbers::default();
        let mut parameters = vec![105.into(), sp.into(), 1.into()];
        if let Some((authority, pin)) = authority {
            parameters.push(Value::named(0, pin));
            parameters.push(Value::named(3, authority));
        }
        let (status, numbers) =
            self.call(ObjectId::SESSION_MANAGER, Method::StartSession, parameters);
        let number = |at: usize| numbers.get(at).and_then(Value::unsigned).unwrap_or(0);
        let (host, tper) = (u32::try_from(number(0)), u32::try_from(number(1)));
        self.session = SessionNumbers { tper: tper.unwrap_or(0), host: host.unwrap_or(0) };
        status
    }

    /// Ends the session.
    pub fn end(&mut self) {
        self.send(&[Control::EndOfSession as u8]);
    }

    /// Reads a column of a row; none if the drive refuses.
    pub fn get(&mut self, row: ObjectId, column: u64) -> Option<Value> {
        let cells = vec![Value::named(3, column), Value::named(4, column)];
        let (status, results) = self.call(row, Method::Get, vec![cells.into()]);
        let Some([Value::Named(named), ..]) = results.first().and_then(Value::list) else {
            return None;
        };
        (status == 0).then(|| named.1.clone())
    }

    /// Sets columns of a row. Returns the status.
    pub fn set(&mut self, row: ObjectId, columns: &[(u64, Value)]) -> u64 {
        let columns: Vec<Value> =
            columns.iter().map(|(column, value)| Value::named(*column, value.clone())).collect();
        self.call(row, Method::Set, vec![Value::named(1, columns)]).0
    }

    /// Writes a table of bytes. Returns the status.
    pub fn write(&mut self, table: ObjectId, offset: u64, bytes: &[u8]) -> u64 {
        let parameters = vec![Value::named(0, offset), Value::named(1, bytes)];
        self.call(table, Method::Set, parameters).0
    }

    /// Activates the Locking SP. Returns the status.
    pub fn activate(&mut self) -> u64 {
        self.call(ObjectId::LOCKING_SP, Method::Activate, Vec::new()).0
    }

    /// Has what a range holds erased. Returns the status.
    pub fn generate_key(&mut self, range: u16) -> u64 {
        self.call(ObjectId::key(range), Method::GenKey, Vec::new()).0
    }

    /// Reverts the drive. Returns the status.
    pub fn revert(&mut self) -> u64 {
        self.call(ObjectId::ADMIN_SP, Method::Revert, Vec::new()).0
    }

    /// Takes a new drive, activates the Locking SP and ends its sessions, as `--initialSetup`
    /// begins. Returns whether all of it succeeded.
    pub fn take_ownership(&mut self, pin: &[u8]) -> bool {
        let mut is_done = self.start(ObjectId::ADMIN_SP, None) == 0;
        let msid = self.get(ObjectId::PIN_MSID, 3);
        self.end();
        let Some(Value::Bytes(msid)) = msid else { return false };
        is_done &= self.start(ObjectId::ADMIN_SP, Some((ObjectId::SID, &msid))) == 0;
        is_done &= self.set(ObjectId::PIN_SID, &[(3, pin.into())]) == 0;
        self.end();
        is_done &= self.start(ObjectId::ADMIN_SP, Some((ObjectId::SID, pin))) == 0;
        is_done &= self.activate() == 0;
        self.end();
        is_done
    }

    /// Sets columns of a range as Admin1, in a session of its own. Returns the status.
    pub fn set_range(&mut self, pin: &[u8], range: u16, columns: &[(u64, u64)]) -> u64 {
        let columns: Vec<(u64, Value)> =
            columns.iter().map(|(column, value)| (*column, (*value).into())).collect();
        match self.start(ObjectId::LOCKING_SP, Some((ObjectId::admin(1), pin))) {
            0 => {
                let status = self.set(ObjectId::range(range), &columns);
                self.end();
                status
            }
            status => status,
        }
    }
}

/// Status and results of an answer, which is a call itself if it is one of the session manager.
fn read(answer: &[u8]) -> Option<(u64, Vec<Value>)> {
    let mut tokens = Tokens::new(answer);
    let mut after = tokens;
    if after.token().ok()? == Some(Token::Control(Control::Call)) {
        after.value().ok()?;
        after.value().ok()?;
        tokens = after;
    }
    let Value::List(results) = tokens.value().ok()? else { return None };
    let end = tokens.token().ok()?;
    let status = tokens.value().ok()?.list()?.first()?.unsigned()?;
    (end == Some(Token::Control(Control::EndOfData))).then_some((status, results))
}
