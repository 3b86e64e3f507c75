//! Clients that encrypt, and those that should.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::clients::noise;
use super::served::{Served, client, create_small_drive, is_there};

/// A certificate and its key, signed by the authority of a folder.
fn sign(folder: &Path, name: &str, extensions: &str) {
    fs::write(folder.join("extensions"), extensions).expect("a file is written");
    let file = |suffix: &str| folder.join(format!("{name}-{suffix}.pem")).display().to_string();
    let (key, request, certificate) = (file("key"), file("request"), file("cert"));
    let [ca_cert, ca_key, extensions] = ["ca-cert.pem", "ca-key.pem", "extensions"]
        .map(|name| folder.join(name).display().to_string());
    let subject = format!("/CN={name}");
    let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let named = ["-subj", &subject, "-keyout", &key, "-out", &request];
    client("openssl", &[&["req"], &new[..], &named].concat());
    let by = ["-CA", &ca_cert, "-CAkey", &ca_key, "-CAcreateserial", "-days", "3650"];
    let signed = ["-in", &request, "-extfile", &extensions, "-out", &certificate];
    client("openssl", &[&["x509", "-req"], &by[..], &signed].concat());
}

/// A folder with the certificates of a server, of a client, and of who signed both; and one with
/// the last of these alone.
fn certificates(folder: &Path) -> [PathBuf; 2] {
    let [all, authority] = ["all", "authority"].map(|name| folder.join(name));
    fs::create_dir(&all).expect("a folder is made");
    fs::create_dir(&authority).expect("a folder is made");
    let file = |name: &str| all.join(name).display().to_string();
    let (key, certificate) = (file("ca-key.pem"), file("ca-cert.pem"));
    let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let named = ["-x509", "-days", "3650", "-subj", "/CN=authority", "-keyout", &key];
    client("openssl", &[&["req"], &new[..], &named, &["-out", &certificate]].concat());
    let names = "subjectAltName = DNS:localhost, IP:127.0.0.1\n";
    sign(&all, "server", &format!("basicConstraints = CA:FALSE\n{names}"));
    sign(&all, "client", "basicConstraints = CA:FALSE\nextendedKeyUsage = clientAuth\n");
    fs::copy(&certificate, authority.join("ca-cert.pem")).expect("it was made");
    [all, authority]
}

/// A server in memory that clients encrypt to, and the folders of [`certificates`].
fn served(args: &[&str]) -> (Served, [String; 2]) {
    let folder = tempfile::tempdir().expect("a folder is made");
    let folders = certificates(folder.path()).map(|path| path.display().to_string());
    let base = ["--memory", "16MiB", "--tls-certificates", &folders[0]];
    (Served::start_in(folder, &[&base[..], args].concat()), folders)
}

fn are_there() -> bool {
    is_there("openssl") && is_there("nbdinfo") && is_there("nbdcopy")
}

/// The size of an export by `nbdinfo`, which may fail.
fn size(uri: &str) -> Output {
    let asked = ["--kill-after=5", "60", "nbdinfo", "--size", uri];
    Command::new("timeout").args(asked).output().expect("coreutils are there")
}

/// `uri` for a client that has the certificates of a folder.
fn with(uri: &str, folder: &str) -> String {
    format!("{uri}&tls-certificates={folder}")
}

fn is_size(output: &Output) -> bool {
    output.status.success() && output.stdout.starts_with(b"16777216")
}

#[test]
fn what_a_client_sends_encrypted_comes_back() {
    if !are_there() {
        return;
    }
    let (mut served, [_, authority]) = served(&[]);
    assert!(served.uri.starts_with("nbds+unix:///"), "{}", served.uri);
    let uri = with(&served.uri, &authority);
    let (there, back) = (served.path("there.img"), served.path("back.img"));
    noise(&there, 16 << 20);
    client("nbdcopy", &["--flush", there.to_str().unwrap(), &uri]);
    client("nbdcopy", &[&uri, back.to_str().unwrap()]);
    assert!(fs::read(&there).unwrap() == fs::read(&back).unwrap());
    assert!(served.stop().success());
}

#[test]
fn a_client_that_does_not_encrypt_learns_nothing_unless_it_may() {
    if !are_there() {
        return;
    }
    let (served_so, [_, authority]) = served(&[]);
    let plain = served_so.uri.replace("nbds+unix", "nbd+unix");
    assert!(!size(&plain).status.success());
    assert!(is_size(&size(&with(&served_so.uri, &authority))));
    let (allowing, [_, authority]) = served(&["--tls", "allowed"]);
    assert!(is_size(&size(&allowing.uri)));
    let encrypted = allowing.uri.replace("nbd+unix", "nbds+unix");
    assert!(is_size(&size(&with(&encrypted, &authority))));
}

#[test]
fn only_clients_with_a_certificate_come_in_where_that_is_asked_for() {
    if !are_there() {
        return;
    }
    let (served, [all, authority]) = served(&["--tls-verify-peer"]);
    assert!(!size(&with(&served.uri, &authority)).status.success());
    assert!(is_size(&size(&with(&served.uri, &all))));
}

#[test]
fn a_folder_without_a_certificate_is_refused_with_the_file_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    let args = ["serve", "--memory", "16MiB", "--nbd", "unix:s", "--tls-certificates", &here];
    let refused = super::served::floatgate(folder.path(), &args);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said.contains("reading the certificates: ") && said.contains("server-cert.pem"),
        "{said}"
    );
}

#[test]
fn the_pages_are_encrypted_where_that_is_asked_for() {
    if !(is_there("openssl") && is_there("curl")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let [all, _] = certificates(folder.path()).map(|path| path.display().to_string());
    let args = ["--http-tls-certificates", &all];
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &args);
    let authority = format!("{all}/ca-cert.pem");
    let get = |more: &[&str], path: &str| {
        let uri = format!("https://{}{path}", served.http);
        let base = ["20", "curl", "--silent", "--show-error", "--fail", "--cacert", &authority];
        Command::new("timeout").args(base).args(more).arg(uri).output().unwrap()
    };
    let metrics = get(&[], "/metrics");
    assert!(metrics.stdout.ends_with(b"# EOF\n"), "{metrics:?}");
    let page = get(&[], "/");
    assert!(page.stdout.starts_with(b"<!"), "{page:?}");
    let own = format!("Origin: https://{}", served.http);
    assert!(get(&["--header", &own], "/status.json").status.success());
    let plain = own.replace("https", "http");
    assert!(!get(&["--header", &plain], "/status.json").status.success());
    // Who does not encrypt learns nothing.
    let unencrypted = format!("http://{}/metrics", served.http);
    let asked = ["20", "curl", "--silent", "--http0.9", &unencrypted];
    let answer = Command::new("timeout").args(asked).output().unwrap();
    assert!(!String::from_utf8_lossy(&answer.stdout).contains("floatgate"), "{answer:?}");
    // A viewer is told each second.
    let stream = get(&["--max-time", "4", "--no-buffer"], "/stream");
    assert!(String::from_utf8_lossy(&stream.stdout).matches("data: {").count() > 1);
}

/// Lowercase hexadecimal of some bytes.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits");
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

/// The TLS PSK of a host for a subsystem, by OpenSSL; the key is published by libnvme.
fn tls_psk(identity: &str) -> String {
    let key = "5512dbb6737d0106f65975b773dfb011ffc344bcf442e2dd6d8bc4870b5d5b03";
    let label = b"tls13 nvme-tls-psk";
    let lengths =
        [label.len(), identity.len()].map(|it| [u8::try_from(it).expect("they are short")]);
    let info = [&[0, 32][..], &lengths[0], label, &lengths[1], identity.as_bytes()].concat();
    let (key, info) = (format!("hexkey:{key}"), format!("hexinfo:{}", hex(&info)));
    let asked = ["kdf", "-keylen", "32", "-kdfopt", "digest:SHA256", "-kdfopt", &key];
    let derived = Command::new("openssl").args(asked).args(["-kdfopt", &info, "HKDF"]).output();
    let derived = derived.expect("openssl is there");
    assert!(derived.status.success(), "{derived:?}");
    String::from_utf8_lossy(&derived.stdout).trim().replace(':', "")
}

#[test]
fn an_nvme_host_that_openssl_encrypts_for_is_answered_and_a_wrong_key_is_refused() {
    if !is_there("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
    let key = "NVMeTLSkey-1:00:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    let file = folder.path().join("keys").display().to_string();
    fs::write(&file, format!("{host} {key}\n")).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(["serve", "--memory", "16MiB", "--nvme", "tcp:0", "--nvme-tls-keys", &file])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut uri = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut uri).unwrap();
    let place = uri.strip_prefix("nvme+tcp://").unwrap();
    let (place, subsystem) = place.split_once('/').unwrap();
    let subsystem = subsystem.split_once('/').unwrap().0;
    let identity = format!("NVMe0R01 {host} {subsystem}");
    let answer = |psk: &str| {
        let options = ["-tls1_3", "-quiet", "-psk_identity", &identity, "-psk", psk];
        let mut client = Command::new("timeout")
            .args(["20", "openssl", "s_client", "-connect", place])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        // A client that was refused takes nothing.
        let _ = client.stdin.as_mut().unwrap().write_all(&request);
        let mut answer = vec![0; 128];
        let answer = client.stdout.as_mut().unwrap().read_exact(&mut answer).map(|()| answer);
        client.kill().unwrap();
        client.wait().unwrap();
        answer.ok()
    };
    let psk = tls_psk(&identity);
    let initialized = answer(&psk).expect("an ICResp");
    assert_eq!(initialized[..8], [1, 0, 128, 0, 128, 0, 0, 0]);
    let other = format!("{}{}", if psk.starts_with('0') { '1' } else { '0' }, &psk[1..]);
    assert_eq!(answer(&other), None);
    server.kill().unwrap();
    server.wait().unwrap();
}
