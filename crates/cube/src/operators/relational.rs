//! Relational aggregation, `out[v] = Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r`, and its gradients.
//!
//! The module `relational` of `burn-gnn-cpu` explains the algorithm. On a GPU it is composed of three kernels: edges are
//! grouped into pairs of a node and a relation, the rows of each pair are summed, and then there is one matrix product per
//! pair instead of one per edge:
//!
//! ```text
//! rows[pair] = Σ norm[e] · x[u] over the edges of the pair;  products = rows · W_r;  out[v] = Σ products of its pairs
//! ```

use std::sync::Arc;

use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, CountBytes, Relation};
use burn_gnn_plan::{
    BinaryOp, BroadcastError, GsddmmPlan, GspmmPlan, Reduce, RelationalIndex, RelationalPlan,
    SddmmOp, Segments, Target,
};

use crate::device::check::Call;
use crate::device::launch::{reshaped, wide};
use crate::device::upload::{device_bytes, upload_floats};
use crate::operators::gather_scatter::{RowIndex, gather_rows};
use crate::operators::gsddmm::gsddmm;
use crate::operators::gspmm::sums;
use crate::operators::typed::{TypedRows, by_type, by_type_grad_b};

/// Pairs of a node and a relation, sorted by relation, then by node.
#[derive(Debug)]
struct Pairs {
    /// Edges from the nodes at the other endpoint to pairs, with the original edge ids.
    edges: Relation,
    /// Edges from pairs to their nodes.
    nodes: Relation,
    /// The node of each pair.
    node: RowIndex,
    /// The pairs of each relation.
    by_relation: Segments,
}

impl CountBytes for Pairs {
    fn bytes(&self) -> Bytes {
        self.edges.bytes()
            + self.nodes.bytes()
            + self.node.bytes()
            + self.by_relation.attached().bytes()
    }
}

impl Pairs {
    /// `near` is the node of the pair of each edge, and `far` the node at the other endpoint, each with the number of nodes.
    fn new(
        (near, near_nodes): (&[u32], usize),
        (far, far_nodes): (&[u32], usize),
        (types, num_relations): (&[u32], usize),
    ) -> Self {
        let mut order: Vec<u32> = (0..near.len() as u32).collect();
        order.sort_by_key(|&e| (types[e as usize], near[e as usize]));
        let (mut pair_of, mut node, mut lengths) =
            (vec![0u32; near.len()], Vec::<u32>::new(), vec![0usize; num_relations]);
        let mut last = None;
        for &e in &order {
            let key = (types[e as usize], near[e as usize]);
            if last != Some(key) {
                node.push(key.1);
                lengths[key.0 as usize] += 1;
                last = Some(key);
            }
            pair_of[e as usize] = node.len() as u32 - 1;
        }
        let valid = |r: Result<Relation, _>| {
            r.unwrap_or_else(|e| unreachable!("pairs are made of edges of a relation: {e}"))
        };
        let pairs = node.len();
        let index = RowIndex::new(&node, near_nodes)
            .unwrap_or_else(|e| unreachable!("pairs have nodes of a relation: {e}"));
        Self {
            edges: valid(Relation::from_coo(far_nodes, pairs, far.to_vec(), pair_of)),
            nodes: valid(Relation::from_coo(pairs, near_nodes, (0..pairs as u32).collect(), node)),
            node: index,
            by_relation: Segments::from_lengths(&lengths),
        }
    }
    fn rows(&self, device: &CubeDevice) -> Arc<TypedRows> {
        TypedRows::of(&self.by_relation, None, device)
    }
}

/// The pairs of destinations or of sources, cached with the index.
fn pairs(index: &RelationalIndex, of: Target) -> Arc<Pairs> {
    let by_src = of == Target::Src;
    let make = || {
        let r = index.relation();
        let (src, dst) = ((r.src(), r.num_src()), (r.dst(), r.num_dst()));
        let (near, far) = if by_src { (src, dst) } else { (dst, src) };
        Pairs::new(near, far, (index.types(), index.num_relations()))
    };
    index.attached().get_or_insert(if by_src { "by source" } else { "by destination" }, make)
}

/// For every edge, 1 / (number of edges of its relation into its destination), in the accumulator type; `None` unless the
/// index is a mean.
fn shares(index: &RelationalIndex, like: &CubeTensor) -> Option<CubeTensor> {
    index.is_mean().then(|| {
        let dtype = wide(like.dtype);
        let make = || {
            let shares: Vec<f64> =
                index.pair_counts().iter().map(|&n| 1.0 / f64::from(n)).collect();
            upload_floats(&shares, &like.device, dtype)
        };
        CubeTensor::clone(&index.attached().get_or_insert_sized(
            (like.device.clone(), dtype),
            make,
            device_bytes,
        ))
    })
}

/// The reducer of the messages of a pair of a destination.
fn reduce(index: &RelationalIndex) -> Reduce {
    if index.is_mean() { Reduce::Mean } else { Reduce::Sum }
}

/// The product of two numbers per edge.
fn times(relation: &Relation, a: CubeTensor, b: CubeTensor) -> CubeTensor {
    gsddmm(
        &planned(GsddmmPlan::new(relation, SddmmOp::Mul, [Target::Edge; 2], [&[], &[]])),
        Some(a),
        Some(b),
    )
}

/// Unwraps a plan whose operands are known to broadcast.
#[track_caller]
fn planned<P>(plan: Result<P, BroadcastError>) -> P {
    match plan {
        Ok(plan) => plan,
        Err(misfit) => panic!("relational: rows are too long: {misfit:?}"),
    }
}

/// Reduces messages `factor · x` at the destinations of `relation`, in type `dtype`.
#[track_caller]
fn by_row(
    relation: &Relation,
    reduce: Reduce,
    x: CubeTensor,
    factors: Option<CubeTensor>,
    dtype: DType,
) -> CubeTensor {
    let width = [Call::new("relational", "x", &x).table("x", &x)[1]];
    let op = if factors.is_some() { BinaryOp::Mul } else { BinaryOp::CopyLhs };
    let rhs: &[usize] = if factors.is_some() { &[] } else { &width };
    sums(&planned(GspmmPlan::new(relation, op, reduce, &width, rhs)), Some(x), factors, Some(dtype))
}

/// Converts to the accumulator type, so that intermediate results are not rounded.
fn widened(x: CubeTensor) -> CubeTensor {
    let dtype = wide(x.dtype);
    cast(x, dtype)
}

/// Relational aggregation.
///
/// # Shapes
/// - `x`: `[num_src, blocks · d_input]`; `weight`: `[relations, d_input, d_output]` or `[relations, blocks, d_input,
///   d_output]`; `norm`: `[num_edges]`
/// - returns `[num_dst, blocks · d_output]`
///
/// # Semantics
/// Destinations without in-edges get 0. f16 and bf16 are computed in f32 and rounded once.
///
/// # Cost
/// Temporary memory of one input row and one output row per pair of a relation and a destination.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational(
    plan: &RelationalPlan,
    x: CubeTensor,
    weight: CubeTensor,
    norm: Option<CubeTensor>,
) -> CubeTensor {
    let (pairs, dtype) = (pairs(plan.index(), Target::Dst), x.dtype);
    let rows = by_row(&pairs.edges, reduce(plan.index()), x, norm, wide(dtype));
    through(plan, &pairs, rows, weight, false, dtype)
}

/// Gradient of the input of [`relational`], `[num_src, blocks · d_input]`, from the gradient of its result,
/// `[num_dst, blocks · d_output]`.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_x(
    plan: &RelationalPlan,
    grad: CubeTensor,
    weight: CubeTensor,
    norm: Option<CubeTensor>,
) -> CubeTensor {
    let (pairs, dtype) = (pairs(plan.index(), Target::Src), grad.dtype);
    // The divisors of a mean belong to destinations, so every edge has its own factor, which is not rounded to 16 bits.
    let (grad, factors) = match shares(plan.index(), &grad) {
        None => (grad, norm),
        Some(shares) => {
            let factors = match norm {
                Some(norm) => times(plan.index().relation(), widened(norm), shares),
                None => shares,
            };
            (widened(grad), Some(factors))
        }
    };
    let rows = by_row(&pairs.edges, Reduce::Sum, grad, factors, wide(dtype));
    through(plan, &pairs, rows, weight, true, dtype)
}

/// Multiplies the rows of pairs with the matrices of their relations, and sums the products by node.
#[track_caller]
fn through(
    plan: &RelationalPlan,
    pairs: &Pairs,
    rows: CubeTensor,
    weight: CubeTensor,
    transposed: bool,
    dtype: DType,
) -> CubeTensor {
    let index = pairs.rows(&rows.device);
    let products = by_type(rows, widened(weight), &index, plan.weight_shape(), transposed);
    by_row(&pairs.nodes, Reduce::Sum, products, None, dtype)
}

/// Gradient of the weights of [`relational`], with their shape.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_weight(
    plan: &RelationalPlan,
    grad: CubeTensor,
    x: CubeTensor,
    norm: Option<CubeTensor>,
) -> CubeTensor {
    let (pairs, dtype, device) =
        (pairs(plan.index(), Target::Dst), grad.dtype, grad.device.clone());
    let rows = by_row(&pairs.edges, reduce(plan.index()), x, norm, wide(dtype));
    let d = by_type_grad_b(
        gather_rows(widened(grad), &pairs.node),
        rows,
        &pairs.rows(&device),
        plan.weight_shape(),
    );
    cast(d, dtype)
}

/// Gradient of the factors of edges of [`relational`], `[num_edges]`.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_norm(
    plan: &RelationalPlan,
    grad: CubeTensor,
    x: CubeTensor,
    weight: CubeTensor,
) -> CubeTensor {
    let (pairs, dtype, device) =
        (pairs(plan.index(), Target::Dst), grad.dtype, grad.device.clone());
    let shares = shares(plan.index(), &grad);
    let back = by_type(
        gather_rows(widened(grad), &pairs.node),
        widened(weight),
        &pairs.rows(&device),
        plan.weight_shape(),
        true,
    );
    let width = [Call::new("relational_grad_norm", "x", &x).table("x", &x)[1]];
    let dot = planned(GsddmmPlan::new(
        &pairs.edges,
        SddmmOp::Dot,
        [Target::Src, Target::Dst],
        [&width, &width],
    ));
    let d = gsddmm(&dot, Some(widened(x)), Some(back));
    let d = reshaped(d, Shape::from(vec![plan.index().relation().num_edges()]));
    let d = match shares {
        Some(shares) => times(plan.index().relation(), d, shares),
        None => d,
    };
    cast(d, dtype)
}
