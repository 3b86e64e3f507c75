//! Tests of the handshake: whole, in pieces, malformed and hostile.

use proptest::prelude::*;

use super::super::client::{option, shortest_handshake, text};
use super::*;
use device::{Allocation, Device, DeviceError, Durability, MemoryDevice};

const GREETING_BYTES: usize = 18;

/// One answer to an option.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    option: u32,
    kind: u32,
    data: Vec<u8>,
}

fn exports() -> Exports {
    let export = |name: &str, is_read_only| Export {
        name: name.into(),
        description: format!("about {name}"),
        device: Arc::new(MemoryDevice::new(1 << 20)),
        is_read_only,
        pace: None,
    };
    Exports::new(vec![export("first", false), export("second", true)]).unwrap()
}

fn begun() -> (Negotiation, Replies) {
    let mut replies = Replies::new();
    let negotiation = Negotiation::new(exports(), &mut replies);
    (negotiation, replies)
}

/// Returns the answers to a client that sends its flags and these options, and the handshake after
/// them.
fn answered(options: &[Vec<u8>]) -> (Vec<Answer>, Negotiation) {
    let (mut negotiation, mut replies) = begun();
    let input = [3_u32.to_be_bytes().to_vec(), options.concat()].concat();
    negotiation.take(&input, &mut replies).expect("well-formed");
    (parsed(&replies.as_bytes()[GREETING_BYTES..]), negotiation)
}

/// The answers in bytes that the server sent.
fn parsed(bytes: &[u8]) -> Vec<Answer> {
    let (mut rest, mut answers) = (bytes, Vec::new());
    while !rest.is_empty() {
        assert_eq!(u64_at(rest, 0), wire::OPTION_REPLY);
        let end = 20 + u32_at(rest, 16) as usize;
        let (option, kind) = (u32_at(rest, 8), u32_at(rest, 12));
        answers.push(Answer { option, kind, data: rest[20..end].to_vec() });
        rest = &rest[end..];
    }
    answers
}

fn kinds(answers: &[Answer]) -> Vec<u32> {
    answers.iter().map(|answer| answer.kind).collect()
}

/// Data of `GO` and `INFO`.
fn wanted(name: &str, infos: &[u16]) -> Vec<u8> {
    let count = u16::try_from(infos.len()).unwrap();
    let infos = infos.iter().flat_map(|info| info.to_be_bytes());
    text(name).into_iter().chain(count.to_be_bytes()).chain(infos).collect()
}

/// Data of the options about metadata contexts.
fn queries(name: &str, queries: &[&str]) -> Vec<u8> {
    let count = u32::try_from(queries.len()).unwrap().to_be_bytes();
    let queries = queries.iter().flat_map(|query| text(query));
    text(name).into_iter().chain(count).chain(queries).collect()
}

#[test]
fn go_tells_size_abilities_and_block_sizes_and_agrees() {
    let go = option(option::GO, &wanted("second", &[info::DESCRIPTION]));
    let (answers, negotiation) = answered(&[option(option::STRUCTURED_REPLY, &[]), go]);
    let kinds = kinds(&answers);
    assert_eq!(kinds, [answer::ACK, answer::INFO, answer::INFO, answer::INFO, answer::ACK]);
    let abilities = u16_at(&answers[1].data, 10);
    assert_eq!(u64_at(&answers[1].data, 2), 1 << 20);
    assert_ne!(abilities & ability::READ_ONLY, 0);
    assert_eq!(abilities & (ability::TRIM | ability::WRITE_ZEROES), 0);
    let sizes = [2, 6, 10].map(|at| u32_at(&answers[2].data, at));
    assert_eq!(sizes, [1, 4096, 32 << 20]);
    assert_eq!(answers[3].data[2..], *b"about second");
    let terms = negotiation.into_terms().unwrap();
    assert_eq!((terms.export.name.as_str(), terms.dialect), ("second", Dialect::Structured));
}

/// A device that a host protected from writes.
#[derive(Debug)]
struct ProtectedDevice(MemoryDevice);

impl Device for ProtectedDevice {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.0.read(offset, buffer)
    }

    fn write(&self, _: u64, _: &[u8], _: Durability) -> Result<(), DeviceError> {
        Err(DeviceError::ReadOnly)
    }

    fn is_write_protected(&self) -> bool {
        true
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.0.flush()
    }

    fn trim(&self, _: u64, _: u64, _: Durability) -> Result<(), DeviceError> {
        Err(DeviceError::ReadOnly)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.0.allocations(offset, length)
    }
}

#[test]
fn an_export_that_a_host_protected_is_announced_as_read_only() {
    let offered = exports();
    let [open, read_only] = ["first", "second"].map(|name| offered.find(name).unwrap());
    let flags = |export: &Export| abilities(export, Dialect::Structured);
    let device = Arc::new(ProtectedDevice(MemoryDevice::new(1 << 20)));
    let protected = Export { device, ..Export::clone(open) };
    assert_ne!(flags(open), flags(read_only));
    assert_eq!(flags(&protected), flags(read_only));
}

#[test]
fn the_old_way_in_is_answered_with_size_and_abilities() {
    let (mut negotiation, mut replies) = begun();
    negotiation.take(&shortest_handshake(), &mut replies).unwrap();
    assert_eq!(replies.len(), GREETING_BYTES + 10);
    assert_eq!(negotiation.into_terms().unwrap().export.name, "first");
    let (mut negotiation, mut replies) = begun();
    let input = [1_u32.to_be_bytes().to_vec(), option(option::EXPORT_NAME, b"first")].concat();
    negotiation.take(&input, &mut replies).unwrap();
    assert_eq!(replies.len(), GREETING_BYTES + 10 + 124, "padded where that is expected");
}

#[test]
fn the_old_way_to_an_unknown_export_ends_the_connection() {
    let (mut negotiation, mut replies) = begun();
    let input = [3_u32.to_be_bytes().to_vec(), option(option::EXPORT_NAME, b"none")].concat();
    let refused = negotiation.take(&input, &mut replies);
    assert_eq!(refused, Err(Violation::UnknownExport("none".into())));
}

#[test]
fn a_list_names_every_export() {
    let (answers, _) = answered(&[option(option::LIST, &[])]);
    assert_eq!(kinds(&answers), [answer::SERVER, answer::SERVER, answer::ACK]);
    assert_eq!(answers[1].data, [text("second"), b"about second".to_vec()].concat());
}

#[test]
fn what_is_wrong_with_an_option_is_told_and_the_client_goes_on() {
    let short = [&9_u32.to_be_bytes()[..], b"fir"].concat();
    let (answers, negotiation) = answered(&[
        option(5, &[]),
        option(option::GO, &wanted("none", &[])),
        option(option::GO, &short),
        option(option::LIST, b"x"),
        option(option::SET_META_CONTEXT, &queries("first", &["base:allocation"])),
        option(option::INFO, &[text("\u{fffd}"), vec![0, 0, 0]].concat()),
        option(option::GO, &wanted("first", &[])),
    ]);
    let refusals = [
        answer::ERR_UNSUPPORTED,
        answer::ERR_UNKNOWN,
        answer::ERR_INVALID,
        answer::ERR_INVALID,
        answer::ERR_INVALID,
        answer::ERR_INVALID,
    ];
    assert_eq!(kinds(&answers)[..6], refusals);
    assert!(negotiation.into_terms().is_some());
}

#[test]
fn allocation_is_reported_only_for_the_export_it_was_agreed_for() {
    for (name, expected) in [("first", true), ("second", false)] {
        let (answers, negotiation) = answered(&[
            option(option::STRUCTURED_REPLY, &[]),
            option(option::SET_META_CONTEXT, &queries("first", &["base:allocation", "x:y"])),
            option(option::GO, &wanted(name, &[])),
        ]);
        assert_eq!(kinds(&answers)[..3], [answer::ACK, answer::META_CONTEXT, answer::ACK]);
        assert_eq!(negotiation.into_terms().unwrap().reports_allocation, expected, "{name}");
    }
}

#[test]
fn contexts_are_listed_for_all_queries_and_none() {
    for (asked, found) in [(&[][..], true), (&["base:"], true), (&["qemu:"], false)] {
        let (answers, _) = answered(&[
            option(option::STRUCTURED_REPLY, &[]),
            option(option::LIST_META_CONTEXT, &queries("", asked)),
        ]);
        assert_eq!(answers.len(), if found { 3 } else { 2 }, "{asked:?}");
    }
}

#[test]
fn the_lateness_of_a_model_is_listed_with_its_counts_and_cannot_be_agreed_on() {
    let pace = Arc::new(crate::Pace::new(crate::pace::tests::drive()));
    let export = Export {
        name: "paced".into(),
        description: String::new(),
        device: Arc::new(MemoryDevice::new(1 << 20)),
        is_read_only: false,
        pace: Some(pace),
    };
    let mut replies = Replies::new();
    let exports = Exports::new(vec![export]).unwrap();
    let mut negotiation = Negotiation::new(exports, &mut replies);
    let named = "x-floatgate:lateness";
    let input = [
        3_u32.to_be_bytes().to_vec(),
        option(option::STRUCTURED_REPLY, &[]),
        option(option::LIST_META_CONTEXT, &queries("paced", &[])),
        option(option::LIST_META_CONTEXT, &queries("paced", &[named])),
        option(option::LIST_META_CONTEXT, &queries("paced", &["base:"])),
        option(option::SET_META_CONTEXT, &queries("paced", &[named])),
    ];
    negotiation.take(&input.concat(), &mut replies).expect("well-formed");
    let answers = parsed(&replies.as_bytes()[GREETING_BYTES..]);
    let names: Vec<String> = answers
        .iter()
        .filter(|answer| answer.kind == answer::META_CONTEXT)
        .map(|answer| String::from_utf8(answer.data[4..].to_vec()).unwrap())
        .collect();
    let told =
        format!("{named}/replies=0,late=0,modelled_ns=0,late_by_ns=0,late_by_ns_max=0,peaks=");
    let base = "base:allocation".to_owned();
    assert_eq!(names, [base.clone(), told.clone(), told, base]);
}

#[test]
fn extended_headers_stand_for_structured_replies() {
    let (answers, negotiation) = answered(&[
        option(option::EXTENDED_HEADERS, &[]),
        option(option::STRUCTURED_REPLY, &[]),
        option(option::EXTENDED_HEADERS, &[]),
        option(option::GO, &wanted("", &[])),
    ]);
    let expected = [answer::ACK, answer::ERR_EXTENDED, answer::ERR_INVALID];
    assert_eq!(kinds(&answers)[..3], expected);
    assert_eq!(negotiation.into_terms().unwrap().dialect, Dialect::Extended);
}

#[test]
fn a_client_that_leaves_is_acknowledged_and_has_no_terms() {
    let (answers, negotiation) = answered(&[option(option::ABORT, &[])]);
    assert_eq!(kinds(&answers), [answer::ACK]);
    assert!(negotiation.is_over());
    assert!(negotiation.into_terms().is_none());
}

#[test]
fn before_encryption_that_is_required_nothing_is_told() {
    let (mut negotiation, mut replies) = begun();
    negotiation.encryption = Encryption::Required;
    let options = [
        option(option::LIST, &[]),
        option(option::STRUCTURED_REPLY, &[]),
        option(option::GO, &wanted("first", &[])),
        option(option::START_TLS, b"x"),
        option(option::START_TLS, &[]),
    ];
    let input = [3_u32.to_be_bytes().to_vec(), options.concat()].concat();
    let rest = option(option::LIST, &[]);
    let taken = negotiation.take(&[&input[..], &rest].concat(), &mut replies).unwrap();
    assert_eq!((taken.used_bytes, taken.wanted_bytes), (input.len(), 0), "the rest is not read");
    assert!(negotiation.is_encrypting() && !negotiation.is_over());
    let answers = parsed(&replies.as_bytes()[GREETING_BYTES..]);
    let required = answer::ERR_TLS_REQUIRED;
    let expected = [required, required, required, answer::ERR_INVALID, answer::ACK];
    assert_eq!(kinds(&answers), expected);

    negotiation.encrypted();
    replies.clear();
    let options = [option(option::START_TLS, &[]), option(option::GO, &wanted("first", &[]))];
    negotiation.take(&options.concat(), &mut replies).unwrap();
    assert_eq!(kinds(&parsed(replies.as_bytes()))[0], answer::ERR_INVALID);
    assert_eq!(negotiation.into_terms().unwrap().export.name, "first");
}

#[test]
fn what_was_agreed_on_before_encryption_counts_no_more() {
    let (mut negotiation, mut replies) = begun();
    negotiation.encryption = Encryption::Allowed;
    let options = [
        option(option::STRUCTURED_REPLY, &[]),
        option(option::SET_META_CONTEXT, &queries("first", &["base:allocation"])),
        option(option::START_TLS, &[]),
    ];
    let input = [3_u32.to_be_bytes().to_vec(), options.concat()].concat();
    negotiation.take(&input, &mut replies).unwrap();
    negotiation.encrypted();
    let go = option(option::GO, &wanted("first", &[]));
    negotiation.take(&go, &mut replies).unwrap();
    let terms = negotiation.into_terms().unwrap();
    assert_eq!((terms.dialect, terms.reports_allocation), (Dialect::Simple, false));
}

#[test]
fn the_old_way_in_is_closed_where_encryption_is_required() {
    let (mut negotiation, mut replies) = begun();
    negotiation.encryption = Encryption::Required;
    let refused = negotiation.take(&shortest_handshake(), &mut replies);
    assert_eq!(refused, Err(Violation::Unencrypted));
}

#[test]
fn a_client_without_end_is_dropped() {
    let long = [wire::OPTION.to_be_bytes().to_vec(), vec![0xFF; 8]].concat();
    let many = option(option::LIST, b"x").repeat(2000);
    for (input, is_long) in [(long, true), (many, false)] {
        let (mut negotiation, mut replies) = begun();
        let input = [3_u32.to_be_bytes().to_vec(), input].concat();
        let dropped = negotiation.take(&input, &mut replies).unwrap_err();
        assert_eq!(matches!(dropped, Violation::LongOption { .. }), is_long, "{dropped}");
        assert_eq!(matches!(dropped, Violation::ManyOptions(_)), !is_long, "{dropped}");
    }
}

/// Options of all kinds with data that is right, or nearly.
fn any_options() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just(""), Just("first"), Just("none")];
    let data = prop_oneof![
        Just(Vec::new()),
        (name.clone(), prop::collection::vec(0..5_u16, 0..4))
            .prop_map(|(name, infos)| wanted(name, &infos)),
        (name, prop::collection::vec(prop_oneof![Just("base:allocation"), Just("a")], 0..3))
            .prop_map(|(name, asked)| queries(name, &asked)),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let one = (0..13_u32, data).prop_map(|(number, data)| option(number, &data));
    prop::collection::vec(one, 1..12).prop_map(|options| options.concat())
}

proptest! {
    /// Splitting a handshake anywhere changes nothing, whatever follows it.
    #[test]
    fn pieces_of_any_length_come_to_the_same(
        options in any_options(),
        piece in 1..50_usize,
        hurt in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut input = [3_u32.to_be_bytes().to_vec(), options].concat();
        if let Some((place, byte)) = hurt {
            let at = place.index(input.len());
            input[at] = byte;
        }
        let (mut whole, mut expected) = begun();
        let outcome = whole.take(&input, &mut expected);

        let (mut cut, mut found) = begun();
        let (mut start, mut end) = (0, 0);
        let mut last = Ok(ReceiveProgress { wanted_bytes: 1, ..ReceiveProgress::default() });
        while end < input.len() && last.is_ok() && !cut.is_over() {
            end = input.len().min(end + piece);
            last = cut.take(&input[start..end], &mut found);
            start += last.as_ref().map_or(0, |taken| taken.used_bytes);
        }
        prop_assert_eq!(last.is_err(), outcome.is_err());
        prop_assert_eq!(found.as_bytes(), expected.as_bytes());
        prop_assert_eq!(cut.is_over(), whole.is_over());
    }
}
