//! Diffie-Hellman groups ffdhe2048, ffdhe3072 and ffdhe4096 ([rfc-7919], appendix A).

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};

/// Bits of private exponents: twice the strength of the largest group, and some.
const EXPONENT_BITS: u32 = 384;

/// Leading bits of e, in hexadecimal, as many as the largest group takes.
const E: &str = "\
    ADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE249B3EF9\
    7D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3\
    B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797A\
    BC0AB182B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB19\
    0B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF8E4F1232EEF28183\
    C3FE3B1B4C6FAD733BB5FCBC2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA886B4238611FCFDC\
    DE355B3B6519035BBC34F4DEF99C023861B46FC9D6E6C9077AD91D2691F7F7EE598CB0FAC186D91C\
    AEFE130985139270B4130C93BC437944F4FD4452E2D74DD364F2E21E71F54BFF5CAE82AB9C9DF69E\
    E86D2BC522363A0DABC521979B0DEADA1DBF9A42D5C4484E0ABCD06BFA53DDEF3C1B20EE3FD59D7C\
    25E41D2B669E1EF16E6F52C3164DF4FB7930E9E4E58857B6AC7D5F42D69F6D187763CF1D55034004\
    87F55BA57E31CC7A7135C886EFB4318AED6A1E012D9E6832A907600A918130C46DC778F971AD0038\
    092999A333CB8B7A1A1DB93D7140003C2A4ECEA9F98D0ACC0A8291CDCEC97DCF8EC9B55A7F88A46B\
    4DB5A851F44182E1C68A007E5E0DD902";

/// A group, by the identifier that the protocol has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Ffdhe2048 = 1,
    Ffdhe3072 = 2,
    Ffdhe4096 = 3,
}

/// A private exponent of a group.
pub(super) struct Exponent {
    group: Group,
    exponent: BoxedUint,
}

impl Group {
    /// The group with an identifier; none if it is not supported.
    pub(super) const fn of(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Ffdhe2048),
            2 => Some(Self::Ffdhe3072),
            3 => Some(Self::Ffdhe4096),
            _ => None,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Ffdhe2048 => 2048,
            Self::Ffdhe3072 => 3072,
            Self::Ffdhe4096 => 4096,
        }
    }

    /// Bytes of a public value.
    pub(super) const fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// The number X in the formula of the prime.
    const fn x(self) -> u64 {
        match self {
            Self::Ffdhe2048 => 560_316,
            Self::Ffdhe3072 => 2_625_351,
            Self::Ffdhe4096 => 5_736_041,
        }
    }

    /// The prime `2^b - 2^(b-64) + ([2^(b-130) e] + X) 2^64 - 1` of b bits: 64 ones, the
    /// leading bits of e plus X - 1, 64 ones.
    fn prime(self) -> BoxedUint {
        const ONES: [u8; 8] = [0xFF; 8];
        let bits = self.bits() - 128;
        let e = BoxedUint::from_be_hex(&E[..bits as usize / 4], bits);
        let more = BoxedUint::from_be_slice(&(self.x() - 1).to_be_bytes(), bits);
        let middle = e.into_option().expect("hexadecimal digits");
        let middle = middle.wrapping_add(more.expect("a small number fits"));
        let bytes = [&ONES[..], &middle.to_be_bytes(), &ONES].concat();
        BoxedUint::from_be_slice(&bytes, self.bits()).expect("as many bytes as the prime has")
    }

    fn params(self) -> BoxedMontyParams {
        let odd = Odd::new(self.prime()).into_option().expect("a prime above two");
        BoxedMontyParams::new_vartime(odd)
    }
}

impl Exponent {
    /// Bytes that an exponent is made of.
    pub(super) const BYTES: usize = EXPONENT_BITS as usize / 8;

    /// An exponent of random bytes.
    pub(super) fn new(group: Group, random: &[u8; Self::BYTES]) -> Self {
        let exponent = BoxedUint::from_be_slice(random, EXPONENT_BITS);
        Self { group, exponent: exponent.expect("as many bytes as bits") }
    }

    pub(super) const fn group(&self) -> Group {
        self.group
    }

    /// The public value, as many bytes as the prime has.
    pub(super) fn public(&self) -> Vec<u8> {
        let generator = BoxedUint::from_be_slice(&[2], self.group.bits());
        self.power(generator.expect("a byte fits"))
    }

    /// The secret shared with the owner of a public value; none if that value is invalid.
    pub(super) fn shared(&self, public: &[u8]) -> Option<Vec<u8>> {
        if public.len() != self.group.bytes() {
            return None;
        }
        let public = BoxedUint::from_be_slice(public, self.group.bits()).ok()?;
        // 0, 1 and p - 1 would make the secret predictable.
        let (one, prime) = (BoxedUint::one_with_precision(self.group.bits()), self.group.prime());
        let last = prime.wrapping_sub(&one);
        (public > one && public < last).then(|| self.power(public))
    }

    fn power(&self, base: BoxedUint) -> Vec<u8> {
        let form = BoxedMontyForm::new(base, &self.group.params());
        form.pow_bounded_exp(&self.exponent, EXPONENT_BITS).retrieve().to_be_bytes().into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_each_group_share_a_secret_that_depends_on_both() {
        for id in 1..=3 {
            let group = Group::of(id).unwrap();
            let [one, other, third] =
                [3, 77, 201].map(|byte| Exponent::new(group, &[byte; Exponent::BYTES]));
            let shared = one.shared(&other.public()).unwrap();
            assert_eq!(shared.len(), group.bytes());
            assert_eq!(other.shared(&one.public()).unwrap(), shared);
            assert_ne!(third.shared(&one.public()).unwrap(), shared);
        }
        assert_eq!(Group::of(0), None);
        assert_eq!(Group::of(6), None);
    }

    #[test]
    fn values_that_make_the_secret_predictable_are_refused() {
        let group = Group::Ffdhe2048;
        let exponent = Exponent::new(group, &[9; Exponent::BYTES]);
        let mut low = vec![0; group.bytes()];
        assert!(exponent.shared(&low).is_none());
        *low.last_mut().unwrap() = 1;
        assert!(exponent.shared(&low).is_none());
        let prime = group.prime().to_be_bytes();
        assert!(exponent.shared(&prime).is_none());
        let mut last = prime.to_vec();
        *last.last_mut().unwrap() -= 1;
        assert!(exponent.shared(&last).is_none());
        assert!(exponent.shared(&prime[1..]).is_none());
    }
}
