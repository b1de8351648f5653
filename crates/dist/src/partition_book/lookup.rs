//! Arguments of look-ups: one id or many.

use burn_gnn_graph::{HomoId, TypedId};
use rayon::prelude::*;

use crate::error::DistError;

/// Lookups of at least this many ids run in parallel.
const PARALLEL_FROM: usize = 1 << 14;

/// Argument of the methods of a [`PartitionBook`](crate::PartitionBook). One id returns one result. A slice, an array
/// or a vector (by reference) returns a vector of results in the same order, or the error of the first invalid id.
pub trait Lookup<I> {
    /// One result, or a vector of results.
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
            // Repeated sequentially, to return the first error.
        }
        ids.iter().map(|&i| f(i)).collect()
    }
}
