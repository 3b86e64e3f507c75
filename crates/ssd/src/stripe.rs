//! How the sectors of a drive are spread over its modules.

use crate::module::Extent;
use crate::spec::{ModuleLayout, ModulesSpec};

/// A divisor, by shifting where it is a power of two, which it nearly always is.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u64,
    shift: Option<u32>,
}

impl Divisor {
    fn new(divisor: u64) -> Self {
        Self { divisor, shift: divisor.is_power_of_two().then(|| divisor.trailing_zeros()) }
    }

    /// Quotient and remainder.
    #[inline]
    fn divide(self, number: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (number >> shift, number & (self.divisor - 1)),
            None => (number / self.divisor, number % self.divisor),
        }
    }
}

/// The arrangement of the modules' sectors in one address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe {
    modules: Divisor,
    module_sectors: u64,
    unit_sectors: Divisor,
}

impl Stripe {
    /// `spec.count` modules of `module_sectors` each.
    pub(crate) fn new(spec: &ModulesSpec, module_sectors: u64) -> Self {
        let unit_sectors = match spec.layout {
            ModuleLayout::Striped => u64::from(spec.stripe_kib) * 2,
            ModuleLayout::Jbod => module_sectors,
        };
        Self {
            modules: Divisor::new(spec.count.into()),
            module_sectors,
            unit_sectors: Divisor::new(unit_sectors),
        }
    }

    /// Sectors of the drive.
    pub(crate) const fn sectors(&self) -> u64 {
        self.modules.divisor * self.module_sectors
    }

    /// Calls `take` with each module and extent of a request, in order; requests that stay within
    /// one stripe unit are one extent.
    #[inline]
    pub(crate) fn split(&self, first: u64, sectors: u32, mut take: impl FnMut(usize, Extent)) {
        if self.modules.divisor == 1 {
            take(0, Extent { first, sectors });
            return;
        }
        let mut at = first;
        let end = first + u64::from(sectors);
        while at < end {
            let (unit, within) = self.unit_sectors.divide(at);
            let (row, module) = self.modules.divide(unit);
            let length = (self.unit_sectors.divisor - within).min(end - at);
            let first = row * self.unit_sectors.divisor + within;
            let sectors = u32::try_from(length).expect("no longer than the request");
            take(usize::try_from(module).expect("a module"), Extent { first, sectors });
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(layout: ModuleLayout, first: u64, sectors: u32) -> Vec<(usize, u64, u32)> {
        let source = String::new();
        let spec = ModulesSpec { count: 2, layout, stripe_kib: 64, source };
        let mut extents = Vec::new();
        Stripe::new(&spec, 1280).split(first, sectors, |module, extent| {
            extents.push((module, extent.first, extent.sectors));
        });
        extents
    }

    #[test]
    fn a_stripe_unit_goes_to_one_module_and_the_next_to_the_other() {
        assert_eq!(split(ModuleLayout::Striped, 8, 8), [(0, 8, 8)]);
        assert_eq!(split(ModuleLayout::Striped, 120, 16), [(0, 120, 8), (1, 0, 8)]);
        assert_eq!(split(ModuleLayout::Striped, 256, 8), [(0, 128, 8)]);
    }

    #[test]
    fn a_jbod_is_one_module_after_the_other() {
        assert_eq!(split(ModuleLayout::Jbod, 1276, 8), [(0, 1276, 4), (1, 0, 4)]);
    }
}
