//! Promise about acknowledged writes, and what is left of them after the death of a server.

use serde::{Deserialize, Serialize};

/// Promise about every acknowledged write and trim: what it survives, flushed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// A cut of the power: it is acknowledged once it is durable, and no write is cached.
    PowerLoss,
    /// The death of the server, as long as the machine lives; a flush makes it survive the power.
    #[default]
    ServerDeath,
    /// Nothing before a flush.
    Nothing,
}

impl Promise {
    /// The word, as JSON has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PowerLoss => "power-loss",
            Self::ServerDeath => "server-death",
            Self::Nothing => "nothing",
        }
    }

    /// All of them.
    pub const ALL: [Self; 3] = [Self::PowerLoss, Self::ServerDeath, Self::Nothing];
}

/// Contents of a write buffer that the death of a server left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBuffer {
    /// Pages of 4096 bytes with writes in it, each counted once.
    pub pages: u64,
    /// Trims in it.
    pub trims: u64,
    /// True if opening the volume replays it; not known before the journal has been read.
    pub is_replayed: Option<bool>,
    /// Reason why opening ignores it, or replays only a part, one sentence.
    pub reason: Option<String>,
}

impl LeftBuffer {
    /// A write buffer that does not count, and why.
    pub fn ignored(reason: String) -> Self {
        Self { is_replayed: Some(false), reason: Some(reason), ..Self::default() }
    }
}
