//! Matrix products by the `gemm` crate, with specialised loops for gradients of weights.
//!
//! The result is written to uninitialised memory, or added in place to a matrix without other references. So there is no
//! pass that zeroes the result, and no pass that adds two matrices.

#[cfg(feature = "f16")]
mod half_precision;
mod narrow_grad;
mod product;
mod weight_grad;

use product::Product;
pub use product::Transposed;

#[cfg(feature = "f16")]
use crate::number::Elem;
use crate::number::Real;

/// A row-major operand, and its numbers of rows and columns as stored.
pub type Matrix<'a, T> = (&'a [T], [usize; 2]);

/// `l · r` of f32 or f64, `[m, n]`; no axis has length 0.
///
/// # Panics
/// If sizes do not fit each other or the slices.
pub(crate) fn product<A: Real>(
    (l, l_size): Matrix<'_, A>,
    (r, r_size): Matrix<'_, A>,
    transposed: Transposed,
) -> Vec<A> {
    let job = Product::new(l_size, r_size, transposed);
    match transposed {
        Transposed { left: true, right: false } if narrow_grad::suits(job.n) => {
            narrow_grad::gradient(l, r, [job.k, job.m, job.n])
        }
        Transposed { left: true, right: false }
            if let Some(size) = weight_grad::size([job.k, job.m, job.n]) =>
        {
            weight_grad::gradient(l, r, [job.k, job.m, job.n], size)
        }
        _ => job.fresh(l, r),
    }
}

/// `sum += x · w` of f32 or f64; no axis has length 0.
///
/// # Panics
/// If sizes do not fit each other or the slices.
pub(crate) fn add_product<A: Real>(
    (x, x_size): Matrix<'_, A>,
    (w, w_size): Matrix<'_, A>,
    sum: &mut [A],
) {
    Product::new(x_size, w_size, Transposed::default()).onto(x, w, sum);
}

/// `l · r`, onto `sum` where there is one, of 16-bit floats, calculated in f32; not both operands are transposed, and
/// no axis has length 0.
///
/// # Panics
/// If sizes do not fit each other or the slices.
#[cfg(feature = "f16")]
pub(crate) fn product_of_halves<T: Elem<Acc = f32>>(
    (l, l_size): Matrix<'_, T>,
    (r, r_size): Matrix<'_, T>,
    transposed: Transposed,
    sum: Option<&[T]>,
) -> Vec<T> {
    let job = Product::new(l_size, r_size, transposed);
    if transposed.left {
        half_precision::gradient(l, r, [job.k, job.m, job.n])
    } else {
        half_precision::rows(l, r, transposed.right, [job.m, job.k, job.n], sum)
    }
}
