//! Looks up one id or many.

use burn_gnn_graph::{HomoId, TypedId};
use rayon::prelude::*;

use crate::error::DistError;

/// Ids from which lookups are shared out among threads.
const PARALLEL_FROM: usize = 1 << 14;

/// What the calls of a [`PartitionBook`](crate::PartitionBook) take: one id gives one answer; a slice, an array or a
/// vector (by reference) gives a vector of answers in the same order, or the error of the first id that is wrong.
pub trait Lookup<I> {
    /// One answer, or as many as there are ids.
    type Answer<T>;

    #[doc(hidden)]
    fn answer<T: Send>(
        self,
        f: impl Fn(I) -> Result<T, DistError> + Sync,
    ) -> Result<Self::Answer<T>, DistError>;
}

macro_rules! single {
    ($($id:ty),*) => {$(
        impl Lookup<$id> for $id {
            type Answer<T> = T;
            fn answer<T: Send>(self, f: impl Fn($id) -> Result<T, DistError> + Sync) -> Result<T, DistError> {
                f(self)
            }
        }
    )*};
}
single!(u64, HomoId, TypedId);

impl<I: Copy + Sync, S: AsRef<[I]> + ?Sized> Lookup<I> for &S {
    type Answer<T> = Vec<T>;
    fn answer<T: Send>(
        self,
        f: impl Fn(I) -> Result<T, DistError> + Sync,
    ) -> Result<Vec<T>, DistError> {
        let ids = self.as_ref();
        if ids.len() >= PARALLEL_FROM {
            let all: Result<Vec<T>, DistError> = ids.par_iter().map(|&i| f(i)).collect();
            if all.is_ok() {
                return all;
            }
            // Once more, for the first error and not just any.
        }
        ids.iter().map(|&i| f(i)).collect()
    }
}
