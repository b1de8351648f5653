//! Cross entropy of selected rows, and its gradient.
//!
//! ```text
//! stats[i] = (largest logit of row i, 1 / Σ exp(logit - largest))       a group of threads for every chosen row
//! loss     = factor · Σ (-ln stats[i].1 - (logit of the target - largest))
//! d[r]     = grad · factor · Σ (exp(logits[r] - largest) · stats.1 - 1 at the target) over the chosen rows that are r
//! ```

use std::sync::Arc;

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::Shape;
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::cast;
use burn_cubecl::ops::numeric::mul_scalar;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Attached, Bytes, CountBytes};
use burn_gnn_plan::CrossEntropyPlan;
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{address, arg, empty, grid, threads_per_block, wide, zeros};
use crate::device::resident::Resident;
use crate::device::upload::{device_bytes, upload};
use crate::message::layout::{csr, endpoints};
use crate::numeric::column_sums::column_sums;
use crate::operators::gather_scatter::RowIndex;

/// Selected rows and the class of each, on the host and on devices. Cloning increments a reference count.
#[derive(Clone, Debug)]
struct LossRows(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    index: RowIndex,
    /// A copy, so that the caller's array is freed when the caller drops it.
    targets: Vec<u32>,
    attached: Attached,
}

impl CountBytes for LossRows {
    fn bytes(&self) -> Bytes {
        self.0.index.bytes() + self.0.targets.bytes() + self.0.attached.bytes()
    }
}

/// Cached by number of rows, as long as a caller holds both arrays.
static ROWS: Resident<u32, 2, usize, LossRows> = Resident::new();

impl LossRows {
    fn of(plan: &CrossEntropyPlan) -> Self {
        let ((rows, targets), all) = (plan.arrays(), plan.shape()[0]);
        let make = || match RowIndex::new(rows, all) {
            Ok(index) => Self(Arc::new(Inner {
                index,
                targets: targets.to_vec(),
                attached: Attached::default(),
            })),
            Err(e) => unreachable!("the plan has checked rows: {e}"),
        };
        ROWS.get_or_insert([rows, targets], all, make)
    }
    fn targets(&self, device: &CubeDevice) -> CubeTensor {
        let make = || upload("targets", &self.0.targets, device);
        CubeTensor::clone(&self.0.attached.get_or_insert_sized(device.clone(), make, device_bytes))
    }
}

/// Reduces the numbers of the threads of a group as a tree, by sum or maximum; all threads get the result.
#[cube]
fn fold<A: Float>(
    shared: &mut Shared<[A]>,
    x: A,
    unit: usize,
    lane: usize,
    #[comptime] group: usize,
    #[comptime] largest: bool,
) -> A {
    sync_cube();
    shared[unit] = x;
    sync_cube();
    #[unroll]
    for level in 0..comptime!(group.ilog2() as usize) {
        let half = comptime!(group >> (level + 1));
        if lane < half {
            let other = shared[unit + half];
            let own = shared[unit];
            if comptime!(largest) {
                shared[unit] = select(other > own, other, own);
            } else {
                shared[unit] = own + other;
            }
        }
        sync_cube();
    }
    shared[unit - lane]
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn loss_kernel<F: Float, A: Float>(
    logits: &[F],
    rows: &[u32],
    targets: &[u32],
    stats: &mut [A],
    losses: &mut [A],
    count: usize,
    classes: usize,
    #[comptime] group: usize,
    #[comptime] threads: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let unit = UNIT_POS as usize;
    let lane = unit % group;
    let i = ABSOLUTE_POS / group;
    let here = i < count;
    let base = rows[select(here, i, 0usize)] as usize * classes;
    let mut shared = Shared::<[A]>::new_slice(threads);
    // Every lane starts with a logit of the row, so no sentinel is needed.
    let mut largest = A::cast_from(logits[base + lane % classes]);
    let mut c = lane;
    while c < classes {
        let x = A::cast_from(logits[base + c]);
        largest = select(x > largest, x, largest);
        c += group;
    }
    let largest = fold::<A>(&mut shared, largest, unit, lane, group, true);
    let mut sum = A::new(0.0_f32);
    let mut c = lane;
    while c < classes {
        sum += (A::cast_from(logits[base + c]) - largest).exp();
        c += group;
    }
    let sum = fold::<A>(&mut shared, sum, unit, lane, group, false);
    if here && lane == 0 {
        stats[2 * i] = largest;
        stats[2 * i + 1] = A::new(1.0_f32) / sum;
        losses[i] = sum.ln() - (A::cast_from(logits[base + targets[i] as usize]) - largest);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn loss_grad_kernel<F: Float, A: Float>(
    indptr: &[u32],
    positions: &[u32],
    targets: &[u32],
    logits: &[F],
    stats: &[A],
    grad: &[F],
    out: &mut [F],
    factor: InputScalar,
    rows: usize,
    classes: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * classes {
        terminate!();
    }
    let row = pos / classes;
    let class = pos % classes;
    let scale = A::cast_from(grad[0]) * factor.get::<A>();
    let mut sum = A::new(0.0_f32);
    for p in indptr[row]..indptr[row + 1] {
        let i = positions[p as usize] as usize;
        let probability = (A::cast_from(logits[pos]) - stats[2 * i]).exp() * stats[2 * i + 1];
        let hit = select(targets[i] as usize == class, A::new(1.0_f32), A::new(0.0_f32));
        sum += (probability - hit) * scale;
    }
    out[pos] = F::cast_from(sum);
}

/// The loss `factor · Σ -ln softmax(logits[rows[i]])[targets[i]]`, and statistics for its gradient.
///
/// # Shapes
/// - `logits`: `[rows, classes]`
/// - returns `[1]`, and for each selected row its maximum logit and 1 / Σ exp(logit - maximum): `[selected rows, 2]` in the
///   accumulator type
///
/// # Semantics
/// The loss of no rows is 0. Losses are added in runs of 256 rows, and then over runs.
///
/// # Panics
/// If the shape of the logits differs from the plan.
#[track_caller]
pub fn cross_entropy(plan: &CrossEntropyPlan, logits: CubeTensor) -> (CubeTensor, CubeTensor) {
    let rows = LossRows::of(plan);
    let call = Call::new("cross_entropy", "logits", &logits);
    let [all, classes] = plan.shape();
    let logits = call.rows("logits", logits, all, classes);
    let (count, sums) = (rows.0.index.len(), wide(logits.dtype));
    if count == 0 {
        return (
            zeros(&logits, Shape::from([1]), logits.dtype),
            zeros(&logits, Shape::from([0, 2]), sums),
        );
    }
    let (stats, losses) =
        (empty(&logits, Shape::from([count, 2]), sums), empty(&logits, Shape::from([count]), sums));
    let client = logits.client.clone();
    let threads = threads_per_block(&client) as usize;
    let group = classes.next_power_of_two().min(32).min(threads);
    let (grid_size, dim) = grid(&client, count * group);
    let chosen = endpoints(rows.0.index.relation(), &logits.device).src;
    // SAFETY: chosen rows are rows of `logits` and targets are columns of them, as the plan has checked; threads beyond
    // the last chosen row read the first one and write nothing.
    unsafe {
        loss_kernel::launch_unchecked(
            &client,
            grid_size,
            dim,
            address([&logits], count * group),
            arg(&logits),
            arg(&chosen),
            arg(&rows.targets(&logits.device)),
            arg(&stats),
            arg(&losses),
            count,
            classes,
            group,
            threads,
            [elem(logits.dtype), elem(sums)],
        );
    }
    let sum = column_sums(losses, count, 1, sums);
    let loss = mul_scalar(sum, InputScalar::new(plan.factor(), elem(sums)));
    (cast(loss, logits.dtype), stats)
}

/// Gradient of the logits of [`cross_entropy`], in their element type, from the gradient of the loss, `[1]`.
///
/// # Shapes
/// - `stats`: the statistics that [`cross_entropy`] returned; `logits`: its operand
/// - returns the shape of the logits; rows that are not selected are 0, rows that are selected twice are sums
///
/// # Panics
/// If an operand has another shape, element type or device.
#[track_caller]
pub fn cross_entropy_grad(
    plan: &CrossEntropyPlan,
    grad: CubeTensor,
    stats: CubeTensor,
    logits: CubeTensor,
) -> CubeTensor {
    let rows = LossRows::of(plan);
    let call = Call::new("cross_entropy_grad", "logits", &logits);
    let [all, classes] = plan.shape();
    let logits = call.rows("logits", logits, all, classes);
    let grad = call.rows("grad", grad, 1, 1);
    let stats = call.rows_of("stats", stats, rows.0.index.len(), 2, &[wide(logits.dtype)]);
    let shape = logits.meta.shape().clone();
    if rows.0.index.is_empty() || shape.num_elements() == 0 {
        return zeros(&logits, shape, logits.dtype);
    }
    let layout = csr(rows.0.index.relation(), &logits.device);
    let out = empty(&logits, shape.clone(), logits.dtype);
    let (sums, n) = (wide(logits.dtype), shape.num_elements());
    let (count, dim) = grid(&out.client, n);
    // SAFETY: the layout has a row for every row of `logits`; the far endpoint of an edge is the chosen row's
    // number, for which there are statistics and a target.
    unsafe {
        loss_grad_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([&logits], n),
            arg(&layout.indptr),
            arg(&layout.indices),
            arg(&rows.targets(&logits.device)),
            arg(&logits),
            arg(&stats),
            arg(&grad),
            arg(&out),
            InputScalar::new(plan.factor(), elem(sums)),
            shape[0],
            shape[1],
            [elem(logits.dtype), elem(sums)],
        );
    }
    out
}
