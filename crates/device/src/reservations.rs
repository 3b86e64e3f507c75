//! Reservations of namespaces by NVMe hosts ([nvme-base-2021], "Reservations"), as drives store
//! them, and the fence that they are to clients of other protocols.
//!
//! ```text
//!   clients of other protocols ──► FencedDevice ──► device ◄── NVMe hosts, by their registrations
//!                                       ▲
//!   reservation of a host ──► Fence ────┘
//! ```
//!
//! **Invariants**
//! - Commands that passed a fence have ended before it is moved.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::{Allocation, Device, DeviceError, Durability, ReadPart};

/// Kind of a reservation, by its number in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationKind {
    /// Its holder alone writes.
    WriteExclusive = 1,
    /// Its holder alone reads and writes.
    ExclusiveAccess = 2,
    /// Registrants alone write.
    WriteExclusiveRegistrants = 3,
    /// Registrants alone read and write.
    ExclusiveAccessRegistrants = 4,
    /// Registrants, all of whom hold it, alone write.
    WriteExclusiveAllRegistrants = 5,
    /// Registrants, all of whom hold it, alone read and write.
    ExclusiveAccessAllRegistrants = 6,
}

impl ReservationKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrants,
        Self::ExclusiveAccessRegistrants,
        Self::WriteExclusiveAllRegistrants,
        Self::ExclusiveAccessAllRegistrants,
    ];

    /// Returns the kind of this number, if there is one.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Returns its name in the status of a drive.
    pub const fn word(self) -> &'static str {
        match self {
            Self::WriteExclusive => "write-exclusive",
            Self::ExclusiveAccess => "exclusive-access",
            Self::WriteExclusiveRegistrants => "write-exclusive-registrants-only",
            Self::ExclusiveAccessRegistrants => "exclusive-access-registrants-only",
            Self::WriteExclusiveAllRegistrants => "write-exclusive-all-registrants",
            Self::ExclusiveAccessAllRegistrants => "exclusive-access-all-registrants",
        }
    }

    /// True if every client may read.
    pub const fn is_write_exclusive(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive
                | Self::WriteExclusiveRegistrants
                | Self::WriteExclusiveAllRegistrants
        )
    }

    /// True if registrants may do what its holder may.
    pub const fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    /// True if all registrants hold it.
    pub const fn is_held_by_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants)
    }
}

/// Registration of a host with a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Host Identifier.
    pub host: [u8; 16],
    /// Reservation key.
    pub key: u64,
}

/// Registrations and reservation of a namespace that outlast the server; none unless a host wants
/// them to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistentReservations {
    /// True if a host wants them to persist through power loss.
    pub is_persistent: bool,
    /// Registrations, in ascending order of their hosts.
    pub registrations: Vec<Registration>,
    /// Kind of the reservation; none if there is none.
    pub kind: Option<ReservationKind>,
    /// Host Identifier of its holder; none if all registrants hold it.
    pub holder: Option<[u8; 16]>,
}

/// Fence of a namespace against clients that cannot register.
#[derive(Debug, Default)]
pub struct Fence(RwLock<Option<ReservationKind>>);

impl Fence {
    /// A fence for the reservation of a namespace, if there is one.
    pub const fn new(kind: Option<ReservationKind>) -> Self {
        Self(RwLock::new(kind))
    }

    /// Moves the fence, once the commands that passed it have ended.
    pub fn set(&self, kind: Option<ReservationKind>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = kind;
    }

    fn look(&self) -> RwLockReadGuard<'_, Option<ReservationKind>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_to_read(&self) -> Result<RwLockReadGuard<'_, Option<ReservationKind>>, DeviceError> {
        let kind = self.look();
        if kind.is_some_and(|kind| !kind.is_write_exclusive()) {
            return Err(DeviceError::Reserved);
        }
        Ok(kind)
    }

    fn pass_to_change(&self) -> Result<RwLockReadGuard<'_, Option<ReservationKind>>, DeviceError> {
        let kind = self.look();
        if kind.is_some() { Err(DeviceError::Reserved) } else { Ok(kind) }
    }
}

/// A namespace behind its fence.
#[derive(Debug)]
pub(crate) struct FencedDevice {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) fence: Arc<Fence>,
}

impl Device for FencedDevice {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn origin(&self) -> u64 {
        self.device.origin()
    }

    fn atomic_bytes(&self) -> u64 {
        self.device.atomic_bytes()
    }

    fn is_write_through(&self) -> bool {
        self.device.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let _passed = self.fence.pass_to_read()?;
        self.device.read(offset, buffer)
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        match self.fence.pass_to_read() {
            Ok(_passed) => self.device.read_many(reads),
            Err(_) => reads.iter().map(|_| Err(DeviceError::Reserved)).collect(),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let _passed = self.fence.pass_to_change()?;
        self.device.write(offset, bytes, durability)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, DeviceError> {
        let _passed = self.fence.pass_to_change()?;
        self.device.write_zeroes(offset, length, goes_on)
    }

    fn is_write_protected(&self) -> bool {
        self.fence.look().is_some() || self.device.is_write_protected()
    }

    /// Passes in any case: it changes nothing, and what was acknowledged before is to be durable.
    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        let _passed = self.fence.pass_to_change()?;
        self.device.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        let _passed = self.fence.pass_to_read()?;
        self.device.allocations(offset, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn a_fence_holds_off_what_the_reservation_does() {
        let fence = Arc::<Fence>::default();
        let device = Arc::new(MemoryDevice::new(8192));
        let it = FencedDevice { device, fence: Arc::clone(&fence) };
        let tried = || {
            let is_reserved = |error: &DeviceError| matches!(error, DeviceError::Reserved);
            let mut bytes = [0; 512];
            let many = it.read_many(&mut [ReadPart { offset: 0, buffer: &mut bytes }]).remove(0);
            let reads = [many, it.read(0, &mut [0]), it.allocations(0, 512).map(drop)];
            let changes = [
                it.write(0, &[1], Durability::Volatile),
                it.trim(0, 512, Durability::Volatile),
                it.write_zeroes(0, 512, &|| true).map(drop),
            ];
            let all = |done: &[Result<(), DeviceError>]| {
                let refused = done.iter().filter(|it| it.as_ref().is_err_and(is_reserved)).count();
                assert!([0, done.len()].contains(&refused), "{done:?}");
                refused == 0
            };
            assert!(it.flush().is_ok());
            (all(&reads), all(&changes), it.is_write_protected())
        };
        assert_eq!(tried(), (true, true, false));
        for kind in ReservationKind::ALL {
            fence.set(Some(kind));
            assert_eq!(tried(), (kind as u8 % 2 == 1, false, true), "{kind:?}");
        }
        fence.set(None);
        assert_eq!(tried(), (true, true, false));
    }

    #[test]
    fn kinds_have_their_numbers() {
        let found: Vec<u8> =
            (0..=u8::MAX).filter_map(ReservationKind::of).map(|kind| kind as u8).collect();
        assert_eq!(found, [1, 2, 3, 4, 5, 6]);
    }
}
