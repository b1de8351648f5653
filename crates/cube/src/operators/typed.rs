//! Products of rows with the matrices of their types, and their gradients.
//!
//! ```text
//! out[r] = a[r] · b[type of r]             tiles of 64 rows of one type and 64 columns
//! d a[r] = grad[r] · bᵀ[type of r]         the same with transposed matrices
//! d b[t] = Σ a[r]ᵀ · grad[r] over rows of type t     tiles of 64 by 64, rows in runs of 1024
//! ```
//! A block of 256 threads computes a tile, with 4 × 4 entries per thread, from parts of both operands in shared memory.
//! Every sum runs over its terms in ascending order, so results repeat bit for bit.

use std::sync::Arc;

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::Shape;
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{Permutation, Segments, TypedPlan};
use cubecl::prelude::*;
use cubecl::{CubeCount, CubeDim, calculate_cube_count_elemwise};

use crate::device::check::Call;
use crate::message::chunk_sums::combine;
use burn_gnn_graph::{Bytes, CountBytes};

use crate::device::launch::{address, arg, empty, reshaped, wide, zeros};
use crate::device::upload::{device_bytes, upload};

/// Rows and columns of a tile.
const TILE: usize = 64;
/// Number of terms of the sums that are in shared memory at a time.
const DEPTH: usize = 16;
/// Threads per block: 16 × 16, each with 4 × 4 entries of the tile.
const THREADS: usize = 256;
/// Number of rows whose outer products a thread block adds.
const RUN: usize = 1024;

/// Rows grouped by type, on a device; cached with the segments of the types.
#[derive(Clone, Debug)]
pub(crate) struct TypedRows {
    types: usize,
    rows: usize,
    /// Type, first row and last row of each tile of the product, as three concatenated lists.
    tiles: CubeTensor,
    num_tiles: usize,
    /// The same for the runs of the gradient of matrices.
    runs: CubeTensor,
    num_runs: usize,
    /// The types, followed by the first run of each type and the number of runs.
    runs_of_types: CubeTensor,
    order: Option<CubeTensor>,
}

impl CountBytes for TypedRows {
    fn bytes(&self) -> Bytes {
        [&self.tiles, &self.runs, &self.runs_of_types]
            .into_iter()
            .chain(&self.order)
            .map(device_bytes)
            .sum()
    }
}

impl TypedRows {
    /// The rows of segment `t` have type `t`; with `order`, segments are ranges of `order`.
    ///
    /// # Panics
    /// If the arrays are larger than a buffer of the device.
    #[track_caller]
    pub(crate) fn of(
        segments: &Segments,
        order: Option<&Permutation>,
        device: &CubeDevice,
    ) -> Arc<Self> {
        segments.attached().get_or_insert((device.clone(), order.is_some()), || {
            Self::upload(segments, order, device)
        })
    }
    #[track_caller]
    fn upload(segments: &Segments, order: Option<&Permutation>, device: &CubeDevice) -> Self {
        let (offsets, rows) = (segments.offsets(), segments.num_rows());
        let pieces = |len: usize| {
            let (mut of_type, mut starts, mut endpoints, mut first) =
                (vec![], vec![], vec![], vec![0u32]);
            for (t, w) in offsets.windows(2).enumerate() {
                for start in (w[0]..w[1]).step_by(len) {
                    of_type.push(t as u32);
                    starts.push(start);
                    endpoints.push(w[1].min(start.saturating_add(len as u32)));
                }
                first.push(of_type.len() as u32);
            }
            let n = of_type.len();
            of_type.extend(starts);
            of_type.extend(endpoints);
            (of_type, n, first)
        };
        let ((tiles, num_tiles, _), (runs, num_runs, first)) = (pieces(TILE), pieces(RUN));
        let runs_of_types: Vec<u32> = (0..segments.len() as u32).chain(first).collect();
        Self {
            types: segments.len(),
            rows,
            tiles: upload("tiles of typed rows", &tiles, device),
            num_tiles,
            runs: upload("runs of typed rows", &runs, device),
            num_runs,
            runs_of_types: upload("runs of typed rows", &runs_of_types, device),
            order: order.map(|order| upload("order of typed rows", order, device)),
        }
    }
    /// Numbers of blocks, rows and columns of matrices of this shape, which has one matrix per type.
    #[track_caller]
    fn blocks(&self, shape: &Shape) -> [usize; 3] {
        match shape[..] {
            [types, rows, columns] if types == self.types => [1, rows, columns],
            [types, blocks, rows, columns] if types == self.types => [blocks, rows, columns],
            ref other => {
                unreachable!("a plan has a matrix for each of {} types, got {other:?}", self.types)
            }
        }
    }
}

/// The row at position `p` of the rows sorted by type.
#[cube]
fn row_at(order: &ComptimeOption<Box<[u32]>>, p: usize) -> usize {
    #[comptime]
    match order {
        ComptimeOption::Some(order) => order[p] as usize,
        ComptimeOption::None => p,
    }
}

/// The entries of a thread: four rows of four columns.
#[cube]
fn no_sums<A: Float>() -> Array<Vector<A, Const<4>>> {
    let mut sums = Array::<Vector<A, Const<4>>>::new(4usize);
    #[unroll]
    for i in 0..4usize {
        sums[i] = Vector::<A, Const<4>>::new(A::new(0.0_f32));
    }
    sums
}

/// `sums[i] += left[i] · right` for the four rows of a thread and all terms in shared memory. All threads of a block must
/// call it, because it has barriers before and after.
#[cube]
fn add_outer<A: Float>(
    sums: &mut Array<Vector<A, Const<4>>>,
    left: &Shared<[A]>,
    right: &Shared<[A]>,
    top: usize,
    side: usize,
) {
    sync_cube();
    #[unroll]
    for k in 0..DEPTH {
        let mut columns = Vector::<A, Const<4>>::new(right[k * TILE + side]);
        columns.insert(1usize, right[k * TILE + side + 1]);
        columns.insert(2usize, right[k * TILE + side + 2]);
        columns.insert(3usize, right[k * TILE + side + 3]);
        #[unroll]
        for i in 0..4usize {
            sums[i] += Vector::<A, Const<4>>::new(left[k * TILE + top + i]) * columns;
        }
    }
    sync_cube();
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn multiply_kernel<F: Float, A: Float>(
    a: &[F],
    b: &[F],
    tiles: &[u32],
    order: &ComptimeOption<Box<[u32]>>,
    out: &mut [F],
    num_tiles: usize,
    // Tiles of columns, blocks of a matrix, terms of a sum and columns of a block.
    across: usize,
    blocks: usize,
    depth: usize,
    columns: usize,
    // Whether matrices are stored transposed, `[columns, depth]`.
    #[comptime] transposed: bool,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let cube = CUBE_POS;
    let here = cube < num_tiles * blocks * across;
    let tile = select(here, cube / (blocks * across), 0usize);
    let block = (cube / across) % blocks;
    let first_column = (cube % across) * TILE;
    let of_type = tiles[tile] as usize;
    let first = tiles[num_tiles + tile] as usize;
    let last = tiles[2 * num_tiles + tile] as usize;
    let unit = UNIT_POS as usize;
    let top = unit / 16 * 4;
    let side = unit % 16 * 4;
    let matrix = (of_type * blocks + block) * depth * columns;

    let mut left = Shared::<[A]>::new_slice(comptime!(TILE * DEPTH));
    let mut right = Shared::<[A]>::new_slice(comptime!(TILE * DEPTH));
    let zero = A::new(0.0_f32);
    let mut sums = no_sums::<A>();
    let mut from = 0usize;
    while from < depth {
        #[unroll]
        for part in 0..comptime!(TILE * DEPTH / THREADS) {
            // Adjacent threads read adjacent terms of a row.
            let at = part * THREADS + unit;
            let (i, k) = (at / DEPTH, at % DEPTH);
            let mut x = zero;
            if first + i < last && from + k < depth {
                x = A::cast_from(a[(row_at(order, first + i) * blocks + block) * depth + from + k]);
            }
            left[k * TILE + i] = x;
            let mut y = zero;
            if comptime!(transposed) {
                if first_column + i < columns && from + k < depth {
                    y = A::cast_from(b[matrix + (first_column + i) * depth + from + k]);
                }
                right[k * TILE + i] = y;
            } else {
                let (k, j) = (at / TILE, at % TILE);
                if first_column + j < columns && from + k < depth {
                    y = A::cast_from(b[matrix + (from + k) * columns + first_column + j]);
                }
                right[k * TILE + j] = y;
            }
        }
        add_outer::<A>(&mut sums, &left, &right, top, side);
        from += DEPTH;
    }
    if here {
        #[unroll]
        for i in 0..4usize {
            if first + top + i < last {
                let base = (row_at(order, first + top + i) * blocks + block) * columns;
                #[unroll]
                for j in 0..4usize {
                    if first_column + side + j < columns {
                        out[base + first_column + side + j] = F::cast_from(sums[i].extract(j));
                    }
                }
            }
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn outer_kernel<F: Float, A: Float>(
    a: &[F],
    grad: &[F],
    runs: &[u32],
    order: &ComptimeOption<Box<[u32]>>,
    parts: &mut [A],
    num_runs: usize,
    // Tiles of rows and columns of a matrix, its blocks, and rows and columns of a block.
    down: usize,
    across: usize,
    blocks: usize,
    rows: usize,
    columns: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let cube = CUBE_POS;
    let here = cube < num_runs * blocks * down * across;
    let run = select(here, cube / (blocks * down * across), 0usize);
    let block = (cube / (down * across)) % blocks;
    let first_row = (cube / across) % down * TILE;
    let first_column = (cube % across) * TILE;
    let first = runs[num_runs + run] as usize;
    let last = runs[2 * num_runs + run] as usize;
    let unit = UNIT_POS as usize;
    let top = unit / 16 * 4;
    let side = unit % 16 * 4;

    let mut left = Shared::<[A]>::new_slice(comptime!(TILE * DEPTH));
    let mut right = Shared::<[A]>::new_slice(comptime!(TILE * DEPTH));
    let zero = A::new(0.0_f32);
    let mut sums = no_sums::<A>();
    let mut from = first;
    while from < last {
        #[unroll]
        for part in 0..comptime!(TILE * DEPTH / THREADS) {
            let at = part * THREADS + unit;
            let (k, i) = (at / TILE, at % TILE);
            let mut x = zero;
            let mut y = zero;
            if from + k < last {
                let row = row_at(order, from + k) * blocks + block;
                if first_row + i < rows {
                    x = A::cast_from(a[row * rows + first_row + i]);
                }
                if first_column + i < columns {
                    y = A::cast_from(grad[row * columns + first_column + i]);
                }
            }
            left[k * TILE + i] = x;
            right[k * TILE + i] = y;
        }
        add_outer::<A>(&mut sums, &left, &right, top, side);
        from += DEPTH;
    }
    if here {
        let matrix = (run * blocks + block) * rows * columns;
        #[unroll]
        for i in 0..4usize {
            #[unroll]
            for j in 0..4usize {
                if first_row + top + i < rows && first_column + side + j < columns {
                    parts[matrix + (first_row + top + i) * columns + first_column + side + j] =
                        sums[i].extract(j);
                }
            }
        }
    }
}

fn thread_blocks(client: &cubecl::client::Client, n: usize) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new_1d(THREADS as u32);
    (calculate_cube_count_elemwise(client, n * THREADS, dim), dim)
}

/// The product of every row of `a` with the matrix of its type.
///
/// # Shapes
/// - `a`: `[rows, d_input]`; `b`: `[types, d_input, d_output]`
/// - returns `[rows, d_output]`
///
/// If `transposed` is set, rows `[rows, d_output]` are multiplied with the transposed matrices, which returns
/// `[rows, d_input]`. Applied to the gradient of the result, this is the gradient of `a`.
///
/// # Semantics
/// f16 and bf16 are summed in f32 and rounded once.
///
/// # Panics
/// If an operand has another shape, element type or device, or the device has thread blocks of fewer than 256 threads.
#[track_caller]
pub fn typed_mm(plan: &TypedPlan, a: CubeTensor, b: CubeTensor, transposed: bool) -> CubeTensor {
    let index = TypedRows::of(plan.offsets(), plan.permutation(), &a.device);
    by_type(a, b, &index, plan.b_shape(), transposed)
}

/// [`typed_mm`] with matrices `[types, rows, columns]` or block-diagonal matrices `[types, blocks, rows, columns]`.
#[track_caller]
pub(crate) fn by_type(
    a: CubeTensor,
    b: CubeTensor,
    index: &TypedRows,
    shape: Shape,
    transposed: bool,
) -> CubeTensor {
    let call = Call::new("typed_mm", "a", &a);
    let [blocks, input, output] = index.blocks(&shape);
    let (depth, columns) = if transposed { (output, input) } else { (input, output) };
    let size = product([blocks, input, output]);
    let (a, b) = (
        call.rows("a", a, index.rows, product([blocks, depth])),
        call.rows("b", b, index.types, size),
    );
    let shape = Shape::from(vec![index.rows, blocks * columns]);
    if shape.num_elements() == 0 || depth == 0 {
        return zeros(&a, shape, a.dtype);
    }
    let out = empty(&a, shape, a.dtype);
    let across = columns.div_ceil(TILE);
    let (count, dim) = thread_blocks(&out.client, index.num_tiles * blocks * across);
    // SAFETY: tiles cover the rows by type, each once (they are segments, and `order` a permutation), which are rows of
    // `a` and `out`, and name matrices of `b` (checked above); what lies beyond a row, a matrix or the sum is neither
    // read nor written.
    unsafe {
        multiply_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([&a, &b, &out], index.num_tiles * blocks * across * THREADS),
            arg(&a),
            arg(&b),
            arg(&index.tiles),
            index.order.as_ref().map(arg).into(),
            arg(&out),
            index.num_tiles,
            across,
            blocks,
            depth,
            columns,
            transposed,
            [elem(a.dtype), elem(wide(a.dtype))],
        );
    }
    out
}

/// The number of entries of a table, with a check for overflow.
#[track_caller]
fn product<const N: usize>(sizes: [usize; N]) -> usize {
    let entries = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    entries.unwrap_or_else(|| panic!("typed_mm: a table of {sizes:?} is too large"))
}

/// Gradient of the matrices of [`typed_mm`].
///
/// # Shapes
/// - `grad`: `[rows, d_output]`; `a`: `[rows, d_input]`
/// - returns `[types, d_input, d_output]`; 0 for types without rows
///
/// # Cost
/// Temporary memory of one matrix per 1024 rows of a type, in the accumulator type.
///
/// # Panics
/// If an operand has another shape, element type or device, or the device has thread blocks of fewer than 256 threads.
#[track_caller]
pub fn typed_mm_grad_b(plan: &TypedPlan, grad: CubeTensor, a: CubeTensor) -> CubeTensor {
    let index = TypedRows::of(plan.offsets(), plan.permutation(), &grad.device);
    by_type_grad_b(grad, a, &index, plan.b_shape())
}

/// [`typed_mm_grad_b`] with the shapes of [`by_type`].
#[track_caller]
pub(crate) fn by_type_grad_b(
    grad: CubeTensor,
    a: CubeTensor,
    index: &TypedRows,
    shape: Shape,
) -> CubeTensor {
    let call = Call::new("typed_mm_grad_b", "grad", &grad);
    let [blocks, rows, columns] = index.blocks(&shape);
    let grad = call.rows("grad", grad, index.rows, product([blocks, columns]));
    let a = call.rows("a", a, index.rows, product([blocks, rows]));
    let size = product([blocks, rows, columns]);
    let out = empty(&a, shape.clone(), a.dtype);
    if shape.num_elements() == 0 || index.num_runs == 0 {
        return zeros(&a, shape, a.dtype);
    }
    let sums = wide(a.dtype);
    let parts = empty(&a, Shape::from(vec![index.num_runs, size]), sums);
    let (down, across) = (rows.div_ceil(TILE), columns.div_ceil(TILE));
    let n = index.num_runs * blocks * down * across;
    let (count, dim) = thread_blocks(&out.client, n);
    // SAFETY: runs cover the rows by type, each once (they are segments, and `order` a permutation), which are rows of
    // `a` and `grad` (checked above); `parts` has a matrix for every run, and what lies beyond a matrix or a run is
    // neither read nor written.
    unsafe {
        outer_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([&a, &grad, &parts], n * THREADS),
            arg(&a),
            arg(&grad),
            arg(&index.runs),
            index.order.as_ref().map(arg).into(),
            arg(&parts),
            index.num_runs,
            down,
            across,
            blocks,
            rows,
            columns,
            [elem(a.dtype), elem(sums)],
        );
    }
    combine(&parts, &index.runs_of_types, index.types, None, &out, size);
    reshaped(out, shape)
}
