//! Drives that store, from outside: their clients, their status, and what serves them.
//!
//! A test whose client is missing on this machine says so and passes; `cargo xtask test` installs
//! them all. Every program runs under `timeout`, so that nothing waits for ever.

#![expect(clippy::print_stderr, reason = "the developer is told what was skipped")]

mod application;
mod bad_places;
mod broken_application;
mod browser;
mod clients;
mod closed;
mod dashboard;
mod divided;
mod earlier_format;
mod encrypted;
mod fleet;
mod formatted;
mod health;
mod hostile;
mod lateness;
mod locked;
mod logged;
mod maintenance;
mod monitored;
mod nvme_host;
mod recorded;
mod recovered;
mod reviews;
mod served;
mod server_death;
mod service;
mod slow;
mod unanswered;
mod watched;
mod web;
