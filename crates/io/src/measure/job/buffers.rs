//! The memory of a job's requests.

use snowmelt_base::random::{GOLDEN, fill};

use super::Job;
use crate::memory::buffer::{AlignedBuf, BUFFER_ALIGN};
use crate::memory::mapping::Huge;

/// One buffer for each request outstanding, side by side in pages that were touched in their
/// order: in a heap, where others were before, neighbours lie scattered, and how many pieces a
/// request has is left to chance.
pub(super) struct Buffers {
    memory: AlignedBuf,
    bs: usize,
    stride: usize,
}

impl Buffers {
    /// `count` buffers; for writes filled with bytes that no device could compress.
    pub(super) fn new(job: &Job, count: u32) -> Buffers {
        let bs = job.bs as usize;
        let stride = bs.next_multiple_of(BUFFER_ALIGN);
        let huge = if job.huge_pages { Huge::Yes } else { Huge::AsSet };
        let mut buffers = Buffers { memory: AlignedBuf::mapped(stride * count as usize, huge), bs, stride };
        buffers.memory.fill(0); // what the kernel gives at the first touch is not the device's time
        if job.write {
            buffers.each().zip(0..).for_each(|(buf, seed)| fill(buf, &mut (GOLDEN.wrapping_mul(seed) | 1)));
        }
        buffers
    }

    /// The buffers, one after the other.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let bs = self.bs;
        self.memory.chunks_exact_mut(self.stride).map(move |place| &mut place[..bs])
    }
}
