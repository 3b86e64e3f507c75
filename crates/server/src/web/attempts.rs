//! Wrong tokens: beyond two, each makes the address that it came from wait longer before another
//! one is looked at.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens without a wait: people mistype.
const FREE: u32 = 2;
/// Wait after the first one beyond these; each further one doubles it.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Longest wait. After as long again without a wrong token the count starts over.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Addresses that are remembered; the one whose last wrong token is longest ago is forgotten first.
const ADDRESSES_MAX: usize = 1024;

/// Addresses that sent wrong tokens.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<BTreeMap<IpAddr, Wrong>>);

/// The wrong tokens of one address.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    count: u32,
    last: Instant,
}

impl Wrong {
    fn wait(self) -> Duration {
        match self.count.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(beyond) => WAIT_MIN.saturating_mul(1 << beyond.min(16)).min(WAIT_MAX),
        }
    }
}

impl Attempts {
    /// Time at `now` until a token of an address is looked at; none where that is at once.
    pub(super) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let wrong = *self.lock().get(&network(address))?;
        let left = (wrong.last + wrong.wait()).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Records a wrong token. Returns the number from its address, and the delay for the next one.
    pub(super) fn note_wrong(&self, address: IpAddr, now: Instant) -> (u32, Duration) {
        let address = network(address);
        let mut all = self.lock();
        let before = all.get(&address).filter(|it| now < it.last + it.wait() + WAIT_MAX);
        let count = before.map_or(0, |it| it.count).saturating_add(1);
        let wrong = Wrong { count, last: now };
        all.insert(address, wrong);
        if all.len() > ADDRESSES_MAX {
            let oldest = all.iter().min_by_key(|(_, it)| it.last).map(|(address, _)| *address);
            oldest.and_then(|address| all.remove(&address));
        }
        (count, wrong.wait())
    }

    /// Records the right token.
    pub(super) fn note_right(&self, address: IpAddr) {
        self.lock().remove(&network(address));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Wrong>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the smallest network that one client is assumed to hold: an IPv4 address, or the /64 of
/// an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tokens_beyond_two_double_the_wait_up_to_a_minute_and_the_right_one_ends_it() {
        let (attempts, address) = (Attempts::default(), IpAddr::from([192, 0, 2, 1]));
        let mut now = Instant::now();
        assert_eq!(attempts.wait(address, now), None);
        let waits = [0, 0, 1, 2, 4, 8, 16, 32, 60, 60];
        for (count, seconds) in (1..).zip(waits) {
            let wait = Duration::from_secs(seconds);
            assert_eq!(attempts.note_wrong(address, now), (count, wait));
            assert_eq!(attempts.wait(address, now), Some(wait).filter(|it| !it.is_zero()));
            now += wait;
            assert_eq!(attempts.wait(address, now), None);
        }
        assert_eq!(attempts.wait(IpAddr::from([192, 0, 2, 2]), now), None, "another address");
        attempts.note_right(address);
        assert_eq!(attempts.note_wrong(address, now).0, 1);
        now += Duration::from_mins(3);
        assert_eq!(attempts.note_wrong(address, now).0, 1, "an old one is forgotten");
    }

    #[test]
    fn so_many_addresses_are_remembered_and_a_network_is_one_of_them() {
        let (attempts, begun) = (Attempts::default(), Instant::now());
        for number in 0..2048_u32 {
            let now = begun + Duration::from_millis(number.into());
            attempts.note_wrong(IpAddr::from(number.to_be_bytes()), now);
        }
        let begun = begun + Duration::from_secs(3);
        let all = attempts.lock();
        assert_eq!(all.len(), ADDRESSES_MAX);
        assert!(!all.contains_key(&IpAddr::from([0, 0, 0, 0])), "the oldest are forgotten");
        drop(all);
        for _ in 0..=FREE {
            attempts.note_wrong("2001:db8::1".parse().unwrap(), begun);
        }
        assert!(attempts.wait("2001:db8::2".parse().unwrap(), begun).is_some());
        assert!(attempts.wait("2001:db8:0:1::1".parse().unwrap(), begun).is_none());
    }
}
