//! Addresses, and conversations with a server that says what a test wants.

use std::thread;

use super::*;

#[test]
fn addresses_of_both_kinds_are_read() {
    let tcp = Uri::parse("nbd://server/disk%20one").unwrap();
    assert_eq!(tcp.to_string(), "server:10809, export disk one");
    let other = Uri::parse("nbd://[::1]:10900").unwrap();
    assert_eq!(other.place, Endpoint::Tcp { host: "::1".into(), port: 10_900 });
    let unix = Uri::parse("nbd+unix:///?socket=/run/it.sock").unwrap();
    assert_eq!((unix.to_string().as_str(), unix.name.as_str()), ("/run/it.sock", ""));
    assert!(is_uri("nbd+unix:///?socket=x") && !is_uri("./nbd/disk.img"));
}

#[test]
fn addresses_that_cannot_be_measured_say_why() {
    for (text, why) in [
        ("nbd://", "no host, or a bad port"),
        ("nbd://host:port", "no host, or a bad port"),
        ("nbd+unix:///name", "no socket"),
        ("nbds://host", "only nbd and nbd+unix can be measured"),
    ] {
        assert_eq!(Uri::parse(text).unwrap_err().to_string(), format!("address {text}: {why}"));
    }
}

/// A server that answers once with `answer` to whatever is asked.
fn server(answer: Vec<u8>) -> (Session, thread::JoinHandle<Vec<u8>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let served = thread::spawn(move || {
        let mut theirs = theirs;
        theirs.set_read_timeout(Some(PATIENCE)).unwrap();
        theirs.write_all(&GREETING.to_be_bytes()).unwrap();
        theirs.write_all(&OPTION.to_be_bytes()).unwrap();
        theirs.write_all(&NEWSTYLE.to_be_bytes()).unwrap();
        let mut asked = vec![0; 4 + 8 + 4 + 4 + 4 + 4 + 2 + 2];
        theirs.read_exact(&mut asked).unwrap();
        theirs.write_all(&answer).unwrap();
        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).unwrap();
        rest
    });
    let session = Session::begin(Stream::Unix(ours), "disk").unwrap();
    (session, served)
}

fn reply(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
    bytes.extend(OPT_GO.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

fn export(size: u64, flags: u16) -> Vec<u8> {
    let mut data = INFO_EXPORT.to_be_bytes().to_vec();
    data.extend(size.to_be_bytes());
    data.extend(flags.to_be_bytes());
    data
}

#[test]
fn size_sector_and_flags_come_from_the_server() {
    let mut block = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    for bytes in [4096_u32, 4096, 1 << 20] {
        block.extend(bytes.to_be_bytes());
    }
    let answer = [
        reply(REP_INFO, &block),
        reply(REP_INFO, &export(1 << 30, FLAG_TRIM)),
        reply(REP_ACK, &[]),
    ];
    let (session, served) = server(answer.concat());
    assert_eq!(
        session.export,
        Export {
            capacity_bytes: 1 << 30,
            sector_bytes: 4096,
            read_only: false,
            trims: true,
            many_connections: false,
        }
    );
    drop(session);
    assert!(served.join().unwrap().is_empty());
}

/// Answer to the option `number`.
fn reply_to(number: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = reply(kind, data);
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Contexts that a server tells with `answers`, and the options that it was sent.
fn listed(answers: &[Vec<u8>]) -> (io::Result<Vec<String>>, Vec<u8>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&answers.concat()).unwrap();
    let mut stream = Stream::Unix(ours);
    stream.set_patience(PATIENCE).unwrap();
    let listed = contexts(&mut stream, "disk", "x:y");
    drop(stream);
    let mut sent = Vec::new();
    theirs.read_to_end(&mut sent).unwrap();
    (listed, sent)
}

#[test]
fn contexts_are_listed_by_servers_that_have_structured_replies() {
    let agreed = reply_to(OPT_STRUCTURED_REPLY, REP_ACK, &[]);
    let context = reply_to(OPT_LIST_META_CONTEXT, REP_META_CONTEXT, b"\0\0\0\x01x:y/z=1");
    let end = reply_to(OPT_LIST_META_CONTEXT, REP_ACK, &[]);
    let (names, sent) = listed(&[agreed.clone(), context, end]);
    assert_eq!(names.unwrap(), ["x:y/z=1"]);
    assert!(sent.windows(15).any(|it| it == b"disk\0\0\0\x01\0\0\0\x03x:y"));
    let refused = |number| reply_to(number, 1 << 31 | 1, b"unknown");
    assert!(listed(&[refused(OPT_STRUCTURED_REPLY)]).0.unwrap().is_empty());
    assert!(listed(&[agreed, refused(OPT_LIST_META_CONTEXT)]).0.unwrap().is_empty());
}

#[test]
fn an_error_of_a_command_is_that_of_the_server() {
    let mut answer = [reply(REP_INFO, &export(4096, 0)), reply(REP_ACK, &[])].concat();
    answer.extend(REPLY.to_be_bytes());
    answer.extend(28_u32.to_be_bytes());
    answer.extend(0_u64.to_be_bytes());
    let (mut session, served) = server(answer);
    session.command(CMD_TRIM, 0, 4096).unwrap();
    assert_eq!(session.acknowledged().unwrap_err().raw_os_error(), Some(28));
    drop(session);
    assert_eq!(served.join().unwrap().len(), 28, "one request");
}

#[test]
fn an_export_that_is_refused_is_not_found() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut theirs = theirs;
    theirs.write_all(&reply(1 << 31 | 6, b"no")).unwrap();
    let mut stream = Stream::Unix(ours.try_clone().unwrap());
    assert_eq!(told(&mut stream).unwrap_err().kind(), io::ErrorKind::NotFound);
    ours.flush().unwrap();
}

#[test]
fn a_server_of_another_protocol_is_told_apart() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"SSH-2.0-OpenSSH_9.2p1").unwrap();
    let refused = Session::begin(Stream::Unix(ours), "").unwrap_err();
    assert_eq!(refused.to_string(), "it does not support the newstyle handshake of NBD");
}
