//! Bytes that are read from the front: the meta run and the segments of the extent map.

/// Bytes that are read from the front.
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or("the meta run ends too early")?;
        self.bytes = tail;
        Ok(head)
    }
    pub fn u32(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }
    pub fn u64(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }
    pub fn name(&mut self) -> Result<String, &'static str> {
        let len = u16::from_le_bytes(self.take(2)?.try_into().expect("two bytes"));
        String::from_utf8(self.take(len as usize)?.to_vec()).map_err(|_| "a name is not UTF-8")
    }
}
