//! `floatgate volume serve`: a volume, offered to clients until it is told to stop.

use std::num::NonZeroU64;

use anyhow::{Context as _, Result};
use lab::{Error, Kind};
use server::Announcer;
use server::config::{
    AlertConfig, Config, ConfigSource, FaultInjection, LogConfig, ScrubConfig, Storage,
};
use status::Export;

use crate::args::Serve;
use crate::configuration::Configuration;
use crate::{Ending, output};

/// Serves, prints the URIs, and waits for a signal.
pub(crate) fn serve(args: Serve) -> Result<Ending> {
    let source = Configuration::of(&args)?.map(|it| Box::new(it) as Box<dyn ConfigSource>);
    let terminal = Terminal { is_json: args.json };
    server::run(&config(args)?, source, &terminal)?;
    Ok(Ending::Done)
}

/// The addresses of a server, on stdout, and that of its pages, on stderr.
struct Terminal {
    is_json: bool,
}

impl Announcer for Terminal {
    fn exports(&self, offered: &[Export]) -> Result<()> {
        output::exports(offered, self.is_json)
    }

    fn pages(&self, introduction: &str) {
        output::talk(introduction);
    }
}

/// The configuration that options describe.
fn config(args: Serve) -> Result<Config> {
    if args.http.is_none() && !args.pages.is_empty() {
        // A user might take the pages for encrypted.
        let text = "--http-host and --http-tls-certificates need --http ADDRESS";
        return Err(Error::new(Kind::Input, text).into());
    }
    let storage = args.volume.clone().map(Storage::Volume);
    let storage = storage.or_else(|| args.memory.map(Storage::Memory));
    Ok(Config {
        storage: storage.context("nothing to serve")?,
        log: log(&args),
        scrubs: scrubs(&args),
        pacing: args.timing.pacing(),
        default_export: args.export,
        is_read_only: args.read_only,
        front_ends: args.front_ends,
        limits: args.limits.into(),
        pages: args.http.map(|place| args.pages.at(place)),
        access: args.access.into(),
        promise: args.promise.promise(),
        key: args.key.key()?,
        accepts_stale: args.force_stale,
        die_errors_per_hour: args.die_errors_per_hour,
        faults: match args.fault_injection {
            None => FaultInjection::Refused,
            Some(None) => FaultInjection::Allowed,
            Some(Some(file)) => FaultInjection::Scheduled(file),
        },
        alerts: AlertConfig {
            program: args.monitor.program,
            mail: args.monitor.mail,
            is_test: args.monitor.is_test,
        },
        recording: args.record,
        idle_max: args.exit_when_idle,
    })
}

/// Log that options describe.
pub(crate) const fn log(args: &Serve) -> LogConfig {
    LogConfig { level: args.log_level, is_json: args.log_json }
}

/// Scrubs that options describe.
pub(crate) fn scrubs(args: &Serve) -> ScrubConfig {
    let bytes_per_s_max = args.scrub_rate.and_then(|rate| NonZeroU64::new(rate.0));
    ScrubConfig { period: args.scrub, bytes_per_s_max }
}
