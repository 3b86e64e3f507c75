//! Dies whose media fail and are replaced.

use super::*;

/// A medium that fails every request.
#[derive(Debug)]
struct Failing;

impl Medium for Failing {
    fn size(&self) -> u64 {
        0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn requests_of_before_a_die_was_replaced_do_not_count_against_its_successor() {
    let medium = || -> Box<dyn Medium> { Box::new(Failing) };
    let dies = Dies::new((0..3).map(|_| Some(medium())).collect(), true);
    let failures = || dies.traffic()[1].failures;
    let failed = || Err(io::ErrorKind::Other.into());
    let (before, complete) = (dies.shared(1), dies.complete(1));
    assert!(complete.is_in_place(&dies));
    assert!(dies.count_read(1, &before, 0, failed()).is_err());
    assert_eq!(failures(), 1);

    assert!(dies.lose(1));
    let without = dies.shared(1);
    dies.forget_failures(1);
    dies.fill(1, medium());
    let filling = dies.complete(1);
    dies.join(1);
    assert!(dies.settle(1));
    for asked in [&before, &without] {
        assert!(dies.count_read(1, asked, 0, failed()).is_err());
        assert!(dies.count_write(1, asked, 0, failed()).is_err());
    }
    assert_eq!(failures(), 0);
    assert!(!complete.is_in_place(&dies) && !filling.is_in_place(&dies));
    assert!(dies.complete(1).is_in_place(&dies));
    assert!(dies.read(1, 0, &mut []).is_err());
    assert_eq!(failures(), 1, "its own failures count");
}
