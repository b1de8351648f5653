//! Compares gradients of modules and inputs with central differences in f64.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, FloatDType, Gradients, Tensor, TensorData};
use burn_gnn_models::to_dtype;
use burn_gnn_testutil::{assert_close, central_differences, matrix, values};

const STEP: f64 = 1e-5;

/// Draws every parameter again, so that no bias is 0.
struct Draw(usize);

impl ModuleMapper for Draw {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let name = format!("param {}", self.0);
        param.map(|t| {
            let shape = t.dims();
            matrix(&t.device(), &name, 1, shape.iter().product()).reshape(shape)
        })
    }
}

/// A module in f64 with drawn parameters.
pub(crate) fn drawn<M: Module>(module: M) -> M {
    to_dtype(module, FloatDType::F64).map(&mut Draw(0))
}

struct Collect<'a>(&'a Gradients, Vec<f64>);

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let t = param.val();
        match t.grad(self.0) {
            Some(g) => self.1.extend(values(&g)),
            None => self.1.extend(vec![0.0; t.shape().num_elements()]),
        }
    }
}

/// Adds a number to one entry, counted over all parameters.
struct Perturb {
    at: usize,
    by: f64,
}

impl ModuleMapper for Perturb {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let n = param.shape().num_elements();
        let at = self.at;
        self.at = self.at.wrapping_sub(n);
        if at >= n {
            return param;
        }
        param.map(|t| {
            let mut v = values(&t);
            v[at] += self.by;
            let data = TensorData::new(v, t.dims());
            Tensor::from_data(data, (&t.device(), DType::F64)).require_grad()
        })
    }
}

/// Asserts that gradients of all inputs and parameters equal central differences of the weighted sum of the outputs.
pub(crate) fn gradients<M: Module>(
    name: &str,
    module: &M,
    inputs: &[Tensor<2>],
    run: impl Fn(&M, Vec<Tensor<2>>) -> Vec<Tensor<2>>,
) {
    let loss = |module: &M, x: &[Tensor<2>]| {
        let weighed = |(i, y): (usize, Tensor<2>)| {
            let [n, d] = y.dims();
            (y.clone() * matrix(&y.device(), &format!("c{i}"), n, d)).sum()
        };
        run(module, x.to_vec()).into_iter().enumerate().map(weighed).reduce(|a, b| a + b).unwrap()
    };
    let tracked: Vec<_> = inputs.iter().map(|x| x.clone().require_grad()).collect();
    let grads = loss(module, &tracked).backward();
    let mut of_params = Collect(&grads, vec![]);
    module.visit(&mut of_params);
    let at = |module: &M, x: &[Tensor<2>]| values(&loss(module, x))[0];
    let want = central_differences(of_params.1.len(), STEP, |k, by| {
        at(&module.clone().map(&mut Perturb { at: k, by }), inputs)
    });
    assert_close(&format!("{name}, parameters"), &of_params.1, &want, 1e-7);
    for (i, x) in tracked.iter().enumerate() {
        let got =
            x.grad(&grads).map_or_else(|| vec![0.0; x.shape().num_elements()], |g| values(&g));
        let want = central_differences(got.len(), STEP, |k, by| {
            let (mut v, mut all) = (values(x), inputs.to_vec());
            v[k] += by;
            let data = TensorData::new(v, x.dims());
            all[i] = Tensor::from_data(data, (&x.device(), DType::F64));
            at(module, &all)
        });
        assert_close(&format!("{name}, input {i}"), &got, &want, 1e-7);
    }
}
