//! Weighted aggregation against its composition and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{
    Activation, AggregateOptions, DegreeScale, try_weighted_aggregate, weighted_aggregate,
    weighted_aggregate_reference,
};

use crate::numerics::half_types::{self, HALVES};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences, graphs};

#[derive(Clone)]
struct Case {
    relation: Relation,
    options: AggregateOptions,
    x: Vec<f64>,
    weight: Option<Vec<f64>>,
    bias: Option<Vec<f64>>,
    cotangent: Vec<f64>,
    width: usize,
    dtype: DType,
}

/// Result, and gradients of `x`, of the weights and of the bias, if there are any.
type Outcome = [Vec<f64>; 4];

impl Case {
    fn new(
        relation: &Relation,
        width: usize,
        options: AggregateOptions,
        weighted: bool,
        biased: bool,
    ) -> Self {
        Self {
            relation: relation.clone(),
            options,
            x: numbers(1, relation.num_src() * width),
            weight: weighted.then(|| numbers(2, relation.num_edges())),
            bias: biased.then(|| numbers(3, width)),
            cotangent: numbers(4, relation.num_dst() * width),
            width,
            dtype: DType::F64,
        }
    }

    fn run(&self, device: &Device, reference: bool) -> Outcome {
        let device = device.clone().autodiff();
        let line = |x: &Vec<f64>| {
            Tensor::<1>::from_data(TensorData::new(x.clone(), [x.len()]), (&device, self.dtype))
                .require_grad()
        };
        let x = TensorData::new(self.x.clone(), [self.relation.num_src(), self.width]);
        let x = Tensor::<2>::from_data(x, (&device, self.dtype)).require_grad();
        let (weight, bias) = (self.weight.as_ref().map(line), self.bias.as_ref().map(line));
        let f = if reference { weighted_aggregate_reference } else { weighted_aggregate };
        let out = f(&self.relation, x.clone(), weight.clone(), bias.clone(), &self.options);
        let cotangent = TensorData::new(self.cotangent.clone(), out.shape());
        let mut loss = (out.clone() * Tensor::from_data(cotangent, (&device, self.dtype))).sum();
        if reference {
            // On a relation without edges the reference does not connect operands to the autodiff graph.
            loss = loss + (x.clone() * 0.0).sum();
            for operand in [&weight, &bias].into_iter().flatten() {
                loss = loss + (operand.clone() * 0.0).sum();
            }
        }
        let grads = loss.backward();
        let of = |t: Option<Tensor<1>>| {
            t.map_or(Vec::new(), |t| {
                f64s(t.grad(&grads).expect("a tracked operand has a gradient"))
            })
        };
        [f64s(out), f64s(x.grad(&grads).expect("`x` has a gradient")), of(weight), of(bias)]
    }

    #[track_caller]
    fn against_reference(&self, what: &str, device: &Device, tolerance: f64) {
        let (kernel, reference) = (self.run(device, false), self.run(device, true));
        for (name, (a, b)) in
            ["out", "d x", "d weight", "d bias"].into_iter().zip(kernel.iter().zip(&reference))
        {
            assert_close(&format!("{what}, {name}"), a, b, tolerance);
        }
    }
}

fn options(relation: &Relation, norm: (f64, f64), activation: Activation) -> AggregateOptions {
    let scale =
        |power: f64, degrees: Vec<u32>| (power != 0.0).then(|| DegreeScale::new(&degrees, power));
    AggregateOptions {
        source: scale(norm.0, relation.out_degrees().collect()),
        destination: scale(norm.1, relation.in_degrees().collect()),
        activation,
    }
}

const NORMS: [(f64, f64); 4] = [(0.0, 0.0), (-0.5, -0.5), (0.0, -1.0), (-1.0, 0.0)];
const ACTIVATIONS: [Activation; 4] =
    [Activation::None, Activation::Relu, Activation::LeakyRelu(0.1), Activation::Elu(1.2)];

fn every(mut f: impl FnMut(&str, (f64, f64), Activation, bool, bool)) {
    for norm in NORMS {
        for activation in ACTIVATIONS {
            for (weighted, biased) in [(false, false), (true, false), (false, true), (true, true)] {
                f(
                    &format!("{norm:?} {activation:?}, weights {weighted}, bias {biased}"),
                    norm,
                    activation,
                    weighted,
                    biased,
                );
            }
        }
    }
}

#[test]
fn fused_is_unfused() {
    for (backend, device) in devices() {
        for (name, relation) in graphs::named() {
            every(|what, norm, activation, weighted, biased| {
                let case =
                    Case::new(&relation, 3, options(&relation, norm, activation), weighted, biased);
                case.against_reference(&format!("{backend}, {name}, {what}"), &device, 1e-12);
            });
        }
        // Every division of columns into blocks.
        let relation = graphs::random(60, 50, 400, 2.0);
        for width in [1, 2, 5, 8, 11, 16, 24, 33, 40, 64, 100, 128, 300] {
            let case = Case::new(
                &relation,
                width,
                options(&relation, (-0.5, -0.5), Activation::Relu),
                true,
                true,
            );
            case.against_reference(&format!("{backend}, width {width}"), &device, 1e-12);
            for norm in NORMS {
                let mut case = Case::new(
                    &relation,
                    width,
                    options(&relation, norm, Activation::Elu(1.0)),
                    false,
                    true,
                );
                case.dtype = DType::F32;
                case.against_reference(
                    &format!("{backend}, width {width}, f32, {norm:?}"),
                    &device,
                    2e-5,
                );
            }
        }
    }
}

#[test]
fn finite_differences() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        every(|what, norm, activation, weighted, biased| {
            let case =
                Case::new(&relation, 2, options(&relation, norm, activation), weighted, biased);
            let loss = |c: &Case| {
                let out = &c.run(&device, false)[0];
                out.iter().zip(numbers(4, out.len())).map(|(a, b)| a * b).sum::<f64>()
            };
            let got = case.run(&device, false);
            type Operand = fn(&mut Case) -> Option<&mut Vec<f64>>;
            let operands: [(usize, Operand); 3] =
                [(1, |c| Some(&mut c.x)), (2, |c| c.weight.as_mut()), (3, |c| c.bias.as_mut())];
            for (i, operand) in operands {
                let n = operand(&mut case.clone()).map_or(0, |x| x.len());
                let differences = central_differences(n, 1e-6, |j, by| {
                    let mut case = case.clone();
                    operand(&mut case).unwrap()[j] += by;
                    loss(&case)
                });
                assert_close(
                    &format!("{backend}, {what}, operand {i}"),
                    &got[i],
                    &differences,
                    1e-6,
                );
            }
        });
    }
}

#[test]
fn one_tracked_operand_alone() {
    // Tensors for the other gradients are not saved.
    let relation = graphs::small();
    for (backend, device) in devices() {
        let options = options(&relation, (-0.5, -0.5), Activation::Elu(1.0));
        let case = Case::new(&relation, 3, options.clone(), true, true);
        let all = case.run(&device, false);
        let autodiff = device.clone().autodiff();
        let line = |x: &Option<Vec<f64>>, tracked: bool| {
            let x = x.clone().unwrap();
            let n = x.len();
            let t = Tensor::<1>::from_data(
                TensorData::new(x, [n]),
                (if tracked { &autodiff } else { &device }, DType::F64),
            );
            if tracked { t.require_grad() } else { t }
        };
        for tracked in 0..3 {
            let data = TensorData::new(case.x.clone(), [relation.num_src(), 3]);
            let x = Tensor::<2>::from_data(
                data,
                (if tracked == 0 { &autodiff } else { &device }, DType::F64),
            );
            let x = if tracked == 0 { x.require_grad() } else { x };
            let (weight, bias) = (line(&case.weight, tracked == 1), line(&case.bias, tracked == 2));
            let out = weighted_aggregate(
                &relation,
                x.clone(),
                Some(weight.clone()),
                Some(bias.clone()),
                &options,
            );
            let cotangent = TensorData::new(numbers(4, out.shape().num_elements()), out.shape());
            let grads =
                (out * Tensor::from_data(cotangent, (&autodiff, DType::F64))).sum().backward();
            let got = match tracked {
                0 => f64s(x.grad(&grads).expect("`x` is tracked")),
                1 => f64s(weight.grad(&grads).expect("`weight` is tracked")),
                _ => f64s(bias.grad(&grads).expect("`bias` is tracked")),
            };
            assert_close(&format!("{backend}, operand {tracked}"), &got, &all[tracked + 1], 1e-13);
        }
    }
}

#[test]
fn any_number_of_threads() {
    let relation = graphs::random(9000, 7000, 60_000, 3.0);
    for (backend, device) in devices() {
        let mut case = Case::new(
            &relation,
            40,
            options(&relation, (-0.5, -0.5), Activation::Relu),
            true,
            true,
        );
        case.dtype = DType::F32;
        assert_same_bits_on_threads(backend, || case.run(&device, false).concat());
    }
}

/// A case with operands that are exact in `dtype`, and the case on absolute values in f32, whose results bound the sums
/// of magnitudes of terms.
fn rounded(case: &Case, dtype: DType) -> (Case, Case) {
    let round = |x: &Vec<f64>| half_types::rounded(x, dtype);
    let map = |f: &dyn Fn(&Vec<f64>) -> Vec<f64>, case: &Case| Case {
        x: f(&case.x),
        weight: case.weight.as_ref().map(f),
        bias: case.bias.as_ref().map(f),
        cotangent: f(&case.cotangent),
        ..case.clone()
    };
    let half = Case { dtype, ..map(&round, case) };
    let mut sizes =
        Case { dtype: DType::F32, ..map(&|x| x.iter().map(|x| x.abs()).collect(), &half) };
    sizes.options.activation = Activation::None;
    (half, sizes)
}

/// Sums run in f32 and are rounded once.
#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    let device = Device::flex();
    for (dtype, unit) in HALVES {
        every(|what, norm, activation, weighted, biased| {
            let what = format!("{dtype:?}, {what}");
            let (half, sizes) = rounded(
                &Case::new(&relation, 19, options(&relation, norm, activation), weighted, biased),
                dtype,
            );
            let single = Case { dtype: DType::F32, ..half.clone() };
            let (a, b, sizes) =
                (half.run(&device, false), single.run(&device, false), sizes.run(&device, false));
            assert_eq!(a[0], half_types::rounded(&b[0], dtype), "{what}, out");
            if matches!(activation, Activation::None | Activation::Relu) {
                // ReLU passes the cotangent or 0, without rounding.
                assert_eq!(a[1], half_types::rounded(&b[1], dtype), "{what}, d x");
                assert_eq!(a[3], half_types::rounded(&b[3], dtype), "{what}, d bias");
            }
            // Roundings per term: of the result, from which the derivative is computed, and of the product with the
            // cotangent. `d weight` is computed by primitives, which round every step. A derivative is at most 1.2. The
            // sum rounds as well.
            for (i, roundings) in [(1, 2.0), (2, 8.0), (3, 2.0)] {
                for ((a, b), size) in a[i].iter().zip(&b[i]).zip(&sizes[i]) {
                    let bound = unit * (1.01 * 1.2 * roundings * size + b.abs());
                    assert!(
                        (a - b).abs() <= bound,
                        "{what}, gradient {i}: {a} against {b}, bound {bound:e}"
                    );
                }
            }
        });
    }
}

#[test]
fn corners() {
    for (backend, device) in devices() {
        let row =
            |x: &[f32]| Tensor::<2>::from_data(TensorData::new(x.to_vec(), [x.len(), 1]), &device);
        let bias = Some(Tensor::<1>::from_data([-3.0], &device));
        // Destination 1 has no in-edges: its result is act(bias).
        let relation = graphs::relation(2, 2, &[(0, 0), (1, 0)]);
        let options = |activation| AggregateOptions { activation, ..Default::default() };
        let of = |x: &[f32], bias: Option<Tensor<1>>, f| {
            f64s(weighted_aggregate(&relation, row(x), None, bias, &options(f)))
        };
        assert_eq!(of(&[1.0, 4.0], bias.clone(), Activation::None), [2.0, -3.0], "{backend}");
        assert_eq!(of(&[1.0, 4.0], bias, Activation::Relu), [2.0, 0.0], "{backend}");
        // NaN and infinities propagate.
        let nan = of(&[f32::NAN, 1.0], None, Activation::Relu);
        assert!(nan[0].is_nan() && nan[1] == 0.0, "{backend}");
        assert_eq!(
            of(&[f32::NEG_INFINITY, 1.0], None, Activation::None),
            [f64::NEG_INFINITY, 0.0],
            "{backend}"
        );
    }
}

#[test]
fn errors() {
    let device = Device::flex();
    let relation = graphs::small();
    let x = Tensor::<2>::zeros([5, 3], &device);
    let line = |n: usize| Some(Tensor::<1>::zeros([n], &device));
    let default = AggregateOptions::default();
    let text = |x: &Tensor<2>, w, b, o: &AggregateOptions| {
        try_weighted_aggregate(&relation, x.clone(), w, b, o).unwrap_err().to_string()
    };
    let wrong = Tensor::<2>::zeros([4, 3], &device);
    assert_eq!(
        text(&wrong, None, None, &default),
        "weighted_aggregate: `x` must have 5 rows (one per source node of the relation), got 4; give as many rows"
    );
    assert!(text(&x, line(3), None, &default).contains("`weight` must have 8 rows"));
    assert!(
        text(&x, None, line(4), &default)
            .contains("`bias` must have 3 rows (one per feature of `x`)")
    );
    let degrees = |n: usize| Some(DegreeScale::new(&vec![1; n], -1.0));
    assert!(
        text(&x, None, None, &AggregateOptions { source: degrees(4), ..default.clone() })
            .contains("`source degrees` must have 5 rows")
    );
    let options = AggregateOptions { destination: degrees(5), ..default.clone() };
    assert!(text(&x, None, None, &options).contains("`destination degrees` must have 4 rows"));
    let options = AggregateOptions { activation: Activation::Elu(0.0), ..default.clone() };
    assert!(text(&x, None, None, &options).contains("`alpha` of Elu"));
    let double = Some(Tensor::<1>::zeros([8], (&device, DType::F64)));
    assert!(text(&x, double, None, &default).contains("cast one of them"));
    assert!(
        text(&x, Some(Tensor::zeros([8], &burn_gnn_testutil::other_device())), None, &default)
            .contains("move one of them")
    );
}
