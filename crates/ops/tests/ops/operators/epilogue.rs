//! Bias, activation and dropout in one pass against the composition and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::{
    Activation, RowDropout, Stream, bias_activation, bias_activation_reference, dropout,
    try_bias_activation,
};

use crate::numerics::half_types::{HALVES, rounded};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences};

const ALL: [Activation; 4] =
    [Activation::None, Activation::Relu, Activation::LeakyRelu(0.1), Activation::Elu(1.3)];

#[derive(Clone, Debug)]
struct Case {
    rows: usize,
    columns: usize,
    x: Vec<f64>,
    bias: Option<Vec<f64>>,
    activation: Activation,
    dropout: Option<RowDropout>,
    dtype: DType,
}

impl Case {
    fn new(
        rows: usize,
        columns: usize,
        bias: bool,
        activation: Activation,
        prob: Option<f64>,
    ) -> Self {
        let ids = (0..rows as u64).map(|r| (1 << 35) + 7 * r).collect::<Vec<_>>();
        Self {
            rows,
            columns,
            x: numbers(5, rows * columns),
            bias: bias.then(|| numbers(6, columns).iter().map(|b| 0.2 * b).collect()),
            activation,
            dropout: prob.map(|prob| RowDropout {
                prob,
                stream: Stream::new(3, "layer", 1),
                ids: Some(ids.into()),
            }),
            dtype: DType::F64,
        }
    }

    /// Result, gradient of `x`, gradient of the bias.
    fn run(&self, device: &Device, reference: bool) -> [Vec<f64>; 3] {
        let device = device.clone().autodiff();
        let x = Tensor::<2>::from_data(
            TensorData::new(self.x.clone(), [self.rows, self.columns]),
            (&device, self.dtype),
        )
        .require_grad();
        let bias = self.bias.clone().map(|b| {
            Tensor::<1>::from_data(TensorData::new(b, [self.columns]), (&device, self.dtype))
                .require_grad()
        });
        let f = if reference { bias_activation_reference } else { bias_activation };
        let y = f(x.clone(), bias.clone(), self.activation, self.dropout.as_ref());
        let c = TensorData::new(numbers(99, self.rows * self.columns), [self.rows, self.columns]);
        let grads = (y.clone() * Tensor::from_data(c, (&device, self.dtype))).sum().backward();
        let db = bias.map_or_else(Vec::new, |b| f64s(b.grad(&grads).unwrap()));
        [f64s(y), f64s(x.grad(&grads).unwrap()), db]
    }
}

fn each(mut f: impl FnMut(&str, &Case)) {
    for (rows, columns) in [(1, 1), (3, 5), (2, 64), (7, 67), (600, 9), (0, 3), (3, 0)] {
        for activation in ALL {
            for prob in [None, Some(0.3)] {
                for bias in [false, true] {
                    let case = Case::new(rows, columns, bias, activation, prob);
                    f(
                        &format!(
                            "{rows} x {columns}, {activation:?}, dropout {prob:?}, bias {bias}"
                        ),
                        &case,
                    );
                }
            }
        }
    }
}

#[test]
fn agrees_with_the_composition() {
    each(|what, case| {
        for (backend, device) in devices() {
            let (a, b) = (case.run(&device, false), case.run(&device, true));
            for i in 0..3 {
                assert_close(&format!("{what}, {backend}, {i}"), &a[i], &b[i], 1e-12);
            }
        }
    });
}

#[test]
fn finite_differences() {
    for activation in ALL {
        for prob in [None, Some(0.3)] {
            let case = Case::new(4, 6, true, activation, prob);
            let got = case.run(&Device::flex(), false);
            let loss = |case: &Case| -> f64 {
                let y = case.run(&Device::flex(), false)[0].clone();
                numbers(99, y.len()).iter().zip(&y).map(|(a, b)| a * b).sum()
            };
            let differences = |side: fn(&mut Case) -> &mut Vec<f64>| -> Vec<f64> {
                central_differences(side(&mut case.clone()).len(), 1e-6, |i, by| {
                    let mut case = case.clone();
                    side(&mut case)[i] += by;
                    loss(&case)
                })
            };
            assert_close(
                &format!("{activation:?}, d x"),
                &got[1],
                &differences(|c| &mut c.x),
                1e-7,
            );
            assert_close(
                &format!("{activation:?}, d bias"),
                &got[2],
                &differences(|c| c.bias.as_mut().unwrap()),
                1e-7,
            );
            assert!(got[2].iter().any(|d| d.abs() > 0.01));
        }
    }
}

#[test]
fn finite_differences_of_dropout() {
    let (shape, values) = ([5, 7], numbers(1, 35));
    for (backend, device) in devices() {
        let device = device.autodiff();
        let d = Case::new(5, 7, false, Activation::None, Some(0.4)).dropout.unwrap();
        let loss = |values: &[f64]| {
            let x = Tensor::<2>::from_data(
                TensorData::new(values.to_vec(), shape),
                (&device, DType::F64),
            )
            .require_grad();
            let y = dropout(x.clone(), d.prob, d.stream, d.ids.clone());
            let cotangent =
                Tensor::from_data(TensorData::new(numbers(2, 35), shape), (&device, DType::F64));
            (x, (y * cotangent).sum())
        };
        let (x, value) = loss(&values);
        let want = central_differences(35, 1e-6, |at, by| {
            let mut values = values.clone();
            values[at] += by;
            loss(&values).1.into_scalar::<f64>()
        });
        let got = f64s(x.grad(&value.backward()).unwrap());
        assert_close(backend, &got, &want, 1e-8);
        assert!(got.contains(&0.0) && got.iter().any(|d| *d != 0.0), "{backend}: {got:?}");
    }
}

#[test]
fn the_mask_is_that_of_dropout() {
    for (_, device) in devices() {
        let case = Case::new(50, 13, false, Activation::None, Some(0.4));
        let x = Tensor::<2>::from_data(
            TensorData::new(case.x.clone(), [50, 13]),
            (&device, DType::F64),
        );
        let d = case.dropout.clone().unwrap();
        assert_eq!(case.run(&device, false)[0], f64s(dropout(x, d.prob, d.stream, d.ids)));
    }
}

#[test]
fn any_number_of_threads() {
    for dtype in [DType::F32, DType::F64] {
        for activation in ALL {
            let mut case = Case::new(20_000, 33, true, activation, Some(0.5));
            case.dtype = dtype;
            for (backend, device) in devices() {
                let what = format_args!("{backend}, {dtype:?}, {activation:?}");
                assert_same_bits_on_threads(what, || case.run(&device, false).concat());
            }
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    for (dtype, ulp) in HALVES {
        for activation in ALL {
            let mut half = Case::new(30, 20, true, activation, Some(0.5));
            half.x = rounded(&half.x, dtype);
            half.bias = half.bias.map(|bias| rounded(&bias, dtype));
            let mut single = half.clone();
            (half.dtype, single.dtype) = (dtype, DType::F32);
            let (a, b) = (half.run(&Device::flex(), false), single.run(&Device::flex(), false));
            assert_close("out", &a[0], &b[0], ulp);
            // The cotangent of `single` is not rounded.
            assert_close("d x", &a[1], &b[1], 4.0 * ulp);
            assert_close("d bias", &a[2], &b[2], 16.0 * ulp);
        }
    }
}

#[test]
fn closed_and_dropped_entries_pass_nothing() {
    for (backend, device) in devices() {
        let x = Tensor::<2>::from_data([[-1.0, 2.0, f32::NAN]], &device.autodiff()).require_grad();
        let y = bias_activation(x.clone(), None, Activation::Relu, None);
        let seen = f64s(y.clone());
        assert!(seen[..2] == [0.0, 2.0] && seen[2].is_nan(), "{backend}");
        let grads = (y * f32::INFINITY).slice([0..1, 0..2]).sum().backward();
        assert_eq!(f64s(x.grad(&grads).unwrap())[..2], [0.0, f64::INFINITY], "{backend}");
    }
}

#[test]
fn errors() {
    let device = Device::flex();
    let x = || Tensor::<2>::zeros([4, 3], &device);
    let text = |bias: Option<Tensor<1>>, activation, dropout: Option<RowDropout>| {
        try_bias_activation(x(), bias, activation, dropout.as_ref()).unwrap_err().to_string()
    };
    let bias = Tensor::<1>::zeros([2], &device);
    assert_eq!(
        text(Some(bias), Activation::None, None),
        "bias_activation: `bias` must have 3 rows (one per feature of `x`), got 2; give as many rows"
    );
    let bias = Tensor::<1>::zeros([3], (&device, DType::F64));
    assert_eq!(
        text(Some(bias), Activation::None, None),
        "bias_activation: `bias` is F64 and `x` is F32; cast one of them"
    );
    let e = text(None, Activation::Elu(0.0), None);
    assert!(
        e.starts_with("bias_activation: `alpha` of Elu must be a finite number above 0, got 0"),
        "{e}"
    );
    let drop = |prob, ids| Some(RowDropout { prob, stream: Stream::new(0, "d", 0), ids });
    assert_eq!(
        text(None, Activation::None, drop(1.0, None)),
        "bias_activation: `dropout.prob` must lie in [0, 1), got 1; give 0 for no dropout"
    );
    assert_eq!(
        text(None, Activation::None, drop(0.5, Some([1].into()))),
        "bias_activation: `dropout.ids` must have 4 rows (one per row of `x`), got 1; give as many rows"
    );
}
