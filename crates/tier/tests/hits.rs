//! Hits equal to those of libCacheSim, request by request (`libcachesim/hits.py` makes the files).

use std::collections::BTreeMap;

use tier::{Block, Cache, Replacement, optimal_hits};
use workload::trace;

const HITS: &str = include_str!("libcachesim/hits.txt");
const MSR: &str = include_str!("libcachesim/trace.csv");

/// Xorshift, as the script has it.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u32) -> Block {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Block::try_from((self.0 >> 11) % u64::from(limit)).expect("below a block")
    }
}

fn skewed() -> Vec<Block> {
    let mut draws = Draws(88_172_645_463_325_252);
    let mut least = || (0..4).map(|_| draws.below(1000)).min().expect("four draws");
    (0..2400).map(|_| least()).collect()
}

fn scanned() -> Vec<Block> {
    let mut draws = Draws(362_436_069);
    let mut block = |at: u32| {
        // Each draws, whichever is taken.
        let blocks = [draws.below(80), 100 + at % 150, draws.below(40), 1000 + at];
        blocks[(at / 60 % 4) as usize]
    };
    (0..2400).map(&mut block).collect()
}

fn msr() -> Vec<Block> {
    let trace = trace::read(MSR.as_bytes(), "trace.csv").expect("a trace of MSR Cambridge");
    let blocks = |request: &trace::TraceRequest| {
        let first = request.lba / 8;
        first..first + u64::from(request.sectors) / 8
    };
    let blocks = trace.requests().iter().flat_map(blocks);
    blocks.map(|block| Block::try_from(block).expect("a small trace")).collect()
}

fn bits(digits: &str) -> Vec<bool> {
    let bit = |digit: u32| (0..4).rev().map(move |bit| digit >> bit & 1 == 1);
    digits.chars().flat_map(|it| bit(it.to_digit(16).expect("hexadecimal"))).collect()
}

fn hits_of(name: &str, blocks: u32, accesses: &[Block]) -> Vec<bool> {
    if name == "belady" {
        return optimal_hits(accesses, blocks);
    }
    let replacement = Replacement::ALL.into_iter().find(|it| it.name() == name);
    let mut cache = Cache::new(replacement.expect("a policy"), blocks).expect("large enough");
    accesses.iter().map(|block| cache.get(*block)).collect()
}

#[test]
fn hits_equal_those_of_libcachesim_request_by_request() {
    let traces = BTreeMap::from([("skewed", skewed()), ("scanned", scanned()), ("msr", msr())]);
    let mut lines = 0;
    for line in HITS.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [trace, name, blocks, digits] = fields[..] else { panic!("four fields: {line}") };
        let accesses = &traces[trace];
        let expected = bits(digits);
        let found = hits_of(name, blocks.parse().expect("a number"), accesses);
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(differs, None, "{trace} {name} {blocks}: the first access that differs");
        assert_eq!(found.len().div_ceil(4) * 4, expected.len(), "{trace}: every access");
        lines += 1;
    }
    assert_eq!(lines, traces.len() * (Replacement::ALL.len() + 1) * 3);
}
