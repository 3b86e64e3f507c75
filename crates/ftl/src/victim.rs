//! Victim selection of garbage collection.

use blockio::Rng;

use crate::superblock::Superblocks;
use crate::{SuperblockId, SuperblockState};

/// Policy by which garbage collection selects its victim among the closed superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Fewest valid pages, the lower index among equals.
    Greedy,
    /// Fewest valid pages among `choices` drawn at random (Van Houdt, SIGMETRICS 2013).
    DChoices {
        /// Superblocks drawn, at least 1.
        choices: u32,
    },
    /// Largest `(1 - u) / 2u x age` (Kawaguchi et al., USENIX 1995), `u` the utilisation and age
    /// in superblocks closed since.
    CostBenefit,
    /// Closed longest ago (Menon, 1995; Desnoyers, SYSTOR 2012).
    Fifo,
}

impl VictimPolicy {
    /// The victim among those `candidates`, of `granules` each, that are closed, if any is.
    pub(crate) fn choose(
        self,
        candidates: impl Iterator<Item = SuperblockId>,
        superblocks: &Superblocks,
        granules: u32,
        rng: &mut Rng,
    ) -> Option<SuperblockId> {
        let closed = candidates.filter(|id| superblocks.state(*id) == SuperblockState::Closed);
        match self {
            Self::Greedy => closed.min_by_key(|id| superblocks.granules_valid(*id)),
            Self::Fifo => closed.min_by_key(|id| superblocks.closed_at(*id)),
            Self::CostBenefit => {
                let worth = |id: SuperblockId| benefit(superblocks, granules, id);
                // `max_by` keeps the last among equals; reversing the order keeps the first.
                closed.max_by(|a, b| worth(*a).total_cmp(&worth(*b)).then(b.cmp(a)))
            }
            Self::DChoices { choices } => {
                let closed: Vec<SuperblockId> = closed.collect();
                let draw = |rng: &mut Rng| {
                    let index = rng.below(closed.len() as u64);
                    closed[usize::try_from(index).expect("an index of a Vec")]
                };
                if closed.is_empty() {
                    return None;
                }
                (0..choices.max(1))
                    .map(|_| draw(rng))
                    .min_by_key(|id| (superblocks.granules_valid(*id), *id))
            }
        }
    }
}

fn benefit(superblocks: &Superblocks, granules: u32, id: SuperblockId) -> f64 {
    let utilisation = f64::from(superblocks.granules_valid(id)) / f64::from(granules);
    debug_assert!(utilisation <= 1.0, "a candidate holds no more than a superblock can");
    debug_assert!(superblocks.closed_at(id) > 0, "a candidate has been closed");
    let age = (superblocks.closes() - superblocks.closed_at(id) + 1) as f64;
    (1.0 - utilisation) / (2.0 * utilisation) * age
}
