//! Relational aggregation with every kind of weight against the reference and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences,
    graphs, panic_text,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Full,
    Basis(usize),
    Blocks(usize),
}

/// One call, with f64 numbers that are rounded to `dtype`.
#[derive(Clone, Debug)]
struct Call {
    index: RelationalIndex,
    kind: Kind,
    /// Input, weights, coefficients of bases, factors of edges; empty if the call does not have the operand.
    values: [TensorData; 4],
    norm: bool,
    dtype: DType,
}

/// Result, and gradients of `values`.
#[derive(Clone, Debug, PartialEq)]
struct Outcome([Vec<f64>; 5]);

impl Call {
    fn new(index: &RelationalIndex, kind: Kind, [i, o]: [usize; 2], norm: bool, seed: u64) -> Self {
        let data = |k: u64, shape: Vec<usize>| {
            TensorData::new(numbers(4 * seed + k, shape.iter().product()), shape)
        };
        let (r, edges) = (index.num_relations(), index.relation().num_edges());
        let (weight, coeff) = match kind {
            Kind::Full => (vec![r, i, o], vec![0, 0]),
            Kind::Basis(b) => (vec![b, i, o], vec![r, b]),
            Kind::Blocks(b) => (vec![r, b, i / b, o / b], vec![0, 0]),
        };
        let norms = data(3, vec![if norm { edges } else { 0 }]);
        let values =
            [data(0, vec![index.relation().num_src(), i]), data(1, weight), data(2, coeff), norms];
        Self { index: index.clone(), kind, values, norm, dtype: DType::F64 }
    }

    fn run(&self, device: &Device, reference: bool) -> Outcome {
        self.tracked(device, reference, [true; 4])
    }

    fn tracked(&self, device: &Device, reference: bool, tracked: [bool; 4]) -> Outcome {
        fn leaf<const D: usize>(
            data: &TensorData,
            place: (&Device, DType),
            tracked: bool,
        ) -> Tensor<D> {
            let x = Tensor::from_data(data.clone(), place);
            if tracked { x.require_grad() } else { x }
        }
        let device = &device.clone().autodiff();
        let place = (device, self.dtype);
        let x = leaf::<2>(&self.values[0], place, tracked[0]);
        let coeff = leaf::<2>(&self.values[2], place, tracked[2]);
        let norm = leaf::<1>(&self.values[3], place, tracked[3]);
        let (w3, w4) = match self.kind {
            Kind::Blocks(_) => (None, Some(leaf::<4>(&self.values[1], place, tracked[1]))),
            _ => (Some(leaf::<3>(&self.values[1], place, tracked[1])), None),
        };
        let weight = match (&w3, &w4, self.kind) {
            (Some(w), _, Kind::Full) => RelationalWeight::Full(w.clone()),
            (Some(w), ..) => RelationalWeight::Basis { bases: w.clone(), coeff: coeff.clone() },
            (_, Some(w), _) => RelationalWeight::BlockDiagonal(w.clone()),
            _ => unreachable!(),
        };
        let f = if reference { relational_aggregate_reference } else { relational_aggregate };
        let out = f(&self.index, x.clone(), weight, self.norm.then(|| norm.clone()));
        let cotangent = TensorData::new(numbers(99, out.shape().num_elements()), out.shape());
        let grads = (out.clone() * Tensor::from_data(cotangent, place)).sum();
        if !tracked.contains(&true) {
            return Outcome([f64s(out), vec![], vec![], vec![], vec![]]);
        }
        // The reference of a graph without edges does not use its operands.
        let grads = if grads.is_tracked() {
            grads.backward()
        } else {
            (grads + (x.clone() * 0.0).sum()).backward()
        };
        fn gradient<const D: usize>(x: &Tensor<D>, grads: &burn::tensor::Gradients) -> Vec<f64> {
            x.grad(grads).map_or_else(|| vec![0.0; x.shape().num_elements()], f64s)
        }
        let d_weight =
            w3.map_or_else(|| gradient(w4.as_ref().unwrap(), &grads), |w| gradient(&w, &grads));
        Outcome([
            f64s(out),
            gradient(&x, &grads),
            d_weight,
            gradient(&coeff, &grads),
            gradient(&norm, &grads),
        ])
    }

    fn loss(&self, device: &Device) -> f64 {
        let out = self.tracked(device, false, [false; 4]).0[0].clone();
        out.iter().zip(numbers(99, out.len())).map(|(a, b)| a * b).sum()
    }
}

const NAMES: [&str; 5] = ["out", "d x", "d weight", "d coeff", "d norm"];

impl Outcome {
    #[track_caller]
    fn assert_near(&self, what: &str, other: &Self, tolerance: f64) {
        for ((name, a), b) in NAMES.iter().zip(&self.0).zip(&other.0) {
            assert_close(&format!("{what}, {name}"), a, b, tolerance);
        }
    }
}

/// Types of decreasing frequency; relation 1 has no edges.
fn types(edges: usize) -> Vec<u8> {
    let stream = Stream::new(8, "types", 0);
    (0..edges as u64)
        .map(|e| [0, 0, 0, 0, 2, 2, 2, 3, 3, 4][(stream.uniform(e, 0) * 10.0) as usize])
        .collect()
}

fn index(relation: &Relation) -> RelationalIndex {
    RelationalIndex::new(relation, &types(relation.num_edges()), 5)
}

const WIDTHS: [[usize; 2]; 9] =
    [[4, 4], [8, 4], [4, 20], [20, 12], [36, 4], [16, 16], [64, 8], [100, 4], [12, 68]];

#[test]
fn values_and_gradients_are_those_of_the_reference() {
    let mut all: Vec<_> = graphs::named();
    // Several blocks of rows, groups of several tiles.
    all.push(("random", graphs::random(2100, 1500, 6000, 1.5)));
    all.push(("many to few", graphs::random(60, 1300, 5000, 1.0)));
    for (backend, device) in devices() {
        for (name, relation) in &all {
            let plain = index(relation);
            for index in [plain.clone(), plain.mean()] {
                for (n, widths) in WIDTHS.into_iter().enumerate() {
                    for kind in [Kind::Full, Kind::Basis(3), Kind::Blocks(2), Kind::Blocks(4)] {
                        let norm = (n + usize::from(kind == Kind::Full)) % 2 == 0;
                        let call = Call::new(&index, kind, widths, norm, n as u64);
                        let what = format!(
                            "{backend}, {name}, mean {}, {widths:?}, {kind:?}, norm {norm}",
                            index.is_mean()
                        );
                        call.run(&device, false).assert_near(
                            &what,
                            &call.run(&device, true),
                            1e-10,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn finite_differences() {
    let plain = index(&graphs::small());
    for (backend, device) in devices() {
        for index in [plain.clone(), plain.mean()] {
            for (kind, widths) in [
                (Kind::Full, [3, 2]),
                (Kind::Full, [2, 3]),
                (Kind::Basis(2), [2, 2]),
                (Kind::Blocks(2), [4, 2]),
                (Kind::Blocks(2), [2, 4]),
            ] {
                let call = Call::new(&index, kind, widths, true, 3);
                let got = call.run(&device, false);
                for operand in 0..4 {
                    let n = call.values[operand].num_elements();
                    let differences = central_differences(n, 1e-5, |i, by| {
                        let mut call = call.clone();
                        call.values[operand].as_mut_slice::<f64>().unwrap()[i] += by;
                        call.loss(&device)
                    });
                    let what = format!(
                        "{backend}, {kind:?}, {widths:?}, mean {}, {}",
                        index.is_mean(),
                        NAMES[operand + 1]
                    );
                    assert_close(&what, &got.0[operand + 1], &differences, 1e-7);
                    let is_used = operand != 2 || matches!(kind, Kind::Basis(_));
                    assert!(
                        !is_used || got.0[operand + 1].iter().any(|&g| g != 0.0),
                        "{what}: zeros prove nothing"
                    );
                }
            }
        }
    }
}

#[test]
fn each_gradient_alone_is_that_of_all_together() {
    let index = index(&graphs::random(50, 40, 300, 1.0));
    for (backend, device) in devices() {
        let call = Call::new(&index, Kind::Full, [6, 5], true, 2);
        let all = call.run(&device, false);
        for operand in [0, 1, 3] {
            let mut tracked = [false; 4];
            tracked[operand] = true;
            let one = call.tracked(&device, false, tracked);
            for (i, name) in NAMES.iter().enumerate().skip(1) {
                let want =
                    if i == operand + 1 { all.0[i].clone() } else { vec![0.0; all.0[i].len()] };
                assert_eq!(one.0[i], want, "{backend}, {name} of operand {operand} alone");
            }
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let relation = graphs::random(5000, 4000, 40_000, 3.0);
    let index = RelationalIndex::new(&relation, &types(relation.num_edges()), 5);
    for (backend, device) in devices() {
        for (kind, widths) in [
            (Kind::Full, [33, 16]),
            (Kind::Full, [16, 33]),
            (Kind::Full, [64, 4]),
            (Kind::Blocks(4), [32, 20]),
        ] {
            let mut call = Call::new(&index, kind, widths, true, 6);
            call.dtype = DType::F32;
            assert_same_bits_on_threads(format_args!("{backend}, {kind:?}, {widths:?}"), || {
                call.run(&device, false).0.concat()
            });
        }
    }
}

#[test]
fn a_star_of_many_leaves() {
    const LEAVES: usize = 100_000;
    let endpoints: Vec<(u32, u32)> = (0..LEAVES as u32).map(|u| (u, 0)).collect();
    for relation in
        [graphs::relation(LEAVES, 1, &endpoints), graphs::relation(LEAVES, 1, &endpoints).reverse()]
    {
        for index in [index(&relation), index(&relation).mean()] {
            let call = Call::new(&index, Kind::Full, [4, 4], false, 1);
            for (backend, device) in devices() {
                call.run(&device, false).assert_near(
                    &format!("{backend}, star"),
                    &call.run(&device, true),
                    1e-9,
                );
            }
        }
    }
}

#[test]
fn infinities_and_nan_stay_visible() {
    let relation = graphs::relation(3, 3, &[(0, 0), (1, 1), (2, 1)]);
    let index = RelationalIndex::new(&relation, &[0u16, 0, 1], 2);
    for (backend, device) in devices() {
        for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let x = Tensor::<2>::from_data([[1.0, 2.0], [bad, 1.0], [1.0, 1.0]], &device);
            let weight = Tensor::<3>::ones([2, 2, 2], &device);
            let y = f64s(relational_aggregate(&index, x, RelationalWeight::Full(weight), None));
            let is_bad = |y: f64| if bad.is_nan() { y.is_nan() } else { y == f64::from(bad) };
            assert!(
                y[..2] == [3.0, 3.0] && y[4..] == [0.0, 0.0] && is_bad(y[2]) && is_bad(y[3]),
                "{backend}, {bad}: {y:?}"
            );
        }
    }
}

#[test]
fn half_floats_are_summed_in_f32() {
    let index = index(&graphs::random(30, 20, 400, 2.0));
    let device = Device::flex();
    for (dtype, ulp) in HALVES {
        for widths in [[16, 8], [4, 20]] {
            let mut half = Call::new(&index, Kind::Full, widths, true, 5);
            half.dtype = dtype;
            half.values = half.values.map(|v| v.convert_dtype(dtype));
            let mut single = half.clone();
            single.dtype = DType::F32;
            single.values = single.values.map(|v| v.convert_dtype(DType::F32));
            let (a, b) = (half.run(&device, false), single.run(&device, false));
            for ((name, a), b) in NAMES.iter().zip(&a.0).zip(&b.0) {
                // The result is rounded once; the cotangent of `single` is not rounded to the smaller type.
                assert_close_to_largest(format_args!("{dtype:?}, {name}"), a, b, 4.0 * ulp);
            }
            assert_close(&format!("{dtype:?}, out"), &a.0[0], &b.0[0], ulp);
        }
    }
}

#[test]
fn a_stack_is_its_relations() {
    let (a, b) = (
        graphs::relation(3, 4, &[(0, 1), (2, 3), (2, 3)]),
        graphs::relation(2, 4, &[(1, 3), (0, 0)]),
    );
    let stack =
        RelationStack::new(4, &[3, 2], &[(0, a.clone()), (1, b.clone()), (0, a.clone())]).unwrap();
    let index = RelationalIndex::from_stack(&stack);
    assert_eq!(index.types(), [0, 0, 0, 1, 1, 2, 2, 2]);
    assert_eq!((index.edge_ids(1), index.edge_ids(2)), (&[3u32, 4][..], &[5u32, 6, 7][..]));
    for (backend, device) in devices() {
        let place = (&device, DType::F64);
        let x = Tensor::<2>::from_data(TensorData::new(numbers(1, 15), [5, 3]), place);
        let w = Tensor::<3>::from_data(TensorData::new(numbers(2, 18), [3, 3, 2]), place);
        let one = |r: usize, relation: &Relation, x: Tensor<2>| {
            copy_u_sum(relation, x).matmul(w.clone().slice_dim(0, r..r + 1).reshape([3, 2]))
        };
        let (xa, xb) = (x.clone().slice_dim(0, 0..3), x.clone().slice_dim(0, 3..5));
        let want = one(0, &a, xa.clone()) + one(1, &b, xb) + one(2, &a, xa);
        let got = relational_aggregate(&index, x, RelationalWeight::Full(w.clone()), None);
        assert_close(backend, &f64s(got), &f64s(want), 1e-12);
    }
}

fn calls() -> impl Strategy<Value = (Relation, Vec<u16>, usize, usize, usize)> {
    (1usize..12, 1usize..12, 1usize..6, 0usize..9, 0usize..9).prop_flat_map(|(s, d, r, i, o)| {
        let edges = proptest::collection::vec((0..s as u32, 0..d as u32, 0..r as u16), 0..60);
        edges.prop_map(move |edges| {
            let pairs: Vec<_> = edges.iter().map(|e| (e.0, e.1)).collect();
            let mut types: Vec<u16> = edges.iter().map(|e| e.2).collect();
            types.iter_mut().for_each(|t| *t *= 1000); // Many relations, most without edges.
            (graphs::relation(s, d, &pairs), types, 1000 * r, i, o)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_graphs((relation, types, relations, i, o) in calls(), mean: bool, norm: bool, seed in 0u64..1000) {
        let plain = RelationalIndex::new(&relation, &types, relations);
        let index = if mean { plain.mean() } else { plain };
        for (backend, device) in devices() {
            let call = Call::new(&index, Kind::Full, [i, o], norm, seed);
            call.run(&device, false).assert_near(backend, &call.run(&device, true), 1e-11);
        }
    }

    /// Results do not depend on the order of edges, up to rounding.
    #[test]
    fn order_of_edges((relation, types, relations, i, o) in calls()) {
        let reversed: Vec<(u32, u32)> = relation.src().iter().copied().zip(relation.dst().iter().copied()).rev().collect();
        let reversed = graphs::relation(relation.num_src(), relation.num_dst(), &reversed);
        let back: Vec<u16> = types.iter().rev().copied().collect();
        let run = |relation: &Relation, types: &[u16]| {
            Call::new(&RelationalIndex::new(relation, types, relations), Kind::Full, [i, o], false, 3).run(&Device::flex(), false)
        };
        run(&relation, &types).assert_near("reversed", &run(&reversed, &back), 1e-11);
    }
}

#[test]
fn what_is_refused() {
    let relation = graphs::small();
    let text = |r: Result<RelationalIndex, PlanError>| r.unwrap_err().to_string();
    assert_eq!(
        text(RelationalIndex::try_new(&relation, &[0u8; 3], 2)),
        "relational_index: `types` must have 8 rows (one per edge of the relation), got 3; give as many rows"
    );
    assert_eq!(
        text(RelationalIndex::try_new(&relation, &[0u32, 0, 7, 0, 0, 0, 0, 0], 7)),
        "relational_index: `types[2]` must lie in 0..7 (relations), got 7; number them from 0"
    );
    let index = index(&relation);
    let device = Device::flex();
    let ones = |shape: [usize; 3]| RelationalWeight::Full(Tensor::ones(shape, &device));
    let x = |rows, columns| Tensor::<2>::ones([rows, columns], &device);
    let error = |x, w, norm| try_relational_aggregate(&index, x, w, norm).unwrap_err().to_string();
    let name = "relational_aggregate";
    assert_eq!(
        error(x(4, 2), ones([5, 2, 2]), None),
        format!(
            "{name}: `x` must have 5 rows (one per source node of the index), got 4; give as many rows"
        )
    );
    assert_eq!(
        error(x(5, 2), ones([4, 2, 2]), None),
        format!(
            "{name}: `weight` must have shape [5, 2, 2], got [4, 2, 2]; transpose or reshape it, or correct the other operands"
        )
    );
    assert_eq!(
        error(x(5, 2), ones([5, 3, 2]), None),
        format!(
            "{name}: `weight` must have shape [5, 2, 2], got [5, 3, 2]; transpose or reshape it, or correct the other operands"
        )
    );
    let norm = Some(Tensor::ones([5], &device));
    assert_eq!(
        error(x(5, 2), ones([5, 2, 2]), norm),
        format!(
            "{name}: `norm` must have 8 rows (one per edge of the index), got 5; give as many rows"
        )
    );
    let basis = |b: [usize; 3], c: [usize; 2]| RelationalWeight::Basis {
        bases: Tensor::ones(b, &device),
        coeff: Tensor::ones(c, &device),
    };
    assert_eq!(
        error(x(5, 2), basis([3, 1, 2], [5, 3]), None),
        format!(
            "{name}: `bases` must have shape [3, 2, 2], got [3, 1, 2]; transpose or reshape it, or correct the other operands"
        )
    );
    assert_eq!(
        error(x(5, 2), basis([3, 2, 2], [3, 5]), None),
        format!(
            "{name}: `coeff` must have shape [5, 3], got [3, 5]; transpose or reshape it, or correct the other operands"
        )
    );
    let blocks = |s: [usize; 4]| RelationalWeight::BlockDiagonal(Tensor::ones(s, &device));
    assert_eq!(
        error(x(5, 4), blocks([5, 2, 3, 1]), None),
        format!(
            "{name}: `weight` must have shape [5, 2, 2, 1], got [5, 2, 3, 1]; transpose or reshape it, or correct the other operands"
        )
    );
    assert_eq!(
        error(x(5, 5), blocks([5, 2, 2, 1]), None),
        format!(
            "{name}: `x` must have shape [5, 4], got [5, 5]; transpose or reshape it, or correct the other operands"
        )
    );
    let wide = RelationalWeight::Full(Tensor::ones([5, 2, 2], (&device, DType::F64)));
    assert_eq!(
        error(x(5, 2), wide, None),
        format!("{name}: `weight` is F64 and `x` is F32; cast one of them")
    );
    let text = panic_text(|| relational_aggregate(&index, x(4, 2), ones([5, 2, 2]), None));
    assert!(text.contains("must have 5 rows"), "{text}");
}

#[test]
#[should_panic(expected = "relational_index: `types[0]` must lie in 0..0 (relations), got 0")]
fn no_relations_no_types() {
    RelationalIndex::new(&graphs::relation(1, 1, &[(0, 0)]), &[0u8], 0);
}
