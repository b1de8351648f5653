//! The entry points of this crate: kernels of each element type, compiled here.
//!
//! The kernels themselves are generic. If callers instantiated them, every crate that calls an operator would compile
//! them again, at its own optimisation level: `copy_u_sum` took three times as long in a program at `opt-level = "s"`.
//! Methods of an impl for a concrete type are compiled once, with this crate.

use burn_gnn_plan::{
    AdamFactors, AggregatePlan, AttentionPlan, CrossEntropyPlan, DropoutPlan, EpiloguePlan,
    GsddmmPlan, GspmmPlan, LogSumExpPlan, RelationalPlan, Side, SoftmaxPlan, TypedPlan,
};

use crate::dense::matmul::{Matrix, Transposed};
use crate::dense::{adam, cross_entropy, dropout, epilogue, matmul};
use crate::gspmm::{aggregate, backward as gspmm_grad, forward as gspmm};
use crate::number::{Elem, Real};
use crate::{attention, gsddmm, logsumexp, relational, softmax, split_rows, typed};

/// Declares a trait with the signatures of functions, and implements it for element types.
macro_rules! kernels {
    (
        $(#[$doc:meta])*
        trait $trait:ident<$t:ident: $bound:path> for $($(#[$cfg:meta])? $elem:ty),*;
        $functions:tt
    ) => {
        kernels!(@trait [$(#[$doc])*] $trait $t [$bound] $functions);
        $(kernels!(@impl [$(#[$cfg])?] $trait $t [$elem] $functions);)*
    };
    (@trait [$(#[$trait_doc:meta])*] $trait:ident $t:ident [$bound:path] {
        $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? = $kernel:expr;)*
    }) => {
        $(#[$trait_doc])*
        pub trait $trait<$t: $bound = Self>: $bound {
            $($(#[$doc])* fn $name($($arg: $ty),*) $(-> $out)?;)*
        }
    };
    (@impl [$(#[$cfg:meta])?] $trait:ident $t:ident [$elem:ty] {
        $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? = $kernel:expr;)*
    }) => {
        $(#[$cfg])?
        const _: () = {
            type $t = $elem;
            impl $trait for $t {
                $(fn $name($($arg: $ty),*) $(-> $out)? {
                    $kernel($($arg),*)
                })*
            }
        };
    };
}

kernels! {
    /// The kernels of an element type. Shapes are those of the plan, which is validated.
    trait Kernels<T: Elem> for f32, f64, #[cfg(feature = "f16")] half::f16, #[cfg(feature = "f16")] half::bf16;
{
    /// GSpMM. An operand that the operator does not read may be empty.
    fn gspmm(plan: &GspmmPlan, lhs: &[T], rhs: &[T]) -> Vec<T> = gspmm::forward;
    /// GSpMM with max or min, and its argmax for the gradient: edge ids, or bits if
    /// [`bit_words`](crate::gspmm::bit_words) returns a number.
    fn gspmm_argmax(plan: &GspmmPlan, lhs: &[T], rhs: &[T]) -> (Vec<T>, Vec<i32>) = gspmm::forward_argmax;
    /// The gradient of one operand of GSpMM.
    fn gspmm_gradient(plan: &GspmmPlan, side: Side, inputs: gspmm_grad::GradInputs<'_, T>) -> Vec<T> =
        gspmm_grad::gradient;
    /// The gradients of both operands of GSpMM in one pass over the edges; `None` if there is no kernel for this plan.
    fn gspmm_gradients(plan: &GspmmPlan, inputs: gspmm_grad::GradInputs<'_, T>) -> Option<(Vec<T>, Vec<T>)> =
        gspmm_grad::gradients;
    /// A GSpMM with weights, degree scales, bias and activation.
    fn aggregate(plan: &AggregatePlan, x: &[T], weight: &[T], bias: &[T]) -> Vec<T> = aggregate::forward;
    /// The gradients of `x` and of the bias of [`aggregate`](Self::aggregate), where they are wanted.
    fn aggregate_gradient(
        plan: &AggregatePlan,
        inputs: aggregate::GradInputs<'_, T>,
        wants: [bool; 2],
    ) -> [Option<Vec<T>>; 2] = aggregate::gradient;
    /// The gradient of the weights of [`aggregate`](Self::aggregate).
    fn aggregate_gradient_of_weight(plan: &AggregatePlan, inputs: aggregate::GradInputs<'_, T>) -> Vec<T> =
        aggregate::gradient_of_weight;

    /// GSDDMM.
    fn gsddmm(plan: &GsddmmPlan, lhs: &[T], rhs: &[T]) -> Vec<T> = gsddmm::forward;
    /// A copy of node rows to edges.
    fn gsddmm_copy(plan: &GsddmmPlan, side: Side, x: &[T]) -> Vec<T> = gsddmm::copy;
    /// The gradient of one operand of GSDDMM.
    fn gsddmm_gradient(plan: &GsddmmPlan, side: Side, inputs: gsddmm::GradInputs<'_, T>) -> Vec<T> =
        gsddmm::gradient;

    /// A softmax over the edges of each node, or over segments.
    fn softmax(plan: &SoftmaxPlan, x: &[T]) -> Vec<T> = softmax::forward;
    /// The gradient of the logits, `y · (g - Σ y · g)`.
    fn softmax_gradient(plan: &SoftmaxPlan, y: &[T], grad: &[T]) -> Vec<T> = softmax::gradient;
    /// `ln Σ exp(x)` of each segment.
    fn logsumexp(plan: &LogSumExpPlan, x: &[T]) -> Vec<T> = logsumexp::forward;
    /// The gradient of [`logsumexp`](Self::logsumexp), `grad · softmax(x)`.
    fn logsumexp_gradient(plan: &LogSumExpPlan, x: &[T], grad: &[T]) -> Vec<T> = logsumexp::gradient;

    /// Attention over in-edges, and the softmax statistics for its gradient.
    fn attention(
        plan: &AttentionPlan,
        z: &[T],
        first: &[T],
        second: Option<&[T]>,
    ) -> (Vec<T>, Vec<<T as Elem>::Acc>) = attention::forward;
    /// The gradients of `z`, `first` and `second` of [`attention`](Self::attention), where they are wanted; others are
    /// empty.
    fn attention_gradient(
        plan: &AttentionPlan,
        inputs: attention::GradInputs<'_, T>,
        wants: [bool; 3],
    ) -> [Vec<T>; 3] = attention::gradient;

    /// Products of rows with the matrix of their type.
    fn typed_product(plan: &TypedPlan, a: &[T], b: &[T], transposed: bool) -> Vec<T> = typed::multiply;
    /// The gradient of the matrices of [`typed_product`](Self::typed_product).
    fn typed_product_gradient(plan: &TypedPlan, grad: &[T], a: &[T]) -> Vec<T> = typed::gradient_of_matrices;
    /// `Σ norm · W_r · x` over in-edges of all relations.
    fn relational(plan: &RelationalPlan, x: &[T], weight: &[T], norm: Option<&[T]>) -> Vec<T> =
        relational::forward;
    /// The gradients of `x` and of the weights of [`relational`](Self::relational).
    fn relational_gradient(
        plan: &RelationalPlan,
        inputs: relational::GradInputs<'_, T>,
    ) -> [Option<Vec<T>>; 2] = relational::gradient;
    /// The gradient of the factors of edges of [`relational`](Self::relational).
    fn relational_gradient_of_norm(plan: &RelationalPlan, grad: &[T], x: &[T], weight: &[T]) -> Vec<T> =
        relational::gradient_of_norm;

    /// The cross entropy of the rows of a plan, and the statistics for its gradient.
    fn cross_entropy(x: &[T], plan: &CrossEntropyPlan) -> (T, Vec<<T as Elem>::Acc>) = cross_entropy::forward;
    /// The gradient of the logits of [`cross_entropy`](Self::cross_entropy).
    fn cross_entropy_gradient(grad: T, stats: &[<T as Elem>::Acc], x: &[T], plan: &CrossEntropyPlan) -> Vec<T> =
        cross_entropy::gradient;
    /// Dropout by the keys of rows.
    fn dropout_rows(plan: &DropoutPlan, x: &[T], width: usize) -> Vec<T> = dropout::dropout_rows;
    /// A step of Adam on parameters `p` and moments `m` and `v`, in place.
    fn adam(factors: AdamFactors, p: &mut [T], g: &[T], m: &mut [T], v: &mut [T]) = adam::update;
    /// `dropout(activation(x + bias))`; with `open`, also a bit for every entry that ReLU and dropout pass.
    fn epilogue(x: &[T], bias: Option<&[T]>, plan: &EpiloguePlan, open: bool) -> (Vec<T>, Vec<i32>) =
        epilogue::forward;
    /// [`epilogue`](Self::epilogue), which overwrites `x`; returns the bits.
    fn epilogue_in_place(x: &mut [T], bias: Option<&[T]>, plan: &EpiloguePlan, open: bool) -> Vec<i32> =
        epilogue::forward_own;
    /// The gradients of `x` and of the bias of [`epilogue`](Self::epilogue).
    fn epilogue_gradient(
        grad: &[T],
        kept: epilogue::Read<'_, T>,
        plan: &EpiloguePlan,
        bias: bool,
    ) -> (Vec<T>, Vec<T>) = epilogue::gradient;
    /// [`epilogue_gradient`](Self::epilogue_gradient), which overwrites `grad`; returns the gradient of the bias.
    fn epilogue_gradient_in_place(
        grad: &mut [T],
        kept: epilogue::Read<'_, T>,
        plan: &EpiloguePlan,
        bias: bool,
    ) -> Vec<T> = epilogue::gradient_own;
    /// Adds `first` to the first entries of `all`.
    fn add_to(all: &mut [T], first: &[T]) = split_rows::add_to;
    /// `first`, padded with zeros to `len` entries.
    fn extend(first: &[T], len: usize) -> Vec<T> = split_rows::extend;
}
}

kernels! {
    /// Matrix products of f32 or f64. No axis has length 0.
    ///
    /// # Panics
    /// If sizes do not fit each other or the slices.
    trait WideProducts<T: Real> for f32, f64;
{
    /// `l · r`, `[m, n]`.
    fn product(l: Matrix<'_, T>, r: Matrix<'_, T>, transposed: Transposed) -> Vec<T> = matmul::product;
    /// `sum += x · w`.
    fn add_product(x: Matrix<'_, T>, w: Matrix<'_, T>, sum: &mut [T]) = matmul::add_product;
}
}

kernels! {
    /// Matrix products of f16 or bf16, computed in f32; no implementations without the feature `f16`. No axis has length 0.
    ///
    /// # Panics
    /// If sizes do not fit each other or the slices.
    trait HalfProducts<T: Elem> for #[cfg(feature = "f16")] half::f16, #[cfg(feature = "f16")] half::bf16;
{
    /// `l · r`, plus `sum` if it is given, `[m, n]`; at most one operand is transposed.
    fn half_product(
        l: Matrix<'_, T>,
        r: Matrix<'_, T>,
        transposed: Transposed,
        sum: Option<&[T]>,
    ) -> Vec<T> = matmul::product_of_halves;
}
}
