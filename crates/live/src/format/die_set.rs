//! Dies as a set.

/// Dies as a set, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DieSet(pub(crate) u64);

impl DieSet {
    pub(crate) const fn add(&mut self, die: usize) {
        assert!(die < 64, "a drive has 64 dies at most");
        self.0 |= 1 << die;
    }

    pub(crate) const fn has(self, die: usize) -> bool {
        self.0 & (1 << die) != 0
    }

    pub(crate) const fn has_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// All but the one with the lowest index.
    pub(crate) const fn without_first(self) -> Self {
        Self(self.0 & self.0.wrapping_sub(1))
    }

    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// They, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |die| self.has(*die))
    }
}

impl FromIterator<usize> for DieSet {
    fn from_iter<T: IntoIterator<Item = usize>>(dies: T) -> Self {
        let mut set = Self::default();
        dies.into_iter().for_each(|die| set.add(die));
        set
    }
}
