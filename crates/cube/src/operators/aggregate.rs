//! Weighted aggregation with an epilogue, `act(after[v] Σ weight[e] · scale[u] · x[u] + bias)`, and its gradients.
//!
//! ```text
//! h = act'(out) · grad
//! d bias    = Σ h
//! d x[u]    = scale[u] Σ weight[e] · after[v] · h[v] over out-edges
//! d weight[e] = scale[u] · after[v] · <x[u], h[v]>
//! ```

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{Activation, AggregatePlan, DegreeScale};
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{
    address, arg, empty, grid, grid_of_rows, in_flight, reshaped, vector, wide, zeros,
};
use crate::device::upload::{device_bytes, upload_floats};
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Messages, MessagesExpand, Place, sum};
use crate::message::layout::{Layout, csc, csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};
use crate::message::walk::{Edges, Step, Visit};
use crate::numeric::activation::{Kind, activate, chain, kind};
use crate::numeric::column_sums::column_sums;

/// `weight[e] · scale[u] · x[u]`.
#[derive(CubeType, CubeLaunch)]
struct Scaled<F: Float, A: Float, N: Size> {
    x: Box<[Vector<F, N>]>,
    weight: ComptimeOption<Box<[A]>>,
    scale: ComptimeOption<Box<[A]>>,
    /// Columns, in vectors.
    width: usize,
}

#[cube]
impl<F: Float, A: Float, N: Size> Messages<A, N> for Scaled<F, A, N> {
    fn message(&self, step: &Step, col: usize) -> Vector<A, N> {
        let mut m = Vector::<A, N>::cast_from(self.x[step.far * self.width + col]);
        #[comptime]
        if let ComptimeOption::Some(scale) = &self.scale {
            m *= Vector::<A, N>::new(scale[step.far]);
        }
        #[comptime]
        if let ComptimeOption::Some(weight) = &self.weight {
            m *= Vector::<A, N>::new(weight[step.edge]);
        }
        m
    }
}

/// The factors, bias and activation that are applied to a sum.
#[derive(CubeType, CubeLaunch)]
struct Epilogue<A: Float, N: Size> {
    after: ComptimeOption<Box<[A]>>,
    bias: ComptimeOption<Box<[Vector<A, N>]>>,
    parameter: InputScalar,
    #[cube(comptime)]
    kind: Kind,
}

#[cube]
impl<A: Float, N: Size> Epilogue<A, N> {
    fn apply(&self, sum: Vector<A, N>, row: usize, col: usize) -> Vector<A, N> {
        let mut x = sum;
        #[comptime]
        if let ComptimeOption::Some(after) = &self.after {
            x *= Vector::<A, N>::new(after[row]);
        }
        #[comptime]
        if let ComptimeOption::Some(bias) = &self.bias {
            x += bias[col];
        }
        activate::<A, N>(x, self.parameter.get::<A>(), self.kind)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn aggregate_kernel<F: Float, A: Float, O: Float, N: Size>(
    edges: &Edges,
    messages: &Scaled<F, A, N>,
    epilogue: &Epilogue<A, N>,
    out: &mut [Vector<O, N>],
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let span = edges.own_span(messages.width);
    let col = pos % messages.width;
    let mut sum = sum::<A, N, Scaled<F, A, N>>(edges, &span, messages, col);
    if comptime!(edges.visit == Visit::Rows) {
        sum = epilogue.apply(sum, span.row, col);
    }
    out[pos] = Vector::<O, N>::cast_from(sum);
}

/// Combines the sums of the chunks of long rows, and applies the epilogue.
#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<A: Float, O: Float>(
    chunks: &[A],
    index: &[u32],
    epilogue: &Epilogue<A, Const<1>>,
    out: &mut [O],
    rows: usize,
    width: usize,
    #[define(A, O)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * width {
        terminate!();
    }
    let long = pos / width;
    let col = pos % width;
    let row = index[long] as usize;
    let mut sum = A::new(0.0_f32);
    for chunk in index[rows + long]..index[rows + long + 1] {
        sum += chunks[chunk as usize * width + col];
    }
    let x = epilogue.apply(Vector::<A, Const<1>>::new(sum), row, col);
    out[row * width + col] = O::cast_from(x.extract(0usize));
}

/// `x[e] · scale[u] · after[v]`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn ends_kernel<A: Float, O: Float>(
    src: &[u32],
    dst: &[u32],
    x: &[A],
    scale: &ComptimeOption<Box<[A]>>,
    after: &ComptimeOption<Box<[A]>>,
    out: &mut [O],
    edges: usize,
    #[define(A, O)] _types: [ElemType; 2],
) {
    let e = ABSOLUTE_POS;
    if e >= edges {
        terminate!();
    }
    let mut d = x[e];
    #[comptime]
    if let ComptimeOption::Some(scale) = scale {
        d *= scale[src[e] as usize];
    }
    #[comptime]
    if let ComptimeOption::Some(after) = after {
        d *= after[dst[e] as usize];
    }
    out[e] = O::cast_from(d);
}

/// The factors of nodes on a device, in the accumulator type; they are cached with the scale.
fn factors(scale: Option<&DegreeScale>, like: &CubeTensor) -> Option<CubeTensor> {
    let (sums, device) = (wide(like.dtype), &like.device);
    let make = |scale: &DegreeScale| upload_floats(scale.double(), device, sums);
    // An empty array cannot be a kernel argument, and is never read.
    let scale = scale.filter(|scale| !scale.degrees().is_empty())?;
    Some(CubeTensor::clone(&scale.attached().get_or_insert_sized(
        (device.clone(), sums),
        || make(scale),
        device_bytes,
    )))
}

/// The result, if the derivative of the activation reads it.
#[track_caller]
fn kept(plan: &AggregatePlan, call: &Call, out: Option<CubeTensor>) -> Option<CubeTensor> {
    plan.keeps_result().then(|| {
        call.rows("out", call.required("out", out), plan.relation().num_dst(), plan.width())
    })
}

fn as_sums(x: Option<CubeTensor>, dtype: DType) -> Option<CubeTensor> {
    // An empty tensor cannot be a kernel argument, and is never read.
    let x = x.filter(|x| x.meta.num_elements() > 0)?;
    Some(into_contiguous(cast(x, dtype)))
}

/// The factors and the layout of one pass.
struct Pass<'a> {
    layout: &'a Layout,
    weight: Option<CubeTensor>,
    scale: Option<CubeTensor>,
    after: Option<CubeTensor>,
    bias: Option<CubeTensor>,
    activation: Activation,
}

impl Pass<'_> {
    fn epilogue<A: Float, N: Size>(&self, sums: DType) -> EpilogueLaunch<A, N> {
        let (kind, parameter) = kind(self.activation);
        EpilogueLaunch::new(
            self.after.as_ref().map(arg).into(),
            self.bias.as_ref().map(arg).into(),
            InputScalar::new(parameter, elem(sums)),
            kind,
        )
    }

    /// Aggregates `x: [.., width]`; the result has type `dtype`.
    fn run(self, x: &CubeTensor, dtype: DType) -> CubeTensor {
        let (layout, sums, width) = (self.layout, wide(x.dtype), x.meta.shape()[1]);
        let shape = Shape::from([layout.rows, width]);
        let out = empty(x, shape.clone(), dtype);
        if shape.num_elements() == 0 {
            return out;
        }
        let (client, n) = (out.client.clone(), vector(&out.client, x.dtype, &[width]));
        // The rows of an empty operand are never read, but the argument needs a buffer.
        let rows = if x.meta.num_elements() == 0 { &out } else { x };
        let launch = |visit, tasks: usize, out: &CubeTensor| {
            let threads = tasks * width / n;
            let (count, dim) = grid_of_rows(&client, threads, width);
            let [weight, scale] = [&self.weight, &self.scale].map(|x| x.as_ref().map(arg).into());
            // SAFETY: ids of a relation lie below its numbers of nodes and edges, for which factors and `x` have an
            // entry or a row (checked by `aggregate` and its gradients); chunks are those of the layout; `out` has
            // `tasks` rows, and threads beyond them return early.
            unsafe {
                aggregate_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([rows, out], threads),
                    n,
                    Edges::of_rows(layout, visit, in_flight(width)),
                    ScaledLaunch::new(arg(rows), weight, scale, width / n),
                    self.epilogue(sums),
                    arg(out),
                    [elem(x.dtype), elem(sums), elem(out.dtype)],
                );
            }
        };
        launch(Visit::Rows, layout.rows, &out);
        if let Some(heavy) = &layout.heavy {
            let chunks = empty(x, Shape::from([heavy.chunks, width]), sums);
            launch(Visit::Chunks, heavy.chunks, &chunks);
            let (count, dim) = grid(&client, heavy.rows * width);
            // SAFETY: `index` names rows of the layout and chunks of `chunks`; both have `width` columns.
            unsafe {
                combine_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([&chunks, &out], heavy.rows * width),
                    arg(&chunks),
                    arg(&heavy.index),
                    self.epilogue(sums),
                    arg(&out),
                    heavy.rows,
                    width,
                    [elem(sums), elem(dtype)],
                );
            }
        }
        out
    }
}

/// Weighted aggregation.
///
/// # Shapes
/// - `x`: `[num_src, width]`; `weight`: `[num_edges]`; `bias`: `[width]`
/// - returns `[num_dst, width]`
///
/// # Semantics
/// A destination without in-edges gets `act(bias)`. f16 and bf16 are computed in f32 and rounded once.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn aggregate(
    plan: &AggregatePlan,
    x: CubeTensor,
    weight: Option<CubeTensor>,
    bias: Option<CubeTensor>,
) -> CubeTensor {
    let (relation, width, call) = (plan.relation(), plan.width(), Call::new("aggregate", "x", &x));
    let x = call.rows("x", x, relation.num_src(), width);
    let weight = weight.map(|w| call.floats("weight", w, relation.num_edges(), 1));
    let bias = bias.map(|b| call.floats("bias", b, width, 1));
    let sums = wide(x.dtype);
    let layout = csc(relation, &x.device);
    let pass = Pass {
        layout: &layout,
        weight: as_sums(weight, sums),
        scale: factors(plan.source(), &x),
        after: factors(plan.destination(), &x),
        bias: as_sums(bias, sums),
        activation: plan.activation(),
    };
    pass.run(&x, x.dtype)
}

/// Gradients of `x` and of the bias of [`aggregate`], each `None` unless requested.
///
/// # Shapes
/// - `grad`: `[num_dst, width]`; `out`: the result, read if there is an activation
/// - returns `[num_src, width]` and `[width]`
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn aggregate_grad(
    plan: &AggregatePlan,
    grad: CubeTensor,
    out: Option<CubeTensor>,
    weight: Option<CubeTensor>,
    wants_x: bool,
    wants_bias: bool,
) -> (Option<CubeTensor>, Option<CubeTensor>) {
    let (relation, call) = (plan.relation(), Call::new("aggregate_grad", "grad", &grad));
    let grad = call.rows("grad", grad, relation.num_dst(), plan.width());
    let out = kept(plan, &call, out);
    let weight =
        weight.filter(|_| wants_x).map(|w| call.floats("weight", w, relation.num_edges(), 1));
    let (dtype, sums) = (grad.dtype, wide(grad.dtype));
    let h = chain(&grad, out, plan.activation());
    let [rows, width] = [h.meta.shape()[0], h.meta.shape()[1]];
    let d_bias = wants_bias.then(|| column_sums(h.clone(), rows, width, dtype));
    let d_x = wants_x.then(|| {
        let layout = csr(relation, &grad.device);
        let pass = Pass {
            layout: &layout,
            weight: as_sums(weight, sums),
            scale: factors(plan.destination(), &grad),
            after: factors(plan.source(), &grad),
            bias: None,
            activation: Activation::None,
        };
        pass.run(&h, dtype)
    });
    (d_x, d_bias)
}

/// Gradient of the weights of [`aggregate`], `[num_edges]`.
///
/// # Shapes
/// - `grad`: `[num_dst, width]`; `out`: the result, read if there is an activation; `x`: `[num_src, width]`
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn aggregate_grad_weight(
    plan: &AggregatePlan,
    grad: CubeTensor,
    out: Option<CubeTensor>,
    x: CubeTensor,
) -> CubeTensor {
    let (relation, width, call) =
        (plan.relation(), plan.width(), Call::new("aggregate_grad_weight", "grad", &grad));
    let grad = call.rows("grad", grad, relation.num_dst(), width);
    let out = kept(plan, &call, out);
    let x = call.floats("x", x, relation.num_src(), width);
    let (dtype, sums, edges) = (grad.dtype, wide(grad.dtype), relation.num_edges());
    let shape = Shape::from([edges]);
    if edges == 0 || width == 0 {
        return zeros(&grad, shape, dtype);
    }
    let h = chain(&grad, out, plan.activation());
    let x = as_sums(Some(x), sums).unwrap_or_else(|| h.clone());
    let endpoints = endpoints(relation, &grad.device);
    let source = |x, place| Source::new(x, place, Map::same(width));
    let over = Over::Edges(endpoints.clone());
    let dots = vec![source(x, Place::Row), source(h, Place::Far)];
    let dots = MessagePass {
        own: Map::repeat(1, width),
        ..MessagePass::new(over, Formula::Mul, dots, width, shape.clone())
    }
    .run();
    let (scale, after) = (factors(plan.source(), &grad), factors(plan.destination(), &grad));
    let result = empty(&grad, shape.clone(), dtype);
    let (count, dim) = grid(&result.client, edges);
    // SAFETY: `dots` and `result` have an entry for every edge, factors one for every node: checked above, and by the
    // plan.
    unsafe {
        ends_kernel::launch_unchecked(
            &result.client,
            count,
            dim,
            address([&result], edges),
            arg(&endpoints.src),
            arg(&endpoints.dst),
            arg(&dots),
            scale.as_ref().map(arg).into(),
            after.as_ref().map(arg).into(),
            arg(&result),
            edges,
            [elem(sums), elem(dtype)],
        );
    }
    reshaped(result, shape)
}
