//! The backend extension of a tensor and its first rows.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[cfg(feature = "flex")]
#[allow(unused_imports)]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(unused_imports)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
#[allow(unused_imports)]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::{FloatDType, Shape, Slice};

use crate::shelf::Shelf;

/// One of the two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRows {
    /// The tensor.
    All,
    /// Its first rows.
    First,
}

/// How many rows, and the gradients of both results until they are there.
#[derive(Clone, Debug)]
pub struct FirstRowsPlan {
    rows: usize,
    grads: Shelf,
}

impl FirstRowsPlan {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, grads: Shelf::default() }
    }
}

/// Gradients of [`FirstRows::All`] and [`FirstRows::First`].
type Laid<B> = [Option<FloatTensor<B>>; 2];

/// A tensor and its first rows.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait FirstRowsBackend: Backend {
    /// `x`, whose results [`first_rows_take`](Self::first_rows_take) takes with the same plan.
    #[fusion(default)]
    fn first_rows_of(x: FloatTensor<Self>, _plan: FirstRowsPlan) -> FloatTensor<Self> {
        x
    }
    /// One of the results.
    #[fusion(default)]
    fn first_rows_take(whole: FloatTensor<Self>, plan: FirstRowsPlan, which: FirstRows) -> FloatTensor<Self> {
        match which {
            FirstRows::All => whole,
            FirstRows::First => Self::float_slice(whole, &[Slice::from(0..plan.rows)]),
        }
    }
    /// Lays the gradient of a result down; one entry comes back, which says only that there is something to
    /// [`first_rows_join`](Self::first_rows_join).
    #[fusion(default)]
    fn first_rows_put(grad: FloatTensor<Self>, plan: FirstRowsPlan, which: FirstRows) -> FloatTensor<Self> {
        let due = Self::float_zeros(Shape::from([1]), &grad.device(), FloatDType::from(grad.dtype()));
        plan.grads.with(|| -> Laid<Self> { [None, None] }, |laid| laid[which as usize] = Some(grad));
        due
    }
    /// The gradient of the whole, `shape`.
    #[fusion(default)]
    fn first_rows_join(due: FloatTensor<Self>, plan: FirstRowsPlan, shape: Shape) -> FloatTensor<Self> {
        let zeros = |shape: Shape| Self::float_zeros(shape, &due.device(), FloatDType::from(due.dtype()));
        match plan.grads.take::<Laid<Self>>().unwrap_or([None, None]) {
            [Some(all), Some(first)] => Self::first_rows_add(all, first),
            [Some(all), None] => all,
            [None, Some(first)] => Self::first_rows_extend(first, shape),
            [None, None] => zeros(shape),
        }
    }
    /// `all` with `first` added to its first rows.
    #[fusion(default)]
    fn first_rows_add(all: FloatTensor<Self>, first: FloatTensor<Self>) -> FloatTensor<Self> {
        let place = [Slice::from(0..first.shape()[0])];
        let sum = Self::float_add(Self::float_slice(all.clone(), &place), first);
        Self::float_slice_assign(all, &place, sum)
    }
    /// `first` with rows of zeros behind it, up to `shape`.
    #[fusion(default)]
    fn first_rows_extend(first: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self> {
        let mut rest = shape;
        rest[0] -= first.shape()[0];
        let rest = Self::float_zeros(rest, &first.device(), FloatDType::from(first.dtype()));
        Self::float_cat(vec![first, rest], 0)
    }
}

#[cfg(any(feature = "flex", feature = "ndarray"))]
macro_rules! on_the_host {
    () => {
        fn first_rows_add(all: FloatTensor<Self>, first: FloatTensor<Self>) -> FloatTensor<Self> {
            super::cpu::add::<Self>(all, &first)
        }
        fn first_rows_extend(first: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self> {
            super::cpu::extend::<Self>(&first, shape)
        }
    };
}

#[cfg(feature = "flex")]
impl FirstRowsBackend for Flex {
    on_the_host!();
}
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
impl FirstRowsBackend for NdArray {
    on_the_host!();
}
#[cfg(feature = "cube")]
impl FirstRowsBackend for burn_cubecl::CubeBackend {}
