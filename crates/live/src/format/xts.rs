//! AES-256 in XTS mode [ieee-1619-2018] by AWS-LC: a payload becomes as many bytes.
//!
//! The library takes each call through a context, which holds the expanded key: one is kept for
//! each thread that is at work, since expanding the key takes as long as a kilobyte. The library
//! wipes a context as it is freed.
//!
//! Unsafe is this file because the library is one of C; nothing of it is handed out.

use std::ffi::c_int;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use aws_lc_sys::{
    EVP_CIPHER_CTX, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_CipherInit_ex, EVP_CipherUpdate,
    EVP_aes_256_xts,
};
use zeroize::Zeroizing;

use crate::lock::lock;

/// Bytes of a key: two of AES-256.
pub(crate) const KEY_BYTES: usize = 64;
/// Shortest payload: a block of AES.
pub(crate) const PAYLOAD_BYTES_MIN: usize = 16;
/// Longest payload that is passed on.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Number that a payload is encrypted with beside the key.
pub(crate) type Tweak = [u8; 16];

/// Direction of a transformation, as the library counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Direction {
    Decrypt = 0,
    Encrypt = 1,
}

/// Bytes to transform, and memory for what they become.
enum Payload<'a> {
    /// Two memories of one length.
    Apart(&'a [u8], &'a mut [u8]),
    InPlace(&'a mut [u8]),
}

/// A key, ready for use by many threads.
pub(crate) struct Xts {
    key: Zeroizing<[u8; KEY_BYTES]>,
    /// Contexts that no thread uses, by direction.
    idle: [Mutex<Vec<Context>>; 2],
}

/// Context of the library with an expanded key.
struct Context(NonNull<EVP_CIPHER_CTX>);

#[expect(unsafe_code, reason = "the compiler knows nothing of the library's types")]
// SAFETY: a context belongs to no thread, and the library keeps no other reference to it.
unsafe impl Send for Context {}

impl Drop for Context {
    #[expect(unsafe_code, reason = "the library frees what it made")]
    fn drop(&mut self) {
        // SAFETY: the library made it, and nothing else frees it.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) }
    }
}

impl fmt::Debug for Xts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Xts(..)")
    }
}

impl Xts {
    pub(crate) fn new(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self { key, idle: Default::default() }
    }

    /// The key itself, to be wrapped.
    pub(crate) fn key(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// Encrypts a payload of at least [`PAYLOAD_BYTES_MIN`] bytes into as many.
    pub(crate) fn encrypt(&self, tweak: Tweak, from: &[u8], to: &mut [u8]) {
        self.transform(Direction::Encrypt, tweak, Payload::Apart(from, to));
    }

    /// Decrypts a payload into as many bytes.
    pub(crate) fn decrypt(&self, tweak: Tweak, from: &[u8], to: &mut [u8]) {
        self.transform(Direction::Decrypt, tweak, Payload::Apart(from, to));
    }

    /// As [`Xts::encrypt`], where it lies.
    pub(crate) fn encrypt_in_place(&self, tweak: Tweak, payload: &mut [u8]) {
        self.transform(Direction::Encrypt, tweak, Payload::InPlace(payload));
    }

    /// As [`Xts::decrypt`], where it lies.
    pub(crate) fn decrypt_in_place(&self, tweak: Tweak, payload: &mut [u8]) {
        self.transform(Direction::Decrypt, tweak, Payload::InPlace(payload));
    }

    #[expect(unsafe_code, reason = "the library takes addresses")]
    fn transform(&self, direction: Direction, tweak: Tweak, payload: Payload<'_>) {
        let (from, to, length) = match payload {
            Payload::Apart(from, to) => {
                assert_eq!(from.len(), to.len(), "a payload becomes as many bytes");
                (from.as_ptr(), to.as_mut_ptr(), from.len())
            }
            Payload::InPlace(payload) => {
                let (to, length) = (payload.as_mut_ptr(), payload.len());
                (to.cast_const(), to, length)
            }
        };
        assert!((PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length), "a block at least");
        let idle = &self.idle[direction as usize];
        let known = lock(idle).pop();
        let context = known.unwrap_or_else(|| self.context(direction));
        let bytes = c_int::try_from(length).expect("a payload");
        let mut written: c_int = 0;
        // SAFETY: the context has a key; both addresses are those of `length` bytes that are
        // borrowed until the call returns, the same ones or apart, and XTS writes as many as it
        // reads.
        let done = unsafe {
            let at = context.0.as_ptr();
            let (same, none) = (ptr::null(), ptr::null_mut());
            EVP_CipherInit_ex(at, same, none, ptr::null(), tweak.as_ptr(), direction as c_int) == 1
                && EVP_CipherUpdate(at, to, &raw mut written, from, bytes) == 1
        };
        assert!(done && written == bytes, "the library transforms what is a block or more");
        lock(idle).push(context);
    }

    /// A context with the key.
    #[expect(unsafe_code, reason = "the library takes addresses")]
    fn context(&self, direction: Direction) -> Context {
        // SAFETY: it takes nothing.
        let made = unsafe { EVP_CIPHER_CTX_new() };
        let context = Context(NonNull::new(made).expect("memory for a context"));
        // SAFETY: the context is new, and the key has the 64 bytes that this cipher reads.
        let is_set = unsafe {
            let (cipher, none) = (EVP_aes_256_xts(), ptr::null_mut());
            let at = context.0.as_ptr();
            let key = self.key.as_ptr();
            EVP_CipherInit_ex(at, cipher, none, key, ptr::null(), direction as c_int) == 1
        };
        assert!(is_set, "a key whose halves differ is one of XTS");
        context
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Key, tweak, payload and what becomes of it, in hexadecimal digits.
    struct Vector(&'static str, &'static str, &'static str, &'static str);

    /// Vectors of a block, and of a block and a part of one, by Gladman's implementation of the
    /// standard.
    const SHORT: [Vector; 4] = [
        Vector(
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0\
             bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0afaeadacabaaa9a8a7a6a5a4a3a2a1a0",
            "9a785634120000000000000000000000",
            "000102030405060708090a0b0c0d0e0f",
            "c30ca8f2ed57307edc87e544867ac888",
        ),
        Vector(
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0\
             bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0afaeadacabaaa9a8a7a6a5a4a3a2a1a0",
            "9a785634120000000000000000000000",
            "000102030405060708090a0b0c0d0e0f10",
            "7f117752cc598a8b0d81d88af9f9bec8c3",
        ),
        Vector(
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0\
             bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0afaeadacabaaa9a8a7a6a5a4a3a2a1a0",
            "9a785634120000000000000000000000",
            "000102030405060708090a0b0c0d0e0f101112131415",
            "75e8188bcce59ada939f57de2cb9a489c30ca8f2ed57",
        ),
        Vector(
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0\
             bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0afaeadacabaaa9a8a7a6a5a4a3a2a1a0",
            "9a785634120000000000000000000000",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e",
            "581ea1fee5516ad432ddebe75fd27c6fc30ca8f2ed57307edc87e544867ac8",
        ),
    ];
    /// Ciphertext of vector 10 of the standard: 512 bytes that count up.
    const LONG: &str = "\
        1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b5d31e276f8fe4a8d66b317f9\
        ac683f44680a86ac35adfc3345befecb4bb188fd5776926c49a3095eb108fd1098baec70aaa66999a72a82f2\
        7d848b21d4a741b0c5cd4d5fff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca2a3e7a7d\
        7df7b10355165c8b9a6d0a7de8b062c4500dc4cd120c0f7418dae3d0b5781c34803fa75421c790dfe1de1834\
        f280d7667b327f6c8cd7557e12ac3a0f93ec05c52e0493ef31a12d3d9260f79a289d6a379bc70c50841473d1\
        a8cc81ec583e9645e07b8d9670655ba5bbcfecc6dc3966380ad8fecb17b6ba02469a020a84e18e8f84252070\
        c13e9f1f289be54fbc481457778f616015e1327a02b140f1505eb309326d68378f8374595c849d84f4c333ec\
        4423885143cb47bd71c5edae9be69a2ffeceb1bec9de244fbe15992b11b77c040f12bd8f6a975a44a0f90c29\
        a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac6e333b93eb4aff0479da9a41\
        0e4450e0dd7ae4c6e2910900575da401fc07059f645e8b7e9bfdef33943054ff84011493c27b3429eaedb4ed\
        5376441a77ed43851ad77f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa773dad38\
        014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    fn check(key: &str, tweak: &str, clear: &[u8], encrypted: &str) {
        let xts = Xts::new(Zeroizing::new(bytes(key).try_into().unwrap()));
        let tweak: Tweak = bytes(tweak).try_into().unwrap();
        let encrypted = bytes(encrypted);
        let mut found = vec![0; clear.len()];
        xts.encrypt(tweak, clear, &mut found);
        assert_eq!(found, encrypted);
        xts.decrypt_in_place(tweak, &mut found);
        assert_eq!(found, clear);
        xts.encrypt_in_place(tweak, &mut found);
        assert_eq!(found, encrypted);
        let mut back = vec![0; clear.len()];
        xts.decrypt(tweak, &encrypted, &mut back);
        assert_eq!(back, clear);
    }

    #[test]
    fn published_vectors_come_out() {
        for Vector(key, tweak, clear, encrypted) in SHORT {
            check(key, tweak, &bytes(clear), encrypted);
        }
        let key = "2718281828459045235360287471352662497757247093699959574966967627\
                   3141592653589793238462643383279502884197169399375105820974944592";
        let clear: Vec<u8> = (0..512_u16).map(|it| it.to_le_bytes()[0]).collect();
        check(key, "ff000000000000000000000000000000", &clear, LONG);
    }

    proptest! {
        #[test]
        fn every_length_comes_back_and_another_tweak_gives_other_bytes(
            clear in prop::collection::vec(any::<u8>(), PAYLOAD_BYTES_MIN..4200),
            seed: u8,
            at in 0_usize..16,
        ) {
            let xts = Xts::new(Zeroizing::new(std::array::from_fn(|byte| {
                u8::try_from(byte).unwrap() ^ seed
            })));
            let (tweak, mut other) = ([seed; 16], [seed; 16]);
            other[at] ^= 1;
            let [mut one, mut two] = [clear.clone(), clear.clone()];
            xts.encrypt_in_place(tweak, &mut one);
            xts.encrypt_in_place(other, &mut two);
            prop_assert!(one != two && one != clear);
            xts.decrypt_in_place(tweak, &mut one);
            prop_assert_eq!(one, clear);
        }
    }
}
