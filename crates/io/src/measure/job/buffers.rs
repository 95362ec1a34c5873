//! The memory of a job's requests.

use snowmelt_base::random::{GOLDEN, fill};

use super::Job;
use super::stamp::stamp;
use crate::memory::buffer::{AlignedBuf, BUFFER_ALIGN};
use crate::memory::mapping::Huge;

/// Buffers of all requests outstanding, side by side in pages that were touched in their order: in
/// a heap, where others were before, neighbours lie scattered, and how many pieces a request has is
/// left to chance.
pub(super) struct Buffers {
    memory: AlignedBuf,
    bs: usize,
    stride: usize,
    /// Buffers of a slot: two where it may read or write, so that what was read (zeros, perhaps)
    /// is not written.
    per_slot: usize,
}

/// The memory of one request at a time.
pub(super) struct JobBuffer<'a> {
    /// Read into, or written from where all requests write.
    first: &'a mut [u8],
    /// Written from, where some requests read and others write.
    second: Option<&'a mut [u8]>,
}

impl JobBuffer<'_> {
    /// The buffer of a request in this direction.
    pub(super) fn of(&mut self, write: bool) -> &mut [u8] {
        match &mut self.second {
            Some(second) if write => second,
            _ => self.first,
        }
    }

    /// The buffer of a request that is about to begin; stamped when the job's writes are.
    pub(super) fn begun(&mut self, job: &Job, write: bool, offset: u64) -> &mut [u8] {
        let buf = self.of(write);
        if let Some(seed) = job.verify.filter(|_| write) {
            stamp(buf, offset, seed);
        }
        buf
    }
}

impl Buffers {
    /// Buffers for `slots` requests; for writes filled with bytes that no device could compress.
    pub(super) fn new(job: &Job, slots: u32) -> Buffers {
        let bs = job.bs as usize;
        let stride = bs.next_multiple_of(BUFFER_ALIGN);
        let huge = if job.huge_pages { Huge::Yes } else { Huge::AsSet };
        let per_slot = if job.rw.any_read() && job.rw.any_write() { 2 } else { 1 };
        let memory = AlignedBuf::mapped(stride * slots as usize * per_slot, huge);
        let mut buffers = Buffers { memory, bs, stride, per_slot };
        buffers.memory.fill(0); // what the kernel gives at the first touch is not the device's time
        if job.rw.any_write() {
            let fill = |(mut slot, seed): (JobBuffer<'_>, u64)| {
                fill(slot.of(true), &mut (GOLDEN.wrapping_mul(seed) | 1));
            };
            buffers.each().zip(0..).for_each(fill);
        }
        buffers
    }

    /// The buffers, one slot after the other.
    pub(super) fn each(&mut self) -> impl Iterator<Item = JobBuffer<'_>> {
        let (bs, stride, per_slot) = (self.bs, self.stride, self.per_slot);
        self.memory.chunks_exact_mut(stride * per_slot).map(move |place| {
            let (first, second) = place.split_at_mut(stride);
            let second = (per_slot > 1).then(|| &mut second[..bs]);
            JobBuffer { first: &mut first[..bs], second }
        })
    }
}
