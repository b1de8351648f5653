//! Draws initial values of parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_ops::{Stream, glorot_uniform, uniform_rows};

use crate::next_stream;

/// Glorot's rule by the next stream; `fan` is (in, out).
pub(crate) fn glorot<const D: usize>(shape: [usize; D], fan: (usize, usize), device: &Device) -> Param<Tensor<D>> {
    let data = glorot_uniform(next_stream(device), fan.0, fan.1, shape);
    Param::from_tensor(Tensor::from_data(data, device))
}

/// Rows keyed by original ids (`None`: row numbers), uniform in `±sqrt(6 / (total + cols))`: Glorot's rule
/// for a one-hot input of `total` columns, of which this rank may hold some rows only.
pub(crate) fn rows(stream: Stream, ids: Option<&[u64]>, shape: [usize; 2], total: u64, device: &Device) -> Param<Tensor<2>> {
    let [rows, cols] = shape;
    let bound = (6.0 / (total + cols as u64).max(1) as f64).sqrt();
    Param::from_tensor(Tensor::from_data(uniform_rows(stream, ids, rows, cols, -bound, bound), device))
}

pub(crate) fn zeros(cols: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::zeros([cols], device))
}

struct Cast(FloatDType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.0;
        param.map(|t| {
            // A cast of a tracked tensor is no leaf; a leaf is made anew on the plain device.
            let (tracked, autodiff) = (t.is_require_grad(), t.is_autodiff());
            let plain = t.without_autodiff().cast(dtype);
            if autodiff { plain.autodiff().set_require_grad(tracked) } else { plain }
        })
    }
}

/// The module with every float parameter in another precision. Device-wide default dtypes can be set
/// once per process only (`Device::configure`); this works any time.
pub fn to_dtype<M: Module>(module: M, dtype: FloatDType) -> M {
    module.map(&mut Cast(dtype))
}
