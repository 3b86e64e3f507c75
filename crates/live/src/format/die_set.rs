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

    /// Dies of the set, in order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_of_a_set_are_told_in_order_and_counted_once() {
        let set: DieSet = [63, 2, 0, 2].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 63]);
        assert_eq!(set.count(), 3);
        assert!(set.has(63) && !set.has(1));
    }

    #[test]
    fn a_set_has_all_of_its_parts_and_nothing_beyond() {
        let set = DieSet(0b1011);
        assert!(set.has_all(DieSet(0b1001)) && set.has_all(DieSet::default()));
        assert!(!set.has_all(DieSet(0b0100)));
        assert!(!DieSet::default().has_all(set));
    }

    #[test]
    fn all_but_the_first_leaves_an_empty_set_empty() {
        assert_eq!(DieSet(0b1010).without_first(), DieSet(0b1000));
        assert_eq!(DieSet(0b1000).without_first(), DieSet::default());
        assert_eq!(DieSet::default().without_first(), DieSet::default());
    }

    #[test]
    #[should_panic(expected = "64 dies at most")]
    fn a_die_beyond_the_last_is_a_mistake_of_the_program() {
        DieSet::default().add(64);
    }
}
