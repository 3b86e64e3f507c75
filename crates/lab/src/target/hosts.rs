//! Other machines whose fio carries out a load, as they are named on the command line.

use std::fmt;

use crate::{Error, Kind};

/// Machines that run `fio --server`, at least one; fio names their logs after them, so that no name
/// is there twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

/// Machine that runs `fio --server`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    /// Port of its server; absent: fio's own.
    port: Option<u16>,
}

impl Hosts {
    /// Reads `a,b:8766,c`.
    ///
    /// # Errors
    /// Fails if an entry is not a host, or occurs twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut hosts: Vec<Host> = Vec::new();
        for entry in text.split(',') {
            let host = Host::parse(entry.trim()).ok_or_else(|| {
                Error::new(Kind::Input, format!("`{entry}` in `{text}` is not a host"))
                    .hint("give names or IPv4 addresses, each with its port where it has another")
            })?;
            if hosts.iter().any(|other| other.name == host.name) {
                let text = format!("host {} is in `{text}` twice", host.name);
                return Err(Error::new(Kind::Input, text)
                    .hint("fio names the logs of its hosts after them: name each once"));
            }
            hosts.push(host);
        }
        Ok(Self(hosts))
    }

    /// Number of hosts, at least 1.
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).expect("a command line is shorter")
    }

    /// Names of the hosts, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|host| host.name.as_str())
    }

    /// Returns the arguments with which fio has every host carry out `job`.
    pub fn arguments(&self, job: &str) -> Vec<String> {
        self.0.iter().flat_map(|host| [host.argument(), job.to_owned()]).collect()
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        f.write_str(&names.join(", "))
    }
}

impl Host {
    fn parse(entry: &str) -> Option<Self> {
        let (name, port) = match entry.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let named = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        (named && name.chars().all(allowed)).then(|| Self { name: name.to_owned(), port })
    }

    fn argument(&self) -> String {
        match self.port {
            Some(port) => format!("--client={},{port}", self.name),
            None => format!("--client={}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Error {
        Hosts::parse(text).unwrap_err()
    }

    #[test]
    fn hosts_are_names_or_addresses_with_ports_where_they_have_others() {
        let hosts = Hosts::parse("alpha, 10.0.0.7:9000,node_3.example-lab").unwrap();
        assert_eq!(hosts.count(), 3);
        assert_eq!(hosts.to_string(), "alpha, 10.0.0.7, node_3.example-lab");
        let arguments = hosts.arguments("job.fio");
        let expected = [
            "--client=alpha",
            "job.fio",
            "--client=10.0.0.7,9000",
            "job.fio",
            "--client=node_3.example-lab",
            "job.fio",
        ];
        assert_eq!(arguments, expected);
    }

    #[test]
    fn what_is_no_host_is_named() {
        for text in ["a,,b", "a,-b", "a:port", "a:70000", "a b", "a,[::1]", "", "a;rm"] {
            let error = refused(text);
            assert!(error.to_string().ends_with("is not a host"), "{text}: {error}");
            assert!(error.remedy().contains("IPv4 addresses"), "{}", error.remedy());
        }
        assert_eq!(refused("a,b:x").to_string(), "`b:x` in `a,b:x` is not a host");
    }

    #[test]
    fn a_host_is_named_once_whatever_its_port() {
        let error = refused("a:1,b,a:2");
        assert_eq!(error.to_string(), "host a is in `a:1,b,a:2` twice");
        assert!(error.remedy().contains("names the logs"), "{}", error.remedy());
    }
}
