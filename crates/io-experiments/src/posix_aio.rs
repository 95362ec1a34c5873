//! The `posix-aio` engine: one thread per queue that lists control blocks with lio_listio(3),
//! waits for any of them with aio_suspend(3), and delivers.
//!
//! The interface decides the rest:
//!
//! * The C library carries the requests out in threads of its own, and those of one descriptor
//!   *one after the other*. So every slot has a duplicate of the descriptor; with one
//!   descriptor the depth would be 1.
//! * A control block has one buffer. A device request of several pieces travels through a
//!   buffer of its slot.
//! * Nothing interrupts aio_suspend but a completion, so the way to wake the thread is one more
//!   control block: a read of the event descriptor.
//! * The library takes 20 threads for the whole process unless told otherwise before the first
//!   request; each control block that blocks needs one. They are counted, and a queue that
//!   would go beyond the most is refused.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use snowmelt_io::{
    AlignedBuf, DeviceRequest, NotStarted, Progress, ServedQueue, ServingThread, StartEngine, Started, Turn,
};

/// Most control blocks of all queues of the process.
const MOST: usize = 1024;

/// Control blocks of all queues.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// glibc's structure for the number of threads; other C libraries start one per request and
/// need none.
#[cfg(target_env = "gnu")]
#[repr(C)]
struct AioInit {
    threads: libc::c_int,
    expected: libc::c_int,
    unused: [libc::c_int; 4],
    idle_s: libc::c_int,
    reserved: libc::c_int,
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn aio_init(init: *const AioInit);
}

/// A place for one control block.
struct AioSlot {
    /// The address must stay while the request is listed.
    block: Box<libc::aiocb>,
    descriptor: Option<OwnedFd>,
    request: Option<DeviceRequest>,
    /// For requests of several pieces.
    bounce: Option<AlignedBuf>,
}

// SAFETY: the pointers in a control block are those of the slot's own request and buffer, which
// move along with it.
unsafe impl Send for AioSlot {}

/// Counts control blocks for as long as they may be listed.
struct ControlBlocks(usize);

impl ControlBlocks {
    fn take(blocks: usize) -> std::io::Result<ControlBlocks> {
        if IN_USE.fetch_add(blocks, Ordering::Relaxed) + blocks > MOST {
            IN_USE.fetch_sub(blocks, Ordering::Relaxed);
            return Err(std::io::Error::other(format!(
                "its queues may have {MOST} requests outstanding together"
            )));
        }
        Ok(ControlBlocks(blocks))
    }
}

impl Drop for ControlBlocks {
    fn drop(&mut self) {
        IN_USE.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The engine.
#[derive(Debug)]
pub(crate) struct PosixAio;

impl StartEngine for PosixAio {
    fn name(&self) -> &'static str {
        "posix-aio"
    }

    fn title(&self) -> &'static str {
        "POSIX AIO"
    }

    fn start(&self, queue: &ServedQueue) -> Result<Started, NotStarted> {
        static ONCE: std::sync::Once = std::sync::Once::new();
        let Some(fd) = queue.descriptor() else { return Ok(Started::Threads) };
        ONCE.call_once(allow_many);
        let depth = queue.most_outstanding();
        let share = ControlBlocks::take(depth + 1)?;
        let descriptors = (0..depth).map(|_| fd.try_clone_to_owned()).collect::<std::io::Result<Vec<_>>>()?;
        let mut slots: Vec<AioSlot> = descriptors.into_iter().map(|fd| AioSlot::new(Some(fd))).collect();
        slots.push(AioSlot::new(None));
        let thread = queue.start_thread("posix-aio", move |thread| {
            let _share = share;
            let free = (0..depth).rev().collect();
            AioServer { thread, free, slots, over: Vec::new(), woken: Box::new(0) }.serve();
        })?;
        Ok(Started::Thread(thread))
    }
}

fn allow_many() {
    #[cfg(target_env = "gnu")]
    {
        let most = MOST as libc::c_int;
        let init = AioInit { threads: most, expected: 64, unused: [0; 4], idle_s: 0, reserved: 0 };
        // SAFETY: reads the structure during the call; without effect when requests were listed
        // already.
        unsafe { aio_init(&raw const init) };
    }
}

impl AioSlot {
    fn new(descriptor: Option<OwnedFd>) -> AioSlot {
        // SAFETY: a control block of zeros is an empty one: numbers and null pointers.
        let mut block: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        AioSlot { block, descriptor, request: None, bounce: None }
    }

    /// Makes the control block for what is left of the request.
    fn fill(&mut self) {
        let request = self.request.as_ref().expect("a slot to be filled is busy");
        let fd = self.descriptor.as_ref().expect("all slots but the last have one");
        let (start, len) = match request.iov() {
            [one] => (one.iov_base, one.iov_len),
            many => {
                let len = many.iter().map(|iov| iov.iov_len).sum();
                if self.bounce.as_ref().is_none_or(|buf| buf.len() < len) {
                    self.bounce = Some(AlignedBuf::new(len));
                }
                let bounce = self.bounce.as_mut().expect("just made");
                if request.is_write() {
                    // SAFETY: the request of a slot is at the device.
                    unsafe { request.gather(&mut bounce[..len]) };
                }
                (bounce.as_mut_ptr().cast(), len)
            }
        };
        self.block.aio_fildes = fd.as_raw_fd();
        self.block.aio_lio_opcode = if request.is_write() { libc::LIO_WRITE } else { libc::LIO_READ };
        self.block.aio_buf = start;
        self.block.aio_nbytes = len;
        self.block.aio_offset = request.rest_offset() as libc::off_t;
    }

    /// Result of a listed request; `None` while it goes on.
    fn result(&mut self) -> Option<Result<u64, i32>> {
        // SAFETY: the block was listed and not yet asked for its end.
        match unsafe { libc::aio_error(&raw const *self.block) } {
            libc::EINPROGRESS => None,
            // SAFETY: it is over, and asked once.
            0 => Some(Ok(unsafe { libc::aio_return(&raw mut *self.block) } as u64)),
            errno => {
                // SAFETY: as above; gives the library's resources back.
                unsafe { libc::aio_return(&raw mut *self.block) };
                Some(Err(errno))
            }
        }
    }
}

struct AioServer {
    thread: ServingThread,
    /// One per request at the device, and the last for the event descriptor.
    slots: Vec<AioSlot>,
    free: Vec<usize>,
    /// Over, not yet retired.
    over: Vec<DeviceRequest>,
    /// Where the read of the event descriptor lands.
    woken: Box<u64>,
}

impl AioServer {
    fn serve(mut self) {
        let wake = self.await_wake();
        self.list(&[wake]);
        while let Turn::Serve { not_before } = self.start_what_may() {
            self.suspend(not_before);
            self.thread.is_awake();
            self.reap();
        }
        // The library may still write to `woken`: have it do so now.
        self.thread.end_wait();
        while self.slots[wake].result().is_none() {
            self.suspend(None);
        }
    }

    /// The last slot's control block: a read of the event descriptor.
    fn await_wake(&mut self) -> usize {
        let last = self.slots.len() - 1;
        let block = &mut self.slots[last].block;
        block.aio_fildes = self.thread.wake_descriptor().as_raw_fd();
        block.aio_lio_opcode = libc::LIO_READ;
        block.aio_buf = (&raw mut *self.woken).cast();
        block.aio_nbytes = 8;
        last
    }

    /// Lists all that may go out.
    fn start_what_may(&mut self) -> Turn {
        let mut begun = Vec::new();
        let turn = self.thread.turn(&mut self.over, true, |request| {
            let slot = self.free.pop().expect("as many slots as the depth");
            self.slots[slot].request = Some(request);
            begun.push(slot);
        });
        begun.iter().for_each(|&slot| self.slots[slot].fill());
        self.list(&begun);
        turn
    }

    fn list(&mut self, slots: &[usize]) {
        let mut blocks: Vec<*mut libc::aiocb> =
            slots.iter().map(|&slot| &raw mut *self.slots[slot].block).collect();
        if blocks.is_empty() {
            return;
        }
        // SAFETY: the blocks are boxed and stay until their end was asked for, and so do the
        // buffers they name: the pieces' (RawBuf's contract) or the slot's own. Blocks the
        // library could not take end with an error, seen in `reap`.
        unsafe {
            let count = blocks.len() as libc::c_int;
            libc::lio_listio(libc::LIO_NOWAIT, blocks.as_mut_ptr(), count, std::ptr::null_mut())
        };
    }

    /// Sleeps until a listed block is over, or until a time.
    fn suspend(&self, until: Option<u64>) {
        let listed = |slot: &&AioSlot| slot.request.is_some() || slot.descriptor.is_none();
        let blocks: Vec<*const libc::aiocb> =
            self.slots.iter().filter(listed).map(|slot| &raw const *slot.block).collect();
        let rest = until.map(|at| at.saturating_sub(self.thread.now_ns()));
        let rest = rest.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let timeout = rest.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the list and the time are read during the call. Whatever ends it, the blocks
        // are looked at afterwards.
        unsafe { libc::aio_suspend(blocks.as_ptr(), blocks.len() as libc::c_int, timeout) };
    }

    /// Delivers what is over, and lists again what is not complete.
    fn reap(&mut self) {
        let mut again = Vec::new();
        let last = self.slots.len() - 1;
        if self.slots[last].result().is_some() {
            again.push(self.await_wake());
        }
        for slot in 0..last {
            if self.slots[slot].request.is_none() {
                continue;
            }
            let Some(result) = self.slots[slot].result() else { continue };
            let place = &mut self.slots[slot];
            let mut request = place.request.take().expect("just looked at");
            if let (Ok(n), Some(bounce), false) = (result, &place.bounce, request.is_write())
                && request.iov().len() > 1
            {
                // SAFETY: it reads, and is at the device until it is delivered below.
                unsafe { self.thread.scatter(&request, &bounce[..n as usize]) };
            }
            match self.thread.took(&mut request, result) {
                Progress::Again => {
                    place.request = Some(request);
                    place.fill();
                    again.push(slot);
                }
                Progress::Ended(end) => {
                    self.free.push(slot);
                    self.thread.deliver(&mut request, end, self.thread.now_ns());
                    self.over.push(request);
                }
            }
        }
        self.list(&again);
    }
}
