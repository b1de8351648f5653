//! The gradient of a tensor of which the first rows were taken besides, on slices.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use bytemuck::Zeroable;
use rayon::prelude::*;

use crate::cpu::{Host, by_dtype};
use crate::kernel::{Elem, room};

/// Entries that are worth a trip through the thread pool.
const RUN: usize = 1 << 15;

fn add_to<T: Elem>(all: &mut [T], first: &[T]) {
    let one = |(all, first): (&mut [T], &[T])| {
        for (a, f) in all.iter_mut().zip(first) {
            *a = T::of(a.acc() + f.acc());
        }
    };
    all[..first.len()].par_chunks_mut(RUN).zip(first.par_chunks(RUN)).for_each(one);
}

/// `all` with `first` added to its first rows, in place if nobody else holds it.
pub(super) fn add<B: Host>(mut all: FloatTensor<B>, first: &FloatTensor<B>) -> FloatTensor<B> {
    by_dtype!(all.dtype(), T => {
        let first = B::floats::<T>(first);
        if let Some(own) = B::floats_mut::<T>(&mut all) {
            add_to(own, &first);
            return all;
        }
        let mut copy = B::floats::<T>(&all).into_owned();
        add_to(&mut copy, &first);
        B::from_floats(copy, all.shape())
    })
}

/// `first` with rows of zeros behind it, up to `shape`.
pub(super) fn extend<B: Host>(first: &FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    by_dtype!(first.dtype(), T => {
        let first = B::floats::<T>(first);
        let len = shape.num_elements();
        let mut out = room::<T>(len);
        out.extend_from_slice(&first);
        out.resize(len, T::zeroed());
        B::from_floats(out, shape)
    })
}
