//! Messages with a row per edge over stacks of relations, against loops over dense rows.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;

use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, central_differences, graphs};

const WIDTH: usize = 3;
const NUM_DST: usize = 5;
const TABLES: [usize; 2] = [4, 3];

/// Two tables, four relations: one without edges, none reaching destination 4, parallel edges.
fn stack() -> (RelationStack, Vec<(usize, Relation)>) {
    let relations = vec![
        (0, graphs::relation(4, 5, &[(0, 0), (1, 0), (1, 0), (3, 2)])),
        (1, graphs::relation(3, 5, &[(2, 0), (0, 1), (1, 2), (1, 3), (2, 3)])),
        (0, graphs::relation(4, 5, &[])),
        (0, graphs::relation(4, 5, &[(2, 2), (0, 2), (0, 0)])),
    ];
    (RelationStack::new(NUM_DST, &TABLES, &relations).unwrap(), relations)
}

fn tensor(seed: u64, rows: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(
        TensorData::new(numbers(seed, rows * WIDTH), [rows, WIDTH]),
        (device, DType::F64),
    )
}

fn sources(device: &Device) -> Vec<Tensor<2>> {
    TABLES.iter().zip(1..).map(|(&n, seed)| tensor(seed, n, device)).collect()
}

fn edges(device: &Device) -> Vec<Tensor<2>> {
    [4, 5, 0, 3].into_iter().zip(11..).map(|(n, seed)| tensor(seed, n, device)).collect()
}

/// Reduction of some numbers; 0 of none.
fn reduced(how: Reduce, x: &[f64]) -> f64 {
    match how {
        _ if x.is_empty() => 0.0,
        Reduce::Sum => x.iter().sum(),
        Reduce::Mean => x.iter().sum::<f64>() / x.len() as f64,
        Reduce::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduce::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

fn message(op: BinaryOp, x: f64, w: f64) -> f64 {
    match op {
        BinaryOp::Add => x + w,
        BinaryOp::Sub => x - w,
        BinaryOp::Mul => x * w,
        BinaryOp::Div => x / w,
        BinaryOp::CopyLhs => x,
        BinaryOp::CopyRhs => w,
    }
}

#[test]
fn every_operator_and_pair_of_reducers() {
    let (stack, relations) = stack();
    for (backend, device) in devices() {
        let x: Vec<_> = sources(&device).into_iter().map(f64s).collect();
        let w: Vec<_> = edges(&device).into_iter().map(f64s).collect();
        for op in BinaryOp::ALL {
            let messages = |r: usize, v: usize, j: usize| -> Vec<f64> {
                let (table, relation) = &relations[r];
                let endpoints = relation
                    .src()
                    .iter()
                    .zip(relation.dst())
                    .enumerate()
                    .filter(|(_, e)| *e.1 as usize == v);
                endpoints
                    .map(|(e, (&u, _))| {
                        message(op, x[*table][u as usize * WIDTH + j], w[r][e * WIDTH + j])
                    })
                    .collect()
            };
            let each = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                (0..NUM_DST * WIDTH).map(|i| f(i / WIDTH, i % WIDTH)).collect()
            };
            for reduce in Reduce::ALL {
                let what = format!("{backend}, {op:?}, {reduce:?}");
                let want = each(&|v, j| {
                    reduced(reduce, &(0..4).flat_map(|r| messages(r, v, j)).collect::<Vec<_>>())
                });
                let got: Tensor<2> =
                    multi_gspmm_binary(&stack, op, sources(&device), edges(&device), reduce);
                assert_close(&format!("{what}, joint"), &f64s(got), &want, 1e-12);
                for cross in CrossReduce::ALL {
                    let want = each(&|v, j| {
                        let takes_part = |r: &usize| {
                            reduce != cross || !reduce.selects() || !messages(*r, v, j).is_empty()
                        };
                        reduced(
                            cross,
                            &(0..4)
                                .filter(takes_part)
                                .map(|r| reduced(reduce, &messages(r, v, j)))
                                .collect::<Vec<_>>(),
                        )
                    });
                    let got: Tensor<2> = multi_gspmm_binary_cross(
                        &stack,
                        op,
                        sources(&device),
                        edges(&device),
                        reduce,
                        cross,
                    );
                    assert_close(&format!("{what} then {cross:?}"), &f64s(got), &want, 1e-12);
                }
            }
        }
    }
}

#[test]
fn finite_differences() {
    let (stack, _) = stack();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for (op, reduce, cross) in [
            (BinaryOp::Mul, Reduce::Sum, Reduce::Sum),
            (BinaryOp::Mul, Reduce::Mean, Reduce::Sum),
            (BinaryOp::Sub, Reduce::Mean, Reduce::Mean),
            (BinaryOp::Div, Reduce::Sum, Reduce::Max),
            (BinaryOp::Add, Reduce::Max, Reduce::Max),
            (BinaryOp::CopyRhs, Reduce::Min, Reduce::Mean),
        ] {
            let loss = |x: Vec<Tensor<2>>, w: Vec<Tensor<2>>| {
                let y: Tensor<2> = multi_gspmm_binary_cross(&stack, op, x, w, reduce, cross);
                (y * tensor(9, NUM_DST, &device)).sum()
            };
            let tracked =
                |x: Vec<Tensor<2>>| x.into_iter().map(|x| x.require_grad()).collect::<Vec<_>>();
            let (x, w) = (tracked(sources(&device)), tracked(edges(&device)));
            let grads = loss(x.clone(), w.clone()).backward();
            let all = x
                .iter()
                .map(|x| (true, x))
                .chain(w.iter().map(|w| (false, w)))
                .filter(|(is_x, _)| !is_x || op.uses_lhs());
            for (position, (is_x, leaf)) in
                all.enumerate().filter(|(_, (_, leaf))| leaf.dims()[0] > 0)
            {
                let at = position
                    - if is_x {
                        0
                    } else if op.uses_lhs() {
                        x.len()
                    } else {
                        0
                    };
                let base = f64s(leaf.clone());
                let differences = central_differences(base.len(), 1e-5, |i, by| {
                    let mut values = base.clone();
                    values[i] += by;
                    let (mut x, mut w) = (sources(&device), edges(&device));
                    let list = if is_x { &mut x } else { &mut w };
                    list[at] = Tensor::from_data(
                        TensorData::new(values, leaf.shape()),
                        (&device, DType::F64),
                    );
                    f64s(loss(x, w))[0]
                });
                let what =
                    format!("{backend}, {op:?} {reduce:?} {cross:?}, list {is_x}, member {at}");
                assert_close(&what, &f64s(leaf.grad(&grads).unwrap()), &differences, 1e-7);
            }
        }
    }
}

#[test]
fn what_is_refused() {
    let (stack, _) = stack();
    let device = Device::flex();
    let text = |op, x: Vec<Tensor<2>>, w: Vec<Tensor<2>>| {
        try_multi_gspmm_binary::<2, 2, 2>(&stack, op, x, w, Reduce::Sum).unwrap_err().to_string()
    };
    let name = "multi_gspmm_binary";
    let (mul, copy_e) = (BinaryOp::Mul, BinaryOp::CopyRhs);
    let with = |position: usize, x: Tensor<2>| {
        let mut list = edges(&device);
        list[position] = x;
        list
    };
    let short = edges(&device)[..3].to_vec();
    assert_eq!(
        text(mul, sources(&device), short),
        format!(
            "{name}: `edges` must have 4 entries (one tensor per relation of the stack), got 3; give as many entries"
        )
    );
    let want = format!(
        "{name}: number of rows (edges of its relation) of `edges[1]` must be 5, got 4; give the tensors in the order of the stack"
    );
    assert_eq!(text(copy_e, vec![], with(1, tensor(1, 4, &device))), want);
    let single = Tensor::<2>::zeros([3, WIDTH], (&device, DType::F32));
    assert_eq!(
        text(copy_e, vec![], with(3, single)),
        format!("{name}: element type of `edges[3]` must be F64, got F32; cast it")
    );
    let wide = Tensor::<2>::zeros([3, 7], (&device, DType::F64));
    let want = format!(
        "{name}: feature shape (first axis left out) of `edges[3]` must be [3], got [7]; reshape it"
    );
    assert_eq!(text(copy_e, vec![], with(3, wide)), want);
    let singles = edges(&device).into_iter().map(|w| w.cast(FloatDType::F32)).collect();
    assert_eq!(
        text(mul, sources(&device), singles),
        format!("{name}: `edges` is F32 and `sources` is F64; cast one of them")
    );
    assert_eq!(
        text(mul, vec![], edges(&device)),
        format!(
            "{name}: `sources` must have 2 entries (one tensor per table of the stack), got 0; give as many entries"
        )
    );
    // Rows of sources, element types, devices and feature shapes, not a panic of a concatenation.
    let stacked = |x| try_stack_rows("stack_rows", &stack, x).unwrap_err().to_string();
    let first = sources(&device).swap_remove(0);
    let second = |dtype| Tensor::<2>::zeros([3, WIDTH], (&device, dtype));
    let want = "stack_rows: element type of `sources[1]` must be F64, got F32; cast it";
    assert_eq!(stacked(vec![first.clone(), second(DType::F32)]), want);
    let want = "stack_rows: feature shape (first axis left out) of `sources[1]` must be [3], got [2]; reshape it";
    assert_eq!(stacked(vec![first.clone(), Tensor::zeros([3, 2], (&device, DType::F64))]), want);
    let elsewhere = Tensor::zeros([3, WIDTH], (&burn_gnn_testutil::other_device(), DType::F64));
    assert!(
        stacked(vec![first, elsewhere]).starts_with("stack_rows: device of `sources[1]` must be ")
    );
    let none = RelationStack::new(2, &[], &[]).unwrap();
    assert_eq!(
        try_stack_rows::<2>("stack_rows", &none, vec![]).unwrap_err().to_string(),
        "stack_rows: `stack tables` must be at least 1, got 0"
    );
    assert_eq!(
        try_multi_gspmm_binary::<2, 2, 2>(&none, copy_e, vec![], vec![], Reduce::Sum)
            .unwrap_err()
            .to_string(),
        "multi_gspmm_binary: `stack relations` must be at least 1, got 0"
    );
}
