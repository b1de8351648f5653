//! Calls the CPU kernels of products with weights.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;
#[cfg(feature = "f16")]
use burn_gnn_cpu::HalfProducts;
use burn_gnn_cpu::WideProducts;
use burn_gnn_cpu::dense::matmul::Transposed;

use crate::dense::matmul::call::{Product, ProductOnto};
use crate::operator::cpu::{Float, Host};
use crate::operator::{Operator, Tensors};

fn dims<B: Host>(x: &FloatTensor<B>) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}

/// Rows and columns of a product.
fn out_dims<B: Host>(l: &FloatTensor<B>, r: &FloatTensor<B>, transposed: Transposed) -> [usize; 2] {
    [dims::<B>(l)[usize::from(transposed.left)], dims::<B>(r)[usize::from(!transposed.right)]]
}

fn fresh<B: Host, A: Float + WideProducts>(
    l: &FloatTensor<B>,
    r: &FloatTensor<B>,
    transposed: Transposed,
) -> FloatTensor<B> {
    let out = A::product(
        (&*B::floats::<A>(l), dims::<B>(l)),
        (&*B::floats::<A>(r), dims::<B>(r)),
        transposed,
    );
    B::from_floats(out, out_dims::<B>(l, r, transposed).into())
}

fn onto<B: Host, A: Float + WideProducts>(
    x: &FloatTensor<B>,
    w: &FloatTensor<B>,
    mut sum: FloatTensor<B>,
) -> FloatTensor<B> {
    let shape = out_dims::<B>(x, w, Transposed::default());
    let (x, w) = ((&*B::floats::<A>(x), dims::<B>(x)), (&*B::floats::<A>(w), dims::<B>(w)));
    if let Some(own) = B::floats_mut::<A>(&mut sum) {
        A::add_product(x, w, own);
        return sum;
    }
    let mut copy = B::floats::<A>(&sum).into_owned();
    A::add_product(x, w, &mut copy);
    B::from_floats(copy, shape.into())
}

/// `[onto +] l · r` of 16-bit floats, of which at most one operand is transposed.
#[cfg(feature = "f16")]
fn halves<B: Host, T: Float + HalfProducts>(
    l: &FloatTensor<B>,
    r: &FloatTensor<B>,
    transposed: Transposed,
    onto: Option<&FloatTensor<B>>,
) -> FloatTensor<B> {
    let onto = onto.map(|s| B::floats::<T>(s));
    let (left, right) = ((&*B::floats::<T>(l), dims::<B>(l)), (&*B::floats::<T>(r), dims::<B>(r)));
    B::from_floats(
        T::half_product(left, right, transposed, onto.as_deref()),
        out_dims::<B>(l, r, transposed).into(),
    )
}

/// Element type of the product, if a kernel of this crate computes it. The backend multiplies views that would have to be
/// copied first, such as a transposed matrix, and 16-bit floats with both operands transposed.
fn here<B: Host>(operands: [&FloatTensor<B>; 2], transpose: Transposed) -> Option<DType> {
    let dtype = operands[0].dtype();
    let known = match dtype {
        DType::F32 | DType::F64 => true,
        DType::F16 | DType::BF16 => !(transpose.left && transpose.right),
        _ => false,
    };
    (known && operands.into_iter().all(B::is_row_major)).then_some(dtype)
}

pub(super) fn product<B: Host>(op: Product, inputs: Tensors<B>) -> Tensors<B> {
    let transpose = op.0;
    let [l, r] = &inputs.floats[..] else { unreachable!("a product has two operands") };
    Tensors::one(match here::<B>([l, r], transpose) {
        Some(DType::F32) => fresh::<B, f32>(l, r, transpose),
        Some(DType::F64) => fresh::<B, f64>(l, r, transpose),
        #[cfg(feature = "f16")]
        Some(DType::F16) => halves::<B, half::f16>(l, r, transpose, None),
        #[cfg(feature = "f16")]
        Some(DType::BF16) => halves::<B, half::bf16>(l, r, transpose, None),
        _ => return op.reference(inputs),
    })
}

pub(super) fn product_onto<B: Host>(inputs: Tensors<B>) -> Tensors<B> {
    let [x, w, sum] = inputs.take();
    let transpose = Transposed::default();
    Tensors::one(match here::<B>([&x, &w], transpose) {
        Some(DType::F32) => onto::<B, f32>(&x, &w, sum),
        Some(DType::F64) => onto::<B, f64>(&x, &w, sum),
        #[cfg(feature = "f16")]
        Some(DType::F16) => halves::<B, half::f16>(&x, &w, transpose, Some(&sum)),
        #[cfg(feature = "f16")]
        Some(DType::BF16) => halves::<B, half::bf16>(&x, &w, transpose, Some(&sum)),
        _ => return ProductOnto.reference(vec![x, w, sum].into()),
    })
}
