//! Reductions over stacks of relations against loops over dense rows.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;

use crate::{assert_near, devices, f64s, graphs, numbers};

const WIDTH: usize = 3;

/// Two tables, four relations: one without edges, none reaching destination 4, one reaching all others.
fn stack() -> (RelationStack, Vec<(usize, Relation)>) {
    let relations = vec![
        (0, graphs::relation(4, 5, &[(0, 0), (1, 0), (1, 0), (3, 2)])),
        (1, graphs::relation(3, 5, &[(2, 0), (0, 1), (1, 2), (1, 3), (2, 3)])),
        (0, graphs::relation(4, 5, &[])),
        (0, graphs::relation(4, 5, &[(2, 2), (0, 2), (0, 0)])),
    ];
    (RelationStack::new(5, &[4, 3], &relations).unwrap(), relations)
}

fn sources(device: &Device) -> Vec<Tensor<2>> {
    [4, 3].map(|n| Tensor::from_data(TensorData::new(numbers(n as u64, n * WIDTH), [n, WIDTH]), (device, DType::F64))).to_vec()
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

#[test]
fn every_pair_of_reducers() {
    let (stack, relations) = stack();
    for (backend, device) in devices() {
        let x: Vec<Vec<f64>> = sources(&device).into_iter().map(f64s).collect();
        let messages = |r: usize, v: usize, j: usize| -> Vec<f64> {
            let (table, relation) = &relations[r];
            let edges = relation.src().iter().zip(relation.dst());
            edges.filter(|e| *e.1 as usize == v).map(|e| x[*table][*e.0 as usize * WIDTH + j]).collect()
        };
        for reduce in Reduce::ALL {
            let each = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> { (0..5 * WIDTH).map(|i| f(i / WIDTH, i % WIDTH)).collect() };
            let all = each(&|v, j| reduced(reduce, &(0..4).flat_map(|r| messages(r, v, j)).collect::<Vec<_>>()));
            assert_near(&format!("{backend}, joint {reduce:?}"), &f64s(multi_gspmm(&stack, sources(&device), reduce)), &all, 1e-12);
            for cross in CrossReduce::ALL {
                let over = match cross {
                    CrossReduce::Sum => Reduce::Sum,
                    CrossReduce::Mean => Reduce::Mean,
                    CrossReduce::Max => Reduce::Max,
                    CrossReduce::Min => Reduce::Min,
                };
                let want = each(&|v, j| {
                    let takes_part = |r: &usize| reduce != over || !reduce.selects() || !messages(*r, v, j).is_empty();
                    reduced(over, &(0..4).filter(takes_part).map(|r| reduced(reduce, &messages(r, v, j))).collect::<Vec<_>>())
                });
                let got = f64s(multi_gspmm_cross(&stack, sources(&device), reduce, cross));
                assert_near(&format!("{backend}, {reduce:?} then {cross:?}"), &got, &want, 1e-12);
            }
        }
    }
}

#[test]
fn finite_differences() {
    let (stack, _) = stack();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for reduce in Reduce::ALL {
            for cross in CrossReduce::ALL {
                let tracked: Vec<_> = sources(&device).into_iter().map(|x| x.require_grad()).collect();
                let loss = |x: Vec<Tensor<2>>| {
                    let y = multi_gspmm_cross(&stack, x, reduce, cross);
                    (y * Tensor::from_data(TensorData::new(numbers(9, 5 * WIDTH), [5, WIDTH]), (&device, DType::F64))).sum()
                };
                let grads = loss(tracked.clone()).backward();
                for (table, x) in tracked.iter().enumerate() {
                    let base = f64s(x.clone());
                    let differences: Vec<f64> = (0..base.len())
                        .map(|i| {
                            let moved = |by: f64| {
                                let mut values = base.clone();
                                values[i] += by;
                                let mut all = sources(&device);
                                all[table] = Tensor::from_data(TensorData::new(values, x.shape()), (&device, DType::F64));
                                f64s(loss(all))[0]
                            };
                            (moved(1e-5) - moved(-1e-5)) / 2e-5
                        })
                        .collect();
                    assert_near(&format!("{backend}, {reduce:?} {cross:?}"), &f64s(x.grad(&grads).unwrap()), &differences, 1e-7);
                }
            }
        }
    }
}

#[test]
fn no_relations_and_what_is_refused() {
    let device = Device::flex();
    let none = RelationStack::new(2, &[3], &[]).unwrap();
    let x = vec![Tensor::<2>::ones([3, 2], &device)];
    assert_eq!(f64s(multi_gspmm_cross(&none, x, Reduce::Max, CrossReduce::Mean)), [0.0; 4]);
    let (stack, _) = stack();
    let error = try_multi_gspmm(&stack, sources(&device)[..1].to_vec(), Reduce::Sum).unwrap_err().to_string();
    assert_eq!(error, "multi_gspmm: `sources` must have 2 entries (one tensor per table of the stack), got 1");
    let swapped = sources(&device).into_iter().rev().collect();
    let error = try_multi_gspmm_cross(&stack, swapped, Reduce::Sum, CrossReduce::Max).unwrap_err().to_string();
    assert_eq!(error, "multi_gspmm_cross: number of rows (rows of its table) of `sources[0]` must be 4, got 3");
}
