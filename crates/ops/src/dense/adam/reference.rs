//! Computes Adam in Burn primitives: the fallback of backends without kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn_gnn_plan::{AdamFactors, AdamForm};

use crate::primitives::{narrow, widen};

pub(crate) fn step<B: Backend>(
    param: FloatTensor<B>,
    grad: FloatTensor<B>,
    m: FloatTensor<B>,
    v: FloatTensor<B>,
    f: &AdamFactors,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let dtype = param.dtype();
    let [p, mut g, m, v] = [param, grad, m, v].map(widen::<B>);
    let times = |x: FloatTensor<B>, by: f64| B::float_mul_scalar(x, by.into());
    if let Some(penalty) = f.penalty {
        g = B::float_add(times(p.clone(), penalty), g);
    }
    let m = B::float_add(times(m, f.beta[0]), times(g.clone(), f.rest[0]));
    let v = B::float_add(times(v, f.beta[1]), times(B::float_mul(g.clone(), g), f.rest[1]));
    let over = |x: FloatTensor<B>, by: f64| B::float_div_scalar(x, by.into());
    let (p, delta) = match f.form {
        AdamForm::Adam { scale, epsilon } => {
            let root = B::float_add_scalar(B::float_sqrt(v.clone()), epsilon.into());
            (p, B::float_div(times(m.clone(), scale), root))
        }
        AdamForm::AdamW { keep, first, second, epsilon } => {
            let root = B::float_add_scalar(B::float_sqrt(over(v.clone(), second)), epsilon.into());
            (times(p, keep), B::float_div(over(m.clone(), first), root))
        }
    };
    let p = B::float_sub(p, times(delta, f.lr));
    (narrow::<B>(p, dtype), narrow::<B>(m, dtype), narrow::<B>(v, dtype))
}
