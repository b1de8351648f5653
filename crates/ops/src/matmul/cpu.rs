//! Products with weights on the tensors of CPU backends, by the `gemm` crate.
//!
//! The result is written into memory that was never touched, or added to a matrix that nobody else holds: no pass
//! that fills it with zeros, none that adds two matrices.

use std::mem::MaybeUninit;

#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::backend::{MatmulBackend, Turned, added, by_backend};
use super::narrow;
use crate::cpu::Host;
use crate::kernel::room;
use crate::typed::real::Real;

/// Multiplications from which a second thread pays; Flex has the same bound.
const PARALLEL_FROM: usize = 192 * 192 * 192;

/// Sizes of a product `[m, k] · [k, n]` and where its operands' entries lie.
struct Job {
    m: usize,
    n: usize,
    k: usize,
    /// Entries between rows and between columns, of the left and of the right operand.
    strides: [[usize; 2]; 2],
}

impl Job {
    /// For operands that are stored in row-major order.
    fn new(l: [usize; 2], r: [usize; 2], turned: Turned) -> Self {
        let side = |[rows, columns]: [usize; 2], turned: bool| {
            if turned { ([columns, rows], [1, columns]) } else { ([rows, columns], [columns, 1]) }
        };
        let (([m, k], left), ([inner, n], right)) = (side(l, turned.left), side(r, turned.right));
        assert_eq!(k, inner, "sizes were checked before");
        Self { m, n, k, strides: [left, right] }
    }

    /// `out = l · r`, or `out += l · r` with `add`, which reads `out`.
    fn run<A: Real>(&self, l: &[A], r: &[A], out: &mut [MaybeUninit<A>], add: bool) {
        let &Self { m, n, k, strides: [left, right] } = self;
        assert!(m > 0 && n > 0 && k > 0, "an empty product");
        assert!(l.len() == m * k && r.len() == k * n && out.len() == m * n, "operands of other sizes");
        let work = m.saturating_mul(n).saturating_mul(k);
        let threads = if work >= PARALLEL_FROM { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None };
        let signed = |s: usize| s as isize;
        // SAFETY: operands are as long as their sizes say (asserted) and strides are those of row-major storage, read
        // along either axis, so the last entry named lies inside; `m`, `n` and `k` are at least 1; `out` is borrowed
        // alone, and is only read under `add`, where the caller's entries are initialised.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                out.as_mut_ptr().cast::<A>(),
                1,
                signed(n),
                add,
                l.as_ptr(),
                signed(left[1]),
                signed(left[0]),
                r.as_ptr(),
                signed(right[1]),
                signed(right[0]),
                A::ONE,
                A::ONE,
                false,
                false,
                false,
                threads,
            );
        }
    }
}

fn dims<B: Host>(x: &FloatTensor<B>) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}

fn fresh<B: Host, A: Real>(l: &FloatTensor<B>, r: &FloatTensor<B>, turned: Turned) -> FloatTensor<B> {
    let job = Job::new(dims::<B>(l), dims::<B>(r), turned);
    let (l, r) = (B::floats::<A>(l), B::floats::<A>(r));
    let out = match turned {
        Turned { left: true, right: false } if narrow::suits(job.n) => narrow::gradient(&l, &r, [job.k, job.m, job.n]),
        _ => {
            let len = job.m * job.n;
            let mut out = room::<A>(len);
            job.run(&l, &r, &mut out.spare_capacity_mut()[..len], false);
            // SAFETY: there is room for `len` entries, and a product writes every one of its result.
            unsafe { out.set_len(len) };
            out
        }
    };
    B::from_floats(out, [job.m, job.n].into())
}

fn onto<B: Host, A: Real>(x: &FloatTensor<B>, w: &FloatTensor<B>, mut sum: FloatTensor<B>) -> FloatTensor<B> {
    let job = Job::new(dims::<B>(x), dims::<B>(w), Turned::default());
    let (x, w) = (B::floats::<A>(x), B::floats::<A>(w));
    let add = |out: &mut [A]| {
        // SAFETY: initialised entries may be seen as ones that may not be; `run` writes only values.
        let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<A>]) };
        job.run(&x, &w, out, true);
    };
    if let Some(own) = B::floats_mut::<A>(&mut sum) {
        add(own);
        return sum;
    }
    let mut copy = B::floats::<A>(&sum).into_owned();
    add(&mut copy);
    B::from_floats(copy, [job.m, job.n].into())
}

/// Whether products of these operands run here: 16-bit floats and views that would be copied first, such as a
/// transposed matrix, go the way of the backend.
fn here<B: Host>(operands: [&FloatTensor<B>; 2]) -> Option<DType> {
    let dtype = operands[0].dtype();
    (matches!(dtype, DType::F32 | DType::F64) && operands.into_iter().all(B::is_row_major)).then_some(dtype)
}

macro_rules! cpu_matmul {
    ($backend:ty) => {
        impl MatmulBackend for $backend {
            fn matmul_turned(l: FloatTensor<Self>, r: FloatTensor<Self>, turned: Turned) -> FloatTensor<Self> {
                match here::<Self>([&l, &r]) {
                    Some(DType::F32) => fresh::<Self, f32>(&l, &r, turned),
                    Some(DType::F64) => fresh::<Self, f64>(&l, &r, turned),
                    _ => by_backend::<Self>(l, r, turned),
                }
            }
            fn matmul_onto(x: FloatTensor<Self>, w: FloatTensor<Self>, sum: FloatTensor<Self>) -> FloatTensor<Self> {
                match here::<Self>([&x, &w]) {
                    Some(DType::F32) => onto::<Self, f32>(&x, &w, sum),
                    Some(DType::F64) => onto::<Self, f64>(&x, &w, sum),
                    _ => added::<Self>(x, w, sum),
                }
            }
        }
    };
}

#[cfg(feature = "flex")]
cpu_matmul!(Flex);
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
mod ndarray {
    use super::*;
    cpu_matmul!(NdArray);
}
