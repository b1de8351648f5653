//! Products with weights on the tensors of CPU backends, by the `gemm` crate.
//!
//! The result is written into memory that was never touched, or added to a matrix that nobody else holds: no pass
//! that fills it with zeros, none that adds two matrices.
#![expect(unsafe_code, reason = "products of the `gemm` crate, into memory that is written once")]

use std::mem::MaybeUninit;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;
use half::{bf16, f16};

use super::operator::{Product, ProductOnto};
use super::{halves, narrow, runs};
use crate::cpu::Host;
use crate::kernel::{Elem, room};
use crate::operator::{Operator, Tensors};
use crate::typed::widen::Real;

/// Multiplications from which a second thread pays; Flex has the same bound.
const PARALLEL_FROM: usize = 192 * 192 * 192;

/// Sizes of a product `[m, k] · [k, n]` and where its operands' entries lie.
pub(super) struct Job {
    m: usize,
    n: usize,
    k: usize,
    /// Entries between rows and between columns, of the left and of the right operand.
    strides: [[usize; 2]; 2],
}

impl Job {
    /// For operands that are stored in row-major order.
    pub(super) fn new(l: [usize; 2], r: [usize; 2], transpose: Product) -> Self {
        let side = |[rows, columns]: [usize; 2], transposed: bool| {
            if transposed { ([columns, rows], [1, columns]) } else { ([rows, columns], [columns, 1]) }
        };
        let (([m, k], left), ([inner, n], right)) = (side(l, transpose.left), side(r, transpose.right));
        assert_eq!(k, inner, "sizes were checked before");
        Self { m, n, k, strides: [left, right] }
    }

    /// `out = l · r`, or `out += l · r` with `add`, which reads `out`.
    fn run<A: Real>(&self, l: &[A], r: &[A], out: &mut [MaybeUninit<A>], add: bool) {
        let work = self.m.saturating_mul(self.n).saturating_mul(self.k);
        self.run_on(if work >= PARALLEL_FROM { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None }, l, r, out, add);
    }

    /// [`run`](Self::run) on this thread: onto `out`, or, if `out` has no entries yet, as its entries.
    pub(super) fn alone<A: Real>(&self, l: &[A], r: &[A], out: &mut Vec<A>) {
        let (add, len) = (!out.is_empty(), self.m * self.n);
        if add {
            self.run_on(gemm::Parallelism::None, l, r, uninit(out), true);
        } else {
            out.reserve_exact(len);
            self.run_on(gemm::Parallelism::None, l, r, &mut out.spare_capacity_mut()[..len], false);
            // SAFETY: there is room for `len` entries, and a product writes every one of its result.
            unsafe { out.set_len(len) };
        }
    }

    fn run_on<A: Real>(&self, threads: gemm::Parallelism, l: &[A], r: &[A], out: &mut [MaybeUninit<A>], add: bool) {
        let &Self { m, n, k, strides: [left, right] } = self;
        assert!(m > 0 && n > 0 && k > 0, "an empty product");
        assert!(l.len() == m * k && r.len() == k * n && out.len() == m * n, "operands of other sizes");
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

/// Initialised entries as ones that may not be: for [`Job::run_on`], which writes only values.
fn uninit<A>(out: &mut [A]) -> &mut [MaybeUninit<A>] {
    // SAFETY: the layout is the same, and the one caller, a product, stores no uninitialised entry.
    unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<A>]) }
}

fn dims<B: Host>(x: &FloatTensor<B>) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}

fn fresh<B: Host, A: Real>(l: &FloatTensor<B>, r: &FloatTensor<B>, transpose: Product) -> FloatTensor<B> {
    let job = Job::new(dims::<B>(l), dims::<B>(r), transpose);
    let (l, r) = (B::floats::<A>(l), B::floats::<A>(r));
    let out = match transpose {
        Product { left: true, right: false } if narrow::suits(job.n) => narrow::gradient(&l, &r, [job.k, job.m, job.n]),
        Product { left: true, right: false } if let Some(size) = runs::size([job.k, job.m, job.n]) => {
            runs::gradient(&l, &r, [job.k, job.m, job.n], size)
        }
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
    let job = Job::new(dims::<B>(x), dims::<B>(w), Product::default());
    let (x, w) = (B::floats::<A>(x), B::floats::<A>(w));
    let add = |out: &mut [A]| job.run(&x, &w, uninit(out), true);
    if let Some(own) = B::floats_mut::<A>(&mut sum) {
        add(own);
        return sum;
    }
    let mut copy = B::floats::<A>(&sum).into_owned();
    add(&mut copy);
    B::from_floats(copy, [job.m, job.n].into())
}

/// `[onto +] l · r` of 16-bit floats; not both operands are transposed.
fn narrow_floats<B: Host, T: Elem<Acc = f32>>(
    l: &FloatTensor<B>,
    r: &FloatTensor<B>,
    transpose: Product,
    onto: Option<&FloatTensor<B>>,
) -> FloatTensor<B> {
    let Job { m, n, k, .. } = Job::new(dims::<B>(l), dims::<B>(r), transpose);
    let (l, r, onto) = (B::floats::<T>(l), B::floats::<T>(r), onto.map(|s| B::floats::<T>(s)));
    let out = if transpose.left {
        halves::gradient(&l, &r, [k, m, n])
    } else {
        halves::rows(&l, &r, transpose.right, [m, k, n], onto.as_deref())
    };
    B::from_floats(out, [m, n].into())
}

/// The type of products that run here: views that would be copied first, such as a transposed matrix, go the way of the
/// backend, as do 16-bit floats that are transposed on both sides.
fn here<B: Host>(operands: [&FloatTensor<B>; 2], transpose: Product) -> Option<DType> {
    let dtype = operands[0].dtype();
    let known = match dtype {
        DType::F32 | DType::F64 => true,
        DType::F16 | DType::BF16 => !(transpose.left && transpose.right),
        _ => false,
    };
    (known && operands.into_iter().all(B::is_row_major)).then_some(dtype)
}

pub(super) fn product<B: Host>(transpose: Product, inputs: Tensors<B>) -> Tensors<B> {
    let [l, r] = &inputs.floats[..] else { unreachable!("a product has two operands") };
    Tensors::one(match here::<B>([l, r], transpose) {
        Some(DType::F32) => fresh::<B, f32>(l, r, transpose),
        Some(DType::F64) => fresh::<B, f64>(l, r, transpose),
        Some(DType::F16) => narrow_floats::<B, f16>(l, r, transpose, None),
        Some(DType::BF16) => narrow_floats::<B, bf16>(l, r, transpose, None),
        _ => return transpose.reference(inputs),
    })
}

pub(super) fn product_onto<B: Host>(inputs: Tensors<B>) -> Tensors<B> {
    let [x, w, sum] = inputs.take();
    let transpose = Product::default();
    Tensors::one(match here::<B>([&x, &w], transpose) {
        Some(DType::F32) => onto::<B, f32>(&x, &w, sum),
        Some(DType::F64) => onto::<B, f64>(&x, &w, sum),
        Some(DType::F16) => narrow_floats::<B, f16>(&x, &w, transpose, Some(&sum)),
        Some(DType::BF16) => narrow_floats::<B, bf16>(&x, &w, transpose, Some(&sum)),
        _ => return ProductOnto.reference(vec![x, w, sum].into()),
    })
}
