//! Provides Burn primitives that several reference implementations share.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, BoolDType, FloatDType, TensorMetadata, get_device_settings};
use burn::tensor::{DType, IndexingUpdateOp, Int, Shape, Tensor, TensorData};
use burn_gnn_plan::{DropoutPlan, RowMap, SddmmOp, Side, with_rows};

/// Casts 16-bit floats to f32, in which kernels sum them.
pub(crate) fn widen<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    match x.dtype() {
        DType::F16 | DType::BF16 => B::float_cast(x, FloatDType::F32),
        _ => x,
    }
}

/// Casts to the element type of the operands.
pub(crate) fn narrow<B: Backend>(x: FloatTensor<B>, to: DType) -> FloatTensor<B> {
    if x.dtype() == to { x } else { B::float_cast(x, FloatDType::from(to)) }
}

/// Row numbers as an index tensor of 32-bit integers, or of 64-bit integers if a number does not fit.
pub(crate) fn index<B: Backend>(values: &[u32], device: &Device<B>) -> IntTensor<B> {
    B::int_from_data(index_data(values), device)
}

/// As [`index`], for dispatched tensors.
pub(crate) fn index_tensor(values: &[u32], device: &burn::tensor::Device) -> Tensor<1, Int> {
    let data = index_data(values);
    let dtype = data.dtype();
    Tensor::from_data(data, (device, dtype))
}

fn index_data(values: &[u32]) -> TensorData {
    let n = values.len();
    // A GPU may lack 64-bit integers, but it does not hold tensors of so many rows.
    if values.iter().all(|&v| i32::try_from(v).is_ok()) {
        TensorData::new(values.iter().map(|&v| v as i32).collect::<Vec<_>>(), [n])
    } else {
        TensorData::new(values.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(), [n])
    }
}

/// The storage type of bools on the device of `x`.
pub(crate) fn bools<B: Backend>(x: &FloatTensor<B>) -> BoolDType {
    get_device_settings::<B>(&x.device()).bool_dtype
}

/// Zeros with the device and element type of `like`.
pub(crate) fn zeros<B: Backend>(shape: impl Into<Shape>, like: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_zeros(shape.into(), &like.device(), FloatDType::from(like.dtype()))
}

/// A constant with the device and element type of `like`.
pub(crate) fn constant<B: Backend>(
    values: Vec<f64>,
    shape: impl Into<Shape>,
    like: &FloatTensor<B>,
) -> FloatTensor<B> {
    let data = TensorData::new(values, shape.into()).convert_dtype(like.dtype());
    B::float_from_data(data, &like.device())
}

/// Dropout factors, 0 or `1 / (1 - p)` for every entry, drawn on the host.
pub(crate) fn dropout_mask<B: Backend>(
    plan: &DropoutPlan,
    [rows, columns]: [usize; 2],
    like: &FloatTensor<B>,
) -> FloatTensor<B> {
    let mut mask = Vec::with_capacity(rows * columns);
    for r in 0..rows {
        let id = plan.id(r);
        mask.extend(
            (0..columns as u64).map(|c| {
                if plan.stream().uniform(id, c) >= plan.prob() { plan.scale() } else { 0.0 }
            }),
        );
    }
    constant::<B>(mask, [rows, columns], like)
}

pub(crate) fn reshape<B: Backend>(x: FloatTensor<B>, shape: impl Into<Shape>) -> FloatTensor<B> {
    B::float_reshape(x, shape.into())
}

/// Scatter-add into `rows` rows: `out[index[i]] += x[i]`.
pub(crate) fn sum_rows<B: Backend>(
    rows: usize,
    index: IntTensor<B>,
    x: FloatTensor<B>,
) -> FloatTensor<B> {
    let mut shape = x.shape();
    shape[0] = rows;
    B::float_select_assign(zeros::<B>(shape, &x), 0, index, x, IndexingUpdateOp::Add)
}

/// Location of an operand of an edge operator: on nodes or on edges.
pub(crate) struct EdgeOperand<'a> {
    pub(crate) rows: usize,
    pub(crate) map: &'a RowMap,
    /// The node of every edge, for an operand on nodes.
    pub(crate) endpoints: Option<&'a [u32]>,
}

impl EdgeOperand<'_> {
    /// The operand's row for every edge, with leading axes of 1 so that the backend broadcasts.
    pub(crate) fn per_edge<B: Backend>(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        let x = reshape::<B>(widen::<B>(x), with_rows(self.rows, &self.map.padded));
        let Some(endpoints) = self.endpoints else { return x };
        let index = index::<B>(endpoints, &x.device());
        B::float_select(x, 0, index)
    }
    /// The gradient of the operand, from the gradients `d` of its rows per edge after broadcasting to feature shape
    /// `out`.
    pub(crate) fn gradient<B: Backend>(
        &self,
        mut d: FloatTensor<B>,
        out: &[usize],
    ) -> FloatTensor<B> {
        for (axis, (&own, &out)) in self.map.padded.iter().zip(out).enumerate() {
            if own == 1 && out != 1 {
                d = B::float_sum_dim(d, axis + 1);
            }
        }
        if let Some(endpoints) = self.endpoints {
            let index = index::<B>(endpoints, &d.device());
            d = sum_rows::<B>(self.rows, index, d);
        }
        reshape::<B>(d, with_rows(self.rows, &self.map.own))
    }
}

/// Applies the operator to rows per edge. A dot product is not summed yet.
pub(crate) fn edge_op<B: Backend>(
    op: SddmmOp,
    l: FloatTensor<B>,
    r: FloatTensor<B>,
) -> FloatTensor<B> {
    match op {
        SddmmOp::Add => B::float_add(l, r),
        SddmmOp::Sub => B::float_sub(l, r),
        SddmmOp::Mul | SddmmOp::Dot => B::float_mul(l, r),
        SddmmOp::Div => B::float_div(l, r),
        SddmmOp::CopyLhs => l,
        SddmmOp::CopyRhs => r,
    }
}

/// The gradient of one operand of [`edge_op`], from the gradient `g` of its result and the operands that
/// [`SddmmOp::gradient_reads`] names.
pub(crate) fn edge_op_gradient<B: Backend>(
    op: SddmmOp,
    side: Side,
    g: FloatTensor<B>,
    [l, r]: [Option<FloatTensor<B>>; 2],
) -> FloatTensor<B> {
    match (op, side, l, r) {
        (SddmmOp::Mul | SddmmOp::Dot, Side::Lhs, _, Some(x))
        | (SddmmOp::Mul | SddmmOp::Dot, Side::Rhs, Some(x), _) => B::float_mul(g, x),
        (SddmmOp::Div, Side::Lhs, _, Some(r)) => B::float_div(g, r),
        (SddmmOp::Div, Side::Rhs, Some(l), Some(r)) => {
            // As in the kernels: w² may overflow or underflow where the quotient does not.
            let quotient = B::float_div(l, r.clone());
            B::float_neg(B::float_div(B::float_mul(g, quotient), r))
        }
        (SddmmOp::Mul | SddmmOp::Dot | SddmmOp::Div, ..) => {
            unreachable!("backward saves the operands that `gradient_reads` names")
        }
        (SddmmOp::Sub, Side::Rhs, ..) => B::float_neg(g),
        _ => g,
    }
}

/// Replaces every entry of `x` that equals `value` by `by`. Replaced entries have gradient 0.
pub(crate) fn replace<B: Backend>(x: FloatTensor<B>, value: f64, by: f64) -> FloatTensor<B> {
    let found = B::float_equal_elem(x.clone(), value.into(), bools::<B>(&x));
    B::float_mask_fill(x, found, by.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids from 2³¹ on stay positive.
    #[test]
    fn ids_beyond_31_bits() {
        let data = index_data(&[0, i32::MAX as u32]);
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i32>().unwrap()),
            (DType::I32, vec![0, i32::MAX])
        );
        let large = [7, 1 << 31, u32::MAX - 1];
        let data = index_data(&large);
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i64>().unwrap()),
            (DType::I64, large.map(i64::from).to_vec())
        );
    }

    /// Both integer types select the same rows.
    #[cfg(feature = "flex")]
    #[test]
    fn both_kinds_select_rows() {
        fn check<B: crate::operator::cpu::Host>(backend: &str) {
            for ids in [TensorData::new(vec![2i32, 0], [2]), TensorData::new(vec![2i64, 0], [2])] {
                let x = B::from_floats(vec![1f32, 2.0, 3.0], [3, 1].into());
                let y = B::float_select(x, 0, B::int_from_data(ids, &Default::default()));
                assert_eq!(*B::floats::<f32>(&y), [3.0, 1.0], "{backend}");
            }
        }
        on_cpu_backends!(check);
    }
}
