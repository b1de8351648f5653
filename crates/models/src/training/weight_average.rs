//! Averages the parameters of models.

use std::collections::VecDeque;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// Returns the mean of `count + 1` models: `mean` is that of the first `count`, `last` the one that is added. Both are on
/// a plain device. Parameters keep the ids of `mean`.
pub(crate) fn averaged<M: Module>(mean: M, last: &M, count: usize) -> M {
    let mut values = Flat(VecDeque::new());
    last.visit(&mut values);
    mean.map(&mut Average { last: values.0, share: 1.0 / (count + 1) as f64 })
}

/// The float parameters of a module as vectors, in the order of a visit.
struct Flat(VecDeque<Tensor<1>>);

impl ModuleVisitor for Flat {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let count = value.shape().num_elements();
        self.0.push_back(value.reshape([count]));
    }
}

/// Moves every float parameter towards that of the other model by a share of the difference.
struct Average {
    last: VecDeque<Tensor<1>>,
    share: f64,
}

impl ModuleMapper for Average {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(last) = self.last.pop_front() else { return param };
        let share = self.share;
        param.map(|mean| {
            let last = last.reshape(mean.shape());
            mean.clone() + (last - mean) * share
        })
    }
}
