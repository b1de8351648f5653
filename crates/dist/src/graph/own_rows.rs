//! Access to the rows of a table that this rank owns.

use std::fmt::Debug;
use std::sync::Arc;

use burn::tensor::DType;

/// The own rows of a mutable column, a [`DistTensor`](crate::DistTensor).
pub(crate) trait ChangingRows: Debug + Send + Sync {
    fn dtype(&self) -> DType;
    /// Shape of a row.
    fn row_shape(&self) -> &[usize];
    /// Calls `to` once with the bytes of all own rows, under a lock.
    fn lend(&self, to: &mut dyn FnMut(&[u8]));
}

/// Writes the bytes of an own row to a buffer.
pub(super) type WriteRow<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// The rows of a table that this rank owns.
pub(crate) enum OwnRows<'a> {
    /// Concatenated rows.
    Stored(&'a [u8]),
    /// Concatenated rows, protected by a lock that is held only while they are copied. It is not held during an exchange:
    /// other ranks might then wait for a thread that waits for the lock.
    Lent(Arc<dyn ChangingRows>),
    /// Rows that are computed on request.
    Made(Box<WriteRow<'a>>),
}

/// [`OwnRows`] with the lock held.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    Made(&'a WriteRow<'a>),
}

impl OwnRows<'_> {
    pub(super) fn with<R>(&self, f: impl FnOnce(Source<'_>) -> R) -> R {
        match self {
            Self::Stored(bytes) => f(Source::Bytes(bytes)),
            Self::Made(write) => f(Source::Made(&**write)),
            Self::Lent(rows) => {
                let (mut f, mut out) = (Some(f), None);
                rows.lend(&mut |bytes| out = f.take().map(|f| f(Source::Bytes(bytes))));
                out.unwrap_or_else(|| unreachable!("rows are lent once"))
            }
        }
    }
}
