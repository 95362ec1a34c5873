//! Values of single rows of a block, given by their positions.

use crate::format::encoding::Decode;
use crate::format::encoding::bits::{lane_value, stream_value};
use crate::format::encoding::column::{CONSTANT, Column, DICT, DictRef, FRAME, Form, Segment, WIDE};

impl Segment {
    /// Appends the values of some rows, without unpacking the block; only where
    /// [`Segment::random_access`] says so.
    pub(crate) fn pick(&self, page: &[u8], dict: &DictRef, rows: &[u8], out: &mut Vec<u64>) -> Decode<()> {
        let (at, bits) = (self.at, u32::from(self.bits));
        match self.tag {
            CONSTANT => out.resize(out.len() + rows.len(), self.base),
            FRAME => {
                for &i in rows {
                    let u = u64::from(lane_value(page, at, bits, i.into())?);
                    out.push(self.base.wrapping_add(u.wrapping_mul(self.stride)));
                }
            }
            DICT => {
                for &i in rows {
                    out.push(dict.value(page, lane_value(page, at, bits, i.into())? as usize)?);
                }
            }
            WIDE => {
                for &i in rows {
                    out.push(self.base.wrapping_add(stream_value(page, at, bits, i.into())?));
                }
            }
            _ => {
                for &i in rows {
                    out.push(self.value(page, dict, i.into())?);
                }
            }
        }
        Ok(())
    }
}

impl Column {
    /// Appends the values of some rows.
    pub(crate) fn pick(&self, rows: &[u8], out: &mut Vec<u64>) {
        match self.form {
            Form::Narrow { base, stride: 1 } => {
                out.extend(rows.iter().map(|&i| base.wrapping_add(self.narrow[usize::from(i)].into())));
            }
            Form::Narrow { base, stride } => out
                .extend(rows.iter().map(|&i| {
                    base.wrapping_add(u64::from(self.narrow[usize::from(i)]).wrapping_mul(stride))
                })),
            Form::Wide => out.extend(rows.iter().map(|&i| self.wide[usize::from(i)])),
        }
    }
}
