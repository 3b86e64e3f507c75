//! `fuzz::Target::Batch`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::Target::Batch.run(input));
