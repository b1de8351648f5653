//! Lends the rows of a table that this rank owns.

use std::fmt::Debug;
use std::sync::Arc;

use burn::tensor::DType;

/// Own rows of a column that change while it is read: those of a [`DistTensor`](crate::DistTensor).
pub(crate) trait ChangingRows: Debug + Send + Sync {
    fn dtype(&self) -> DType;
    /// Shape of a row.
    fn row_shape(&self) -> &[usize];
    /// Calls `to` once with the bytes of all own rows.
    fn lend(&self, to: &mut dyn FnMut(&[u8]));
}

/// Writes the bytes of an own row.
pub(super) type WriteRow<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// Own rows of a table.
pub(crate) enum OwnRows<'a> {
    /// Concatenated.
    Stored(&'a [u8]),
    /// Concatenated, and borrowed only while they are copied: a lock guards them, and other threads, which ranks may
    /// wait for, must be able to take it while ranks wait for each other here.
    Lent(Arc<dyn ChangingRows>),
    /// Written on request.
    Made(Box<WriteRow<'a>>),
}

/// [`OwnRows`] while they are copied.
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
