//! Reservations against an oracle that was written from the specification: it knows numbers alone,
//! as commands have them.

use proptest::prelude::*;

use super::*;

const HOSTS: usize = 4;
const CONFLICT: u8 = 0x83;
const FIELD: u8 = 0x02;

/// Registrations by host, and a reservation of a type, 0 for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Oracle {
    keys: [Option<u64>; HOSTS],
    kind: u8,
    /// Of the types 1 to 4.
    holder: usize,
    generation: u32,
    persists: bool,
}

/// Admitted commands ([nvme-base-2021], "Command Behavior in the Presence of a Reservation") by the
/// type: reads of strangers and of registrants, then writes, of hosts that do not hold it.
const ADMITTED: [[bool; 4]; 6] = [
    [true, true, false, false],
    [false, false, false, false],
    [true, true, false, true],
    [false, true, false, true],
    [true, true, false, true],
    [false, true, false, true],
];

impl Oracle {
    /// A command of a host with its dword 10 and two keys. Returns hosts with types of notices.
    fn run(&mut self, host: usize, it: &Step) -> Result<Vec<(usize, u8)>, u8> {
        let before = self.clone();
        let done = match it.opcode {
            0x0D => self.register(host, it),
            0x11 => self.acquire(host, it),
            _ => self.release(host, it),
        };
        if done.is_err() {
            assert_eq!(*self, before, "the oracle changes nothing either");
        }
        done
    }

    fn register(&mut self, host: usize, it: &Step) -> Result<Vec<(usize, u8)>, u8> {
        let (action, persistence) = (it.dword % 8, it.dword >> 30);
        if action > 2 || persistence == 1 {
            return Err(FIELD);
        }
        let is_own = match self.keys[host] {
            None => false,
            Some(key) => key == it.keys[0] || it.dword >> 3 & 1 == 1,
        };
        let mut told = Vec::new();
        match (action, self.keys[host]) {
            (0, None) => self.keys[host] = Some(it.keys[1]),
            (0, Some(key)) if key == it.keys[1] => {}
            (1, _) if is_own => {
                self.keys[host] = None;
                let is_empty = self.keys == [None; HOSTS];
                if matches!(self.kind, 1..=4) && self.holder == host {
                    if self.kind > 2 {
                        told = self.registrants(host, 2);
                    }
                    self.kind = 0;
                } else if self.kind > 4 && is_empty {
                    self.kind = 0;
                }
            }
            (2, _) if is_own => self.keys[host] = Some(it.keys[1]),
            _ => return Err(CONFLICT),
        }
        self.persists = if persistence == 0 { self.persists } else { persistence == 3 };
        self.generation += 1;
        Ok(told)
    }

    fn acquire(&mut self, host: usize, it: &Step) -> Result<Vec<(usize, u8)>, u8> {
        let (action, ignores, kind) =
            (it.dword % 8, it.dword >> 3 & 1, (it.dword >> 8 & 255) as u8);
        if action > 2 || ignores == 1 || kind == 0 || kind > 6 {
            return Err(FIELD);
        }
        if self.keys[host] != Some(it.keys[0]) {
            return Err(CONFLICT);
        }
        if action == 0 {
            if self.kind == 0 {
                (self.kind, self.holder) = (kind, host);
            } else if self.kind != kind || !self.holds(host) {
                return Err(CONFLICT);
            }
            return Ok(Vec::new());
        }
        let (key, was) = (it.keys[1], self.kind);
        let others: Vec<usize> =
            (0..HOSTS).filter(|of| *of != host && self.keys[*of].is_some()).collect();
        let with_key = |of: &usize| self.keys[*of] == Some(key);
        let gone: Vec<usize> = match was {
            5 | 6 if key == 0 => others,
            1..=4 if self.keys[self.holder] == Some(key) => {
                others.into_iter().filter(with_key).collect()
            }
            1..=4 if key == 0 => return Err(FIELD),
            _ => {
                // The host itself may be among them; it is not told.
                let all: Vec<usize> = (0..HOSTS).filter(with_key).collect();
                if all.is_empty() {
                    return Err(CONFLICT);
                }
                for of in &all {
                    self.keys[*of] = None;
                }
                if self.keys == [None; HOSTS] {
                    self.kind = 0;
                }
                self.generation += 1;
                return Ok(all.into_iter().filter(|of| *of != host).map(|of| (of, 1)).collect());
            }
        };
        for of in &gone {
            self.keys[*of] = None;
        }
        let mut told: Vec<(usize, u8)> = gone.into_iter().map(|of| (of, 1)).collect();
        (self.kind, self.holder) = (kind, host);
        if kind != was {
            told.extend(self.registrants(host, 2));
        }
        self.generation += 1;
        Ok(told)
    }

    fn release(&mut self, host: usize, it: &Step) -> Result<Vec<(usize, u8)>, u8> {
        let (action, ignores, kind) =
            (it.dword % 8, it.dword >> 3 & 1, (it.dword >> 8 & 255) as u8);
        if action > 1 || ignores == 1 || action == 0 && (kind == 0 || kind > 6) {
            return Err(FIELD);
        }
        if self.keys[host] != Some(it.keys[0]) {
            return Err(CONFLICT);
        }
        if action == 1 {
            let told = self.registrants(host, 3);
            (self.keys, self.kind) = ([None; HOSTS], 0);
            self.generation += 1;
            return Ok(told);
        }
        if self.kind == 0 || !self.holds(host) {
            return Ok(Vec::new());
        }
        if self.kind != kind {
            return Err(FIELD);
        }
        self.kind = 0;
        Ok(if kind > 2 { self.registrants(host, 2) } else { Vec::new() })
    }

    fn holds(&self, host: usize) -> bool {
        if self.kind > 4 { self.keys[host].is_some() } else { self.kind > 0 && self.holder == host }
    }

    fn registrants(&self, but: usize, notice: u8) -> Vec<(usize, u8)> {
        let all = (0..HOSTS).filter(|of| *of != but && self.keys[*of].is_some());
        all.map(|of| (of, notice)).collect()
    }

    fn admits(&self, host: usize, access: Access) -> bool {
        if self.kind == 0 || self.holds(host) {
            return true;
        }
        let column = usize::from(access == Access::Write) * 2;
        let registered = usize::from(self.keys[host].is_some());
        ADMITTED[usize::from(self.kind) - 1][column + registered]
    }

    /// The extended report.
    fn report(&self) -> Vec<u8> {
        let mut report = vec![0; 64];
        report[..4].copy_from_slice(&self.generation.to_le_bytes());
        report[4] = self.kind;
        report[9] = self.persists.into();
        for host in 0..HOSTS {
            let Some(key) = self.keys[host] else { continue };
            report[5] += 1;
            let mut entry = [0; 64];
            (entry[0], entry[1], entry[2]) = (0xFF, 0xFF, self.holds(host).into());
            entry[8..16].copy_from_slice(&key.to_le_bytes());
            entry[16..32].copy_from_slice(&id(host));
            report.extend(entry);
        }
        report
    }
}

#[derive(Clone, Debug)]
struct Step {
    host: usize,
    opcode: u8,
    dword: u32,
    /// True to give the key that the host has.
    is_honest: bool,
    keys: [u64; 2],
}

fn step() -> impl Strategy<Value = Step> {
    let opcode = prop_oneof![4 => Just(0x0D_u8), 4 => Just(0x11), 1 => Just(0x15)];
    let action = prop_oneof![8 => 0..3_u32, 1 => 3..8_u32];
    let ignores = prop_oneof![5 => Just(0_u32), 1 => Just(1_u32)];
    let kind = prop_oneof![12 => 1..7_u32, 1 => Just(0), 1 => Just(7)];
    let fields = (action, ignores, kind, 0..4_u32);
    let honest = prop_oneof![6 => Just(true), 1 => Just(false)];
    (0..HOSTS, opcode, fields, honest, [0..3_u64, 0..3_u64]).prop_map(
        |(host, opcode, (action, ignores, kind, persistence), is_honest, keys)| {
            let rest = if opcode == 0x0D { persistence << 30 } else { kind << 8 };
            Step { host, opcode, dword: action | ignores << 3 | rest, is_honest, keys }
        },
    )
}

fn id(host: usize) -> [u8; 16] {
    [u8::try_from(host + 1).unwrap(); 16]
}

fn host(number: usize) -> ReservingHost {
    ReservingHost::Identified(id(number))
}

/// Carries a step out; fails with the code of a status.
fn run(it: &mut Reservations, step: &Step) -> Result<Vec<Notification>, u8> {
    let opcode = match step.opcode {
        0x0D => IoCommand::ReservationRegister,
        0x11 => IoCommand::ReservationAcquire,
        _ => IoCommand::ReservationRelease,
    };
    let code = |status: Status| u8::try_from(status.field() >> 1 & 0xFF).unwrap();
    let command = ReservationCommand::parse(opcode, step.dword).map_err(code)?;
    let data = step.keys.map(u64::to_le_bytes).concat();
    let keys = command.keys(&data[..command.data_bytes()]);
    it.carry_out(host(step.host), command, keys).map_err(|error| code(error.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn hosts_contend_as_the_specification_has_it(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut own, mut oracle) = (Reservations::default(), Oracle::default());
        let asking = HostIdentity { host: host(0), is_extended: true };
        for mut step in steps {
            if let (true, Some(key)) = (step.is_honest, oracle.keys[step.host]) {
                step.keys[0] = key;
            }
            let before = own.clone();
            let expected = oracle.run(step.host, &step);
            let done = run(&mut own, &step).map(|told| {
                let number = |it: &Notification| {
                    let host = (0..HOSTS).find(|number| host(*number) == it.host).unwrap();
                    (host, it.notice as u8)
                };
                told.iter().map(number).collect::<Vec<_>>()
            });
            prop_assert!(done.is_ok() || own == before);
            prop_assert_eq!(&done, &expected, "{:?}", step);
            prop_assert_eq!(report(&own, &asking, true).unwrap(), oracle.report(), "{:?}", step);
            for number in 0..HOSTS {
                for access in [Access::Read, Access::Write] {
                    let admitted = own.admits(host(number), access);
                    prop_assert_eq!(admitted, oracle.admits(number, access), "{:?}", oracle);
                }
            }
            let again = Reservations::restored(&own.stored(), true);
            if own.is_persistent() {
                prop_assert_eq!(Reservations { generation: own.generation, ..again }, own.clone());
            } else {
                prop_assert_eq!(again, Reservations::default());
            }
        }
    }
}

/// The properties above reach what matters, and often.
#[test]
fn random_hosts_hold_every_kind_and_preempt_it() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut oracle, mut held, mut preempted) = (Oracle::default(), [0; 7], [0; 7]);
    for _ in 0..20_000 {
        let mut step = step().new_tree(&mut runner).unwrap().current();
        if let (true, Some(key)) = (step.is_honest, oracle.keys[step.host]) {
            step.keys[0] = key;
        }
        let was = usize::from(oracle.kind);
        let done = oracle.run(step.host, &step);
        held[usize::from(oracle.kind)] += 1;
        let is_preempt = step.opcode == 0x11 && step.dword & 7 > 0;
        preempted[was] += usize::from(is_preempt && done.is_ok_and(|told| !told.is_empty()));
    }
    assert!(held.iter().all(|count| *count > 200), "{held:?}");
    assert!(preempted.iter().all(|count| *count > 20), "{preempted:?}");
}

#[test]
fn a_host_without_an_identity_is_not_stored_and_goes_with_its_controller() {
    let (stranger, other) = (ReservingHost::Anonymous { controller: 3 }, host(1));
    for kind in ReservationKind::ALL {
        let mut it = Reservations::default();
        let persists = Some(true);
        let action = RegisterAction::Register;
        let register = ReservationCommand::Register { action, ignores_key: false, persists };
        for host in [stranger, other] {
            it.carry_out(host, register, Keys { current: 0, other: 9 }).unwrap();
        }
        let keys = Keys { current: 9, other: 0 };
        it.carry_out(stranger, ReservationCommand::Acquire(kind), keys).unwrap();
        let stored = it.stored();
        assert_eq!(stored.registrations, [Registration { host: id(1), key: 9 }]);
        assert_eq!(stored.kind, Some(kind).filter(|kind| kind.is_held_by_all()), "{kind:?}");
        let told = it.remove(stranger).len();
        assert_eq!(it.kind(), stored.kind);
        assert_eq!(told, usize::from(kind.admits_registrants() && stored.kind.is_none()));
    }
}

#[test]
fn no_more_than_a_thousand_hosts_register() {
    let mut it = Reservations::default();
    let action = RegisterAction::Register;
    let register = ReservationCommand::Register { action, ignores_key: false, persists: None };
    for controller in 0..1024 {
        it.carry_out(ReservingHost::Anonymous { controller }, register, Keys::default()).unwrap();
    }
    let next = it.carry_out(host(0), register, Keys::default());
    assert_eq!(next, Err(ReservationError::TooManyHosts));
    let again = ReservingHost::Anonymous { controller: 7 };
    assert!(it.carry_out(again, register, Keys::default()).is_ok());
}

#[test]
fn a_report_has_identifiers_of_the_size_that_hosts_have() {
    let short = |byte| {
        let mut id = [0; 16];
        id[..8].fill(byte);
        ReservingHost::Identified(id)
    };
    let action = RegisterAction::Register;
    let register = ReservationCommand::Register { action, ignores_key: false, persists: None };
    let mut it = Reservations::default();
    it.carry_out(short(5), register, Keys { current: 0, other: 0x1122 }).unwrap();
    it.carry_out(
        short(5),
        ReservationCommand::Acquire(ReservationKind::ExclusiveAccess),
        Keys { current: 0x1122, other: 0 },
    )
    .unwrap();
    let ask = |it: &Reservations, host, is_own_extended, is_extended| {
        report(it, &HostIdentity { host, is_extended: is_own_extended }, is_extended)
    };
    let told = ask(&it, short(5), false, false).unwrap();
    let mut expected = vec![1, 0, 0, 0, 2, 1, 0, 0, 0, 0];
    expected.resize(24, 0);
    expected.extend([0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5, 0x22, 0x11]);
    expected.resize(48, 0);
    assert_eq!(told, expected);
    let refused = Err(Status::HOST_ID_FORMAT);
    assert_eq!(ask(&it, short(5), false, true), refused);
    assert_eq!(ask(&it, host(1), true, false), refused);
    let anonymous = ReservingHost::Anonymous { controller: 1 };
    for is_extended in [false, true] {
        assert!(ask(&it, anonymous, false, is_extended).is_ok(), "it has no identifier");
    }
    it.carry_out(host(1), register, Keys { current: 0, other: 3 }).unwrap();
    assert_eq!(ask(&it, short(5), false, false), refused, "another one has no room");
}
