//! Computes relational aggregation in Burn primitives, relation by relation: the oracle of tests, and the fallback of
//! backends without kernels.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, IndexingUpdateOp, Shape, Slice};
use burn_gnn_plan::RelationalPlan;

use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{constant, index, narrow, reshape, widen, zeros};
use crate::relational::call::{RelationalGrad, RelationalGradInputs};

/// The edges of one relation.
struct Part<B: Backend> {
    src: IntTensor<B>,
    dst: IntTensor<B>,
    ids: IntTensor<B>,
    edges: usize,
    /// Divisors of messages, `[edges, 1]`.
    mean: Option<FloatTensor<B>>,
}

/// The relations that have edges. Constants have the device and element type of `like`.
fn parts<'a, B: Backend>(
    plan: &'a RelationalPlan,
    like: &'a FloatTensor<B>,
) -> impl Iterator<Item = (usize, Part<B>)> + 'a {
    let (index_of, relation, device) = (plan.index(), plan.index().relation(), like.device());
    (0..index_of.num_relations()).filter(|&r| !index_of.edge_ids(r).is_empty()).map(move |r| {
        let ids = index_of.edge_ids(r);
        let mean = index_of.is_mean().then(|| {
            let counts = index_of.pair_counts();
            let values = ids.iter().map(|&e| f64::from(counts[e as usize])).collect();
            constant::<B>(values, [ids.len(), 1], like)
        });
        let endpoints = |of: &[u32]| {
            index::<B>(&ids.iter().map(|&e| of[e as usize]).collect::<Vec<_>>(), &device)
        };
        let part = Part {
            src: endpoints(relation.src()),
            dst: endpoints(relation.dst()),
            ids: index::<B>(ids, &device),
            edges: ids.len(),
            mean,
        };
        (r, part)
    })
}

impl<B: Backend> Part<B> {
    /// Gathers the source row of each edge.
    fn at_src(&self, x: &FloatTensor<B>) -> FloatTensor<B> {
        B::float_select(x.clone(), 0, self.src.clone())
    }
    /// Gathers the destination row of each edge.
    fn at_dst(&self, x: &FloatTensor<B>) -> FloatTensor<B> {
        B::float_select(x.clone(), 0, self.dst.clone())
    }
    /// Multiplies rows of edges by their factors, and divides them under mean.
    fn scale(&self, rows: FloatTensor<B>, norm: Option<&FloatTensor<B>>) -> FloatTensor<B> {
        let rows = match norm {
            None => rows,
            Some(norm) => {
                let norm = B::float_select(widen::<B>(norm.clone()), 0, self.ids.clone());
                B::float_mul(rows, reshape::<B>(norm, [self.edges, 1]))
            }
        };
        match &self.mean {
            Some(mean) => B::float_div(rows, mean.clone()),
            None => rows,
        }
    }
    /// Converts `[edges, blocks · width]` to `[blocks, edges, width]`.
    fn split(&self, rows: FloatTensor<B>, blocks: usize, width: usize) -> FloatTensor<B> {
        B::float_swap_dims(reshape::<B>(rows, [self.edges, blocks, width]), 0, 1)
    }
    fn join(&self, rows: FloatTensor<B>, blocks: usize, width: usize) -> FloatTensor<B> {
        reshape::<B>(B::float_swap_dims(rows, 0, 1), [self.edges, blocks * width])
    }
}

/// `W_r` as `[blocks, rows, columns]`.
fn matrix<B: Backend>(weight: &FloatTensor<B>, r: usize, plan: &RelationalPlan) -> FloatTensor<B> {
    let slice = B::float_slice(weight.clone(), &[Slice::new(r as isize, Some(r as isize + 1), 1)]);
    reshape::<B>(slice, plan.block_shape())
}

fn is_empty(plan: &RelationalPlan) -> bool {
    plan.index().relation().num_edges() == 0 || plan.d_input() == 0 || plan.d_output() == 0
}

/// Accumulates the contributions of all relations in a tensor of `shape` by calls of `add`. The sum has device and
/// element type of `wide` and is cast to `dtype`.
fn by_relation<B: Backend>(
    plan: &RelationalPlan,
    shape: Shape,
    (wide, dtype): (&FloatTensor<B>, DType),
    add: impl Fn(FloatTensor<B>, usize, &Part<B>) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let out = zeros::<B>(shape, wide);
    if is_empty(plan) {
        return narrow::<B>(out, dtype);
    }
    let out = parts::<B>(plan, wide).fold(out, |out, (r, part)| add(out, r, &part));
    narrow::<B>(out, dtype)
}

/// Scatter-add: `out[index[i]] += rows[i]`.
fn add_rows<B: Backend>(
    out: FloatTensor<B>,
    index: &IntTensor<B>,
    rows: FloatTensor<B>,
) -> FloatTensor<B> {
    B::float_select_assign(out, 0, index.clone(), rows, IndexingUpdateOp::Add)
}

pub(super) fn forward<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    norm: Option<FloatTensor<B>>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let ([b, i, o], dtype) = (plan.block_shape(), x.dtype());
    let (wide, weight) = (widen::<B>(x), widen::<B>(weight));
    by_relation::<B>(plan, plan.out_shape(), (&wide, dtype), |out, r, part| {
        let rows = part.scale(part.at_src(&wide), norm.as_ref());
        let rows = B::float_matmul(part.split(rows, b, i), matrix::<B>(&weight, r, plan));
        add_rows::<B>(out, &part.dst, part.join(rows, b, o))
    })
}

pub(super) fn gradient<B: GnnBackend>(
    op: &RelationalGrad,
    inputs: RelationalGradInputs<B>,
) -> Tensors<B> {
    let (plan, [b, i, o]) = (&op.plan, op.plan.block_shape());
    let (dtype, wide) = (inputs.grad.dtype(), widen::<B>(inputs.grad));
    let [x, weight] = [inputs.x, inputs.weight].map(|x| x.map(widen::<B>));
    let norm = inputs.norm.as_ref();
    let of_x = |weight: &FloatTensor<B>| {
        by_relation::<B>(plan, plan.x_shape(), (&wide, dtype), |out, r, part| {
            let rows = part.split(part.scale(part.at_dst(&wide), norm), b, o);
            let transposed = B::float_swap_dims(matrix::<B>(weight, r, plan), 1, 2);
            add_rows::<B>(out, &part.src, part.join(B::float_matmul(rows, transposed), b, i))
        })
    };
    let of_weight = |x: &FloatTensor<B>| {
        by_relation::<B>(plan, plan.weight_shape(), (&wide, dtype), |out, r, part| {
            let g = part.split(part.scale(part.at_dst(&wide), norm), b, o);
            let rows = part.split(part.at_src(x), b, i);
            let mut shape = plan.weight_shape();
            shape[0] = 1;
            let d = reshape::<B>(B::float_matmul(B::float_swap_dims(rows, 1, 2), g), shape);
            B::float_slice_assign(out, &[Slice::new(r as isize, Some(r as isize + 1), 1)], d)
        })
    };
    let of_norm = |(x, weight): (&FloatTensor<B>, &FloatTensor<B>)| {
        by_relation::<B>(plan, plan.norm_shape(), (&wide, dtype), |out, r, part| {
            let g = part.scale(part.at_dst(&wide), None);
            let rows = part.split(part.at_src(x), b, i);
            let rows = part.join(B::float_matmul(rows, matrix::<B>(weight, r, plan)), b, o);
            let d = reshape::<B>(B::float_sum_dim(B::float_mul(rows, g), 1), [part.edges]);
            add_rows::<B>(out, &part.ids, d)
        })
    };
    let (x, weight) = (x.as_ref(), weight.as_ref());
    [
        weight.filter(|_| op.x).map(of_x),
        x.filter(|_| op.weight).map(of_weight),
        x.zip(weight).filter(|_| op.norm).map(of_norm),
    ]
    .into_iter()
    .flatten()
    .collect()
}
