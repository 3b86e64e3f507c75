//! Promise about acknowledged writes.

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
