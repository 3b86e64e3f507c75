//! Asynchronous calls: what a device is asked is carried out by threads of the queue, and the
//! caller holds a future of what comes of it.
//!
//! ```text
//!  caller ── call ──► queue ──► thread ──► device
//!    │                             │
//!    └──◄── Pending ◄── Promise ◄──┘
//! ```
//!
//! Invariants:
//! - Every call is answered: also one whose thread panicked, and those that were waiting when the
//!   queue was dropped.
//! - Calls begin in the order in which they were made, and end in any: a caller that depends on one
//!   awaits it first, as it would between clients of an export.

use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use device::{Device, DeviceError, Durability};

use crate::Drive;
use crate::lock::lock;

/// Work that a thread does with the device.
type Work<D> = Box<dyn FnOnce(&D) + Send>;

/// Calls to a device that do not make their callers wait. Dropping it waits for what was asked.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Arc;
///
/// use live::{Durability, MemoryDevice, Queue};
///
/// let device = Arc::new(MemoryDevice::new(1 << 20));
/// let queue = Queue::new(&device, NonZeroUsize::new(4).expect("above 0"))?;
/// let writes: Vec<_> = (0..16)
///     .map(|page| queue.write(page * 4096, vec![page as u8; 4096], Durability::Volatile))
///     .collect();
/// for write in writes {
///     write.wait()?;
/// }
/// // It is a future, too, for callers that have an executor.
/// assert_eq!(queue.read(3 * 4096, 2).wait()?, [3, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<D> {
    /// Absent only while it is dropped.
    work: Option<Sender<Work<D>>>,
    threads: Vec<JoinHandle<()>>,
}

impl<D: Send + Sync + 'static> Queue<D> {
    /// A queue to `device`, of which `threads` requests are carried out at a time.
    ///
    /// # Errors
    /// Fails if the system gives no more threads.
    pub fn new(device: &Arc<D>, threads: NonZeroUsize) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut queue = Self { work: Some(sender), threads: Vec::new() };
        for index in 0..threads.get() {
            let (device, receiver) = (Arc::clone(device), Arc::clone(&receiver));
            let name = format!("queue-{index}");
            let thread = thread::Builder::new()
                .name(name)
                .spawn(move || carry_out::<D>(&device, &receiver))?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// Has `work` done with the device: any call that it takes.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&D) -> Result<T, DeviceError> + Send + 'static,
    ) -> Pending<T> {
        let answer = Arc::new(SharedResult::default());
        let promise = Promise(Arc::clone(&answer));
        let work: Work<D> = Box::new(move |device| promise.keep(work(device)));
        if let Some(queue) = &self.work {
            // Work that no thread takes any more is dropped, and answers so.
            let _ = queue.send(work);
        }
        Pending(answer)
    }
}

impl<D: Device + 'static> Queue<D> {
    /// [`Device::read`] of `length` bytes.
    pub fn read(&self, offset: u64, length: usize) -> Pending<Vec<u8>> {
        self.call(move |device| {
            let mut bytes = vec![0; length];
            device.read(offset, &mut bytes)?;
            Ok(bytes)
        })
    }

    /// [`Device::write`].
    pub fn write(&self, offset: u64, bytes: Vec<u8>, durability: Durability) -> Pending<()> {
        self.call(move |device| device.write(offset, &bytes, durability))
    }

    /// [`Device::flush`]: covers the writes that have been awaited.
    pub fn flush(&self) -> Pending<()> {
        self.call(Device::flush)
    }

    /// [`Device::trim`].
    pub fn trim(&self, offset: u64, length: u64, durability: Durability) -> Pending<()> {
        self.call(move |device| device.trim(offset, length, durability))
    }
}

impl Queue<Drive> {
    /// [`Drive::atomic_write`] of ranges, each where it begins and its bytes.
    pub fn atomic_write(&self, ranges: Vec<(u64, Vec<u8>)>) -> Pending<()> {
        self.call(move |drive| {
            let ranges: Vec<(u64, &[u8])> =
                ranges.iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect();
            drive.atomic_write(&ranges)
        })
    }
}

impl<D> fmt::Debug for Queue<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl<D> Drop for Queue<D> {
    fn drop(&mut self) {
        self.work = None;
        for thread in self.threads.drain(..) {
            // Its panic has been answered.
            let _ = thread.join();
        }
    }
}

/// Carries out requests until the queue is dropped and empty; the body of its threads.
fn carry_out<D>(device: &D, queue: &Mutex<Receiver<Work<D>>>) {
    loop {
        let next = lock(queue).recv();
        let Ok(work) = next else { break };
        // The promise answers; the others' requests are to be carried out all the same.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(device)));
    }
}

/// A call that has not been answered, or whose answer has not been taken.
///
/// A future for whichever executor; [`Pending::wait`] for those who have none. The call is carried
/// out whether or not a thread waits.
#[derive(Debug)]
#[must_use = "what came of a call is known only once it was awaited"]
pub struct Pending<T>(Arc<SharedResult<T>>);

impl<T> Pending<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As the call.
    pub fn wait(self) -> Result<T, DeviceError> {
        let empty = |state: &mut ResultState<T>| state.given.is_none();
        let state = self.0.answered.wait_while(lock(&self.0.state), empty);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.given.take().expect("waited for")
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, DeviceError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0.state);
        if let Some(given) = state.given.take() {
            return Poll::Ready(given);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// An answer that the caller and the thread share.
#[derive(Debug)]
struct SharedResult<T> {
    state: Mutex<ResultState<T>>,
    answered: Condvar,
}

#[derive(Debug)]
struct ResultState<T> {
    given: Option<Result<T, DeviceError>>,
    is_given: bool,
    waker: Option<Waker>,
}

impl<T> Default for SharedResult<T> {
    fn default() -> Self {
        let state = ResultState { given: None, is_given: false, waker: None };
        Self { state: Mutex::new(state), answered: Condvar::new() }
    }
}

impl<T> SharedResult<T> {
    /// Gives the answer, if none was given before.
    fn give(&self, answer: Result<T, DeviceError>) {
        let mut state = lock(&self.state);
        if state.is_given {
            return;
        }
        (state.given, state.is_given) = (Some(answer), true);
        let waker = state.waker.take();
        drop(state);
        self.answered.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Sees to it that a call is answered.
struct Promise<T>(Arc<SharedResult<T>>);

impl<T> Promise<T> {
    fn keep(&self, answer: Result<T, DeviceError>) {
        self.0.give(answer);
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let reason = "the call was given up by its thread".to_owned();
        self.0.give(Err(DeviceError::Poisoned { reason }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDevice;
    use std::task::Wake;

    const THREADS: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    const PAGE: usize = 4096;

    /// Wakes the thread that made it.
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// The smallest executor there is.
    fn block_on<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let waker = Arc::new(Unpark(thread::current())).into();
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    fn memory() -> Arc<MemoryDevice> {
        Arc::new(MemoryDevice::new(1 << 20))
    }

    #[test]
    fn many_requests_are_outstanding_and_each_is_answered_with_its_own() {
        let queue = Queue::new(&memory(), THREADS).unwrap();
        let page = |index: u8| vec![index; PAGE];
        let writes: Vec<_> = (0..64_u8)
            .map(|it| queue.write(u64::from(it) * PAGE as u64, page(it), Durability::Volatile))
            .collect();
        block_on(async {
            for write in writes {
                write.await.unwrap();
            }
            queue.flush().await.unwrap();
            let reads: Vec<_> = (0..64_u64).map(|it| queue.read(it * PAGE as u64, PAGE)).collect();
            for (read, index) in reads.into_iter().zip(0..) {
                assert_eq!(read.await.unwrap(), page(index));
            }
            queue.trim(5 * PAGE as u64, PAGE as u64, Durability::Durable).await.unwrap();
        });
        assert_eq!(queue.read(5 * PAGE as u64, PAGE).wait().unwrap(), page(0));
    }

    #[test]
    fn an_error_is_that_of_the_device() {
        let queue = Queue::new(&memory(), THREADS).unwrap();
        let error = block_on(queue.read(1 << 20, 1)).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfRange { .. }), "{error}");
    }

    #[test]
    fn a_dropped_queue_has_carried_out_what_was_asked() {
        let device = memory();
        let queue = Queue::new(&device, NonZeroUsize::MIN).unwrap();
        let writes: Vec<_> = (0..32_u64)
            .map(|it| queue.write(it * PAGE as u64, vec![7; PAGE], Durability::Volatile))
            .collect();
        drop(queue);
        for write in writes {
            write.wait().unwrap();
        }
        let mut last = vec![0; PAGE];
        device.read(31 * PAGE as u64, &mut last).unwrap();
        assert_eq!(last, vec![7; PAGE]);
    }

    #[test]
    fn a_call_that_panics_is_answered_and_the_next_one_carried_out() {
        let queue = Queue::new(&memory(), NonZeroUsize::MIN).unwrap();
        let failed = queue.call(|_| -> Result<(), DeviceError> { panic!("on purpose") });
        let next = queue.flush();
        assert!(matches!(failed.wait(), Err(DeviceError::Poisoned { .. })));
        next.wait().unwrap();
    }
}
