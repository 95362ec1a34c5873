//! Makes a [`Device`] of one that can only be read: its writes fail.

use std::io::IoSlice;
use std::io::IoSliceMut;
use std::sync::Arc;

use crate::cost::CostModel;
use crate::device::{Alignment, Device, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};
use crate::system::folder::FileId;

/// A [`Device`] of which nothing can be written. A queue reads it by [`ReadDevice::read_at`] alone:
/// through a descriptor, or a device beneath, it could write.
pub struct ReadOnly<D>(pub D);

impl<D: ReadDevice> ReadOnly<D> {
    fn refused<T>(&self, operation: Operation, offset: u64, len: u64) -> Result<T, IoError> {
        let kind = IoErrorKind::Os { errno: libc::EROFS };
        Err(IoError { device: self.0.name().clone(), operation, offset, len, kind })
    }
}

impl<D: ReadDevice> ReadDevice for ReadOnly<D> {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.0.len()
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        self.0.read_at(bufs, offset)
    }

    fn file_id(&self) -> Option<FileId> {
        self.0.file_id()
    }

    fn alignment(&self) -> Alignment {
        self.0.alignment()
    }

    fn cost(&self) -> CostModel {
        self.0.cost()
    }
}

impl<D: ReadDevice> Device for ReadOnly<D> {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.refused(Operation::Length, 0, len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        self.refused(Operation::Write, offset, bufs.iter().map(|buf| buf.len() as u64).sum())
    }

    fn sync(&self) -> Result<(), IoError> {
        self.refused(Operation::Sync, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::memory::MemoryDevice;

    /// Bytes that are somewhere else, as on object storage: only what must be read is there.
    struct Remote(Arc<str>);

    impl ReadDevice for Remote {
        fn name(&self) -> &Arc<str> {
            &self.0
        }

        fn len(&self) -> Result<u64, IoError> {
            Ok(1 << 20)
        }

        fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
            bufs.iter_mut().for_each(|buf| buf.fill(offset as u8));
            Ok(())
        }
    }

    #[test]
    fn it_reads_and_refuses_to_write() {
        let device: Arc<dyn Device> = Arc::new(ReadOnly(Remote("far".into())));
        let mut bytes = [0; 8];
        device.read_at(&mut [IoSliceMut::new(&mut bytes)], 7).unwrap();
        assert_eq!((bytes, device.len()), ([7; 8], Ok(1 << 20)));
        let errors = [
            device.write_at(&[IoSlice::new(&bytes)], 3),
            device.set_len(9),
            device.lengthen(2 << 20),
            device.sync(),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind, IoErrorKind::Os { errno: libc::EROFS });
            assert!(error.to_string().contains("far"), "{error}");
        }
        assert_eq!(device.lengthen(1), Ok(()), "it is as long as that");
    }

    #[test]
    fn what_could_be_written_stays_as_it_is() {
        let device = ReadOnly(MemoryDevice::from_bytes("m", vec![1; 4]));
        assert!(device.write_at(&[IoSlice::new(&[2])], 0).is_err());
        let mut byte = [0];
        device.read_at(&mut [IoSliceMut::new(&mut byte)], 0).unwrap();
        assert_eq!(byte, [1]);
    }
}
