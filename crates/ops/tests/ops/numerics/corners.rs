//! Corner cases of GSpMM and GSDDMM, as documented.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::*;

use crate::calls::{Call, Gspmm, Operation};
use crate::{devices, f64s};
use burn_gnn_testutil::{assert_close, graphs};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

fn bits(x: Vec<f64>) -> Vec<Option<f64>> {
    x.into_iter().map(|x| (!x.is_nan()).then_some(x)).collect()
}

/// A small input with hand-computed results of every reducer, including a node without edges.
#[test]
fn table_of_reducers() {
    let rel = graphs::relation(3, 4, &[(0, 0), (1, 0), (1, 2), (2, 2), (0, 2), (2, 3)]);
    for (_, device) in devices() {
        let x = Tensor::<1>::from_data([1.0, -4.0, 2.5], &device);
        assert_eq!(f64s(copy_u_sum(&rel, x.clone())), [-3.0, 0.0, -0.5, 2.5]);
        assert_eq!(f64s(copy_u_mean(&rel, x.clone())), [-1.5, 0.0, f64::from(-0.5f32 / 3.0), 2.5]);
        assert_eq!(f64s(copy_u_max(&rel, x.clone())), [1.0, 0.0, 2.5, 2.5]);
        assert_eq!(f64s(copy_u_min(&rel, x.clone())), [-4.0, 0.0, -4.0, 2.5]);
        let e = Tensor::<1>::from_data([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &device);
        assert_eq!(f64s(copy_e_sum(&rel, e.clone())), [3.0, 0.0, 12.0, 6.0]);
        assert_eq!(f64s(copy_e_mean(&rel, e.clone())), [1.5, 0.0, 4.0, 6.0]);
        assert_eq!(f64s(copy_e_max(&rel, e.clone())), [2.0, 0.0, 5.0, 6.0]);
        assert_eq!(f64s(copy_e_min(&rel, e.clone())), [1.0, 0.0, 3.0, 6.0]);
        let two = |t: Tensor<1>| f64s(t);
        assert_eq!(two(u_add_e_sum(&rel, x.clone(), e.clone())), [0.0, 0.0, 11.5, 8.5]);
        assert_eq!(
            two(u_sub_e_mean(&rel, x.clone(), e.clone())),
            [-3.0, 0.0, f64::from(-12.5f32 / 3.0), -3.5]
        );
        assert_eq!(two(u_mul_e_max(&rel, x.clone(), e.clone())), [1.0, 0.0, 10.0, 15.0]);
        assert_eq!(
            two(u_div_e_min(&rel, x, e)),
            [-2.0, 0.0, f64::from(-4.0f32 / 3.0), f64::from(2.5f32 / 6.0)]
        );
    }
}

#[test]
fn infinities_and_nan_stay_visible() {
    let rel = graphs::relation(4, 3, &[(0, 0), (1, 1), (2, 1), (0, 2), (3, 2), (1, 2)]);
    for (backend, device) in devices() {
        let x = Tensor::<1>::from_data([-INF, NAN, 1.0, 7.0], &device);
        let seen = |f: fn(&burn_gnn_graph::Relation, Tensor<1>) -> Tensor<1>| {
            bits(f64s(f(&rel, x.clone())))
        };
        let minus = Some(f64::NEG_INFINITY);
        // The only message of destination 0 is -inf, which is a message, so the result is not 0.
        assert_eq!(seen(copy_u_max), [minus, None, None], "{backend}");
        assert_eq!(seen(copy_u_min), [minus, None, None], "{backend}");
        assert_eq!(seen(copy_u_sum), [minus, None, None], "{backend}");
        let y = Tensor::<1>::from_data([-INF, -INF, INF, 0.0], &device);
        assert_eq!(f64s(copy_u_max(&rel, y.clone())), [f64::NEG_INFINITY, f64::INFINITY, 0.0]);
        let reference: Tensor<1> =
            gspmm_reference(&rel, BinaryOp::CopyLhs, Reduce::Max, x.clone(), x);
        assert_eq!(bits(f64s(reference)), [minus, None, None], "{backend}");
    }
}

#[test]
fn the_first_nan_wins_and_stays() {
    let rel = graphs::relation(4, 1, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    for (backend, device) in devices() {
        let device = device.autodiff();
        for reduce in [Reduce::Max, Reduce::Min] {
            for reference in [false, true] {
                let x = Tensor::<1>::from_data([5.0, NAN, 9.0, NAN], &device).require_grad();
                let y: Tensor<1> = if reference {
                    gspmm_reference(&rel, BinaryOp::CopyLhs, reduce, x.clone(), x.clone())
                } else {
                    gspmm(&rel, BinaryOp::CopyLhs, reduce, x.clone(), x.clone())
                };
                let grads = y.sum().backward();
                assert_eq!(
                    f64s(x.grad(&grads).unwrap()),
                    [0.0, 1.0, 0.0, 0.0],
                    "{backend}, {reduce:?}, reference {reference}"
                );
            }
        }
    }
}

#[test]
fn without_in_edges_everything_is_zero() {
    let rel = graphs::relation(2, 3, &[(0, 1), (1, 1)]);
    for (backend, device) in devices() {
        let device = device.autodiff();
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 5.0]], &device).require_grad();
                let e = Tensor::<2>::from_data([[2.0, 0.5], [1.0, 4.0]], &device).require_grad();
                let y: Tensor<2> = gspmm(&rel, op, reduce, x.clone(), e.clone());
                // The loss contains only rows without edges.
                let lonely =
                    Tensor::cat(vec![y.clone().slice_dim(0, 0..1), y.slice_dim(0, 2..3)], 0);
                // Not -0, whose inverse is -inf.
                let bits: Vec<u64> = f64s(lonely.clone()).into_iter().map(f64::to_bits).collect();
                assert_eq!(bits, [0; 4], "{backend}, {op:?} {reduce:?}");
                let grads = (lonely * 1e30).sum().backward();
                for g in [x.grad(&grads), e.grad(&grads)].into_iter().flatten() {
                    assert_eq!(f64s(g), [0.0; 4], "{backend}, {op:?} {reduce:?}");
                }
            }
        }
    }
}

#[test]
fn of_equal_messages_the_first_edge_wins() {
    // Destination 0 has edges 1, 2 and 3 with descending sources, so that CSC is not sorted by source.
    let rel = graphs::relation(3, 2, &[(0, 1), (2, 0), (1, 0), (0, 0)]);
    for (backend, device) in devices() {
        let device = device.autodiff();
        for reduce in [Reduce::Max, Reduce::Min] {
            for reference in [false, true] {
                let f = if reference { gspmm_reference::<2, 2, 2> } else { gspmm::<2, 2, 2> };
                let x = Tensor::<2>::ones([3, 2], &device).require_grad();
                let e = Tensor::<2>::ones([4, 2], &device).require_grad();
                let grads = f(&rel, BinaryOp::Mul, reduce, x.clone(), e.clone()).sum().backward();
                let what = format!("{backend}, {reduce:?}, reference {reference}");
                assert_eq!(f64s(x.grad(&grads).unwrap()), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], "{what}");
                assert_eq!(
                    f64s(e.grad(&grads).unwrap()),
                    [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn losers_with_infinite_derivative_stay_out() {
    // The argmax of destination 0 is edge 0 (5 / 1). Edge 1 divides by 0 and gives -inf, with derivative inf.
    let rel = graphs::relation(2, 1, &[(0, 0), (1, 0)]);
    for (_, device) in devices() {
        let device = device.autodiff();
        let x = Tensor::<1>::from_data([5.0, -1.0], &device).require_grad();
        let e = Tensor::<1>::from_data([1.0, 0.0], &device).require_grad();
        let y: Tensor<1> = u_div_e_max(&rel, x.clone(), e.clone());
        let grads = y.sum().backward();
        assert_eq!(f64s(x.grad(&grads).unwrap()), [1.0, 0.0]);
        assert_eq!(f64s(e.grad(&grads).unwrap()), [-5.0, 0.0]);
    }
}

#[test]
fn inputs_that_are_not_contiguous() {
    let rel = graphs::small();
    for (backend, device) in devices() {
        let call = Call::new(&rel, Gspmm(BinaryOp::Mul, Reduce::Sum), (&[3], &[3]), 6);
        let want = call.kernel(&device);
        let device = device.autodiff();
        let x = Tensor::<2>::from_data(call.lhs.clone(), (&device, DType::F64));
        let e = Tensor::<2>::from_data(call.rhs.clone(), (&device, DType::F64));
        // A transposed view, and a slice of a larger tensor.
        let xt = x.transpose().require_grad();
        let pad = Tensor::<2>::ones([2, 3], (&device, DType::F64));
        let wide = Tensor::cat(vec![pad.clone(), e, pad], 0).require_grad();
        let y: Tensor<2> =
            u_mul_e_sum(&rel, xt.clone().transpose(), wide.clone().slice_dim(0, 2..10));
        let cotangent = burn::tensor::TensorData::new(crate::numbers(99, 12), [4, 3]);
        // The cotangent is a transposed view as well.
        let c = Tensor::<2>::from_data(cotangent, (&device, DType::F64)).transpose();
        let grads = (y.clone().transpose() * c).sum().backward();
        assert_close(backend, &f64s(y), &want.out, 1e-14);
        assert_close(backend, &f64s(xt.grad(&grads).unwrap().transpose()), &want.lhs, 1e-14);
        assert_close(
            backend,
            &f64s(wide.grad(&grads).unwrap().slice_dim(0, 2..10)),
            &want.rhs,
            1e-14,
        );
    }
}

#[test]
fn gradient_checkpointing_gives_the_same() {
    let rel = graphs::small();
    for (backend, device) in devices() {
        for reduce in Reduce::ALL {
            let run = |device: &Device| {
                let x = Tensor::<2>::from_data(
                    Call::new(&rel, Gspmm(BinaryOp::Mul, reduce), (&[3], &[1]), 9).lhs,
                    (device, DType::F64),
                )
                .require_grad();
                let w = Tensor::<1>::from_data(
                    burn::tensor::TensorData::new(crate::numbers(3, 8), [8]),
                    (device, DType::F64),
                )
                .require_grad();
                // Operands are results of operations, so that checkpointing may recompute them.
                let y: Tensor<2> = u_div_e_sum(&rel, x.clone().exp() * 2.0, w.clone().exp() + 1.0);
                let z: Tensor<2> =
                    gspmm(&rel, BinaryOp::Mul, reduce, x.clone().tanh(), w.clone().tanh());
                let grads = (y.clone() * z + y).sum().backward();
                [f64s(x.grad(&grads).unwrap()), f64s(w.grad(&grads).unwrap())].concat()
            };
            let plain = run(&device.clone().autodiff());
            let checkpointed = run(&device.clone().autodiff().gradient_checkpointing());
            assert_eq!(plain, checkpointed, "{backend}, {reduce:?}");
        }
    }
}

#[test]
fn an_untracked_constant_goes_with_a_tracked_tensor() {
    let rel = graphs::small();
    for (_, device) in devices() {
        let w = Tensor::<1>::ones([8], &device);
        let x = Tensor::<2>::ones([5, 2], &device.autodiff()).require_grad();
        let y: Tensor<2> = u_mul_e_sum(&rel, x.clone(), w);
        let grads = y.sum().backward();
        // Out-degrees.
        assert_eq!(
            f64s(x.grad(&grads).unwrap()),
            [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 2.0, 2.0]
        );
    }
}

#[test]
fn one_tensor_as_both_operands() {
    // As many edges as sources; y = x², so dx = 2x.
    let rel = graphs::relation(3, 3, &[(0, 0), (1, 1), (2, 2)]);
    for (_, device) in devices() {
        let x = Tensor::<1>::from_data([1.0, -2.0, 3.0], &device.autodiff()).require_grad();
        let y: Tensor<1> = u_mul_e_sum(&rel, x.clone(), x.clone());
        assert_eq!(f64s(x.grad(&y.sum().backward()).unwrap()), [2.0, -4.0, 6.0]);
    }
}

#[test]
fn matrices_without_rows_or_columns() {
    for (backend, device) in devices() {
        let device = device.autodiff();
        for code in 0..8 {
            let len = |bit: usize, full: usize| if code >> bit & 1 == 0 { 0 } else { full };
            let (n, k, m) = (len(0, 3), len(1, 4), len(2, 2));
            let what = format!("{backend}, [{n}, {k}] x [{k}, {m}]");
            // Results of operations, so that gradients propagate through both.
            let x = Tensor::<2>::ones([n, k], (&device, DType::F64)).require_grad();
            let w = Tensor::<2>::ones([k, m], (&device, DType::F64)).require_grad();
            let y = matmul_rows(x.clone() * 2.0, w.clone() * 3.0);
            assert_eq!(y.dims(), [n, m], "{what}");
            assert_eq!(f64s(y.clone()), vec![6.0 * k as f64; n * m], "{what}");
            let grads = (y.sum() + 1.0).backward();
            let (dx, dw) = (x.grad(&grads).expect(&what), w.grad(&grads).expect(&what));
            assert_eq!((dx.dims(), dw.dims()), ([n, k], [k, m]), "{what}");
            assert_eq!(f64s(dx), vec![6.0 * m as f64; n * k], "{what}");
            assert_eq!(f64s(dw), vec![6.0 * n as f64; k * m], "{what}");
        }
    }
}

/// Columns of a matrix without rows start after the end of its storage.
#[test]
fn columns_of_matrices_without_rows() {
    let (no_sources, no_destinations) = (graphs::relation(0, 2, &[]), graphs::relation(3, 0, &[]));
    for (backend, device) in devices() {
        let columns = Tensor::<2>::zeros([0, 8], &device).slice_dim(1, 4..8);
        assert_eq!(f64s(copy_u_sum(&no_sources, columns)), [0.0; 8], "{backend}");
        let device = device.autodiff();
        let x = Tensor::<2>::ones([3, 4], &device).require_grad();
        let sums: Tensor<2> = copy_u_sum(&no_destinations, x.clone());
        let both = Tensor::cat(vec![Tensor::zeros([0, 4], &device), sums], 1);
        let grads = (both.sum() + 1.0).backward();
        assert_eq!(f64s(x.grad(&grads).expect(backend)), [0.0; 12], "{backend}");
    }
}

#[test]
#[should_panic(expected = "matmul_rows: `w` must have 4 rows (one per feature of `x`), got 0")]
fn empty_matrices_that_disagree() {
    let _ =
        matmul_rows(Tensor::zeros([3, 4], &Device::flex()), Tensor::zeros([0, 2], &Device::flex()));
}

#[test]
fn a_gradient_of_one_operand_alone() {
    // Tensors for the other gradient are not saved.
    let relation = graphs::random(30, 20, 200, 2.0);
    for (backend, device) in devices() {
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                for (lhs, rhs) in [
                    (&[33usize][..], &[33usize][..]),
                    (&[19], &[1]),
                    (&[2, 8], &[2, 1]),
                    (&[1], &[5]),
                ] {
                    let call = Call::new(&relation, Gspmm(op, reduce), (lhs, rhs), 6);
                    let both = call.kernel(&device);
                    let what = format!("{backend}, {op:?} {reduce:?}, {lhs:?} {rhs:?}");
                    for (side, want) in [(0, &both.lhs), (1, &both.rhs)] {
                        let got = if lhs.len() == 1 {
                            alone::<2>(&call, &device, side)
                        } else {
                            alone::<3>(&call, &device, side)
                        };
                        if let Some(got) = got {
                            assert_close(&format!("{what}, operand {side}"), &got, want, 1e-13);
                        }
                    }
                }
            }
        }
    }
}

fn alone<const D: usize>(call: &Call<Gspmm>, device: &Device, side: usize) -> Option<Vec<f64>> {
    let autodiff = device.clone().autodiff();
    let leaf = |data: &TensorData, tracked: bool| {
        let x = Tensor::<D>::from_data(
            data.clone(),
            (if tracked { &autodiff } else { device }, DType::F64),
        );
        if tracked { x.require_grad() } else { x }
    };
    let operands = [leaf(&call.lhs, side == 0), leaf(&call.rhs, side == 1)];
    let [lhs, rhs] = operands.clone();
    if !call.operation.uses()[side] {
        return None;
    }
    let out: Tensor<D> = call.operation.apply(&call.relation, lhs, rhs, false);
    let cotangent = TensorData::new(crate::numbers(99, out.shape().num_elements()), out.shape());
    let grads = (out * Tensor::from_data(cotangent, (&autodiff, DType::F64))).sum().backward();
    Some(crate::f64s(operands[side].grad(&grads).expect("a tracked operand has a gradient")))
}

/// Another process overwrites the file of a mapped topology: operators read other nodes or panic, but every row of a
/// result per edge is written once, and results contain no uninitialised memory. (Miri does not support mapped files,
/// and Windows does not overwrite them.)
#[cfg(not(any(windows, miri)))]
#[test]
fn a_mapped_topology_that_changes() {
    use burn_gnn_data::Topology;
    use burn_gnn_graph::{Graph, Relation};
    use burn_gnn_sampling::Placement;
    const WIDTH: usize = 16;
    let (nodes, edges) = (50, 8000);
    let end =
        |k: usize| (0..edges).map(move |i| ((i * k + i / 7) % nodes) as u32).collect::<Vec<_>>();
    let plain = Graph::homogeneous(nodes, end(31), end(17)).unwrap();
    let file = std::env::temp_dir().join(format!("burn-gnn-ops-{}.topology", std::process::id()));
    // Softmax, dot products of both endpoints, and the gradient of edge features, each with one row per edge.
    let run = |relation: &Relation, device: &Device| {
        // Frees memory of the size of the results.
        drop(vec![777f32; edges * WIDTH]);
        let device = device.clone().autodiff();
        let tensor = |rows: usize, by: usize| {
            let values: Vec<f32> =
                (0..rows * WIDTH).map(|i| ((i * by) % 13) as f32 - 6.0).collect();
            Tensor::<2>::from_data(TensorData::new(values, [rows, WIDTH]), &device)
        };
        let (x, y, e) = (tensor(nodes, 5), tensor(nodes, 7), tensor(edges, 11).require_grad());
        let softmax = edge_softmax(relation, e.clone(), NormBy::Dst);
        let dots: Tensor<2> = u_dot_v(relation, x.clone(), y.clone());
        let loss = (u_mul_e_sum(relation, x, e.clone()) * y).sum();
        let gradient = e.grad(&loss.backward()).unwrap();
        [f64s(softmax), f64s(dots), f64s(gradient)]
    };
    for (backend, device) in devices() {
        let want = run(&plain.relations()[0], &device);
        for garbage in [0, u32::MAX] {
            Topology::write(&plain, &file).unwrap();
            let mapped = Topology::open(&file, Placement::Mapped).unwrap();
            let relation = &mapped.graph().relations()[0];
            assert_eq!(run(relation, &device), want, "{backend}");
            let words = std::fs::metadata(&file).unwrap().len() as usize / 4;
            let changed = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
            std::io::Write::write_all(&mut &changed, &u32::to_ne_bytes(garbage).repeat(words))
                .unwrap();
            let Ok(got) =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(relation, &device)))
            else {
                assert_eq!(garbage, u32::MAX, "{backend}: there is a node 0");
                continue;
            };
            // Softmax does not read the node at the other endpoint.
            assert_eq!(got[0], want[0], "{backend}");
            let (x, y) =
                (|i: usize| ((i * 5) % 13) as f64 - 6.0, |i: usize| ((i * 7) % 13) as f64 - 6.0);
            for e in 0..edges {
                let (u, v) = (
                    plain.relations()[0].src()[e] as usize,
                    plain.relations()[0].dst()[e] as usize,
                );
                let dot: f64 = (0..WIDTH).map(|j| x(j) * y(v * WIDTH + j)).sum();
                assert_eq!(
                    got[1][e], dot,
                    "{backend}, edge {e}: of node 0 and its own destination"
                );
                for j in 0..WIDTH {
                    assert_eq!(
                        got[2][e * WIDTH + j],
                        x(u * WIDTH + j) * y(j),
                        "{backend}, edge {e}: of its own source and node 0"
                    );
                }
            }
        }
    }
    std::fs::remove_file(&file).unwrap();
}
