//! The catalogue: every file in `applications/`, `workloads/` and `protocols/`, embedded by the
//! build script.

use crate::{Application, Protocol, Workload};

/// Path and text of each application, ordered by name.
const APPLICATIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/applications.rs"));

/// Path and text of each workload, ordered by name.
const WORKLOADS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/workloads.rs"));

/// Path and text of each protocol, ordered by name.
const PROTOCOLS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/protocols.rs"));

/// Path and bytes of each recording of an application, ordered by name.
const RECORDINGS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/recordings.rs"));

/// The recording of the application named `name` with so many clients, as it is built in.
pub fn recording(name: &str, threads: u32) -> Option<&'static [u8]> {
    let path = format!("applications/recordings/{name}-t{threads}.rec");
    RECORDINGS.iter().find(|(file, _)| *file == path).map(|(_, bytes)| *bytes)
}

/// Every application of the catalogue, ordered by name.
pub fn applications() -> Vec<Application> {
    let parse = |(file, text): &(&str, &str)| {
        Application::parse(text, file).expect("a test parses every embedded application")
    };
    APPLICATIONS.iter().map(parse).collect()
}

/// The text of the file of the application named `name`.
pub fn application_text(name: &str) -> Option<&'static str> {
    text(APPLICATIONS, &format!("applications/{name}.toml"))
}

/// Every workload of the catalogue, ordered by name.
pub fn workloads() -> Vec<Workload> {
    let parse = |(file, text): &(&str, &str)| {
        Workload::parse(text, file).expect("a test parses every embedded workload")
    };
    WORKLOADS.iter().map(parse).collect()
}

/// Every protocol of the catalogue, ordered by name.
pub fn protocols() -> Vec<Protocol> {
    let parse = |(file, text): &(&str, &str)| {
        Protocol::parse(text, file).expect("a test parses every embedded protocol")
    };
    PROTOCOLS.iter().map(parse).collect()
}

/// The text of the file of the workload named `name`.
pub fn workload_text(name: &str) -> Option<&'static str> {
    text(WORKLOADS, &format!("workloads/{name}.toml"))
}

/// The text of the file of the protocol named `name`.
pub fn protocol_text(name: &str) -> Option<&'static str> {
    text(PROTOCOLS, &format!("protocols/{name}.toml"))
}

fn text(files: &[(&str, &'static str)], path: &str) -> Option<&'static str> {
    files.iter().find(|(file, _)| *file == path).map(|(_, text)| *text)
}

/// The workload named `name`.
pub fn find_workload(name: &str) -> Option<Workload> {
    workloads().into_iter().find(|workload| workload.name == name)
}

/// The protocol named `name`.
pub fn find_protocol(name: &str) -> Option<Protocol> {
    protocols().into_iter().find(|protocol| protocol.name == name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files_in(folder: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let paths = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.extension().is_some_and(|it| it == "toml"));
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut files: Vec<String> = files.map(|path| format!("{folder}/{}", name(path))).collect();
        files.sort_by_key(|path| path.trim_end_matches(".toml").to_owned());
        files
    }

    fn paths(embedded: &[(&str, &str)]) -> Vec<String> {
        embedded.iter().map(|(path, _)| (*path).to_owned()).collect()
    }

    #[test]
    fn every_file_in_the_folders_is_embedded() {
        assert_eq!(paths(APPLICATIONS), files_in("applications"));
        assert_eq!(paths(WORKLOADS), files_in("workloads"));
        assert_eq!(paths(PROTOCOLS), files_in("protocols"));
    }

    #[test]
    fn every_built_in_recording_is_whole_and_of_an_application() {
        for (path, bytes) in RECORDINGS {
            let read = crate::recording::read(*bytes).unwrap();
            let benchmark = read.tail.clone().and_then(|tail| tail.benchmark);
            assert!(benchmark.is_some() && read.lost == 0, "{path}");
            let of = |it: &Application| {
                it.threads.iter().any(|threads| {
                    *path == format!("applications/recordings/{}-t{threads}.rec", it.name)
                })
            };
            assert!(applications().iter().any(of), "{path} is of no application");
        }
    }

    #[test]
    fn every_entry_is_named_after_its_file() {
        let workloads = workloads().into_iter().map(|it| format!("workloads/{}.toml", it.name));
        assert_eq!(workloads.collect::<Vec<_>>(), paths(WORKLOADS));
        let protocols = protocols().into_iter().map(|it| format!("protocols/{}.toml", it.name));
        assert_eq!(protocols.collect::<Vec<_>>(), paths(PROTOCOLS));
    }

    #[test]
    fn every_protocol_names_known_workloads() {
        for protocol in protocols() {
            protocol.check(&workloads()).unwrap();
        }
    }

    #[test]
    fn the_published_mixes_have_the_published_mean_transfer() {
        let mean_kib = |name| find_workload(name).unwrap().mean_bytes() / 1024.0;
        assert!((mean_kib("file-server") - 11.08).abs() < 0.005);
        assert!((mean_kib("web-server") - 15.66).abs() < 0.005);
        assert!((mean_kib("web-server-precondition-100w") - 15.66).abs() < 0.005);
    }

    #[test]
    fn the_protocols_last_as_long_as_they_say() {
        let hours = find_protocol("enterprise").unwrap().duration_s() as f64 / 3600.0;
        assert!((hours - (4.0 * 6.0 + (2.0 + 3.0 * 16.0) * 0.1)).abs() < 1e-9, "{hours} h");
        let minutes = find_protocol("quick").unwrap().duration_s() as f64 / 60.0;
        assert!((minutes - 7.0).abs() < 1e-9, "{minutes} min");
    }
}
