//! Exports: devices under the names that clients ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{Device, DeviceError};

use crate::{Pace, Recorder, Tls};

/// Longest name of an export in bytes, as the protocol has it.
pub const NAME_BYTES_MAX: usize = 4096;

/// A device under the name that clients ask for.
#[derive(Clone, Debug)]
pub struct Export {
    /// Name by which clients ask for it; may be empty. At most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Device that clients read and write.
    pub device: Arc<dyn Device>,
    /// True if commands that change data are refused.
    pub is_read_only: bool,
    /// The model whose times replies keep to, if they are not sent at once.
    pub pace: Option<Arc<Pace>>,
}

impl Export {
    /// True if clients that come now are told that it takes no changes: it is served for reading
    /// only, or a host protected it from writes.
    pub fn refuses_changes(&self) -> bool {
        self.is_read_only || self.device.is_write_protected()
    }
}

/// Exports of one server: at least one, each with a name of its own.
#[derive(Clone, Debug)]
pub struct Exports {
    offered: Vec<Arc<Export>>,
    tls: Option<Tls>,
    recorder: Option<Arc<dyn Recorder>>,
    /// Number of the latest client, of whichever front end.
    clients: Arc<AtomicU64>,
}

/// Reason why exports cannot be served together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportsError {
    /// No export was given.
    #[error("nothing to serve")]
    Nothing,
    /// Two exports have the same name.
    #[error("two exports are named `{0}`; clients could reach only one of them")]
    Twice(String),
    /// A name is longer than the protocol allows.
    #[error("an export's name has {0} bytes, the limit is {NAME_BYTES_MAX}")]
    LongName(usize),
}

impl Exports {
    /// The exports in this order; the first is what a client gets that asks for no name.
    ///
    /// # Errors
    /// Fails if there is none, two have the same name, or a name is too long.
    pub fn new(exports: Vec<Export>) -> Result<Self, ExportsError> {
        if exports.is_empty() {
            return Err(ExportsError::Nothing);
        }
        for (index, export) in exports.iter().enumerate() {
            if export.name.len() > NAME_BYTES_MAX {
                return Err(ExportsError::LongName(export.name.len()));
            }
            if exports[..index].iter().any(|other| other.name == export.name) {
                return Err(ExportsError::Twice(export.name.clone()));
            }
        }
        let offered = exports.into_iter().map(Arc::new).collect();
        Ok(Self { offered, tls: None, recorder: None, clients: Arc::default() })
    }

    /// Adds encryption, which clients may or have to use, as `tls` demands.
    #[must_use]
    pub fn encrypted(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Passes all commands of clients to `recorder`.
    #[must_use]
    pub fn recorded(self, recorder: Arc<dyn Recorder>) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// Numbers one more client, from 1 in order of arrival at any front end.
    pub(crate) fn number_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the recorder of what clients ask for; none where there is none.
    pub const fn recorder(&self) -> Option<&Arc<dyn Recorder>> {
        self.recorder.as_ref()
    }

    /// Returns the encryption that clients may use; none if there is none.
    pub const fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Finds the export that a client asks for by `name`; the empty name means the first.
    pub fn find(&self, name: &str) -> Option<&Arc<Export>> {
        let named = self.offered.iter().find(|export| export.name == name);
        named.or_else(|| self.offered.first().filter(|_| name.is_empty()))
    }

    /// Returns the exports, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Export>> {
        self.offered.iter()
    }

    /// Flushes all exports; an error of one does not keep the others from it. One that a host
    /// deleted has nothing left to be made durable, and neither has one that is being formatted or
    /// sanitized: all that was written before is erased, and nothing is written meanwhile.
    ///
    /// # Errors
    /// The first that failed.
    pub fn flush(&self) -> Result<(), DeviceError> {
        let flushed = self.offered.iter().map(|export| match export.device.flush() {
            Err(DeviceError::Gone | DeviceError::InProgress(_)) => Ok(()),
            flushed => flushed,
        });
        // Collected first, so that a failure of one keeps none of the others from being tried.
        flushed.collect::<Vec<_>>().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{Allocation, Durability, MemoryDevice, Work};

    fn export(name: &str) -> Export {
        Export {
            name: name.into(),
            description: String::new(),
            device: Arc::new(MemoryDevice::new(4096)),
            is_read_only: false,
            pace: None,
        }
    }

    #[test]
    fn no_name_means_the_first_export() {
        let exports = Exports::new(vec![export("a"), export("b")]).unwrap();
        assert_eq!(exports.find("").unwrap().name, "a");
        assert_eq!(exports.find("b").unwrap().name, "b");
        assert!(exports.find("c").is_none());
    }

    /// A device that refuses everything.
    #[derive(Debug)]
    struct Refusing(fn() -> DeviceError);

    impl Device for Refusing {
        fn size(&self) -> u64 {
            4096
        }

        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), DeviceError> {
            Err((self.0)())
        }

        fn write(&self, _: u64, _: &[u8], _: Durability) -> Result<(), DeviceError> {
            Err((self.0)())
        }

        fn flush(&self) -> Result<(), DeviceError> {
            Err((self.0)())
        }

        fn trim(&self, _: u64, _: u64, _: Durability) -> Result<(), DeviceError> {
            Err((self.0)())
        }

        fn allocations(&self, _: u64, _: u64) -> Result<Vec<Allocation>, DeviceError> {
            Err((self.0)())
        }
    }

    #[test]
    fn a_namespace_that_a_host_deleted_does_not_fail_the_last_flush() {
        let deleted =
            Export { device: Arc::new(Refusing(|| DeviceError::Gone)), ..export("deleted") };
        let exports = Exports::new(vec![export("kept"), deleted]).unwrap();
        assert!(exports.flush().is_ok());
    }

    #[test]
    fn a_namespace_that_is_being_erased_fails_the_last_flush_no_more_than_a_deleted_one() {
        let erased: [fn() -> DeviceError; 3] = [
            || DeviceError::InProgress(Work::Format),
            || DeviceError::InProgress(Work::Sanitize),
            || DeviceError::InProgress(Work::SanitizeFailed),
        ];
        for error in erased {
            let device = Arc::new(Refusing(error));
            let exports = Exports::new(vec![Export { device, ..export("erased") }]).unwrap();
            assert!(exports.flush().is_ok());
        }
        let poisoned = || DeviceError::Poisoned { reason: "a test".to_owned() };
        let failed = Export { device: Arc::new(Refusing(poisoned)), ..export("failed") };
        assert!(Exports::new(vec![failed]).unwrap().flush().is_err());
    }

    #[test]
    fn an_export_that_no_client_could_reach_is_refused() {
        let twice = Exports::new(vec![export("a"), export("a")]);
        assert_eq!(twice.unwrap_err(), ExportsError::Twice("a".into()));
        assert_eq!(Exports::new(Vec::new()).unwrap_err(), ExportsError::Nothing);
        let long = Exports::new(vec![export(&"n".repeat(4097))]);
        assert_eq!(long.unwrap_err(), ExportsError::LongName(4097));
    }
}
