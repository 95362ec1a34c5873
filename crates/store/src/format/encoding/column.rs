//! One column of one block (up to 128 rows) of a tuple leaf: chooses the encoding, writes it,
//! finds values in it.
//!
//! A segment is `tag u8` and what the tag says; `first` is the column's value in the block's
//! first row, which the restart key holds. `packed` means lanes (see `format::encoding::bits`);
//! varints are LEB128.
//!
//! ```text
//! 0 constant                                                             first
//! 1 delta   bits u8, slope u8, stride varint, packed                     first + stride·(i·slope + sorted[i])
//! 2 frame   bits u8, stride varint, below varint, packed                 first − below·stride + stride·u[i]
//! 3 runs    runs u8, width u8, below varint, lengths[runs] u8, values    first − below + value of the run
//! 4 dict    bits u8, packed                                              page dictionary[index[i]]
//! 5 wide    bits u8, base u64, stream                                    base + u[i]
//! 6 split   count u8, width u8, shift u8, low bits u8, high base u32, low base u32, highs[count], packed index, packed low
//!                                                                        (high base + high << shift) << 32 | low base + low
//! ```
//!
//! `stride` is a common divisor of all differences (dates in milliseconds). Delta needs a
//! non-decreasing column; frame and delta need a range below 2³² strides. Split keeps blocks
//! that mix kinds of ids small: few high halves, dense low ones. The shortest segment is taken,
//! at a tie the one cheaper to read.

pub(crate) mod meet;
mod pick;

use crate::format::encoding::bits::{
    BLOCK, lane_value, lanes_len, pack, pack_sorted, pack_stream, stream_len, stream_value, unpack,
    unpack_sorted,
};
use crate::format::encoding::dict::PageDict;
use crate::format::encoding::{
    Bad, Decode, bits, byte_width, load, load_u8, load_varint, part, store, store_varint,
};

pub(crate) const CONSTANT: u8 = 0;
pub(crate) const DELTA: u8 = 1;
pub(crate) const FRAME: u8 = 2;
pub(crate) const RUNS: u8 = 3;
pub(crate) const DICT: u8 = 4;
pub(crate) const WIDE: u8 = 5;
pub(crate) const SPLIT: u8 = 6;

/// Most distinct high halves of a split segment.
pub(crate) const SPLIT_MAX: usize = 64;

// A segment counts its runs, and the rows of each, in a byte.
const _: () = assert!(BLOCK <= u8::MAX as usize, "a count of a block's rows fits a byte");
const _: () = assert!(SPLIT_MAX <= u8::MAX as usize, "a count of high halves fits a byte");

/// Properties of a block's column by which the encoder chooses.
struct ColumnShape {
    min: u64,
    max: u64,
    runs: usize,
    sorted: bool,
}

fn shape(values: &[u64]) -> ColumnShape {
    let (mut min, mut max, mut runs, mut sorted) = (values[0], values[0], 1, true);
    for pair in values.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        min = min.min(b);
        max = max.max(b);
        runs += usize::from(a != b);
        sorted &= a <= b;
    }
    ColumnShape { min, max, runs, sorted }
}

/// Appends the shortest segment for `values` (1 to 128). May enter values into `dict`.
pub(crate) fn encode(values: &[u64], dict: &mut PageDict, out: &mut Vec<u8>) {
    assert!((1..=BLOCK).contains(&values.len()), "a block has 1 to 128 rows");
    let s = shape(values);
    if s.runs == 1 {
        out.push(CONSTANT);
        return;
    }
    let start = out.len();
    plain(values, &s, out);
    let best = out.len() - start;
    if runs_len(values, &s) < best {
        out.truncate(start);
        write_runs(values, &s, out);
    }
    let best = out.len() - start;
    let known = dict.values().len();
    if let Some(indices) = try_dict(values, dict, best) {
        out.truncate(start);
        let index_bits = bits(*indices.iter().max().expect("a full array") as u64);
        out.extend([DICT, index_bits as u8]);
        pack(&indices, values.len(), index_bits, out);
    } else {
        dict.truncate(known);
    }
    debug_assert!(
        Segment::parse(out, start, values[0], values.len()).is_ok_and(|s| s.end == out.len()),
        "a segment ends where its reader looks for the next"
    );
}

/// Frame, delta, wide or split: what needs no repetition.
fn plain(values: &[u64], s: &ColumnShape, out: &mut Vec<u8>) {
    let range = s.max - s.min;
    let stride = if range > 255 { stride(values, s.min) } else { 1 };
    if range / stride <= u64::from(u32::MAX) {
        let mut relative = [0u32; BLOCK];
        for (u, v) in relative.iter_mut().zip(values) {
            *u = if stride == 1 { v - s.min } else { (v - s.min) / stride } as u32;
        }
        let frame_bits = bits(range / stride);
        if s.sorted {
            write_delta(&mut relative, values.len(), stride, out);
        } else {
            out.extend([FRAME, frame_bits as u8]);
            store_varint(out, stride);
            store_varint(out, u64::from(relative[0]));
            pack(&relative, values.len(), frame_bits, out);
        }
        return;
    }
    let wide_bits = bits(range);
    let wide = 10 + stream_len(values.len(), wide_bits);
    let start = out.len();
    if !write_split(values, out) || out.len() - start >= wide {
        out.truncate(start);
        out.extend([WIDE, wide_bits as u8]);
        store(out, s.min, 8);
        let relative: [u64; BLOCK] = std::array::from_fn(|i| values.get(i).map_or(0, |v| v - s.min));
        pack_stream(&relative[..values.len()], wide_bits, out);
    }
}

/// Greatest common divisor of all differences from `min`; stops as soon as it is 1.
fn stride(values: &[u64], min: u64) -> u64 {
    let mut divisor = 0;
    for v in values {
        let (mut a, mut b) = (v - min, divisor);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        divisor = a;
        if divisor == 1 {
            return 1;
        }
    }
    divisor.max(1)
}

/// Non-decreasing `relative`, the first being 0: the smallest step becomes the slope.
fn write_delta(relative: &mut [u32; BLOCK], n: usize, stride: u64, out: &mut Vec<u8>) {
    let (mut least, mut most) = (u32::MAX, 0);
    for pair in relative[..n].windows(2) {
        least = least.min(pair[1] - pair[0]);
        most = most.max(pair[1] - pair[0]);
    }
    assert_eq!(relative[0], 0, "a delta begins at the block's first row");
    let slope = least.min(255);
    for (i, u) in relative[..n].iter_mut().enumerate() {
        *u -= i as u32 * slope;
    }
    let last = relative[n - 1];
    relative[n..].fill(last);
    let step_bits = bits(u64::from(most - slope));
    out.extend([DELTA, step_bits as u8, slope as u8]);
    store_varint(out, stride);
    pack_sorted(relative, n, step_bits, out);
}

fn run_width(s: &ColumnShape) -> usize {
    byte_width(s.max - s.min)
}

fn runs_len(values: &[u64], s: &ColumnShape) -> usize {
    let below = (bits(values[0] - s.min) as usize).div_ceil(7).max(1);
    3 + below + s.runs * (1 + run_width(s))
}

fn write_runs(values: &[u64], s: &ColumnShape, out: &mut Vec<u8>) {
    let width = run_width(s);
    out.extend([RUNS, s.runs as u8, width as u8]);
    store_varint(out, values[0] - s.min);
    values.chunk_by(|a, b| a == b).for_each(|run| out.push(run.len() as u8));
    values.chunk_by(|a, b| a == b).for_each(|run| store(out, run[0] - s.min, width));
}

/// Indices into the page dictionary, if they and the entries they add take less than `best` bytes.
fn try_dict(values: &[u64], dict: &mut PageDict, best: usize) -> Option<[u32; BLOCK]> {
    let known = dict.values().len();
    let mut indices = [0u32; BLOCK];
    let mut most = 0;
    for (slot, &value) in indices.iter_mut().zip(values) {
        let index = dict.index(value)?;
        most = most.max(index);
        // The longer the dictionary grows the less it can win: stop early on random columns.
        if 2 + (dict.values().len() - known) * dict.width() + lanes_len(values.len(), bits(most as u64))
            >= best
        {
            return None;
        }
        *slot = index as u32;
    }
    Some(indices)
}

/// High halves from a small table, low halves in a frame; false when there are too many high
/// halves.
fn write_split(values: &[u64], out: &mut Vec<u8>) -> bool {
    let mut highs: Vec<u32> = Vec::with_capacity(SPLIT_MAX);
    let (mut index, mut low) = ([0u32; BLOCK], [0u32; BLOCK]);
    for (i, &value) in values.iter().enumerate() {
        let high = (value >> 32) as u32;
        low[i] = value as u32;
        index[i] = match highs.iter().rposition(|&h| h == high) {
            Some(at) => at as u32,
            None if highs.len() == SPLIT_MAX => return false,
            None => {
                highs.push(high);
                highs.len() as u32 - 1
            }
        };
    }
    let high_base = *highs.iter().min().expect("at least one row");
    let shift = highs.iter().fold(0, |all, h| all | (h - high_base)).trailing_zeros().min(31);
    let width = byte_width(u64::from((highs.iter().max().expect("at least one row") - high_base) >> shift));
    let low_base = *low[..values.len()].iter().min().expect("at least one row");
    low[..values.len()].iter_mut().for_each(|l| *l -= low_base);
    let low_bits = bits(u64::from(*low[..values.len()].iter().max().expect("at least one row")));
    out.extend([SPLIT, highs.len() as u8, width as u8, shift as u8, low_bits as u8]);
    store(out, u64::from(high_base), 4);
    store(out, u64::from(low_base), 4);
    highs.iter().for_each(|h| store(out, u64::from((h - high_base) >> shift), width));
    pack(&index, values.len(), bits(highs.len() as u64 - 1), out);
    pack(&low, values.len(), low_bits, out);
    true
}

/// Where a page keeps the dictionary of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DictRef {
    pub base: u64,
    pub at: usize,
    pub width: usize,
    pub entries: usize,
}

impl DictRef {
    #[inline]
    fn value(&self, page: &[u8], index: usize) -> Decode<u64> {
        if index >= self.entries {
            return Err(Bad("an index outside the page dictionary"));
        }
        Ok(self.base.wrapping_add(load(page, self.at + index * self.width, self.width)?))
    }
}

/// A segment found in a page: where its parts are. All accesses take the page it was parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    tag: u8,
    bits: u8,
    /// Delta: slope. Runs and split: bytes of a value.
    small: u8,
    /// Runs and split: entries of the table.
    count: u8,
    shift: u8,
    low_bits: u8,
    /// Constant, first value or smallest value, as the tag wants.
    base: u64,
    stride: u64,
    low_base: u32,
    high_base: u32,
    /// First byte of the packed part (runs: of the lengths; split: of the highs).
    at: usize,
    /// First byte of the low halves of a split segment.
    low_at: usize,
    /// First byte behind the segment.
    pub end: usize,
}

impl Segment {
    /// Finds the segment at `at` for a block of `n` rows that begins with `first`, and checks
    /// that it lies inside.
    #[inline]
    pub(crate) fn parse(page: &[u8], at: usize, first: u64, n: usize) -> Decode<Segment> {
        let mut s = Segment { base: first, stride: 1, ..Segment::default() };
        let mut next = at + 1;
        s.tag = load_u8(page, at)? as u8;
        let packed = match s.tag {
            CONSTANT => 0,
            DELTA => {
                s.bits = lane_bits(page, next)?;
                s.small = load_u8(page, next + 1)? as u8;
                next += 2;
                s.stride = load_varint(page, &mut next)?;
                lanes_len(n, s.bits.into())
            }
            FRAME => {
                s.bits = lane_bits(page, next)?;
                next += 1;
                s.stride = load_varint(page, &mut next)?;
                let below = load_varint(page, &mut next)?;
                s.base = first.wrapping_sub(below.wrapping_mul(s.stride));
                lanes_len(n, s.bits.into())
            }
            RUNS => {
                s.count = load_u8(page, next)? as u8;
                s.small = byte_count(page, next + 1)?;
                next += 2;
                s.base = first.wrapping_sub(load_varint(page, &mut next)?);
                s.count as usize * (1 + s.small as usize)
            }
            DICT => {
                s.bits = lane_bits(page, next)?;
                next += 1;
                lanes_len(n, s.bits.into())
            }
            WIDE => {
                s.bits = load_u8(page, next)? as u8;
                if !(1..=64).contains(&s.bits) {
                    return Err(Bad("a wide segment of other than 1 to 64 bits"));
                }
                s.base = load(page, next + 1, 8)?;
                next += 9;
                stream_len(n, s.bits.into())
            }
            SPLIT => {
                s.count = load_u8(page, next)? as u8;
                s.small = byte_count(page, next + 1)?;
                s.shift = load_u8(page, next + 2)? as u8 & 31;
                s.low_bits = lane_bits(page, next + 3)?;
                s.high_base = load(page, next + 4, 4)? as u32;
                s.low_base = load(page, next + 8, 4)? as u32;
                next += 12;
                if s.count == 0 {
                    return Err(Bad("a split segment without high halves"));
                }
                s.bits = bits(u64::from(s.count) - 1) as u8;
                let highs_and_indices = s.count as usize * s.small as usize + lanes_len(n, s.bits.into());
                s.low_at = next + highs_and_indices;
                highs_and_indices + lanes_len(n, s.low_bits.into())
            }
            _ => return Err(Bad("an unknown column encoding")),
        };
        s.at = next;
        s.end = next + packed;
        if s.end > page.len() {
            return Err(Bad("a column lies outside the page"));
        }
        Ok(s)
    }

    /// The one value of a constant column.
    #[inline]
    pub(crate) fn constant(&self) -> Option<u64> {
        (self.tag == CONSTANT).then_some(self.base)
    }

    /// True when single values can be had without unpacking the block.
    #[inline]
    pub(crate) fn random_access(&self) -> bool {
        !matches!(self.tag, DELTA | RUNS)
    }

    /// Value in row `i`; only where [`Segment::random_access`] says so.
    #[inline]
    pub(crate) fn value(&self, page: &[u8], dict: &DictRef, i: usize) -> Decode<u64> {
        match self.tag {
            CONSTANT => Ok(self.base),
            FRAME => {
                let u = u64::from(lane_value(page, self.at, self.bits.into(), i)?);
                Ok(self.base.wrapping_add(u.wrapping_mul(self.stride)))
            }
            DICT => dict.value(page, lane_value(page, self.at, self.bits.into(), i)? as usize),
            WIDE => Ok(self.base.wrapping_add(stream_value(page, self.at, self.bits.into(), i)?)),
            SPLIT => {
                let index = lane_value(page, self.index_at(), self.bits.into(), i)?;
                let low = lane_value(page, self.low_at, self.low_bits.into(), i)?;
                Ok(self.high(page, index)? | u64::from(self.low_base.wrapping_add(low)))
            }
            _ => Err(Bad("this column encoding has no random access")),
        }
    }

    /// Where the packed indices of a split segment begin.
    #[inline]
    fn index_at(&self) -> usize {
        self.at + self.count as usize * self.small as usize
    }

    /// High half number `index` of a split segment, in its place.
    #[inline]
    fn high(&self, page: &[u8], index: u32) -> Decode<u64> {
        if index >= u32::from(self.count) {
            return Err(Bad("an index outside the high halves of a block"));
        }
        let width = self.small as usize;
        let high = load(page, self.at + index as usize * width, width)? << self.shift;
        Ok(u64::from(self.high_base).wrapping_add(high) << 32)
    }

    /// Unpacks the `n` rows the segment was parsed for.
    pub(crate) fn unpack(&self, page: &[u8], dict: &DictRef, n: usize, out: &mut Column) -> Decode<()> {
        out.form = Form::Wide;
        match self.tag {
            CONSTANT => out.wide[..n].fill(self.base),
            DELTA => {
                unpack_sorted(part(page, self.at, self.end - self.at)?, self.bits.into(), &mut out.narrow);
                if self.small > 0 {
                    let slope = u32::from(self.small);
                    let mut rise = 0u32;
                    for u in &mut out.narrow {
                        *u = u.wrapping_add(rise);
                        rise += slope;
                    }
                }
                out.form = Form::Narrow { base: self.base, stride: self.stride };
            }
            FRAME => {
                unpack(part(page, self.at, self.end - self.at)?, self.bits.into(), &mut out.narrow);
                out.form = Form::Narrow { base: self.base, stride: self.stride };
            }
            RUNS => self.unpack_runs(page, n, out)?,
            DICT => {
                unpack(part(page, self.at, self.end - self.at)?, self.bits.into(), &mut out.narrow);
                for (value, &index) in out.wide[..n].iter_mut().zip(&out.narrow) {
                    *value = dict.value(page, index as usize)?;
                }
            }
            WIDE => {
                for (i, value) in out.wide[..n].iter_mut().enumerate() {
                    *value = self.base.wrapping_add(stream_value(page, self.at, self.bits.into(), i)?);
                }
            }
            _ => self.unpack_split(page, n, out)?,
        }
        Ok(())
    }

    fn unpack_runs(&self, page: &[u8], n: usize, out: &mut Column) -> Decode<()> {
        let (runs, width) = (self.count as usize, self.small as usize);
        let mut row = 0;
        for run in 0..runs {
            let value = self.base.wrapping_add(load(page, self.at + runs + run * width, width)?);
            let to = row + load_u8(page, self.at + run)?;
            out.wide.get_mut(row..to).ok_or(Bad("runs longer than their block"))?.fill(value);
            row = to;
        }
        if row == n { Ok(()) } else { Err(Bad("runs that do not fill their block")) }
    }

    fn unpack_split(&self, page: &[u8], n: usize, out: &mut Column) -> Decode<()> {
        let (index_at, low_at) = (self.index_at(), self.low_at);
        unpack(part(page, index_at, low_at - index_at)?, self.bits.into(), &mut out.narrow);
        for (value, &index) in out.wide[..n].iter_mut().zip(&out.narrow) {
            *value = self.high(page, index)?;
        }
        unpack(part(page, low_at, self.end - low_at)?, self.low_bits.into(), &mut out.narrow);
        for (value, &low) in out.wide[..n].iter_mut().zip(&out.narrow) {
            *value |= u64::from(self.low_base.wrapping_add(low));
        }
        Ok(())
    }
}

/// A bit width of lanes.
#[inline]
fn lane_bits(page: &[u8], at: usize) -> Decode<u8> {
    match load_u8(page, at)? {
        bits @ 0..=32 => Ok(bits as u8),
        _ => Err(Bad("a packed column of more than 32 bits")),
    }
}

/// A byte width of values.
#[inline]
fn byte_count(page: &[u8], at: usize) -> Decode<u8> {
    match load_u8(page, at)? {
        width @ 0..=8 => Ok(width as u8),
        _ => Err(Bad("a value wider than 8 bytes")),
    }
}

/// How an unpacked column holds its values.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `base + stride · narrow[i]`
    Narrow { base: u64, stride: u64 },
    /// `wide[i]`
    Wide,
}

/// An unpacked column of a block; reused from block to block.
pub(crate) struct Column {
    form: Form,
    narrow: [u32; BLOCK],
    wide: [u64; BLOCK],
}

impl Column {
    pub(crate) fn new() -> Column {
        Column { form: Form::Wide, narrow: [0; BLOCK], wide: [0; BLOCK] }
    }

    /// Value in row `i`.
    #[cfg(test)]
    pub(crate) fn value(&self, i: usize) -> u64 {
        match self.form {
            Form::Narrow { base, stride } => {
                base.wrapping_add(u64::from(self.narrow[i]).wrapping_mul(stride))
            }
            Form::Wide => self.wide[i],
        }
    }

    /// First row of `from .. to`, a stretch in which the column does not decrease, whose value
    /// is not below `key`.
    #[inline]
    pub(crate) fn lower(&self, from: usize, to: usize, key: u64) -> usize {
        match self.form {
            Form::Narrow { base, stride } => {
                let above = key.saturating_sub(base);
                let above = if stride <= 1 { above } else { above.div_ceil(stride) };
                match u32::try_from(above) {
                    Ok(above) => gallop(&self.narrow[from..to], |&u| u < above) + from,
                    Err(_) => to,
                }
            }
            Form::Wide => gallop(&self.wide[from..to], |&v| v < key) + from,
        }
    }

    /// First row of `from .. to` whose value is above `key`.
    #[cfg(test)]
    pub(crate) fn upper(&self, from: usize, to: usize, key: u64) -> usize {
        match key.checked_add(1) {
            Some(next) => self.lower(from, to, next),
            None => to,
        }
    }

    /// Appends rows `from .. to`.
    #[inline]
    pub(crate) fn append(&self, from: usize, to: usize, out: &mut Vec<u64>) {
        match self.form {
            Form::Narrow { base, stride: 1 } => {
                out.extend(self.narrow[from..to].iter().map(|&u| base.wrapping_add(u64::from(u))));
            }
            Form::Narrow { base, stride } => {
                out.extend(
                    self.narrow[from..to]
                        .iter()
                        .map(|&u| base.wrapping_add(u64::from(u).wrapping_mul(stride))),
                );
            }
            Form::Wide => out.extend_from_slice(&self.wide[from..to]),
        }
    }
}

/// Partition point that looks near the front first: the next key of a sorted batch is usually
/// close.
#[inline]
fn gallop<T>(values: &[T], below: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while step <= values.len() && below(&values[step - 1]) {
        step *= 2;
    }
    let from = step / 2;
    let to = (step - 1).min(values.len());
    from + values[from..to].partition_point(below)
}

#[cfg(test)]
mod tests;
