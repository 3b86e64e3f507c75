//! Identifiers of objects and methods (TCG Core 2.01, 6.3; Opal SSC 2.02, 4.2 and 4.3), and status
//! codes of methods (TCG Core 2.01, 5.1.5).

use serde::{Deserialize, Serialize};

use crate::token::Value;

/// Ranges beside the global one.
pub const RANGES: u16 = 8;
/// Administrators of the Locking SP.
pub const ADMINS: u16 = 4;
/// Users of the Locking SP: one for each range, the global one too.
pub const USERS: u16 = 9;

/// Identifier of an object or a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// Session manager.
    pub const SESSION_MANAGER: Self = Self(0xFF);
    /// SP of the session.
    pub const THIS_SP: Self = Self(0x01);
    /// Admin SP.
    pub const ADMIN_SP: Self = Self(0x0000_0205_0000_0001);
    /// Locking SP.
    pub const LOCKING_SP: Self = Self(0x0000_0205_0000_0002);
    /// Authority of all.
    pub const PUBLIC: Self = Self(0x0000_0009_0000_0001);
    /// Class of administrators.
    pub const ADMIN_CLASS: Self = Self(0x0000_0009_0000_0002);
    /// Class of users.
    pub const USER_CLASS: Self = Self(0x0000_0009_0003_0000);
    /// Owner of the drive.
    pub const SID: Self = Self(0x0000_0009_0000_0006);
    /// Holder of the drive, who reads its label.
    pub const PSID: Self = Self(0x0000_0009_0001_FF01);
    /// Credential of the owner.
    pub const PIN_SID: Self = Self(0x0000_000B_0000_0001);
    /// Credential that the owner has at first, which all may read.
    pub const PIN_MSID: Self = Self(0x0000_000B_0000_8402);
    /// Credential of the holder.
    pub const PIN_PSID: Self = Self(0x0000_000B_0001_FF01);
    /// Capabilities of the Locking SP.
    pub const LOCKING_INFO: Self = Self(0x0000_0801_0000_0001);
    /// Control of the MBR shadow.
    pub const MBR_CONTROL: Self = Self(0x0000_0803_0000_0001);
    /// MBR shadow.
    pub const MBR: Self = Self(0x0000_0804_0000_0000);
    /// Table of data of hosts.
    pub const DATA_STORE: Self = Self(0x0000_1001_0000_0000);

    const ADMIN1: u64 = 0x0000_0009_0001_0001;
    const USER1: u64 = 0x0000_0009_0003_0001;
    const PIN_ADMIN1: u64 = 0x0000_000B_0001_0001;
    const PIN_USER1: u64 = 0x0000_000B_0003_0001;
    const GLOBAL_RANGE: u64 = 0x0000_0802_0000_0001;
    const RANGE1: u64 = 0x0000_0802_0003_0001;
    const GLOBAL_KEY: u64 = 0x0000_0806_0000_0001;
    const KEY1: u64 = 0x0000_0806_0003_0001;
    const ACE: u64 = 0x0000_0008_0000_0000;

    /// An administrator, from 1.
    pub const fn admin(number: u16) -> Self {
        Self(Self::ADMIN1 + number as u64 - 1)
    }

    /// A user, from 1.
    pub const fn user(number: u16) -> Self {
        Self(Self::USER1 + number as u64 - 1)
    }

    /// A range; 0 is the global one.
    pub const fn range(number: u16) -> Self {
        match number {
            0 => Self(Self::GLOBAL_RANGE),
            _ => Self(Self::RANGE1 + number as u64 - 1),
        }
    }

    /// The key of a range.
    pub const fn key(number: u16) -> Self {
        match number {
            0 => Self(Self::GLOBAL_KEY),
            _ => Self(Self::KEY1 + number as u64 - 1),
        }
    }

    /// The credential of an authority of the Locking SP: its row in `C_PIN`.
    pub const fn pin(of: Self) -> Self {
        Self(of.0 & 0xFFFF_FFFF | 0x0000_000B_0000_0000)
    }

    const fn ace(number: u64) -> Self {
        Self(Self::ACE | number)
    }

    /// Number of this object among `count` whose first one, 1, is `first`.
    fn number_from(self, first: u64, count: u16) -> Option<u16> {
        let index = self.0.checked_sub(first).and_then(|it| u16::try_from(it).ok())?;
        (index < count).then_some(index + 1)
    }

    /// The kind of object that it names; none if there is no such object.
    pub fn object(self) -> Option<Object> {
        let admin =
            self.number_from(Self::ADMIN1, ADMINS).map(|it| Object::Authority(Self::admin(it)));
        let user = self.number_from(Self::USER1, USERS).map(|it| Object::Authority(Self::user(it)));
        let pin_admin = self.number_from(Self::PIN_ADMIN1, ADMINS);
        let pin_user = self.number_from(Self::PIN_USER1, USERS);
        let range = self.number_from(Self::RANGE1, RANGES).map(Object::Range);
        let key = self.number_from(Self::KEY1, RANGES).map(Object::Key);
        let known = match self.0 {
            Self::GLOBAL_RANGE => Some(Object::Range(0)),
            Self::GLOBAL_KEY => Some(Object::Key(0)),
            _ => match self {
                Self::THIS_SP => Some(Object::ThisSp),
                Self::ADMIN_SP | Self::LOCKING_SP => Some(Object::Sp(self)),
                Self::PUBLIC | Self::ADMIN_CLASS | Self::USER_CLASS | Self::SID | Self::PSID => {
                    Some(Object::Authority(self))
                }
                Self::PIN_SID => Some(Object::Pin(Self::SID)),
                Self::PIN_PSID => Some(Object::Pin(Self::PSID)),
                Self::PIN_MSID => Some(Object::Msid),
                Self::LOCKING_INFO => Some(Object::LockingInfo),
                Self::MBR_CONTROL => Some(Object::MbrControl),
                Self::MBR => Some(Object::Bytes(ByteTable::Mbr)),
                Self::DATA_STORE => Some(Object::Bytes(ByteTable::DataStore)),
                _ => None,
            },
        };
        let table = ByteTable::ALL.into_iter().find(|it| it.row() == self).map(Object::Table);
        let ace = Ace::of(self).map(Object::Ace);
        known
            .or(admin)
            .or(user)
            .or(pin_admin.map(|it| Object::Pin(Self::admin(it))))
            .or(pin_user.map(|it| Object::Pin(Self::user(it))))
            .or(range)
            .or(key)
            .or(table)
            .or(ace)
    }
}

impl From<ObjectId> for Value {
    fn from(uid: ObjectId) -> Self {
        Self::Bytes(uid.0.to_be_bytes().to_vec())
    }
}

impl TryFrom<&Value> for ObjectId {
    type Error = ();

    fn try_from(value: &Value) -> Result<Self, ()> {
        let bytes = value.bytes().ok_or(())?.try_into().map_err(drop)?;
        Ok(Self(u64::from_be_bytes(bytes)))
    }
}

/// Table of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteTable {
    /// MBR shadow (Opal SSC 2.02, 4.3.5.4).
    Mbr,
    /// Data of hosts (Opal SSC 2.02, 4.3.6).
    DataStore,
}

impl ByteTable {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Mbr, Self::DataStore];

    /// Its bytes: the least that the specification admits.
    pub const fn size(self) -> u64 {
        match self {
            Self::Mbr => 0x0800_0000,
            Self::DataStore => 0x00A0_0000,
        }
    }

    /// Its row in the table of tables.
    const fn row(self) -> ObjectId {
        let uid = match self {
            Self::Mbr => ObjectId::MBR,
            Self::DataStore => ObjectId::DATA_STORE,
        };
        ObjectId(1 << 32 | uid.0 >> 32)
    }
}

/// Object of an SP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// SP of the session.
    ThisSp,
    /// Row of an SP.
    Sp(ObjectId),
    /// Row of an authority.
    Authority(ObjectId),
    /// Row of the credential of an authority.
    Pin(ObjectId),
    /// Row of the credential that all may read.
    Msid,
    /// Capabilities of the Locking SP.
    LockingInfo,
    /// Range, 0 for the global one.
    Range(u16),
    /// Key of a range.
    Key(u16),
    /// Control of the MBR shadow.
    MbrControl,
    /// Table of bytes.
    Bytes(ByteTable),
    /// Row of a table of bytes in the table of tables.
    Table(ByteTable),
    /// Row of an access control element.
    Ace(Ace),
}

/// Access control element whose authorities hosts may set (Opal SSC 2.02, 4.3.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ace {
    /// Set of the PIN of a user.
    SetPin(u16),
    /// GenKey of the key of a range.
    GenKey(u16),
    /// Get of a range, from its start to its key.
    GetRange(u16),
    /// Set of the read lock of a range.
    SetReadLocked(u16),
    /// Set of the write lock of a range.
    SetWriteLocked(u16),
    /// Set of the end of the MBR shadow, and of what ends that.
    SetMbrDone,
    /// Get of the table of data of hosts.
    GetDataStore,
    /// Set of that.
    SetDataStore,
}

impl Ace {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_ranges = (0..=RANGES).flat_map(|it| {
            [
                Self::GenKey(it),
                Self::GetRange(it),
                Self::SetReadLocked(it),
                Self::SetWriteLocked(it),
            ]
        });
        let others = [Self::SetMbrDone, Self::GetDataStore, Self::SetDataStore];
        (1..=USERS).map(Self::SetPin).chain(of_ranges).chain(others)
    }

    /// Its identifier.
    pub const fn uid(self) -> ObjectId {
        ObjectId::ace(match self {
            Self::SetPin(user) => 0x0003_A800 + user as u64,
            Self::GenKey(range) => 0x0003_B800 + range as u64,
            Self::GetRange(range) => 0x0003_D000 + range as u64,
            Self::SetReadLocked(range) => 0x0003_E000 + range as u64,
            Self::SetWriteLocked(range) => 0x0003_E800 + range as u64,
            Self::SetMbrDone => 0x0003_F801,
            Self::GetDataStore => 0x0003_FC00,
            Self::SetDataStore => 0x0003_FC01,
        })
    }

    fn of(uid: ObjectId) -> Option<Self> {
        Self::all().find(|it| it.uid() == uid)
    }
}

/// Method, by identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Method {
    /// Exchange of properties (TCG Core 2.01, 5.2.2).
    Properties = 0xFF01,
    /// Begin of a session (TCG Core 2.01, 5.2.3.1).
    StartSession = 0xFF02,
    /// Answer to that (TCG Core 2.01, 5.2.3.2).
    SyncSession = 0xFF03,
    /// Revert (Opal SSC 2.02, 5.1.2).
    Revert = 0x0006_0000_0202,
    /// Activate (Opal SSC 2.02, 5.1.1).
    Activate = 0x0006_0000_0203,
    /// Next (TCG Core 2.01, 5.3.3.13).
    Next = 0x0006_0000_0008,
    /// GenKey (TCG Core 2.01, 5.3.3.16).
    GenKey = 0x0006_0000_0010,
    /// RevertSP (Opal SSC 2.02, 5.1.3).
    RevertSp = 0x0006_0000_0011,
    /// Get (TCG Core 2.01, 5.3.3.6).
    Get = 0x0006_0000_0016,
    /// Set (TCG Core 2.01, 5.3.3.7).
    Set = 0x0006_0000_0017,
    /// Authenticate (TCG Core 2.01, 5.3.3.12).
    Authenticate = 0x0006_0000_001C,
    /// Random (TCG Core 2.01, 5.6.4.1).
    Random = 0x0006_0000_0601,
}

impl Method {
    const ALL: [Self; 12] = [
        Self::Properties,
        Self::StartSession,
        Self::SyncSession,
        Self::Revert,
        Self::Activate,
        Self::Next,
        Self::GenKey,
        Self::RevertSp,
        Self::Get,
        Self::Set,
        Self::Authenticate,
        Self::Random,
    ];

    /// Its identifier.
    pub(crate) const fn uid(self) -> ObjectId {
        ObjectId(self as u64)
    }

    /// The method of an identifier, if there is one.
    pub(crate) fn of(uid: ObjectId) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.uid() == uid)
    }
}

/// Status code of a method that was not carried out (TCG Core 2.01, 5.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodStatus {
    /// The session's authorities may not do that.
    NotAuthorized = 0x01,
    /// Another session has the SP.
    SpBusy = 0x03,
    /// Another session is open.
    NoSessionsAvailable = 0x07,
    /// The rows do not fit into the table.
    InsufficientRows = 0x0A,
    /// The object has no such method.
    InvalidFunction = 0x0B,
    /// A parameter is of the wrong form or value.
    InvalidParameter = 0x0C,
    /// The drive or the system failed; nothing has changed.
    TperMalfunction = 0x0F,
    /// The answer is larger than the host takes.
    ResponseOverflow = 0x11,
    /// The authority failed to authenticate too often.
    AuthorityLockedOut = 0x12,
    /// Anything else.
    Fail = 0x3F,
}
