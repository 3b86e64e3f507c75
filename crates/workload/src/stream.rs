//! Streams of a workload: regions of its footprint, each with an order, a share of the requests and
//! a placement handle of its own.
//!
//! ```text
//! footprint  | stream 0 | stream 1              | stream 2 |
//!  handle        1          0                       0
//! ```
//!
//! A random stream of its own draws the stream of each request; each stream then draws as a
//! workload by itself does.

use blockio::{Lba, Rng};
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::generator::{self, GeneratedRequest, Generator, Job, Span, SpanError};
use crate::{Access, SizeShare, Workload, percent};

/// One stream of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadStream {
    /// Name, such as `small objects`.
    pub name: String,
    /// Share of the requests, above 0 to 100; the shares of all streams sum to 100.
    pub request_percent: f64,
    /// Share of the footprint, above 0 to 100; regions follow each other in the order of the file,
    /// and the shares of all streams sum to 100.
    pub space_percent: f64,
    /// Order of its addresses within its region.
    pub access: Access,
    /// Transfer size in bytes, a multiple of 512; absent: the workload's sizes.
    #[serde(default)]
    pub bytes: Option<u32>,
    /// Placement handle of its writes; 0 is the default one. Drives without placement ignore it.
    #[serde(default)]
    pub handle: u8,
}

impl WorkloadStream {
    fn check(&self) -> Result<(), Fault> {
        Fault::unless(!self.name.is_empty(), "name", "name is empty")?;
        percent::some("request_percent", self.request_percent)?;
        percent::some("space_percent", self.space_percent)?;
        Fault::unless(
            self.access != Access::Streams,
            "access",
            "access is of kind \"streams\", which a stream cannot have: use random, sequential, \
             zipf or hot-cold",
        )?;
        self.access.check().map_err(|fault| fault.within("access"))?;
        let Some(bytes) = self.bytes else { return Ok(()) };
        SizeShare { bytes, percent: 100.0 }.check()
    }

    /// The stream as a workload of its own, on its region alone.
    fn alone(&self, workload: &Workload) -> Workload {
        let own = self.bytes.map(|bytes| vec![SizeShare { bytes, percent: 100.0 }]);
        Workload {
            name: format!("{}, stream {}", workload.name, self.name),
            access: self.access,
            sizes: own.unwrap_or_else(|| workload.sizes.clone()),
            footprint_percent: 100.0,
            streams: Vec::new(),
            random_map: false,
            shared_start: false,
            ..workload.clone()
        }
    }
}

/// Checks the streams of a workload against its `access`.
pub(crate) fn check(workload: &Workload) -> Result<(), Fault> {
    let (streams, access) = (&workload.streams, workload.access);
    if access != Access::Streams {
        let text = "streams are given, but access is not: give it kind = \"streams\"";
        return Fault::unless(streams.is_empty(), "streams", text);
    }
    let text = "streams are missing: access of kind \"streams\" needs at least one [[streams]]";
    Fault::unless(!streams.is_empty(), "access", text)?;
    for (index, stream) in streams.iter().enumerate() {
        stream.check().map_err(|fault| fault.within(&format!("streams.{index}")))?;
    }
    percent::whole_sum("streams", "request_percent", streams.iter().map(|it| it.request_percent))?;
    percent::whole_sum("streams", "space_percent", streams.iter().map(|it| it.space_percent))
}

/// Draws the requests of all streams of a job.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    rng: Rng,
    streams: Vec<StreamShare>,
}

#[derive(Clone, Debug)]
struct StreamShare {
    /// Draws below this, and not below that of the stream before, choose this stream.
    below: u64,
    /// First sector of its region.
    base: u64,
    handle: u8,
    generator: Generator,
}

impl Streams {
    /// The streams of `workload` for `job`, on `footprint` sectors.
    ///
    /// # Errors
    /// Fails if the largest request of a stream does not fit into its region.
    pub(crate) fn new(
        workload: &Workload,
        footprint: u64,
        job: Job,
        seed: u64,
    ) -> Result<Self, SpanError> {
        let rng = Rng::new(seed).split("streams").split_index(u64::from(job.index));
        let (mut base, mut request_percent, mut space_percent) = (0, 0.0, 0.0);
        let mut streams = Vec::new();
        for (index, stream) in (0..).zip(&workload.streams) {
            request_percent += stream.request_percent;
            space_percent += stream.space_percent;
            let end = generator::share(footprint, space_percent, REGION_SECTORS).max(base);
            let span = Span { sectors: end - base };
            let seed = Rng::new(seed).split("stream").split_index(index).next_u64();
            streams.push(StreamShare {
                below: generator::threshold(request_percent),
                base,
                handle: stream.handle,
                generator: Generator::new(&stream.alone(workload), span, job, seed)?,
            });
            base = end;
        }
        Ok(Self { rng, streams })
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> GeneratedRequest {
        let draw = self.rng.next_u64();
        let passed = self.streams.iter().filter(|stream| draw >= stream.below).count();
        let index = passed.min(self.streams.len() - 1);
        let stream = &mut self.streams[index];
        let request = stream.generator.next();
        GeneratedRequest { lba: Lba(stream.base + request.lba.0), handle: stream.handle, ..request }
    }
}

/// Regions begin at multiples of this, in sectors: 1 MiB.
const REGION_SECTORS: u64 = 1 << 11;

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: &str = r#"
        schema = 1
        name = "cache"
        title = "Cache"
        description = "A cache."
        source = "a test"
        read_percent = 0
        access = { kind = "streams" }
        sizes = [{ bytes = 4096, percent = 100 }]
        [[streams]]
        name = "small"
        request_percent = 25
        space_percent = 4
        access = { kind = "random" }
        handle = 1
        [[streams]]
        name = "large"
        request_percent = 75
        space_percent = 96
        access = { kind = "sequential" }
        bytes = 65536
    "#;
    const SECTORS: u64 = 100 << 11;

    fn drawn(text: &str, job: Job) -> Vec<GeneratedRequest> {
        let workload = Workload::parse(text, "cache.toml").expect("it is right");
        let mut generator =
            Generator::new(&workload, Span { sectors: SECTORS }, job, 1).expect("it fits");
        (0..4000).map(|_| generator.next()).collect()
    }

    #[test]
    fn each_request_lies_in_the_region_of_its_stream_and_names_its_handle() {
        let requests = drawn(CACHE, Job { index: 0, count: 1 });
        let border = 4 << 11;
        for request in &requests {
            let is_small = request.lba.0 < border;
            assert_eq!(request.handle, u8::from(is_small), "{request:?}");
            assert_eq!(request.sectors, if is_small { 8 } else { 128 }, "{request:?}");
            assert!(request.lba.0 + u64::from(request.sectors) <= SECTORS, "{request:?}");
        }
        let small = requests.iter().filter(|request| request.handle == 1).count();
        assert!((900..1100).contains(&small), "a quarter of them: {small}");
        let mut large = requests.iter().filter(|request| request.handle == 0).map(|it| it.lba.0);
        let first = large.next().expect("there are some");
        assert_eq!((first, large.next()), (border, Some(border + 128)), "one after the other");
    }

    #[test]
    fn jobs_share_the_regions() {
        let second = drawn(CACHE, Job { index: 1, count: 2 });
        let large = second.iter().find(|request| request.handle == 0).expect("there is one");
        assert_eq!(large.lba.0, (4 << 11) + (96 << 11) / 2, "a slice of its own");
        assert_ne!(second, drawn(CACHE, Job { index: 0, count: 2 }));
    }

    #[test]
    fn faults_name_what_would_be_right() {
        let fault = |from: &str, to: &str, expected: &str| {
            assert!(CACHE.contains(from), "{from}");
            let error = Workload::parse(&CACHE.replace(from, to), "cache.toml");
            let text = error.expect_err(to).to_string();
            assert!(text.contains(expected), "{text}");
        };
        fault(
            "space_percent = 96",
            "space_percent = 90",
            "space_percent sum to 94 percent, not 100",
        );
        fault("request_percent = 75", "request_percent = 0", "request_percent is 0, not above 0");
        fault("{ kind = \"streams\" }", "{ kind = \"random\" }", "give it kind = \"streams\"");
        fault("{ kind = \"sequential\" }", "{ kind = \"streams\" }", "a stream cannot have");
        fault("bytes = 65536", "bytes = 100", "bytes is 100, not a multiple of 512");
    }
}
