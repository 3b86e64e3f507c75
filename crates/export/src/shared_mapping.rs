//! Mappings of files that clients share. A client that truncates its file loses what it shared, and
//! the server lives on.
//!
//! ```text
//!   access ──► SIGBUS ──► handler: empty memory in the place of the mapping ──► access ends
//!                    └──► the mapping counts as truncated ──► the access failed
//! ```
//!
//! A check of the length before each access would come too early: the client may truncate after it.
//! Each thread says what it accesses, so that the handler, which runs in that thread, needs no
//! lock, and leaves every other bus error to whatever handled it before.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Arc, Once, OnceLock};

use libc::{c_int, c_void, sigaction, siginfo_t};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use vm_memory::{FileOffset, MmapRegion};

/// Mapped memory of a client.
#[derive(Debug)]
pub(crate) struct SharedMapping {
    region: MmapRegion,
    is_truncated: Arc<AtomicBool>,
}

/// Error of an access to memory whose file its client has truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client truncated the file of its memory")]
pub(crate) struct TruncatedMemory;

/// The mapping that a thread accesses now.
struct Access {
    start: AtomicUsize,
    /// Bytes; 0: none is accessed.
    length: AtomicUsize,
    /// Flag to be set where it is truncated.
    is_truncated: AtomicPtr<AtomicBool>,
}

thread_local! {
    static ACCESS: Access = const {
        Access {
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            is_truncated: AtomicPtr::new(ptr::null_mut()),
        }
    };
}

/// Announcement of an access, which ends when this is dropped.
struct AccessGuard;

impl Drop for AccessGuard {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        ACCESS.with(|access| access.length.store(0, Ordering::Relaxed));
    }
}

impl SharedMapping {
    /// Maps `length` bytes of a file from an offset on. `is_truncated`, which several mappings may
    /// have in common, is set once an access finds that the file has become shorter.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(crate) fn new(
        file: OwnedFd,
        (offset, length): (u64, usize),
        is_truncated: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        handle_bus_errors();
        let file = FileOffset::new(file.into(), offset);
        let region = MmapRegion::from_file(file, length).map_err(io::Error::other)?;
        Ok(Self { region, is_truncated })
    }

    /// Bytes.
    pub(crate) fn size(&self) -> usize {
        self.region.size()
    }

    /// True if an access has found that the file is shorter.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated.load(Ordering::Acquire)
    }

    /// Accesses the memory. Accesses do not nest.
    ///
    /// # Errors
    /// Fails if the file is shorter: then what was read is zeroes or what was there, and what was
    /// written is lost.
    pub(crate) fn access<T>(
        &self,
        access: impl FnOnce(&MmapRegion) -> T,
    ) -> Result<T, TruncatedMemory> {
        let guard = self.announce();
        let done = access(&self.region);
        drop(guard);
        if self.is_truncated() { Err(TruncatedMemory) } else { Ok(done) }
    }

    fn announce(&self) -> AccessGuard {
        ACCESS.with(|access| {
            access.start.store(self.region.as_ptr().addr(), Ordering::Relaxed);
            let flag = Arc::as_ptr(&self.is_truncated).cast_mut();
            access.is_truncated.store(flag, Ordering::Relaxed);
            access.length.store(self.region.size(), Ordering::Relaxed);
        });
        compiler_fence(Ordering::SeqCst);
        AccessGuard
    }
}

impl Access {
    /// Puts empty memory in the place of the mapping that is accessed, if `address` lies in it, and
    /// marks it as truncated. Returns whether it did.
    #[expect(unsafe_code, reason = "a mapping is replaced, by a handler of a signal")]
    fn replace(&self, address: usize) -> bool {
        let [start, length] = [&self.start, &self.length].map(|it| it.load(Ordering::Relaxed));
        if address.checked_sub(start).is_none_or(|offset| offset >= length) {
            return false;
        }
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        let place = ptr::with_exposed_provenance_mut::<c_void>(start);
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the whole range is one mapping, which this thread accesses, so that it is not
        // unmapped; whatever accesses it takes any contents for possible.
        let replaced = unsafe { mmap_anonymous(place, length, both, flags) }.is_ok();
        if replaced {
            // SAFETY: the mapping that is accessed keeps the flag.
            unsafe { &*self.is_truncated.load(Ordering::Relaxed) }.store(true, Ordering::Release);
        }
        replaced
    }
}

/// The action that bus errors had before.
static EARLIER: OnceLock<sigaction> = OnceLock::new();

/// Has bus errors of accesses handled from now on.
#[expect(unsafe_code, reason = "the system is given a handler of a signal")]
fn handle_bus_errors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zeroes are an action, with an empty mask.
        let [mut action, mut earlier]: [sigaction; 2] = unsafe { mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_bus_error;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler does nothing that a signal may not interrupt: it reads atomics of its
        // thread and makes system calls.
        let set = unsafe { sigaction(libc::SIGBUS, &raw const action, &raw mut earlier) };
        assert_eq!(set, 0, "SIGBUS takes a handler");
        EARLIER.get_or_init(|| earlier);
    });
}

#[expect(unsafe_code, reason = "the system calls this with a description of the error")]
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: a handler with SA_SIGINFO is given a description.
    let address = unsafe { (*info).si_addr() }.addr();
    if !ACCESS.with(|access| access.replace(address)) {
        pass_on(signal, info, context);
    }
}

/// Leaves an error to whatever handled it before, which by default ends the process.
#[expect(unsafe_code, reason = "a handler is an address")]
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let earlier = EARLIER
        .get()
        .filter(|it| it.sa_sigaction != libc::SIG_DFL && it.sa_sigaction != libc::SIG_IGN);
    let Some(earlier) = earlier else {
        // SAFETY: all zeroes are the default action; the access is repeated, and ends the process.
        unsafe { sigaction(signal, &mem::zeroed(), ptr::null_mut()) };
        return;
    };
    if earlier.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the flag says that the address is one of these.
        let handler = unsafe { mem::transmute::<usize, Handler>(earlier.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag the address is one of these.
        let handler =
            unsafe { mem::transmute::<usize, extern "C" fn(c_int)>(earlier.sa_sigaction) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use vm_memory::{Bytes as _, VolatileMemory as _};

    use super::*;
    use crate::guest_memory::memory_file;

    const BYTES: usize = 1 << 16;

    #[test]
    fn a_file_that_is_truncated_fails_accesses_of_its_mappings_alone() {
        let file = memory_file("shared", BYTES as u64).unwrap();
        let other = memory_file("other", BYTES as u64).unwrap();
        let map = |file: &OwnedFd| {
            SharedMapping::new(file.try_clone().unwrap(), (0, BYTES), Arc::default()).unwrap()
        };
        let (mapping, beside) = (map(&file), map(&other));
        let write = |mapping: &SharedMapping, at: usize| {
            mapping.access(|it| it.as_volatile_slice().write_obj(7_u64, at).unwrap())
        };
        let read = |mapping: &SharedMapping, at: usize| {
            mapping.access(|it| it.as_volatile_slice().read_obj::<u64>(at).unwrap())
        };
        assert_eq!((write(&mapping, 8), read(&mapping, 8)), (Ok(()), Ok(7)));
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!(read(&mapping, 8), Ok(7), "it is still there");
        assert_eq!(read(&mapping, 8192), Err(TruncatedMemory));
        // All of it is gone then, in each thread.
        assert_eq!(read(&mapping, 8), Err(TruncatedMemory));
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| write(&mapping, 16384));
            assert_eq!(writing.join().unwrap(), Err(TruncatedMemory));
        });
        assert_eq!((write(&beside, 8192), read(&beside, 8192)), (Ok(()), Ok(7)));
    }
}
