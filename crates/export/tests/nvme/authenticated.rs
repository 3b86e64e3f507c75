//! Authentication, by a host of its own that was written from the specification.

use std::sync::Arc;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use export::nvme::{Secrets, Subsystem};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::Rig;
use crate::host::{DISCOVERY_NQN, Data, Digests, Done, HOST_NQN, Host, Inner, Order, io};

/// Choices of a host in a dialogue.
#[derive(Clone, Copy)]
struct Choice {
    hash: u8,
    group: u8,
    /// True if it wants to know who the subsystem is.
    is_mutual: bool,
}

/// A secret as its bytes: a key, and the hash that transforms it.
#[derive(Clone)]
struct Key(Vec<u8>, u8);

impl Key {
    /// Its form as text.
    fn text(&self) -> String {
        let mut bytes = self.0.clone();
        bytes.extend(crc32fast::hash(&self.0).to_le_bytes());
        let encoded = <base64ct::Base64 as base64ct::Encoding>::encode_string(&bytes);
        format!("DHHC-1:{:02}:{encoded}:", self.1)
    }

    fn of(&self, nqn: &str) -> Vec<u8> {
        match self.1 {
            0 => self.0.clone(),
            hash => mac(hash, &self.0, &[nqn.as_bytes(), b"NVMe-over-Fabrics"].concat()),
        }
    }
}

fn mac(hash: u8, key: &[u8], bytes: &[u8]) -> Vec<u8> {
    fn of<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
        mac.update(bytes);
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        1 => of::<Hmac<Sha256>>(key, bytes),
        2 => of::<Hmac<Sha384>>(key, bytes),
        _ => of::<Hmac<Sha512>>(key, bytes),
    }
}

fn digest(hash: u8, bytes: &[u8]) -> Vec<u8> {
    match hash {
        1 => Sha256::digest(bytes).to_vec(),
        2 => Sha384::digest(bytes).to_vec(),
        _ => Sha512::digest(bytes).to_vec(),
    }
}

/// The prime of a group from its definition in RFC 7919:
/// `2^b - 2^(b-64) + ([2^(b-130) e] + x) 2^64 - 1`.
fn prime(group: u8) -> BoxedUint {
    let (bits, x) =
        [(2048_u32, 560_316_u64), (3072, 2_625_351), (4096, 5_736_041)][usize::from(group) - 1];
    let wide = bits + 64;
    let number = |value: u64| BoxedUint::from_be_slice(&value.to_be_bytes(), wide).unwrap();
    // e = 1 + 1/1! + 1/2! + ..., with 64 bits more than are needed.
    let mut term = number(1).shl(bits - 130 + 64);
    let (mut e, mut divisor) = (term.clone(), 1_u64);
    while !bool::from(term.is_zero()) {
        let by = number(divisor).to_nz().unwrap();
        term = term.div_rem_vartime(&by).0;
        e = e.wrapping_add(&term);
        divisor += 1;
    }
    let e = e.shr(64);
    let middle = e.wrapping_add(number(x)).shl(64);
    let prime = number(1).shl(bits).wrapping_sub(number(1).shl(bits - 64));
    let prime = prime.wrapping_add(&middle).wrapping_sub(number(1));
    BoxedUint::from_be_slice(&prime.to_be_bytes()[8..], bits).unwrap()
}

fn power(group: u8, base: &[u8], exponent: &[u8]) -> Vec<u8> {
    let prime = prime(group);
    let bits = prime.bits_precision();
    let params = BoxedMontyParams::new_vartime(Odd::new(prime).unwrap());
    let base = BoxedUint::from_be_slice(base, bits).unwrap();
    let exponent = BoxedUint::from_be_slice_vartime(exponent);
    BoxedMontyForm::new(base, &params).pow(&exponent).retrieve().to_be_bytes().to_vec()
}

/// An authentication message that is sent.
fn send(host: &mut Host<Inner>, message: &[u8]) -> Done {
    let dwords = [0x00E9_0101 << 8, u32::try_from(message.len()).unwrap()];
    host.run(&Order::new(0x7F, 5, &dwords).with(Data::Capsule(message)))
}

fn receive(host: &mut Host<Inner>) -> Done {
    host.run(&Order::new(0x7F, 6, &[0x00E9_0101 << 8, 2048]).with(Data::In(2048)))
}

fn negotiate(choice: Choice) -> Vec<u8> {
    let mut message = vec![0; 72];
    (message[4], message[7], message[8]) = (9, 1, 1);
    // What is not there comes first.
    (message[10], message[11]) = (2, 2);
    (message[12], message[13]) = (77, choice.hash);
    (message[42], message[43]) = (5, choice.group);
    message
}

/// Authenticates a queue that is connected. Returns the last message, and whether the subsystem
/// proved who it is, where that was wanted.
fn authenticate(
    host: &mut Host<Inner>,
    nqn: &str,
    choice: Choice,
    key: &Key,
    subsystem_key: &Key,
) -> (Vec<u8>, bool) {
    assert_eq!(send(host, &negotiate(choice)).status, 0);
    let challenge = receive(host).data;
    assert_eq!(challenge[..2], [1, 1], "{challenge:?}");
    let length = usize::from(challenge[6]);
    assert_eq!((challenge[8], challenge[9]), (choice.hash, choice.group));
    let public_bytes = usize::from(u16::from_le_bytes([challenge[10], challenge[11]]));
    let (sequence, value) = (&challenge[12..16], &challenge[16..16 + length]);
    let exponent = [0x5A; 40];
    let (public, shared) = if choice.group > 0 {
        let theirs = &challenge[16 + length..16 + length + public_bytes];
        (power(choice.group, &[2], &exponent), Some(power(choice.group, theirs, &exponent)))
    } else {
        assert_eq!(public_bytes, 0);
        (Vec::new(), None)
    };
    let augmented = |value: &[u8]| match &shared {
        Some(shared) => mac(choice.hash, &digest(choice.hash, shared), value),
        None => value.to_vec(),
    };
    let (own, other) = (HOST_NQN.as_bytes(), nqn.as_bytes());
    let text = [&augmented(value), sequence, &[9, 0, 0], b"HostHost", own, &[0], other].concat();
    let asked = vec![0xC2; length];
    let mut reply = vec![0; 16];
    (reply[0], reply[1], reply[4], reply[6]) = (1, 2, 9, challenge[6]);
    reply[8] = u8::from(choice.is_mutual);
    reply[10..12].copy_from_slice(&u16::try_from(public.len()).unwrap().to_le_bytes());
    reply[12..16].copy_from_slice(&77_u32.to_le_bytes());
    reply.extend(mac(choice.hash, &key.of(HOST_NQN), &text));
    reply.extend(&asked);
    reply.extend(&public);
    assert_eq!(send(host, &reply).status, 0);
    let last = receive(host).data;
    let text = [
        &augmented(&asked)[..],
        &77_u32.to_le_bytes(),
        &[9, 0, 0],
        b"Controller",
        other,
        &[0],
        own,
    ]
    .concat();
    let expected = mac(choice.hash, &subsystem_key.of(nqn), &text);
    let is_proved = last[..2] == [1, 3] && last[8] == 1 && last[16..] == expected;
    if is_proved && choice.is_mutual {
        let mut success = vec![0; 16];
        (success[0], success[1], success[4]) = (1, 4, 9);
        assert_eq!(send(host, &success).status, 0);
    }
    (last, is_proved)
}

/// A rig whose subsystem lets in who knows `key`.
fn rig(key: &Key, subsystem_key: Option<&Key>) -> Rig {
    let mut rig = Rig::new(512);
    let own = subsystem_key.map(Key::text).unwrap_or_default();
    let text = format!("{HOST_NQN} {} {own}\n", key.text());
    let secrets = Secrets::parse(&text).unwrap();
    let administration = Arc::<crate::Told>::clone(&rig.told);
    let subsystem = Subsystem::new(&rig.exports, administration, 512).unwrap();
    rig.subsystem = Arc::new(subsystem.authenticated(secrets));
    rig
}

fn connected(rig: &Rig, place: (u16, u16)) -> Host<Inner> {
    let mut host = rig.open(Digests::default());
    let done = host.connect(place, (rig.subsystem.nqn(), HOST_NQN), (32, 4), 0);
    assert_eq!((done.status, done.value >> 16), (0, 2), "authentication is required");
    host
}

#[test]
fn hosts_get_in_with_each_hash_and_group_and_learn_who_answers() {
    let subsystem_key = Key(vec![3; 64], 3);
    for hash in 1..=3 {
        for group in 0..=3 {
            let key = Key((0..48).map(|it| it * 5 + hash).collect(), group);
            let rig = rig(&key, Some(&subsystem_key));
            let nqn = rig.subsystem.nqn().to_owned();
            let choice = Choice { hash, group, is_mutual: (hash + group) % 2 == 0 };
            let mut admin = connected(&rig, (0, 0xFFFF));
            let early = admin.run(&Order::new(0x7F, 4, &[0, 8]));
            assert_eq!((early.status, early.is_final), (0x191, true), "not yet");
            let (last, is_proved) = authenticate(&mut admin, &nqn, choice, &key, &subsystem_key);
            assert_eq!(last[..2], [1, 3], "Success1, {hash} {group}");
            assert_eq!(is_proved, choice.is_mutual);
            admin.set_property(0x14, 0x0046_0001);
            // Each queue by itself.
            let mut queue = connected(&rig, (1, 1));
            assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0x191);
            authenticate(&mut queue, &nqn, choice, &key, &subsystem_key);
            assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0);
            assert!(rig.subsystem.controllers()[0].is_authenticated);
            // And once more, on a queue that is in use.
            let again = authenticate(&mut queue, &nqn, choice, &key, &subsystem_key).0;
            assert_eq!(again[..2], [1, 3]);
            assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0);
        }
    }
}

#[test]
fn who_does_not_know_the_secret_is_told_so_and_dropped() {
    let (key, wrong) = (Key(vec![1; 32], 1), Key(vec![2; 32], 1));
    let rig = rig(&key, None);
    let nqn = rig.subsystem.nqn().to_owned();
    for group in [0, 1] {
        let mut admin = connected(&rig, (0, 0xFFFF));
        let choice = Choice { hash: 1, group, is_mutual: false };
        let (last, _) = authenticate(&mut admin, &nqn, choice, &wrong, &wrong);
        assert_eq!((&last[..2], last[6], last[7]), (&[0, 0xF1][..], 1, 1), "Failure1");
        assert!(admin.wire.is_over());
    }
    // The subsystem has no secret to prove itself with.
    let mut admin = connected(&rig, (0, 0xFFFF));
    let choice = Choice { hash: 2, group: 0, is_mutual: true };
    let (last, is_proved) = authenticate(&mut admin, &nqn, choice, &key, &wrong);
    assert_eq!((&last[..2], is_proved), (&[0, 0xF1][..], false));
    let mut stranger = rig.open(Digests::default());
    let other = "nqn.2014-08.org.nvmexpress:uuid:bbbbbbbb-0000-4000-8000-000000000001";
    let refused = stranger.connect((0, 0xFFFF), (&nqn, other), (32, 0), 0);
    assert_eq!((refused.status, refused.is_final), (0x184, true), "Connect Invalid Host");
    let mut discovery = rig.open(Digests::default());
    discovery.begin(DISCOVERY_NQN);
}

#[test]
fn messages_out_of_turn_or_out_of_form_are_refused_with_a_reason() {
    let key = Key(vec![1; 32], 0);
    let rig = rig(&key, None);
    let good = negotiate(Choice { hash: 1, group: 0, is_mutual: false });
    let with = |changes: &[(usize, u8)]| {
        let mut message = good.clone();
        for (at, value) in changes {
            message[*at] = *value;
        }
        message
    };
    for (message, reason) in [
        (with(&[(6, 1)]), 3),
        (with(&[(7, 2)]), 2),
        (with(&[(8, 2)]), 2),
        (with(&[(13, 9)]), 4),
        (with(&[(43, 4)]), 5),
        (with(&[(10, 31)]), 6),
        (good[..71].to_vec(), 6),
        (vec![1], 6),
        (vec![1, 2, 0, 0, 0, 0, 0, 0, 0], 7),
        (vec![0xFF; 512], 6),
    ] {
        let mut host = connected(&rig, (0, 0xFFFF));
        assert_eq!(receive(&mut host).status, 0x0C, "nothing was asked");
        assert_eq!(send(&mut host, &message).status, 0);
        let failure = receive(&mut host).data;
        assert_eq!((&failure[..2], failure[7]), (&[0, 0xF1][..], reason), "{message:?}");
        assert!(host.wire.is_over());
    }
    // A reply whose lengths reach beyond it, and one of another transaction.
    for (at, value, reason) in [(6, 64, 6), (11, 0xFF, 6), (4, 8, 6)] {
        let mut host = connected(&rig, (0, 0xFFFF));
        send(&mut host, &good);
        receive(&mut host);
        let mut reply = vec![0; 16 + 64];
        (reply[0], reply[1], reply[4], reply[6]) = (1, 2, 9, 32);
        reply[at] = value;
        send(&mut host, &reply);
        assert_eq!(receive(&mut host).data[7], reason, "byte {at}");
    }
    let mut host = connected(&rig, (0, 0xFFFF));
    let other = host.run(&Order::new(0x7F, 5, &[0x00E8_0101 << 8, 72]).with(Data::Capsule(&good)));
    assert_eq!(other.status, 0x02, "another protocol");
}
