//! Composes relational aggregation of Burn primitives, one relation at a time.
//!
//! It is the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{DType, IndexingUpdateOp, Shape, Slice, TensorData};

use super::operator::{GradInputs, RelationalGrad};
use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{index, narrow, widen};
use burn_gnn_plan::RelationalPlan;

/// One relation's share of a call.
struct Part<B: Backend> {
    src: IntTensor<B>,
    dst: IntTensor<B>,
    ids: IntTensor<B>,
    edges: usize,
    /// Factors of the messages, `[edges, 1]`.
    mean: Option<FloatTensor<B>>,
}

/// The relations that have edges.
fn parts<'a, B: Backend>(
    plan: &'a RelationalPlan,
    dtype: DType,
    device: &'a Device<B>,
) -> impl Iterator<Item = (usize, Part<B>)> + 'a {
    let (index_of, relation) = (plan.index(), plan.index().relation());
    (0..index_of.num_relations()).filter(|&r| !index_of.edge_ids(r).is_empty()).map(move |r| {
        let ids = index_of.edge_ids(r);
        let mean = index_of.is_mean().then(|| {
            let counts = index_of.pair_counts();
            let values: Vec<f64> =
                ids.iter().map(|&e| 1.0 / f64::from(counts[e as usize])).collect();
            B::float_from_data(TensorData::new(values, [ids.len(), 1]).convert_dtype(dtype), device)
        });
        let endpoints = |of: &[u32]| {
            index::<B>(&ids.iter().map(|&e| of[e as usize]).collect::<Vec<_>>(), device)
        };
        let part = Part {
            src: endpoints(relation.src()),
            dst: endpoints(relation.dst()),
            ids: index::<B>(ids, device),
            edges: ids.len(),
            mean,
        };
        (r, part)
    })
}

impl<B: Backend> Part<B> {
    /// Rows of edges times their factors.
    fn scale(&self, rows: FloatTensor<B>, norm: Option<&FloatTensor<B>>) -> FloatTensor<B> {
        let rows = match norm {
            None => rows,
            Some(norm) => {
                let norm = B::float_select(widen::<B>(norm.clone()), 0, self.ids.clone());
                B::float_mul(rows, B::float_reshape(norm, Shape::from(vec![self.edges, 1])))
            }
        };
        match &self.mean {
            Some(mean) => B::float_mul(rows, mean.clone()),
            None => rows,
        }
    }
    /// `[edges, blocks · width]` as `[blocks, edges, width]`.
    fn split(&self, rows: FloatTensor<B>, blocks: usize, width: usize) -> FloatTensor<B> {
        B::float_swap_dims(
            B::float_reshape(rows, Shape::from(vec![self.edges, blocks, width])),
            0,
            1,
        )
    }
    fn join(&self, rows: FloatTensor<B>, blocks: usize, width: usize) -> FloatTensor<B> {
        B::float_reshape(
            B::float_swap_dims(rows, 0, 1),
            Shape::from(vec![self.edges, blocks * width]),
        )
    }
}

/// `W_r` as `[blocks, rows, columns]`.
fn matrix<B: Backend>(weight: &FloatTensor<B>, r: usize, plan: &RelationalPlan) -> FloatTensor<B> {
    let slice = B::float_slice(weight.clone(), &[Slice::new(r as isize, Some(r as isize + 1), 1)]);
    B::float_reshape(slice, Shape::from(plan.block_shape().to_vec()))
}

fn is_empty(plan: &RelationalPlan) -> bool {
    plan.index().relation().num_edges() == 0 || plan.d_input() == 0 || plan.d_output() == 0
}

pub(super) fn forward<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    norm: Option<FloatTensor<B>>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (x.dtype(), x.device());
    let (x, weight) = (widen::<B>(x), widen::<B>(weight));
    let mut out = B::float_zeros(plan.out_shape(), &device, FloatDType::from(x.dtype()));
    if !is_empty(plan) {
        let [b, i, o] = plan.block_shape();
        for (r, part) in parts::<B>(plan, x.dtype(), &device) {
            let rows = part.scale(B::float_select(x.clone(), 0, part.src.clone()), norm.as_ref());
            let rows = B::float_matmul(part.split(rows, b, i), matrix::<B>(&weight, r, plan));
            out = B::float_select_assign(
                out,
                0,
                part.dst.clone(),
                part.join(rows, b, o),
                IndexingUpdateOp::Add,
            );
        }
    }
    narrow::<B>(out, dtype)
}

pub(super) fn gradient<B: GnnBackend>(op: &RelationalGrad, given: GradInputs<B>) -> Tensors<B> {
    let (GradInputs { grad, x, weight, norm }, plan) = (given, &op.plan);
    if let (true, Some(x), Some(weight)) = (op.norm, &x, &weight) {
        return Tensors::one(grad_norm::<B>(grad, x.clone(), weight.clone(), plan));
    }
    let d_x =
        weight.filter(|_| op.x).map(|weight| grad_x::<B>(grad.clone(), weight, norm.clone(), plan));
    let d_weight = x.filter(|_| op.weight).map(|x| grad_weight::<B>(grad, x, norm, plan));
    d_x.into_iter().chain(d_weight).collect()
}

fn grad_x<B: Backend>(
    grad: FloatTensor<B>,
    weight: FloatTensor<B>,
    norm: Option<FloatTensor<B>>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let (grad, weight) = (widen::<B>(grad), widen::<B>(weight));
    let mut out = B::float_zeros(plan.x_shape(), &device, FloatDType::from(grad.dtype()));
    if !is_empty(plan) {
        let [b, i, o] = plan.block_shape();
        for (r, part) in parts::<B>(plan, grad.dtype(), &device) {
            let rows =
                part.scale(B::float_select(grad.clone(), 0, part.dst.clone()), norm.as_ref());
            let transposed = B::float_swap_dims(matrix::<B>(&weight, r, plan), 1, 2);
            let rows = part.join(B::float_matmul(part.split(rows, b, o), transposed), b, i);
            out = B::float_select_assign(out, 0, part.src.clone(), rows, IndexingUpdateOp::Add);
        }
    }
    narrow::<B>(out, dtype)
}

fn grad_weight<B: Backend>(
    grad: FloatTensor<B>,
    x: FloatTensor<B>,
    norm: Option<FloatTensor<B>>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let (grad, x) = (widen::<B>(grad), widen::<B>(x));
    let mut out = B::float_zeros(plan.weight_shape(), &device, FloatDType::from(grad.dtype()));
    if !is_empty(plan) {
        let [b, i, o] = plan.block_shape();
        for (r, part) in parts::<B>(plan, grad.dtype(), &device) {
            let g = part.scale(B::float_select(grad.clone(), 0, part.dst.clone()), norm.as_ref());
            let rows = part.split(B::float_select(x.clone(), 0, part.src.clone()), b, i);
            let d = B::float_matmul(B::float_swap_dims(rows, 1, 2), part.split(g, b, o));
            let mut shape = plan.weight_shape().to_vec();
            shape[0] = 1;
            let d = B::float_reshape(d, Shape::from(shape));
            out = B::float_slice_assign(out, &[Slice::new(r as isize, Some(r as isize + 1), 1)], d);
        }
    }
    narrow::<B>(out, dtype)
}

fn grad_norm<B: Backend>(
    grad: FloatTensor<B>,
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let (grad, x, weight) = (widen::<B>(grad), widen::<B>(x), widen::<B>(weight));
    let edges = plan.index().relation().num_edges();
    let mut out = B::float_zeros(Shape::from(vec![edges]), &device, FloatDType::from(grad.dtype()));
    if !is_empty(plan) {
        let [b, i, o] = plan.block_shape();
        for (r, part) in parts::<B>(plan, grad.dtype(), &device) {
            let g = part.scale(B::float_select(grad.clone(), 0, part.dst.clone()), None);
            let rows = part.split(B::float_select(x.clone(), 0, part.src.clone()), b, i);
            let rows = part.join(B::float_matmul(rows, matrix::<B>(&weight, r, plan)), b, o);
            let d = B::float_reshape(
                B::float_sum_dim(B::float_mul(rows, g), 1),
                Shape::from(vec![part.edges]),
            );
            out = B::float_select_assign(out, 0, part.ids, d, IndexingUpdateOp::Add);
        }
    }
    narrow::<B>(out, dtype)
}
