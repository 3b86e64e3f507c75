//! Engines of fio: whether they keep more than one request outstanding.
//!
//! Source: the flags of `struct ioengine_ops` in the files of fio's folder `engines`, version 3.42;
//! fio itself says of a synchronous engine that its queue depth is capped at 1.

/// Engine that fio uses on Linux where nothing is said.
pub(super) const DEFAULT: &str = "psync";

/// Engines that answer one request before they take the next.
const SYNCHRONOUS: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "sg",
    "mtd",
    "pmemblk",
    "dev-dax",
    "libpmem",
    "libhdfs",
    "gfapi",
    "http",
    "libcufile",
];

/// Engines that keep `iodepth` requests outstanding.
const ASYNCHRONOUS: &[&str] = &[
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "windowsaio",
    "solarisaio",
    "guasi",
    "null",
    "nbd",
    "rbd",
    "rados",
    "gfapi_async",
    "libblkio",
    "xnvme",
    "nfs",
    "dfs",
    "libiscsi",
];

/// Engines that neither read nor write a drive.
const OTHER: &[&str] = &[
    "cpuio",
    "net",
    "netsplice",
    "rdma",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirdelete",
    "dirstat",
    "exec",
    "falloc",
    "e4defrag",
    "ime_sync",
    "ime_psync",
    "ime_aio",
    "librpma_apm_client",
    "librpma_gpspm_client",
];

/// True if the engine `name` keeps more than one request outstanding.
///
/// # Errors
/// Says that it does not load a drive, or is not known.
pub(super) fn is_asynchronous(name: &str) -> Result<bool, String> {
    if ASYNCHRONOUS.contains(&name) {
        return Ok(true);
    }
    if SYNCHRONOUS.contains(&name) {
        return Ok(false);
    }
    Err(if OTHER.contains(&name) {
        format!("the engine {name} does not read or write a drive")
    } else {
        format!("the engine {name} is not known here: how many requests it keeps outstanding")
    })
}

/// Engines whose requests go through the page cache of the host unless `direct=1` says otherwise.
const CACHED: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "libaio",
    "io_uring",
    "posixaio",
    "windowsaio",
    "solarisaio",
];

/// True if requests of the engine `name` go through the page cache where nothing is said.
pub(super) fn has_page_cache(name: &str) -> bool {
    CACHED.contains(&name)
}
