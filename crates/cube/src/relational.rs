//! Relational aggregation, `out[v] = Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r`, and its gradients.
//!
//! Edges are grouped into pairs of a node and a relation. Rows are summed pair by pair first, so every pair, not every
//! edge, is multiplied with a matrix:
//!
//! ```text
//! rows[pair] = Σ norm[e] · x[u] over the edges of the pair;  products = rows · W_r;  out[v] = Σ products of its pairs
//! ```

use std::sync::Arc;

use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Derived, Relation};
use burn_gnn_plan::{BinaryOp, GsddmmPlan, GspmmPlan, Misfit, Reduce, SddmmOp, Target};

use crate::check::Call;
use crate::device::device_bytes;
use crate::gsddmm::gsddmm;
use crate::gspmm::sums;
use crate::launch::{reshaped, wide};
use crate::rows::{RowIndex, gather_rows};
use crate::typed::{TypedRows, typed_mm, typed_mm_grad_b};

/// Edges of several relations, grouped once and kept, on the host and on devices. Cloning costs one reference count.
#[derive(Clone, Debug)]
pub struct RelationalRows(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    relation: Relation,
    types: Vec<u32>,
    num_relations: usize,
    is_mean: bool,
    by_dst: Derived<Pairs>,
    by_src: Derived<Pairs>,
    attached: burn_gnn_graph::Attached,
}

/// Pairs of a node and a relation, relation by relation, nodes ascending.
#[derive(Debug)]
struct Pairs {
    /// From the nodes at the other endpoint to pairs, edges in their order.
    edges: Relation,
    /// From pairs to nodes.
    nodes: Relation,
    /// The node of each pair.
    node: RowIndex,
    /// First pair of each relation, and their number.
    offsets: Vec<u32>,
    attached: burn_gnn_graph::Attached,
}

impl Pairs {
    /// `near` is the node of each edge that its pair is of, `far` that at the other endpoint.
    fn new(near: &[u32], far: &[u32], types: &[u32], num_relations: usize, nodes: [usize; 2]) -> Self {
        let mut order: Vec<u32> = (0..near.len() as u32).collect();
        order.sort_by_key(|&e| (types[e as usize], near[e as usize]));
        let (mut pair_of, mut node, mut offsets) = (vec![0u32; near.len()], Vec::<u32>::new(), vec![0u32; num_relations + 1]);
        let mut last = None;
        for &e in &order {
            let key = (types[e as usize], near[e as usize]);
            if last != Some(key) {
                node.push(key.1);
                offsets[key.0 as usize + 1] += 1;
                last = Some(key);
            }
            pair_of[e as usize] = node.len() as u32 - 1;
        }
        for r in 0..num_relations {
            offsets[r + 1] += offsets[r];
        }
        let [near_nodes, far_nodes] = nodes;
        let valid = |r: Result<Relation, _>| r.unwrap_or_else(|e| unreachable!("pairs are made of edges of a relation: {e}"));
        let pairs = node.len();
        let index = RowIndex::new(&node, near_nodes).unwrap_or_else(|e| unreachable!("pairs have nodes of a relation: {e}"));
        Self {
            edges: valid(Relation::from_coo(far_nodes, pairs, far.to_vec(), pair_of)),
            nodes: valid(Relation::from_coo(pairs, near_nodes, (0..pairs as u32).collect(), node)),
            node: index,
            offsets,
            attached: Default::default(),
        }
    }
    fn rows(&self, device: &CubeDevice) -> Arc<TypedRows> {
        self.attached.get_or_insert(device.clone(), || TypedRows::upload(&self.offsets, None, device))
    }
}

impl RelationalRows {
    /// `types[e]`, below `num_relations`, is the relation of edge `e`; with `is_mean` every message is divided by the
    /// number of edges of its relation at its destination.
    ///
    /// # Panics
    /// If there is not one type for every edge, or a type is not below `num_relations`.
    #[track_caller]
    pub fn new(relation: &Relation, types: &[u32], num_relations: usize, is_mean: bool) -> Self {
        assert_eq!(types.len(), relation.num_edges(), "relational: one type for every edge");
        let far = types.iter().position(|&t| t as usize >= num_relations);
        assert!(far.is_none(), "relational: types must lie below {num_relations}, that of edge {far:?} does not");
        Self(Arc::new(Inner {
            relation: relation.clone(),
            types: types.to_vec(),
            num_relations,
            is_mean,
            by_dst: Derived::new(),
            by_src: Derived::new(),
            attached: Default::default(),
        }))
    }
    fn by_dst(&self) -> &Pairs {
        self.0.by_dst.get_or_compute(|| {
            let r = &self.0.relation;
            Pairs::new(r.dst(), r.src(), &self.0.types, self.0.num_relations, [r.num_dst(), r.num_src()])
        })
    }
    fn by_src(&self) -> &Pairs {
        self.0.by_src.get_or_compute(|| {
            let r = &self.0.relation;
            Pairs::new(r.src(), r.dst(), &self.0.types, self.0.num_relations, [r.num_src(), r.num_dst()])
        })
    }
    /// 1 over the number of edges of its relation at its destination, for every edge, in the type of sums; nothing
    /// without mean.
    fn shares(&self, like: &CubeTensor) -> Option<CubeTensor> {
        self.0.is_mean.then(|| {
            let dtype = wide(like.dtype);
            let make = || {
                let pairs = &self.by_dst().edges;
                let degrees: Vec<u32> = pairs.in_degrees().collect();
                let shares: Vec<f64> = pairs.dst().iter().map(|&p| 1.0 / f64::from(degrees[p as usize])).collect();
                crate::device::upload_floats(&shares, &like.device, dtype)
            };
            CubeTensor::clone(&self.0.attached.get_or_insert_sized((like.device.clone(), dtype), make, device_bytes))
        })
    }
    /// How messages of a pair of a destination become a row: the mean needs no factors there.
    fn reduce(&self) -> Reduce {
        if self.0.is_mean { Reduce::Mean } else { Reduce::Sum }
    }
    fn times(&self, a: CubeTensor, b: CubeTensor) -> CubeTensor {
        gsddmm(&planned(GsddmmPlan::new(&self.0.relation, SddmmOp::Mul, [Target::Edge; 2], [&[], &[]])), Some(a), Some(b))
    }
}

/// A plan whose operands broadcast.
#[track_caller]
fn planned<P>(plan: Result<P, Misfit>) -> P {
    match plan {
        Ok(plan) => plan,
        Err(misfit) => panic!("relational: rows are too long: {misfit:?}"),
    }
}

/// Messages `factor · x` by the destinations of `relation`, in type `dtype`.
#[track_caller]
fn by_row(relation: &Relation, reduce: Reduce, x: CubeTensor, factors: Option<CubeTensor>, dtype: DType) -> CubeTensor {
    let width = [Call::new("relational", "x", &x).table("x", &x)[1]];
    let op = if factors.is_some() { BinaryOp::Mul } else { BinaryOp::CopyLhs };
    let rhs: &[usize] = if factors.is_some() { &[] } else { &width };
    sums(&planned(GspmmPlan::new(relation, op, reduce, &width, rhs)), Some(x), factors, dtype)
}

/// In the type of sums, so that what is kept between kernels is not rounded.
fn widened(x: CubeTensor) -> CubeTensor {
    let dtype = wide(x.dtype);
    if x.dtype == dtype { x } else { cast(x, dtype) }
}

/// Relational aggregation.
///
/// # Shapes
/// - `x`: `[num_src, blocks · d_input]`; `weight`: `[relations, d_input, d_output]` or `[relations, blocks, d_input,
///   d_output]`; `norm`: `[num_edges]`
/// - returns `[num_dst, blocks · d_output]`
///
/// # Semantics
/// 0 without in-edges. f16 and bf16 are computed in f32 and rounded once.
///
/// # Cost
/// Beside the result a row of input and one of output for every pair of a relation and a destination.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational(x: CubeTensor, weight: CubeTensor, norm: Option<CubeTensor>, index: &RelationalRows) -> CubeTensor {
    let (pairs, dtype) = (index.by_dst(), x.dtype);
    let rows = by_row(&pairs.edges, index.reduce(), x, norm, wide(dtype));
    through(pairs, rows, weight, false, dtype)
}

/// Gradient of the input of [`relational`] from that of its result, `[num_dst, blocks · d_output]`; returns `[num_src,
/// blocks · d_input]`.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_x(grad: CubeTensor, weight: CubeTensor, norm: Option<CubeTensor>, index: &RelationalRows) -> CubeTensor {
    let (pairs, dtype) = (index.by_src(), grad.dtype);
    // Shares belong to destinations, so here every edge has its own; they are not rounded to 16 bits.
    let (grad, factors) = match index.shares(&grad) {
        None => (grad, norm),
        Some(shares) => {
            let factors = match norm {
                Some(norm) => index.times(widened(norm), shares),
                None => shares,
            };
            (widened(grad), Some(factors))
        }
    };
    let rows = by_row(&pairs.edges, Reduce::Sum, grad, factors, wide(dtype));
    through(pairs, rows, weight, true, dtype)
}

/// Rows of pairs times their matrices, by node.
#[track_caller]
fn through(pairs: &Pairs, rows: CubeTensor, weight: CubeTensor, transposed: bool, dtype: DType) -> CubeTensor {
    let index = pairs.rows(&rows.device);
    let products = typed_mm(rows, widened(weight), &index, transposed);
    by_row(&pairs.nodes, Reduce::Sum, products, None, dtype)
}

/// Gradient of the weights of [`relational`]; `shape` is theirs.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_weight(
    grad: CubeTensor,
    x: CubeTensor,
    norm: Option<CubeTensor>,
    index: &RelationalRows,
    shape: Shape,
) -> CubeTensor {
    let (pairs, dtype, device) = (index.by_dst(), grad.dtype, grad.device.clone());
    let rows = by_row(&pairs.edges, index.reduce(), x, norm, wide(dtype));
    let d = typed_mm_grad_b(gather_rows(widened(grad), &pairs.node), rows, &pairs.rows(&device), shape);
    if d.dtype == dtype { d } else { cast(d, dtype) }
}

/// Gradient of the factors of edges of [`relational`], `[num_edges]`.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn relational_grad_norm(grad: CubeTensor, x: CubeTensor, weight: CubeTensor, index: &RelationalRows) -> CubeTensor {
    let (pairs, dtype, device) = (index.by_dst(), grad.dtype, grad.device.clone());
    let shares = index.shares(&grad);
    let back = typed_mm(gather_rows(widened(grad), &pairs.node), widened(weight), &pairs.rows(&device), true);
    let width = [Call::new("relational_grad_norm", "x", &x).table("x", &x)[1]];
    let dot = planned(GsddmmPlan::new(&pairs.edges, SddmmOp::Dot, [Target::Src, Target::Dst], [&width, &width]));
    let d = gsddmm(&dot, Some(widened(x)), Some(back));
    let d = reshaped(d, Shape::from(vec![index.0.relation.num_edges()]));
    let d = match shares {
        Some(shares) => index.times(d, shares),
        None => d,
    };
    if d.dtype == dtype { d } else { cast(d, dtype) }
}
