//! Laws between what a controller claims and what it carries out, over any transport.

/// Status codes of what is not there.
const INVALID_OPCODE: u16 = 0x001;
const INVALID_LOG_PAGE: u16 = 0x109;
const NOT_OF_NAMESPACE: u16 = 0x10F;
const FABRICS: u8 = 0x7F;

/// A controller with an I/O queue.
pub(crate) trait Subject {
    /// True if its admin queue takes fabrics commands.
    const IS_FABRICS: bool;

    /// Carries out an admin command, with data to or from the host; none if it is held.
    fn admin(&mut self, command: &AdminRequest<'_>) -> Option<Answer>;

    /// Status of a command for the first block of namespace 1.
    fn io(&mut self, opcode: u8) -> u16;
}

/// An admin command and its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AdminRequest<'a> {
    pub(crate) opcode: u8,
    pub(crate) namespace: u32,
    /// Command dwords 10 and 11.
    pub(crate) dwords: [u32; 2],
    /// Data to the controller.
    pub(crate) sent: &'a [u8],
    /// Bytes from the controller.
    pub(crate) wanted: u32,
}

/// Answer to an admin command.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) value: u32,
    pub(crate) data: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// True if bit 0 of a list of dwords is set for a number.
fn lists(log: &[u8], number: usize) -> bool {
    log[4 * number] & 1 == 1
}

/// Bits of the scopes of a feature.
fn scope(log: &[u8], feature: u8) -> u16 {
    u16_at(log, 4 * usize::from(feature) + 2) >> 4
}

fn ask(subject: &mut impl Subject, asked: &AdminRequest<'_>) -> Answer {
    subject.admin(asked).expect("no such command is held")
}

fn identify(subject: &mut impl Subject, structure: u32, namespace: u32) -> Vec<u8> {
    let dwords = [structure, 0];
    let answer =
        ask(subject, &AdminRequest { opcode: 6, namespace, dwords, wanted: 4096, sent: &[] });
    assert_eq!(answer.status, 0, "CNS {structure:02x}h of namespace {namespace}");
    answer.data
}

fn log(subject: &mut impl Subject, page: u8, bytes: u32) -> Answer {
    let dwords = [u32::from(page) | (bytes / 4 - 1) << 16, 0];
    let namespace = u32::MAX;
    ask(subject, &AdminRequest { opcode: 2, namespace, dwords, wanted: bytes, sent: &[] })
}

fn get_feature(subject: &mut impl Subject, feature: u8, select: u32) -> Answer {
    // A vector, an endurance group, or an identifier of 128 bits.
    let dwords = [u32::from(feature) | select << 8, 1];
    let wanted = match feature {
        0x0E => 8,
        0x16 => 512,
        0x81 if select == 0 => 16,
        0xC0 if select == 0 => 4064,
        _ => 0,
    };
    ask(subject, &AdminRequest { opcode: 0x0A, namespace: 1, dwords, wanted, sent: &[] })
}

/// Checks all laws. Nothing that is asked of the controller changes namespaces.
pub(crate) fn check(subject: &mut impl Subject) {
    let told = identify(subject, 1, 0);
    let effects = log(subject, 5, 4096).data;
    let (pages, features) = (log(subject, 0, 1024).data, log(subject, 0x12, 1024).data);
    check_commands(subject, &effects);
    check_pages(subject, &pages);
    check_features(subject, &features);
    check_attributes(&told, &effects, (&pages, &features));
    check_namespaces(subject, &told, &features);
    let context = [0x0D | 1 << 8 | 127 << 16, 0];
    let asked = AdminRequest { opcode: 2, dwords: context, wanted: 512, ..AdminRequest::default() };
    assert_eq!(ask(subject, &asked).data[52..54], told[..2], "one vendor");
}

/// The log of effects has the commands that are carried out.
fn check_commands<S: Subject>(subject: &mut S, effects: &[u8]) {
    for opcode in 0..=u8::MAX {
        if opcode == FABRICS && S::IS_FABRICS {
            continue;
        }
        let sent: &[u8] = if opcode == 0x15 { &[0; 4096] } else { &[] };
        // No such queue, format, structure or action.
        let asked = AdminRequest { opcode, namespace: 1, dwords: [0xF, 0], sent, wanted: 0 };
        let is_there = subject.admin(&asked).is_none_or(|it| it.status != INVALID_OPCODE);
        assert_eq!(is_there, lists(effects, opcode.into()), "admin command {opcode:02x}h");
    }
    for opcode in (0..=u8::MAX).filter(|it| *it != FABRICS || !S::IS_FABRICS) {
        let is_there = subject.io(opcode) != INVALID_OPCODE;
        assert_eq!(is_there, lists(effects, 256 + usize::from(opcode)), "command {opcode:02x}h");
        // Scopes are not reported: Linux takes them for unusual effects.
        let unusual = u16_at(effects, 1024 + 4 * usize::from(opcode) + 2);
        assert_eq!(unusual, 0, "command {opcode:02x}h");
    }
}

/// The log of pages has those that can be read.
fn check_pages(subject: &mut impl Subject, pages: &[u8]) {
    for page in 0..=u8::MAX {
        let is_there = log(subject, page, 512).status != INVALID_LOG_PAGE;
        assert_eq!(is_there, lists(pages, page.into()), "log {page:02x}h");
    }
}

/// The log of features has those that can be read, with their scope.
fn check_features(subject: &mut impl Subject, features: &[u8]) {
    const OF_NAMESPACE: u16 = 1;
    for feature in 0..=u8::MAX {
        let is_there = get_feature(subject, feature, 0).status == 0;
        assert_eq!(is_there, lists(features, feature.into()), "feature {feature:02x}h");
        let capabilities = get_feature(subject, feature, 3);
        assert_eq!(capabilities.status == 0, is_there, "feature {feature:02x}h");
        if !is_there {
            continue;
        }
        let (scope, is_own) = (scope(features, feature), capabilities.value & 2 != 0);
        assert_eq!(scope.count_ones(), 1, "feature {feature:02x}h");
        assert_eq!(scope == OF_NAMESPACE, is_own, "feature {feature:02x}h");
        let sent = [0; 512];
        let sent = match feature {
            0x0E => &sent[..8],
            0x16 => &sent[..],
            0x81 => &sent[..16],
            0xC0 => &sent[..32],
            _ => &sent[..0],
        };
        let dwords = [feature.into(), 1];
        let set = ask(subject, &AdminRequest { opcode: 9, namespace: 1, dwords, sent, wanted: 0 });
        assert_eq!(set.status == NOT_OF_NAMESPACE, !is_own, "feature {feature:02x}h: {set:?}");
        let is_changeable = capabilities.value & 4 != 0;
        assert!(set.status != 0 || is_changeable, "feature {feature:02x}h");
    }
}

/// Identify says what the logs say.
fn check_attributes(told: &[u8], effects: &[u8], (pages, features): (&[u8], &[u8])) {
    let (admin, io) = (u16_at(told, 256), u16_at(told, 520));
    for (bit, opcodes) in [
        (0, &[0x81, 0x82][..]),
        (1, &[0x80]),
        (2, &[0x10, 0x11]),
        (3, &[0x0D, 0x15]),
        (4, &[0x14]),
        (5, &[0x19, 0x1A]),
        (6, &[0x1D, 0x1E]),
        (7, &[0x1C]),
        (8, &[0x7C]),
    ] {
        for opcode in opcodes {
            assert_eq!(admin >> bit & 1 == 1, lists(effects, *opcode), "OACS, {opcode:02x}h");
        }
    }
    for (bit, opcode) in [(0, 5), (1, 4), (2, 9), (3, 8), (7, 0x0C), (8, 0x19)] {
        assert_eq!(io >> bit & 1 == 1, lists(effects, 256 + opcode), "ONCS, {opcode:02x}h");
    }
    for opcode in [0x0D, 0x0E, 0x11, 0x15] {
        assert_eq!(io >> 5 & 1 == 1, lists(effects, 256 + opcode), "ONCS, {opcode:02x}h");
    }
    for feature in [0x82, 0x83] {
        assert_eq!(io >> 5 & 1 == 1, lists(features, feature), "ONCS, feature {feature:02x}h");
    }
    assert_eq!(io >> 5 & 1 == 1, lists(pages, 0x80), "ONCS, Reservation Notification");
    assert_eq!(io >> 6 & 1 == 1, lists(features, 0x0E), "ONCS, Timestamp");
    for (bit, page) in [(1, 5), (3, 7), (3, 8), (4, 0x0D), (5, 0), (5, 0x12), (5, 0x13)] {
        assert!(told[261] >> bit & 1 == 1 && lists(pages, page), "LPA, {page:02x}h");
    }
    let queues = [0, 1, 4, 5].map(|opcode| lists(effects, opcode));
    assert_eq!(queues, [lists(effects, 0x7C); 4], "queues and doorbells in memory");
    assert_eq!(u16_at(told, 320) > 0, lists(effects, 0x18), "KAS");
    assert_eq!(u16_at(told, 320) > 0, lists(features, 0x0F), "KAS");
    assert_eq!(told[328] != 0, lists(effects, 0x84), "SANICAP");
    assert_eq!(told[328] != 0, lists(features, 0x17), "SANICAP");
    assert_eq!(lists(effects, 0x14), lists(pages, 6), "self-tests");
    assert_eq!(told[96] >> 4 & 1 == 1, lists(pages, 9) && lists(features, 0x18), "CTRATT");
    assert_eq!(told[531] != 0, lists(features, 0x84), "NWPC");
    let scopes = [(5, 1), (0x17, 0x20), (0x18, 8), (0x82, 1), (0x83, 1), (0x84, 1)];
    for (feature, of) in scopes.into_iter().filter(|(it, _)| lists(features, (*it).into())) {
        assert_eq!(scope(features, feature), of, "feature {feature:02x}h");
    }
}

/// Structures say the same of a namespace.
fn check_namespaces(subject: &mut impl Subject, told: &[u8], features: &[u8]) {
    let own = identify(subject, 0, 1);
    let (allocated, common) = (identify(subject, 0x11, 1), identify(subject, 8, 1));
    assert_eq!(own, allocated);
    assert_eq!((own[30], own[99]), (common[1], common[8]), "NMIC and NSATTR");
    let has_reservations = u16_at(told, 520) >> 5 & 1 == 1;
    assert_eq!((own[31], own[31] != 0), (common[2], has_reservations), "RESCAP");
    if has_reservations {
        let can_persist = get_feature(subject, 0x83, 3).value & 4 != 0;
        assert_eq!(own[31] & 1 == 1, can_persist, "RESCAP and feature 83h");
    }
    assert_eq!(own[100..104], common[10..14], "NVM set and endurance group");
    assert_eq!(u16_at(&own, 100), 0, "there are no NVM sets");
    if lists(features, 0x84) {
        let state = get_feature(subject, 0x84, 0).value;
        assert_eq!(own[99] & 1 == 1, state != 0, "NSATTR and the state of protection");
        assert!(state < 2 || told[531] >> (state - 1) & 1 == 1, "NWPC has state {state}");
    }
    let names = identify(subject, 3, 1);
    assert_eq!((&names[20..22], &names[24..40]), (&[2, 16][..], &own[104..120]), "NGUID");
    assert_eq!((&names[40..42], &names[44..52]), (&[1, 8][..], &own[120..128]), "EUI64");
    assert_ne!((&own[104..120], &own[120..128]), (&[0; 16][..], &[0; 8][..]));
    let limit = u32::from_le_bytes(told[516..520].try_into().expect("four bytes"));
    for structure in [0, 8, 0x11] {
        for namespace in 2..=limit {
            identify(subject, structure, namespace);
        }
        for namespace in [0, limit + 1, u32::MAX - 1] {
            let dwords = [structure, 0];
            let asked = AdminRequest { opcode: 6, namespace, dwords, wanted: 4096, sent: &[] };
            assert_eq!(ask(subject, &asked).status, 0x0B, "CNS {structure:02x}h");
        }
    }
}
