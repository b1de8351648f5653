//! A step of Adam in one pass, for all entries or for selected rows.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{AdamFactors, AdamForm, AdamRows};
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{address, arg, grid, vector, wide};
use crate::device::upload::upload;

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn adam_kernel<F: Float, A: Float, N: Size>(
    grad: &[Vector<F, N>],
    ids: &ComptimeOption<Box<[u32]>>,
    param: &mut [Vector<F, N>],
    moment_1: &mut [Vector<F, N>],
    moment_2: &mut [Vector<F, N>],
    lr: InputScalar,
    beta_1: InputScalar,
    beta_2: InputScalar,
    rest_1: InputScalar,
    rest_2: InputScalar,
    penalty: InputScalar,
    keep: InputScalar,
    scale: InputScalar,
    second: InputScalar,
    epsilon: InputScalar,
    n: usize,
    width: usize,
    #[comptime] penalised: bool,
    #[comptime] decoupled: bool,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let mut at = pos;
    #[comptime]
    if let ComptimeOption::Some(ids) = ids {
        at = ids[pos / width] as usize * width + pos % width;
    }
    let mut p = Vector::<A, N>::cast_from(param[at]);
    let mut g = Vector::<A, N>::cast_from(grad[pos]);
    if comptime!(penalised) {
        g = fma(p, Vector::<A, N>::new(penalty.get::<A>()), g);
    }
    // Fused multiply-adds are explicit, because CUDA's compiler would choose them differently for some vector sizes.
    let m = fma(
        g,
        Vector::<A, N>::new(rest_1.get::<A>()),
        Vector::<A, N>::cast_from(moment_1[at]) * Vector::<A, N>::new(beta_1.get::<A>()),
    );
    let v = fma(
        g * g,
        Vector::<A, N>::new(rest_2.get::<A>()),
        Vector::<A, N>::cast_from(moment_2[at]) * Vector::<A, N>::new(beta_2.get::<A>()),
    );
    let epsilon = Vector::<A, N>::new(epsilon.get::<A>());
    let scale = Vector::<A, N>::new(scale.get::<A>());
    let down = Vector::<A, N>::new(-lr.get::<A>());
    if comptime!(decoupled) {
        p *= Vector::<A, N>::new(keep.get::<A>());
        let root = (v / Vector::<A, N>::new(second.get::<A>())).sqrt() + epsilon;
        p = fma(down, (m / scale) / root, p);
    } else {
        p = fma(down, (m * scale) / (v.sqrt() + epsilon), p);
    }
    param[at] = Vector::<F, N>::cast_from(p);
    moment_1[at] = Vector::<F, N>::cast_from(m);
    moment_2[at] = Vector::<F, N>::cast_from(v);
}

/// Parameter and moments after a step, from `g = grad + penalty · param`, `m = beta[0] · moment_1 + rest[0] · g`,
/// `v = beta[1] · moment_2 + rest[1] · g²`, and [`AdamForm`].
///
/// # Shapes
/// All four tensors and the results have the same shape.
///
/// # Semantics
/// f16 and bf16 are widened to f32 and rounded once. Tensors without other references are updated in place.
///
/// # Panics
/// If an operand has another shape, element type or device.
#[track_caller]
pub fn adam_step(
    param: CubeTensor,
    grad: CubeTensor,
    moments: [CubeTensor; 2],
    factors: &AdamFactors,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let call = Call::new("adam_step", "param", &param);
    let rows = param.meta.shape().first().copied().unwrap_or(1);
    let width = param.meta.num_elements().checked_div(rows).unwrap_or(0);
    let [m, v] = moments;
    let [param, grad, m, v] = [("param", param), ("grad", grad), ("moment_1", m), ("moment_2", v)]
        .map(|(arg, x)| call.rows(arg, x, rows, width));
    step(param, grad, [m, v], None, factors)
}

/// [`adam_step`] of selected rows; the others keep their values and moments.
///
/// # Shapes
/// - `param` and moments: `[rows, width]`; `grad`: one row per selected row
/// - returns the shapes of parameter and moments
///
/// # Panics
/// If an operand has another shape, element type or device, or the ids are larger than a buffer of the device.
#[track_caller]
pub fn adam_rows(
    plan: &AdamRows,
    param: CubeTensor,
    grad: CubeTensor,
    moments: [CubeTensor; 2],
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let (call, rows, ids) = (Call::new("adam_rows", "param", &param), plan.rows(), plan.ids());
    let [_, width] = call.table("param", &param);
    let [m, v] = moments;
    let [param, m, v] = [("param", param), ("moment_1", m), ("moment_2", v)]
        .map(|(arg, x)| call.rows(arg, x, rows, width));
    let grad = call.rows("grad", grad, ids.len(), width);
    let ids = upload("rows of a table", ids, &param.device);
    step(param, grad, [m, v], Some(ids), &plan.step().factors())
}

/// Returns a tensor without other references: the tensor itself, or a copy.
fn own(x: CubeTensor) -> CubeTensor {
    if x.can_mut() { x } else { x.copy() }
}

fn step(
    param: CubeTensor,
    grad: CubeTensor,
    moments: [CubeTensor; 2],
    ids: Option<CubeTensor>,
    factors: &AdamFactors,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let entries = grad.meta.num_elements();
    let [m, v] = moments;
    if entries == 0 {
        return (param, m, v);
    }
    let (param, m, v) = (own(param), own(m), own(v));
    let (client, sums) = (param.client.clone(), wide(param.dtype));
    let width = if ids.is_some() { param.meta.shape()[1] } else { entries };
    let n = vector(&client, param.dtype, &[width]);
    let (count, dim) = grid(&client, entries / n);
    let scalar = |x: f64| InputScalar::new(x, elem(sums));
    let (keep, scale, second, epsilon, decoupled) = match factors.form {
        AdamForm::Adam { scale, epsilon } => (1.0, scale, 1.0, epsilon, false),
        AdamForm::AdamW { keep, first, second, epsilon } => (keep, first, second, epsilon, true),
    };
    // SAFETY: the callers have checked: parameter and moments have a row for every id (each once, by the plan), `grad`
    // one for each of them, or all four have `entries` entries. Threads beyond those return early.
    unsafe {
        adam_kernel::launch_unchecked(
            &client,
            count,
            dim,
            address([&param], entries / n),
            n,
            arg(&grad),
            ids.as_ref().map(arg).into(),
            arg(&param),
            arg(&m),
            arg(&v),
            scalar(factors.lr),
            scalar(factors.beta[0]),
            scalar(factors.beta[1]),
            scalar(factors.rest[0]),
            scalar(factors.rest[1]),
            scalar(factors.penalty.unwrap_or(0.0)),
            scalar(keep),
            scalar(scale),
            scalar(second),
            scalar(epsilon),
            entries / n,
            width / n,
            factors.penalty.is_some(),
            decoupled,
            [elem(param.dtype), elem(sums)],
        );
    }
    (param, m, v)
}
