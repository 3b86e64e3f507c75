//! Inputs that differ a little from kept ones.

use blockio::Rng;

/// Longest input, in bytes.
const BYTES_MAX: usize = 4096;
/// Values at which comparisons turn.
const EDGES: [u64; 8] = [0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFF_FFFF, u64::MAX];

/// Source of mutations of a corpus; the same seed gives the same ones.
#[derive(Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    rng: Rng,
}

impl<'a> Mutator<'a> {
    /// Mutations of the inputs of `corpus`, at least one.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn new(corpus: &'a [Vec<u8>], seed: u64) -> Self {
        assert!(!corpus.is_empty(), "mutations are of kept inputs");
        Self { corpus, rng: Rng::new(seed) }
    }

    /// The next input: a kept one, changed in one to eight places.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.kept().to_vec();
        for _ in 0..=self.below(8) {
            self.mutate(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(6) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 => {
                let bytes = EDGES[self.below(EDGES.len())].to_le_bytes();
                let bytes = &bytes[..1 << self.below(4)];
                let count = bytes.len().min(input.len() - at);
                input[at..at + count].copy_from_slice(&bytes[..count]);
            }
            2 => input.truncate(at),
            3 => {
                let byte = self.rng.next_u64().to_le_bytes()[0];
                input.insert(at, byte);
            }
            4 => {
                let end = at + self.below(input.len() - at + 1);
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
            _ => {
                let other = self.kept();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }

    fn kept(&mut self) -> &'a [u8] {
        &self.corpus[self.below(self.corpus.len())]
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.rng.next_u64() % limit as u64).expect("it is below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_another_one_others() {
        let corpus = [b"one".to_vec(), b"another".to_vec(), Vec::new()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(&corpus, seed);
            (0..100).map(|_| mutator.input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().any(|input| !corpus.contains(input)));
    }
}
