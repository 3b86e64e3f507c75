//! Methods that return a device to its state before the first write.

use std::fmt;
use std::str::FromStr;

/// A way to purge a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PurgeMethod {
    /// The best that the drive has: format, sanitize, secure erase, discard, overwrite.
    #[default]
    Auto,
    /// NVMe Format with secure erase.
    Format,
    /// NVMe Sanitize.
    Sanitize,
    /// ATA Secure Erase.
    SecureErase,
    /// A discard of every block, or a trim of everything through NBD.
    Discard,
    /// Nothing but the fill that follows.
    Overwrite,
}

impl PurgeMethod {
    /// Methods by the names that the command line takes.
    pub const ALL: [(&'static str, Self); 6] = [
        ("auto", Self::Auto),
        ("format", Self::Format),
        ("sanitize", Self::Sanitize),
        ("secure-erase", Self::SecureErase),
        ("discard", Self::Discard),
        ("overwrite", Self::Overwrite),
    ];
}

impl fmt::Display for PurgeMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, method)| method == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for PurgeMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|(name, _)| name).join(", ");
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        let method = found.map(|(_, method)| method);
        method.ok_or_else(|| format!("unknown purge method: use {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_the_name_that_it_prints() {
        for (name, method) in PurgeMethod::ALL {
            assert_eq!(name.parse(), Ok(method));
            assert_eq!(method.to_string(), name);
        }
        assert_eq!(PurgeMethod::default(), PurgeMethod::Auto);
    }

    #[test]
    fn an_unknown_method_is_refused_with_the_known_ones() {
        let error = "trim".parse::<PurgeMethod>().unwrap_err();
        let known = "auto, format, sanitize, secure-erase, discard, overwrite";
        assert_eq!(error, format!("unknown purge method: use {known}"));
        assert!("Format".parse::<PurgeMethod>().is_err(), "names are lower case");
    }
}
