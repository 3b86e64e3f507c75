//! The header of a die that says anything, with checksums as they are and with right ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use live::simulation::hostile::Structure;

fuzz_target!(|input: &[u8]| Structure::Header.survives(input));
