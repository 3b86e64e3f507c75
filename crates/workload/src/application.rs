//! Applications: databases and the like that are set up on a drive and measured there, as in
//! `applications/sysbench-oltp.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SpecError;
use crate::error::{Fault, parse};
use crate::prose::prose;

/// An application, and the shell scripts that set it up, measure it and end it.
///
/// Every script runs under `bash -eu` with these variables: `FOLDER`, an empty folder on the drive;
/// `SCRATCH`, a folder elsewhere for sockets and logs; `SECONDS_MEASURED`, `THREADS`;
/// `TRANSACTIONS`, a file into which `run` may log each transaction
/// ([`crate::recording::Transaction::parse_log`]); and each of [`Application::parameters`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name, such as `sysbench-oltp`.
    pub name: String,
    /// Heading of its results.
    pub title: String,
    /// Question that it answers, and what it cannot tell.
    #[serde(deserialize_with = "prose")]
    pub description: String,
    /// Source of the procedure, such as a review.
    #[serde(deserialize_with = "prose")]
    pub source: String,
    /// Numbers of concurrent clients, each measured once, in this order.
    pub threads: Vec<u32>,
    /// Length of each measurement in seconds, from 1.
    pub seconds: u32,
    /// True if clients share nothing but the drive, as guests that boot from their own disks do:
    /// the recording of one client is replayed once for each client. Absent: false.
    #[serde(default)]
    pub copies: bool,
    /// Free bytes that the drive's file system must have.
    pub space_bytes: u64,
    /// Programs that the scripts run, each with the Debian package that has it. A path is one that
    /// is looked for there and nowhere else.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// Variables of the scripts, in capitals, with their values unless a user sets others.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Scripts, by when they are run.
    pub steps: Steps,
}

/// Shell scripts of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// Fills the empty folder, and leaves the servers of the application running in the background.
    pub load: String,
    /// Run before the first measurement; what it prints is no result. Empty: nothing.
    #[serde(default)]
    pub warm: String,
    /// Run for each number of threads; prints a result of sysbench, pgbench or `db_bench`.
    pub run: String,
    /// Ends the servers in good order. Empty: nothing is to be ended.
    #[serde(default)]
    pub stop: String,
}

impl Application {
    /// Version of the format that this program reads.
    pub const SCHEMA: u32 = 1;
    /// Largest number of threads of a measurement.
    pub const THREADS_MAX: u32 = 4096;
    /// Names of the variables that no parameter may have.
    pub const RESERVED: [&str; 5] =
        ["FOLDER", "SCRATCH", "SECONDS_MEASURED", "THREADS", "TRANSACTIONS"];

    /// Reads an application from the text of a TOML file; `file` names it in errors.
    ///
    /// # Errors
    /// Says file, line, what is wrong and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        parse(text, file, Self::check)
    }

    fn check(&self) -> Result<(), Fault> {
        Fault::unless(
            self.schema == Self::SCHEMA,
            "schema",
            format!("schema is {}, this program reads {}", self.schema, Self::SCHEMA),
        )?;
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        Fault::unless(
            !self.name.is_empty() && self.name.chars().all(is_plain),
            "name",
            format!("name is `{}`, which is not letters, digits, - and _", self.name),
        )?;
        Fault::unless(!self.threads.is_empty(), "threads", "threads are empty: nothing to do")?;
        for (index, threads) in self.threads.iter().enumerate() {
            Fault::unless(
                (1..=Self::THREADS_MAX).contains(threads),
                format!("threads.{index}"),
                format!("threads are {threads}, not from 1 to {}", Self::THREADS_MAX),
            )?;
        }
        Fault::unless(self.seconds > 0, "seconds", "seconds are 0, not at least 1")?;
        for name in self.parameters.keys() {
            check_parameter(name).map_err(|text| Fault::new(format!("parameters.{name}"), text))?;
        }
        for (name, script) in [("load", &self.steps.load), ("run", &self.steps.run)] {
            let text = format!("{name} is empty: nothing to do");
            Fault::unless(!script.trim().is_empty(), format!("steps.{name}"), text)?;
        }
        Ok(())
    }

    /// Sets a parameter that the application has.
    ///
    /// # Errors
    /// Names those that there are.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(known) = self.parameters.get_mut(name) {
            value.clone_into(known);
            return Ok(());
        }
        let names: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
        let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(format!("{} has no parameter `{name}`; it has {has}", self.name))
    }
}

fn check_parameter(name: &str) -> Result<(), String> {
    let is_variable = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
    let begins = name.starts_with(|it: char| it.is_ascii_uppercase());
    if !begins || !name.chars().all(is_variable) {
        return Err(format!("parameter `{name}` is not a variable in capitals, such as ROWS"));
    }
    if Application::RESERVED.contains(&name) {
        return Err(format!("parameter `{name}` is set by the measurement itself"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
schema = 1
name = \"mine\"
title = \"Mine\"
description = \"d\"
source = \"s\"
threads = [1, 4]
seconds = 10
space_bytes = 1000
parameters = { ROWS = \"10\" }
[steps]
load = \"true\"
run = \"echo\"
";

    #[test]
    fn parameters_are_set_by_their_names() {
        let mut application = Application::parse(TEXT, "a.toml").unwrap();
        application.set("ROWS", "20").unwrap();
        assert_eq!(application.parameters["ROWS"], "20");
        let refused = application.set("ROW", "20").unwrap_err();
        assert_eq!(refused, "mine has no parameter `ROW`; it has ROWS");
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_its_line() {
        for (wrong, right, said) in [
            ("threads = [1, 0]", "threads = [1, 4]", "a.toml:6: threads are 0, not from 1 to 4096"),
            ("threads = []", "threads = [1, 4]", "a.toml:6: threads are empty: nothing to do"),
            ("seconds = 0", "seconds = 10", "a.toml:7: seconds are 0, not at least 1"),
            ("name = \"a/b\"", "name = \"mine\"", "a.toml:2: name is `a/b`, which is not letters"),
            ("load = \" \"", "load = \"true\"", "a.toml:11: load is empty: nothing to do"),
            ("{ rows = \"1\" }", "{ ROWS = \"10\" }", "`rows` is not a variable in capitals"),
            ("{ THREADS = \"1\" }", "{ ROWS = \"10\" }", "is set by the measurement itself"),
        ] {
            let refused = Application::parse(&TEXT.replace(right, wrong), "a.toml").unwrap_err();
            assert!(refused.to_string().contains(said), "{refused}");
        }
    }
}
