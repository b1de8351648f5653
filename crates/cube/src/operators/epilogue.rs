//! Bias, activation and dropout in one pass, and their gradients.
//!
//! ```text
//! out = drop(act(x + bias))                              a thread for four columns of a row, which share their draws
//! h   = drop(grad) · act'(act(x + bias));  d x = h, d bias = Σ h
//! ```
//! For ReLU, backward reads a bit per entry, which is set if ReLU and dropout pass the entry; a number has four bits. For
//! other activations it reads the result, and draws the mask of dropout again.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{Activation, DropoutPlan, EpiloguePlan};
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{address, arg, arg_if, empty, features, grid, wide, zeros};
use crate::numeric::activation::{Kind, activate, kind, pulled};
use crate::numeric::column_sums::column_sums;
use crate::numeric::dropout::Dropout;
use crate::numeric::philox::Draws;

/// The saved data that the gradient of an epilogue reads.
#[derive(Clone, Debug)]
pub enum EpilogueKept {
    /// Nothing: there is no activation.
    Nothing,
    /// The result.
    Output(CubeTensor),
    /// The bits that [`epilogue`] returned.
    Open(CubeTensor),
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn epilogue_kernel<F: Float, A: Float>(
    // The first argument, because `unread` aliases it for an `open` that is not written.
    out: &mut [F],
    x: &[F],
    bias: &ComptimeOption<Box<[F]>>,
    draws: &ComptimeOption<Draws>,
    open: &mut [u32],
    parameter: InputScalar,
    rows: usize,
    width: usize,
    blocks: usize,
    #[comptime] kind: Kind,
    // Whether the bits of passed entries are written.
    #[comptime] marks: bool,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * blocks {
        terminate!();
    }
    let row = pos / blocks;
    let block = pos % blocks;
    let mut drawn = Vector::<u32, Const<4>>::new(0u32);
    #[comptime]
    if let ComptimeOption::Some(draws) = draws {
        drawn = draws.words(row, block as u32);
    }
    let mut bits = 0u32;
    let mut bit = 1u32;
    #[unroll]
    for k in 0..4usize {
        let col = block * 4 + k;
        if col < width {
            let at = row * width + col;
            let mut y = A::cast_from(x[at]);
            #[comptime]
            if let ComptimeOption::Some(bias) = bias {
                y += A::cast_from(bias[col]);
            }
            y = activate::<A, Const<1>>(Vector::<A, Const<1>>::new(y), parameter.get::<A>(), kind)
                .extract(0usize);
            #[comptime]
            if let ComptimeOption::Some(draws) = draws {
                y = select(
                    draws.keeps(drawn.extract(k)),
                    y * draws.scale.get::<A>(),
                    A::new(0.0_f32),
                );
            }
            let y = F::cast_from(y);
            out[at] = y;
            if comptime!(marks) {
                // NaN passes.
                bits += select(y <= F::new(0.0_f32), 0u32, bit);
            }
        }
        bit += bit;
    }
    if comptime!(marks) {
        open[pos] = bits;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn epilogue_grad_kernel<F: Float, A: Float, O: Float>(
    grad: &[F],
    result: &ComptimeOption<Box<[F]>>,
    open: &ComptimeOption<Box<[u32]>>,
    draws: &ComptimeOption<Draws>,
    out: &mut [O],
    parameter: InputScalar,
    rows: usize,
    width: usize,
    blocks: usize,
    #[comptime] kind: Kind,
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
    #[comptime]
    if let ComptimeOption::Some(open) = open {
        bits = open[pos];
    } else {
        #[comptime]
        if let ComptimeOption::Some(draws) = draws {
            drawn = draws.words(row, block as u32);
        }
    }
    let mut bit = 1u32;
    #[unroll]
    for k in 0..4usize {
        let col = block * 4 + k;
        if col < width {
            let at = row * width + col;
            let mut g = A::cast_from(grad[at]);
            let mut scale = A::new(1.0_f32);
            #[comptime]
            if let ComptimeOption::Some(draws) = draws {
                scale = draws.scale.get::<A>();
                g *= scale;
            }
            if comptime!(open.is_some()) {
                // Dropped entries do not pass either.
                g = select(bits & bit == 0u32, zero, g);
            } else {
                #[comptime]
                if let ComptimeOption::Some(draws) = draws {
                    g = select(draws.keeps(drawn.extract(k)), g, zero);
                }
                #[comptime]
                if let ComptimeOption::Some(result) = result {
                    let y = A::cast_from(result[at]) / scale;
                    g = pulled::<A>(y, g, parameter.get::<A>(), kind);
                }
            }
            out[at] = O::cast_from(g);
        }
        bit += bit;
    }
}

/// Number of blocks of four columns of a row.
fn blocks(width: usize) -> usize {
    width.div_ceil(4)
}

/// Writes `drop(act(x + bias))` of `rows` rows of `width` columns, both at least 1, and the bits of passed entries if there
/// are `marks`.
fn forward(
    x: &CubeTensor,
    bias: Option<&CubeTensor>,
    activation: Activation,
    draws: Option<&Dropout>,
    marks: Option<&CubeTensor>,
    [rows, width]: [usize; 2],
) -> CubeTensor {
    let (out, sums) = (empty(x, x.meta.shape().clone(), x.dtype), wide(x.dtype));
    let (blocks, (kind, parameter)) = (blocks(width), kind(activation));
    let (count, dim) = grid(&x.client, rows * blocks);
    // SAFETY: `x` and `out` have `rows` rows of `width` columns, the bias `width`, `marks` a number for every block of
    // a row where it is written, and there is an id for each row, which the callers or the plan have checked; threads
    // beyond the last block return early, and columns beyond a row are left out.
    unsafe {
        epilogue_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([x], rows * blocks),
            arg(&out),
            arg(x),
            bias.map(arg).into(),
            draws.map(|draws| draws.launch(sums)).into(),
            arg_if(marks),
            InputScalar::new(parameter, elem(sums)),
            rows,
            width,
            blocks,
            kind,
            marks.is_some(),
            [elem(x.dtype), elem(sums)],
        );
    }
    out
}

/// `drop(act(x + bias))`. If `open` is set, also a bit per entry, which is set unless the result is at most 0. The lowest
/// bits of a number have four columns of a row: `[rows · ⌈width / 4⌉]`, or `[0]` without `open`.
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
    let marks = if open { rows * blocks(width) } else { 0 };
    let marks = empty(&x, Shape::from([marks]), DType::U32);
    if x.meta.num_elements() == 0 {
        return (x, marks);
    }
    let draws = plan.dropout().map(|plan| Dropout::of(plan, &x.device));
    let (bias, open) = (bias.as_ref(), open.then_some(&marks));
    let out = forward(&x, bias, plan.activation(), draws.as_ref(), open, [rows, width]);
    (out, marks)
}

/// Applies dropout: sets dropped entries to 0 and scales the others. It is linear with a symmetric matrix, so the same
/// function computes its gradient.
///
/// # Shapes
/// - `x`: `[rows, ..]`; all axes but the first are flattened to columns
/// - returns the same shape
///
/// # Semantics
/// A dropped NaN is 0. f16 and bf16 are scaled in f32.
///
/// # Panics
/// If `x` is not a float tensor, has no axis, or if there are fewer ids than rows.
#[track_caller]
pub fn dropout_rows(plan: &DropoutPlan, x: CubeTensor) -> CubeTensor {
    let call = Call::new("dropout_rows", "x", &x);
    let dropout = Dropout::of(plan, &x.device);
    let (rows, width) =
        (x.meta.shape().first().copied().unwrap_or(1), features(&x).iter().product::<usize>());
    let x = call.rows("x", x, rows, width);
    dropout.check(&call, rows);
    if x.meta.num_elements() == 0 {
        return x;
    }
    forward(&x, None, Activation::None, Some(&dropout), None, [rows, width])
}

/// Gradients of `x` and of the bias of [`epilogue`]; the second is `[0]` unless requested.
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
    // The gradient of the bias is summed before `d x` is rounded.
    let h = empty(&grad, shape, if bias { sums } else { dtype });
    let draws = plan.dropout().map(|plan| Dropout::of(plan, &grad.device));
    let (blocks, (kind, parameter)) = (blocks(width), kind(plan.activation()));
    let (count, dim) = grid(&h.client, rows * blocks);
    // SAFETY: as in `forward`; open entries have a number for every block of a row.
    unsafe {
        epilogue_grad_kernel::launch_unchecked(
            &h.client,
            count,
            dim,
            address([&grad], rows * blocks),
            arg(&grad),
            result.as_ref().map(arg).into(),
            open.as_ref().map(arg).into(),
            draws.map(|draws| draws.launch(sums)).into(),
            arg(&h),
            InputScalar::new(parameter, elem(sums)),
            rows,
            width,
            blocks,
            kind,
            [elem(dtype), elem(sums), elem(h.dtype)],
        );
    }
    if !bias {
        let d_bias = empty(&h, Shape::from([0]), dtype);
        return (h, d_bias);
    }
    let d_bias = column_sums(h.clone(), rows, width, dtype);
    (cast(h, dtype), d_bias)
}
