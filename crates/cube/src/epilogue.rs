//! Computes bias, activation and dropout in one pass, and their gradients.
//!
//! ```text
//! out = drop(act(x + bias))                              a thread for four columns of a row, which share their draws
//! h   = drop(grad) · act'(act(x + bias));  d x = h, d bias = Σ h
//! ```
//! Of a relu backward reads which entries it and dropout let through, four of them in a number; of other activations
//! the result. Masks of dropout are drawn again.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::EpiloguePlan;
use cubecl::prelude::*;

use crate::activation::{Kind, activate, kind, pulled};
use crate::check::Call;
use crate::column_sums::column_sums;
use crate::device::dummy;
use crate::dropout::Dropout;
use crate::launch::{address, arg, empty, grid, wide, zeros};
use crate::philox::{Draws, keeps, words};

/// What the gradient of an epilogue reads.
#[derive(Clone, Debug)]
pub enum EpilogueKept {
    /// Nothing: no activation.
    Nothing,
    /// The result.
    Output(CubeTensor),
    /// What [`epilogue`] returned beside it.
    Open(CubeTensor),
}

/// What is known of an epilogue when a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Parts {
    bias: bool,
    dropout: bool,
    /// Whether open entries are written, or read.
    open: bool,
    kind: Kind,
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn epilogue_kernel<F: Float, A: Float>(
    x: &[F],
    bias: &[F],
    ids: &[u32],
    out: &mut [F],
    open: &mut [u32],
    parameter: InputScalar,
    draws: &Draws,
    rows: usize,
    width: usize,
    blocks: usize,
    #[comptime] parts: Parts,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * blocks {
        terminate!();
    }
    let row = pos / blocks;
    let block = pos % blocks;
    let mut drawn = Vector::<u32, Const<4>>::new(0u32);
    if comptime!(parts.dropout) {
        drawn = words(draws, ids, row, block as u32);
    }
    let mut bits = 0u32;
    let mut bit = 1u32;
    #[unroll]
    for k in 0..4usize {
        let col = block * 4 + k;
        if col < width {
            let at = row * width + col;
            let mut y = A::cast_from(x[at]);
            if comptime!(parts.bias) {
                y += A::cast_from(bias[col]);
            }
            y = activate::<A, Const<1>>(
                Vector::<A, Const<1>>::new(y),
                parameter.get::<A>(),
                parts.kind,
            )
            .extract(0usize);
            if comptime!(parts.dropout) {
                y = select(
                    keeps(draws, drawn.extract(k)),
                    y * draws.scale.get::<A>(),
                    A::new(0.0_f32),
                );
            }
            let y = F::cast_from(y);
            out[at] = y;
            if comptime!(parts.open) {
                // NaN is open.
                bits += select(y <= F::new(0.0_f32), 0u32, bit);
            }
        }
        bit += bit;
    }
    if comptime!(parts.open) {
        open[pos] = bits;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn epilogue_grad_kernel<F: Float, A: Float, O: Float>(
    grad: &[F],
    result: &[F],
    open: &[u32],
    ids: &[u32],
    out: &mut [O],
    parameter: InputScalar,
    draws: &Draws,
    rows: usize,
    width: usize,
    blocks: usize,
    #[comptime] parts: Parts,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * blocks {
        terminate!();
    }
    let row = pos / blocks;
    let block = pos % blocks;
    let zero = A::new(0.0_f32);
    let mut drawn = Vector::<u32, Const<4>>::new(0u32);
    let mut bits = 0u32;
    if comptime!(parts.open) {
        bits = open[pos];
    } else if comptime!(parts.dropout) {
        drawn = words(draws, ids, row, block as u32);
    }
    let mut bit = 1u32;
    #[unroll]
    for k in 0..4usize {
        let col = block * 4 + k;
        if col < width {
            let at = row * width + col;
            let mut g = A::cast_from(grad[at]);
            if comptime!(parts.dropout) {
                g *= draws.scale.get::<A>();
            }
            if comptime!(parts.open) {
                // What dropout took is closed too.
                g = select(bits & bit == 0u32, zero, g);
            } else {
                if comptime!(parts.dropout) {
                    g = select(keeps(draws, drawn.extract(k)), g, zero);
                }
                if comptime!(parts.kind != Kind::None) {
                    g = pulled::<A>(
                        A::cast_from(result[at]) / draws.scale.get::<A>(),
                        g,
                        parameter.get::<A>(),
                        parts.kind,
                    );
                }
            }
            out[at] = O::cast_from(g);
        }
        bit += bit;
    }
}

fn parts(plan: &EpiloguePlan, bias: bool, open: bool) -> Parts {
    Parts { bias, dropout: plan.dropout().is_some(), open, kind: kind(plan.activation()).0 }
}

/// Blocks of four columns of a row.
fn blocks(width: usize) -> usize {
    width.div_ceil(4)
}

/// `drop(act(x + bias))`, and with `open` which entries are not closed, that is at most 0: four columns of a row in the
/// lowest bits of a number, `[rows · ⌈width / 4⌉]`; without it that is `[0]`.
///
/// # Shapes
/// - `x`: `[rows, width]`; `bias`: `[width]`
/// - returns `[rows, width]`
///
/// # Semantics
/// A dropped NaN is 0. f16 and bf16 are computed in f32 and rounded once.
///
/// # Panics
/// If an operand has another shape, element type or device.
#[track_caller]
pub fn epilogue(
    plan: &EpiloguePlan,
    x: CubeTensor,
    bias: Option<CubeTensor>,
    open: bool,
) -> (CubeTensor, CubeTensor) {
    let checked = Call::new("epilogue", "x", &x);
    let [rows, width] = plan.shape();
    let (x, bias) =
        (checked.rows("x", x, rows, width), bias.map(|b| checked.rows("bias", b, width, 1)));
    let shape = x.meta.shape().clone();
    let blocks = blocks(width);
    let none = dummy(&x);
    let marks = empty(&x, Shape::from([if open { rows * blocks } else { 0 }]), DType::U32);
    if shape.num_elements() == 0 {
        return (x, marks);
    }
    let (out, sums, draws) =
        (empty(&x, shape, x.dtype), wide(x.dtype), Dropout::maybe(plan.dropout(), &x.device));
    let (count, dim) = grid(&x.client, rows * blocks);
    // SAFETY: `x` and `out` have `rows` rows of `width` columns, the bias `width`, `marks` a number for every block of
    // a row where it is written; ids are one for each row (checked by the plan), all else checked above; threads beyond
    // the last block return early.
    unsafe {
        epilogue_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address(&[&x], rows * blocks),
            arg(&x),
            arg(bias.as_ref().unwrap_or(&x)),
            arg(draws.ids(&none)),
            arg(&out),
            arg(if open { &marks } else { &none }),
            InputScalar::new(kind(plan.activation()).1, elem(sums)),
            draws.launch(sums),
            rows,
            width,
            blocks,
            parts(plan, bias.is_some(), open),
            [elem(x.dtype), elem(sums)],
        );
    }
    (out, marks)
}

/// Gradients of `x` and of the bias of [`epilogue`]; the second is `[0]` unless asked for.
///
/// # Shapes
/// - `grad`: `[rows, width]`
/// - returns `[rows, width]` and `[width]`
///
/// # Panics
/// If `grad` or what was kept has another shape, element type or device.
#[track_caller]
pub fn epilogue_grad(
    plan: &EpiloguePlan,
    grad: CubeTensor,
    kept: EpilogueKept,
    bias: bool,
) -> (CubeTensor, CubeTensor) {
    let (dtype, sums) = (grad.dtype, wide(grad.dtype));
    let checked = Call::new("epilogue_grad", "grad", &grad);
    let [rows, width] = plan.shape();
    let grad = checked.rows("grad", grad, rows, width);
    let (result, open) = match kept {
        EpilogueKept::Nothing => (None, None),
        EpilogueKept::Output(y) => (Some(checked.rows("out", y, rows, width)), None),
        EpilogueKept::Open(open) => {
            (None, Some(checked.ids("open", open, rows * blocks(width), 1)))
        }
    };
    let shape = grad.meta.shape().clone();
    if shape.num_elements() == 0 {
        let d_bias = zeros(&grad, Shape::from([if bias { width } else { 0 }]), dtype);
        return (grad, d_bias);
    }
    let none = dummy(&grad);
    // Sums over rows are of numbers that are not rounded yet.
    let h = empty(&grad, shape, if bias { sums } else { dtype });
    let (draws, blocks) = (Dropout::maybe(plan.dropout(), &grad.device), blocks(width));
    let (count, dim) = grid(&h.client, rows * blocks);
    // SAFETY: as in `epilogue`; open entries have a number for every block of a row.
    unsafe {
        epilogue_grad_kernel::launch_unchecked(
            &h.client,
            count,
            dim,
            address(&[&grad], rows * blocks),
            arg(&grad),
            arg(result.as_ref().unwrap_or(&grad)),
            arg(open.as_ref().unwrap_or(&none)),
            arg(draws.ids(&none)),
            arg(&h),
            InputScalar::new(kind(plan.activation()).1, elem(sums)),
            draws.launch(sums),
            rows,
            width,
            blocks,
            parts(plan, false, open.is_some()),
            [elem(dtype), elem(sums), elem(h.dtype)],
        );
    }
    if !bias {
        let d_bias = empty(&h, Shape::from([0]), dtype);
        return (h, d_bias);
    }
    let d_bias = column_sums(h.clone(), rows, width, dtype);
    (if h.dtype == dtype { h } else { cast(h, dtype) }, d_bias)
}
