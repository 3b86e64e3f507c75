//! `io_uring`: several things asked of files at once, with one call to the system and no thread
//! handed anything.
//!
//! Each thread that asks has a ring of its own, so none waits for another's answers. Where the
//! system has no ring to give, be it old, or told to refuse, nothing is carried out, and the caller
//! does it one after the other.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode};

/// Most requests of one call.
pub(super) const AT_ONCE: usize = ENTRIES as usize;
const ENTRIES: u32 = 64;

/// Request for an `io_uring`.
#[derive(Debug)]
pub(super) enum Ask<'a, 'b> {
    /// Fills buffers one after the other. May fill less.
    Read {
        /// File to read from.
        file: BorrowedFd<'a>,
        /// Offset of the first byte.
        offset: u64,
        /// Buffers, at most 1024.
        buffers: &'a mut [IoSliceMut<'b>],
    },
    /// Fills one buffer. May fill less.
    ReadInto {
        /// File to read from.
        file: BorrowedFd<'a>,
        /// Offset of the first byte.
        offset: u64,
        /// Destination, less than 4 GiB.
        buffer: &'a mut [u8],
    },
    /// Writes, and then does what is asked next; that is not even begun when less was written.
    WriteThen {
        /// File to write to.
        file: BorrowedFd<'a>,
        /// Offset of the first byte.
        offset: u64,
        /// Bytes to write, less than 4 GiB.
        bytes: &'a [u8],
    },
    /// Makes data durable.
    Sync {
        /// File to sync.
        file: BorrowedFd<'a>,
    },
}

impl Ask<'_, '_> {
    fn entry(&mut self) -> Entry {
        match self {
            Ask::Read { file, offset, buffers } => {
                let count = u32::try_from(buffers.len()).expect("1024 at most");
                // The layout of a slice for vectored input is that of the system's own.
                let first = buffers.as_mut_ptr().cast();
                opcode::Readv::new(Fd(file.as_raw_fd()), first, count).offset(*offset).build()
            }
            Ask::ReadInto { file, offset, buffer } => {
                let (first, length) = (buffer.as_mut_ptr(), length(buffer));
                opcode::Read::new(Fd(file.as_raw_fd()), first, length).offset(*offset).build()
            }
            Ask::WriteThen { file, offset, bytes } => {
                let length = length(bytes);
                let write = opcode::Write::new(Fd(file.as_raw_fd()), bytes.as_ptr(), length);
                write.offset(*offset).build().flags(Flags::IO_LINK)
            }
            Ask::Sync { file } => {
                let sync = opcode::Fsync::new(Fd(file.as_raw_fd()));
                sync.flags(FsyncFlags::DATASYNC).build()
            }
        }
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("less than 4 GiB")
}

thread_local! {
    /// Made when the thread first wants one; none where there is none.
    static RING: RefCell<Option<IoUring>> = RefCell::new(new());
}

fn new() -> Option<IoUring> {
    let mut quick = IoUring::builder();
    // Completions are looked for by the thread that waits for them, and by no other. Systems before
    // 6.1 do not know how.
    quick.setup_single_issuer().setup_defer_taskrun();
    quick.build(ENTRIES).or_else(|_| IoUring::new(ENTRIES)).ok()
}

/// True if this thread has a ring.
pub(super) fn is_there() -> bool {
    RING.with_borrow(Option::is_some)
}

/// Asks for up to [`AT_ONCE`] things, and waits for all of them. The answers are in order: bytes
/// moved, or why not; none where nothing was begun, since there is no ring.
#[expect(unsafe_code, reason = "the system is given addresses of buffers")]
pub(super) fn carry_out(asks: &mut [Ask<'_, '_>]) -> Vec<Option<io::Result<usize>>> {
    let entries: Vec<Entry> = asks.iter_mut().map(Ask::entry).collect();
    RING.with_borrow_mut(|place| {
        let mut answers = Vec::new();
        answers.resize_with(entries.len(), || None);
        if let Some(ring) = place {
            // SAFETY: files and buffers are borrowed by `asks`, which outlives this call.
            let is_taken = unsafe { run(ring, &entries, &mut answers) };
            if !is_taken {
                // With it goes what it still holds of these entries.
                *place = None;
            }
        }
        answers
    })
}

/// Has the system carry out `entries`. Returns whether it took all of them; what it took is over.
///
/// # Safety
/// What the entries refer to must stay borrowed until this returns; and when it returns false, the
/// ring must not be used again.
#[expect(unsafe_code, reason = "the system is given addresses of buffers")]
unsafe fn run(
    ring: &mut IoUring,
    entries: &[Entry],
    answers: &mut [Option<io::Result<usize>>],
) -> bool {
    assert!(entries.len() <= AT_ONCE, "{} things asked for at once", entries.len());
    for (number, entry) in (0..).zip(entries) {
        let entry = entry.clone().user_data(number);
        // SAFETY: what it refers to stays until this function returns, which it does only when the
        // system has answered it, or has not seen it and never will.
        unsafe { ring.submission().push(&entry) }.expect("the queue is empty, and holds as many");
    }
    let mut left = entries.len();
    while left > 0 {
        let asked = ring.submit_and_wait(left);
        for completion in ring.completion() {
            let number = usize::try_from(completion.user_data()).expect("an index");
            answers[number] = Some(answer(completion.result()));
            left -= 1;
        }
        if asked.is_err_and(|error| !is_passing(&error)) && ring.submission().len() == left {
            return false;
        }
    }
    true
}

/// Bytes moved, or a negative error number.
fn answer(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

/// True if an error is transient, so that the request may succeed if it is repeated.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    matches!(error.kind(), Interrupted | ResourceBusy | WouldBlock)
}
