//! Fuzz target for headers of units: arbitrary bytes, with checksums as they are and correct ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use live::simulation::hostile::Structure;

fuzz_target!(|input: &[u8]| Structure::UnitHeader.survives(input));
