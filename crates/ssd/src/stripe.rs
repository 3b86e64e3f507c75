//! Layout of the sectors of a drive over its devices and their modules.
//!
//! Devices of a group follow one another in the address space; modules of a device are striped or
//! follow one another.

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
    devices: u64,
    device_sectors: u64,
    modules: Divisor,
    unit_sectors: Divisor,
    /// The place of a sector by its bits, where nothing has to be divided.
    bits: Option<Bits>,
}

/// Bits of a sector number on one device whose modules and stripe units are powers of two: from the
/// lowest, sector of the stripe unit, module, and stripe unit of the module.
#[derive(Clone, Copy, Debug)]
struct Bits {
    of_unit: u32,
    of_module: u32,
    /// The lowest `of_unit` bits.
    unit_mask: u64,
    /// The lowest `of_module` bits.
    module_mask: u64,
}

impl Stripe {
    /// `devices` devices with `spec.count` modules of `module_sectors` each.
    pub(crate) fn new(devices: u32, spec: &ModulesSpec, module_sectors: u64) -> Self {
        let unit_sectors = match spec.layout {
            ModuleLayout::Striped if spec.count > 1 => u64::from(spec.stripe_kib) * 2,
            ModuleLayout::Striped | ModuleLayout::Jbod => module_sectors,
        };
        assert!(module_sectors > 0, "a module has sectors");
        assert!(module_sectors.is_multiple_of(unit_sectors), "a module has whole stripe units");
        let (modules, unit_sectors) = (Divisor::new(spec.count.into()), Divisor::new(unit_sectors));
        let bits = unit_sectors.shift.zip(modules.shift).filter(|_| devices == 1);
        Self {
            devices: devices.into(),
            device_sectors: u64::from(spec.count) * module_sectors,
            modules,
            unit_sectors,
            bits: bits.map(|(of_unit, of_module)| Bits {
                of_unit,
                of_module,
                unit_mask: unit_sectors.divisor - 1,
                module_mask: modules.divisor - 1,
            }),
        }
    }

    /// Sectors of all devices.
    pub(crate) const fn sectors(&self) -> u64 {
        self.devices * self.device_sectors
    }

    #[inline]
    const fn is_one_module(&self) -> bool {
        self.modules.divisor == 1 && self.devices == 1
    }

    /// The device that holds a sector of the drive, and its sector there.
    #[inline]
    pub(crate) fn device(&self, sector: u64) -> (u64, u64) {
        if self.devices == 1 {
            return (0, sector);
        }
        (sector / self.device_sectors, sector % self.device_sectors)
    }

    /// The module that holds a sector, and its sector there.
    #[inline]
    pub(crate) fn place(&self, sector: u64) -> (usize, u64) {
        let (module, first, _) = self.place_within(sector);
        (module, first)
    }

    /// The module that holds a sector, its sector there, and its place within its stripe unit.
    #[inline]
    fn place_within(&self, sector: u64) -> (usize, u64, u64) {
        let Some(bits) = self.bits else { return self.divide(sector) };
        // All shifts are below 64, and no bits overlap: nothing can overflow.
        let unit = sector.wrapping_shr(bits.of_unit);
        let (within, module) = (sector & bits.unit_mask, unit & bits.module_mask);
        let first = unit.wrapping_shr(bits.of_module).wrapping_shl(bits.of_unit) | within;
        (usize::try_from(module).expect("a module"), first, within)
    }

    /// Divides, where bits do not give the place of a sector.
    #[inline(never)]
    fn divide(&self, sector: u64) -> (usize, u64, u64) {
        if self.is_one_module() {
            return (0, sector, sector);
        }
        let (device, sector) = self.device(sector);
        let (unit, within) = self.unit_sectors.divide(sector);
        let (row, module) = self.modules.divide(unit);
        let module = device * self.modules.divisor + module;
        let first = row * self.unit_sectors.divisor + within;
        (usize::try_from(module).expect("a module"), first, within)
    }

    /// Calls `take` with each module and extent of a request, in order; requests that stay within
    /// one stripe unit are one extent.
    #[inline]
    pub(crate) fn split(&self, extent: Extent, mut take: impl FnMut(usize, Extent)) {
        if self.is_one_module() {
            take(0, extent);
            return;
        }
        let mut at = extent.first;
        let end = extent.first + u64::from(extent.sectors);
        debug_assert!(end <= self.sectors(), "a request ends within the drive");
        while at < end {
            let (module, first, within) = self.place_within(at);
            // A device ends where a stripe unit does.
            let length = (self.unit_sectors.divisor - within).min(end - at);
            let sectors = u32::try_from(length).expect("no longer than the request");
            let is_within = (first + length) * self.modules.divisor <= self.device_sectors;
            debug_assert!(is_within, "an extent ends within its module");
            take(module, Extent { first, sectors, handle: extent.handle });
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(layout: ModuleLayout, first: u64, sectors: u32) -> Vec<(usize, u64, u32)> {
        let source = String::new();
        let spec = ModulesSpec { count: 2, layout, stripe_kib: 64, port_mb_s: None, source };
        let mut extents = Vec::new();
        Stripe::new(2, &spec, 1280).split(
            Extent { first, sectors, handle: 0 },
            |module, extent| {
                extents.push((module, extent.first, extent.sectors));
            },
        );
        extents
    }

    #[test]
    fn a_stripe_unit_goes_to_one_module_and_the_next_to_the_other() {
        assert_eq!(split(ModuleLayout::Striped, 8, 8), [(0, 8, 8)]);
        assert_eq!(split(ModuleLayout::Striped, 120, 16), [(0, 120, 8), (1, 0, 8)]);
        assert_eq!(split(ModuleLayout::Striped, 256, 8), [(0, 128, 8)]);
    }

    #[test]
    fn bits_of_a_sector_say_what_division_says() {
        for (count, stripe_kib) in [(2, 64), (4, 8), (8, 128)] {
            let source = String::new();
            let (layout, port_mb_s) = (ModuleLayout::Striped, None);
            let spec = ModulesSpec { count, layout, stripe_kib, port_mb_s, source };
            let by_bits = Stripe::new(1, &spec, 1 << 12);
            assert!(by_bits.bits.is_some(), "{count} modules in units of {stripe_kib} KiB");
            let by_division = Stripe { bits: None, ..by_bits };
            for sector in (0..by_bits.sectors()).step_by(7) {
                assert_eq!(by_bits.place_within(sector), by_division.place_within(sector));
            }
        }
    }

    #[test]
    fn devices_follow_one_another() {
        assert_eq!(split(ModuleLayout::Striped, 2568, 8), [(2, 8, 8)]);
        assert_eq!(split(ModuleLayout::Striped, 2552, 16), [(1, 1272, 8), (2, 0, 8)]);
    }

    #[test]
    fn a_jbod_is_one_module_after_the_other() {
        assert_eq!(split(ModuleLayout::Jbod, 1276, 8), [(0, 1276, 4), (1, 0, 4)]);
    }
}
