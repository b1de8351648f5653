//! Declares the operations of the halo exchange as a Burn backend extension.

// Burn deprecates its NdArray backend, which is still supported here.
#![allow(deprecated)]

#[allow(unused_imports)]
use burn::backend::Autodiff;
#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
use burn::backend::NdArray;
use burn::backend::tensor::{FloatTensor, IndexingUpdateOp, IntTensor};
use burn::backend::{Backend, Shape, TensorData, TensorMetadata, backend_extension, try_read_sync};
use burn::tensor::Slice;
use burn_gnn_graph::row_index_data;
use std::sync::Arc;

use super::encoding::{HaloCall, exchange_rows};
use super::routes::HaloPlan;
use crate::comm::{Failure, unwind};

/// Range of the halo rows of one node type in the received values.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First value.
    pub(crate) start: usize,
    /// Number of halo rows of the type.
    pub(crate) rows: usize,
}

/// Operations of a backend for [`halo_exchange`](crate::halo_exchange). The default implementations use Burn's
/// primitives. Only rows that are sent leave the device.
// Burn 0.23 does not know the name `NdArray` (`.ci/next-burn`).
#[cfg_attr(feature = "ndarray", backend_extension(Flex: cfg(feature = "flex"), NdArray, Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion")))]
#[cfg_attr(not(feature = "ndarray"), backend_extension(Flex: cfg(feature = "flex"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion")))]
pub trait HaloBackend: Backend {
    /// `acc ++ flatten(x[ids])`: appends the rows of one node type.
    #[fusion(default)]
    fn halo_pack(
        acc: FloatTensor<Self>,
        x: FloatTensor<Self>,
        ids: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        let n = ids.len() * x.shape()[1];
        if n == 0 {
            return acc;
        }
        let rows = Self::float_reshape(Self::halo_gather(x, ids), Shape::new([n]));
        if acc.shape()[0] == 0 { rows } else { Self::float_cat(vec![acc, rows], 0) }
    }

    /// The transpose of [`halo_pack`](Self::halo_pack) with respect to `x`: adds the values from `start` on to the rows
    /// `ids` of zeros `[rows, width]`, in the order of `ids`.
    #[fusion(default)]
    fn halo_unpack(
        g: FloatTensor<Self>,
        start: usize,
        rows: usize,
        width: usize,
        ids: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        let zeros = Self::float_zeros(Shape::new([rows, width]), &g.device(), g.dtype().into());
        if ids.is_empty() || width == 0 {
            return zeros;
        }
        let part = cut::<Self>(g, start, ids.len() * width);
        Self::halo_add(zeros, Self::float_reshape(part, Shape::new([ids.len(), width])), ids)
    }

    /// `x[ids]`. `ids` and the feature size are not empty.
    #[fusion(dtype = x, shape = Shape::new([ids.len(), x[1]]))]
    fn halo_gather(x: FloatTensor<Self>, ids: Arc<[u32]>) -> FloatTensor<Self> {
        let dev = x.device();
        Self::float_select(x, 0, index::<Self>(&ids, &dev))
    }

    /// Adds `rows[i]` to row `ids[i]` of `x`, in the order of `ids`. `ids` and the feature size are not empty.
    #[fusion(dtype = x, shape = x)]
    fn halo_add(
        x: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        ids: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        let dev = x.device();
        Self::float_select_assign(x, 0, index::<Self>(&ids, &dev), rows, IndexingUpdateOp::Add)
    }

    /// Sends values to their receivers and returns the received values. Collective.
    #[fusion(default)]
    fn halo_swap(
        values: FloatTensor<Self>,
        plan: Arc<HaloPlan>,
        call: HaloCall,
    ) -> FloatTensor<Self> {
        let dev = values.device();
        Self::float_from_data(
            exchange_rows(&plan, &call, &host::<Self>(values, &plan, &call)),
            &dev,
        )
    }

    /// `[x ; halo rows of the segment]`.
    #[fusion(default)]
    fn halo_join(
        x: FloatTensor<Self>,
        halo: FloatTensor<Self>,
        segment: Segment,
    ) -> FloatTensor<Self> {
        let [n, width] = x.shape().dims();
        if segment.rows == 0 || width == 0 {
            // There are no values, but rows of width 0 still count.
            return if segment.rows == 0 { x } else { empty::<Self>(&x, [n + segment.rows, 0]) };
        }
        let rows = cut::<Self>(halo, segment.start, segment.rows * width);
        let rows = Self::float_reshape(rows, Shape::new([segment.rows, width]));
        if n == 0 { rows } else { Self::float_cat(vec![x, rows], 0) }
    }

    /// [`halo_pack`](Self::halo_pack), [`halo_swap`](Self::halo_swap) and
    /// [`halo_join`](Self::halo_join) in one operation, for an exchange of one node type.
    #[fusion(default)]
    fn halo_exchange(
        x: FloatTensor<Self>,
        plan: Arc<HaloPlan>,
        call: HaloCall,
    ) -> FloatTensor<Self> {
        let t = &plan.types[call.types[0]];
        let segment = Segment { start: 0, rows: t.num_halo };
        let none = empty::<Self>(&x, [0]);
        let rows = Self::halo_pack(none, x.clone(), t.send_ids.clone());
        let halo = Self::halo_swap(rows, plan.clone(), call);
        Self::halo_join(x, halo, segment)
    }

    /// The transpose of [`halo_exchange`](Self::halo_exchange): sends halo rows to their owner, which adds them to its
    /// own rows in rank order. Collective.
    #[fusion(default)]
    fn halo_reduce(g: FloatTensor<Self>, plan: Arc<HaloPlan>, call: HaloCall) -> FloatTensor<Self> {
        let t = &plan.types[call.types[0]];
        let [_, width] = g.shape().dims();
        let halo = if t.num_halo * width == 0 {
            empty::<Self>(&g, [0])
        } else {
            let rows = Self::float_slice(
                g.clone(),
                &[Slice::from(t.num_inner..t.num_inner + t.num_halo), Slice::from(0..width)],
            );
            Self::float_reshape(rows, Shape::new([t.num_halo * width]))
        };
        let received = Self::halo_swap(halo, plan.clone(), call);
        let own = top::<Self>(g, t.num_inner);
        if t.send_ids.is_empty() || width == 0 {
            return own;
        }
        let received = Self::float_reshape(received, Shape::new([t.send_ids.len(), width]));
        Self::halo_add(own, received, t.send_ids.clone())
    }
}

#[cfg(feature = "flex")]
impl HaloBackend for Flex {}
#[cfg(feature = "ndarray")]
impl HaloBackend for NdArray {}

fn host<B: Backend>(values: FloatTensor<B>, plan: &HaloPlan, call: &HaloCall) -> TensorData {
    let dtype = values.dtype();
    if values.shape()[0] == 0 {
        return TensorData::full_dtype([0], 0.0, dtype);
    }
    match try_read_sync(B::float_into_data(values)) {
        Some(Ok(data)) => data,
        other => {
            let why = other.map_or_else(
                || "the device cannot be read synchronously".into(),
                |r| format!("{:?}", r.err()),
            );
            unwind(Failure {
                rank: plan.comm.rank(),
                message: format!("`{}`: could not read halo rows: {why}", call.name),
            })
        }
    }
}

fn index<B: Backend>(ids: &[u32], device: &B::Device) -> IntTensor<B> {
    B::int_from_data(row_index_data(ids.iter().map(|&i| i as usize)), device)
}

pub(crate) fn empty<B: Backend>(like: &FloatTensor<B>, shape: impl Into<Shape>) -> FloatTensor<B> {
    // Created from data: Burn 0.22.1 fuses empty `zeros` with neighbouring operations and then launches none of them.
    B::float_from_data(TensorData::full_dtype(shape.into(), 0.0, like.dtype()), &like.device())
}

/// The `n` values of a 1-D tensor from `start` on.
pub(crate) fn cut<B: Backend>(values: FloatTensor<B>, start: usize, n: usize) -> FloatTensor<B> {
    if n == 0 {
        return empty::<B>(&values, [0]);
    }
    if n == values.shape()[0] {
        return values;
    }
    B::float_slice(values, &[Slice::from(start..start + n)])
}

/// The first `n` rows of a matrix.
pub(crate) fn top<B: Backend>(x: FloatTensor<B>, n: usize) -> FloatTensor<B> {
    let [rows, width] = x.shape().dims();
    if rows == n {
        x
    } else if n * width == 0 {
        empty::<B>(&x, [n, width])
    } else {
        B::float_slice(x, &[Slice::from(0..n), Slice::from(0..width)])
    }
}
