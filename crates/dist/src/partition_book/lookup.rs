//! Looks up one id or many.

use burn_gnn_graph::{HomoId, TypedId};
use rayon::prelude::*;

use crate::DistError;

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

impl<I: Copy + Sync> Lookup<I> for &[I] {
    type Answer<T> = Vec<T>;
    fn answer<T: Send>(
        self,
        f: impl Fn(I) -> Result<T, DistError> + Sync,
    ) -> Result<Vec<T>, DistError> {
        if self.len() >= PARALLEL_FROM {
            let all: Result<Vec<T>, DistError> = self.par_iter().map(|&i| f(i)).collect();
            if all.is_ok() {
                return all;
            }
            // Once more, for the first error and not just any.
        }
        self.iter().map(|&i| f(i)).collect()
    }
}
impl<I: Copy + Sync> Lookup<I> for &Vec<I> {
    type Answer<T> = Vec<T>;
    fn answer<T: Send>(
        self,
        f: impl Fn(I) -> Result<T, DistError> + Sync,
    ) -> Result<Vec<T>, DistError> {
        self.as_slice().answer(f)
    }
}
impl<I: Copy + Sync, const N: usize> Lookup<I> for &[I; N] {
    type Answer<T> = Vec<T>;
    fn answer<T: Send>(
        self,
        f: impl Fn(I) -> Result<T, DistError> + Sync,
    ) -> Result<Vec<T>, DistError> {
        self.as_slice().answer(f)
    }
}
