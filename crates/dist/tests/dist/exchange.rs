use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_dist::{
    Communicator, DistError, Failure, HaloPlan, LocalPartition, PartitionConfig, PartitionMethod,
    TypeHalo, halo_exchange, partition_graph, run_ranks,
};
use burn_gnn_ops::GraphView;

use crate::graphs::{devices, rows, typed};

/// Three ranks with 3, 0 and 4 rows of type 0, 2 rows each of type 1, none of type 2.
fn plan(comm: Arc<dyn Communicator>) -> Result<Arc<HaloPlan>, Failure> {
    let r = comm.rank();
    let first = [
        TypeHalo { num_inner: 3, send: vec![vec![], vec![2], vec![0, 2]], recv: vec![0, 0, 1] },
        TypeHalo { num_inner: 0, send: vec![vec![]; 3], recv: vec![1, 0, 2] },
        TypeHalo { num_inner: 4, send: vec![vec![3], vec![1, 3], vec![]], recv: vec![2, 0, 0] },
    ];
    let second = [
        TypeHalo { num_inner: 2, send: vec![vec![], vec![1], vec![]], recv: vec![0, 0, 0] },
        TypeHalo { num_inner: 2, send: vec![vec![]; 3], recv: vec![1, 0, 0] },
        TypeHalo { num_inner: 2, send: vec![vec![]; 3], recv: vec![0; 3] },
    ];
    let third = TypeHalo { num_inner: 0, send: vec![vec![]; 3], recv: vec![0; 3] };
    HaloPlan::new(comm, vec![first[r].clone(), second[r].clone(), third])
}

/// Unique value of row `row` of rank `rank`.
fn value(rank: usize, row: usize, column: usize) -> f64 {
    (100 * rank + 10 * row + column) as f64
}

fn own(rank: usize, rows: usize, width: usize, dtype: DType, device: &Device) -> Tensor<2> {
    let v: Vec<f64> = (0..rows * width).map(|i| value(rank, i / width, i % width)).collect();
    Tensor::from_data(TensorData::new(v, [rows, width]).convert_dtype(dtype), (device, dtype))
}

fn host(t: Tensor<2>) -> Vec<f64> {
    t.into_data().convert::<f64>().iter::<f64>().collect()
}

/// `(rank, row)` of each halo row of type 0, per rank.
const HALO: [&[(usize, usize)]; 3] = [&[(2, 3)], &[(0, 2), (2, 1), (2, 3)], &[(0, 0), (0, 2)]];
const ROWS: [usize; 3] = [3, 0, 4];

fn check_values(types: usize, dtype: DType, device: &Device) {
    run_ranks(3, |comm| -> Result<(), Failure> {
        let (r, width) = (comm.rank(), 3);
        let plan = if types == 1 { one_type(comm.clone())? } else { plan(comm.clone())? };
        let mut x = vec![own(r, ROWS[r], width, dtype, device).require_grad()];
        if types == 3 {
            // Another feature size, and a type without nodes.
            x.push(own(r, 2, 2, dtype, device).require_grad());
            x.push(own(r, 0, 4, dtype, device));
        }
        let out = halo_exchange(&plan, "x", x.clone());
        let expected: Vec<f64> = (0..ROWS[r])
            .map(|row| (r, row))
            .chain(HALO[r].iter().copied())
            .flat_map(|(p, row)| (0..width).map(move |c| value(p, row, c)))
            .collect();
        assert_eq!(host(out[0].clone()), expected);
        assert_eq!(out[0].dims(), [ROWS[r] + HALO[r].len(), width]);
        if types == 3 {
            assert_eq!(out[1].dims(), [2 + usize::from(r == 1), 2]);
            assert_eq!(out[2].dims(), [0, 4]);
        }
        // Each output row has the weight (rank + 1) * (position + 1); owners sum the weights.
        let weights = |t: &Tensor<2>| {
            let [n, d] = t.dims();
            let w: Vec<f64> = (0..n * d).map(|i| ((r + 1) * (i / d + 1)) as f64).collect();
            Tensor::<2>::from_data(TensorData::new(w, [n, d]).convert_dtype(dtype), (device, dtype))
        };
        let mut loss = (out[0].clone() * weights(&out[0])).sum();
        if types == 3 {
            loss = loss + (out[1].clone() * weights(&out[1])).sum();
        }
        let grads = loss.backward();
        let mut expected = vec![0.0; ROWS[r] * width];
        for (p, halo) in HALO.iter().enumerate() {
            let rows = (0..ROWS[p]).map(|row| (p, row)).chain(halo.iter().copied());
            for (position, (_, row)) in rows.enumerate().filter(|(_, (q, _))| *q == r) {
                (0..width)
                    .for_each(|c| expected[row * width + c] += ((p + 1) * (position + 1)) as f64);
            }
        }
        assert_eq!(x[0].grad(&grads).map(host).unwrap_or_default(), expected, "rank {r}");
        if types == 3 {
            let own = (r + 1) as f64;
            let mut second = vec![own, own, 2.0 * own, 2.0 * own];
            if r == 0 {
                // Row 1 is row 2 of rank 1.
                second[2] += 6.0;
                second[3] += 6.0;
            }
            assert_eq!(host(x[1].grad(&grads).unwrap()), second);
        }
        Ok(())
    })
    .unwrap();
}

fn one_type(comm: Arc<dyn Communicator>) -> Result<Arc<HaloPlan>, Failure> {
    let r = comm.rank();
    let types = [
        TypeHalo { num_inner: 3, send: vec![vec![], vec![2], vec![0, 2]], recv: vec![0, 0, 1] },
        TypeHalo { num_inner: 0, send: vec![vec![]; 3], recv: vec![1, 0, 2] },
        TypeHalo { num_inner: 4, send: vec![vec![3], vec![1, 3], vec![]], recv: vec![2, 0, 0] },
    ];
    HaloPlan::new(comm, vec![types[r].clone()])
}

#[test]
fn gradients_are_sent_back_to_the_owner() {
    for (name, device) in devices() {
        for types in [1, 3] {
            check_values(types, DType::F32, &device);
            check_values(types, DType::F64, &device);
            if name == "flex" {
                // Small integers, exact in both.
                check_values(types, DType::F16, &device);
                check_values(types, DType::BF16, &device);
            }
        }
    }
}

/// For any set of ranks with tracked inputs, all ranks make the same collective calls, and gradients are those of the
/// transpose.
#[test]
fn tracked_on_some_ranks_only() {
    for (_, device) in devices() {
        for mask in 0..8 {
            for types in [1, 3] {
                run_ranks(3, |comm| -> Result<(), Failure> {
                    let r = comm.rank();
                    let plan =
                        if types == 1 { one_type(comm.clone())? } else { plan(comm.clone())? };
                    let tracked = (mask >> r) & 1 == 1;
                    let x = own(r, ROWS[r], 2, DType::F64, &device);
                    let x = if tracked { x.require_grad() } else { x };
                    let mut all = vec![x.clone()];
                    if types == 3 {
                        all.extend([
                            own(r, 2, 1, DType::F64, &device),
                            own(r, 0, 1, DType::F64, &device),
                        ]);
                    }
                    let out = halo_exchange(&plan, "x", all).remove(0);
                    // A tracked factor, so that every rank has a gradient.
                    let one = Tensor::<1>::from_data(
                        TensorData::new(vec![1.0], [1]),
                        (&device, DType::F64),
                    )
                    .require_grad();
                    let grads = (out.sum() * one).backward();
                    if tracked {
                        let mut expected = vec![1.0; ROWS[r] * 2];
                        for (q, row) in HALO.iter().flat_map(|h| h.iter()) {
                            if *q == r {
                                expected[2 * row] += 1.0;
                                expected[2 * row + 1] += 1.0;
                            }
                        }
                        assert_eq!(host(x.grad(&grads).unwrap()), expected);
                    }
                    comm.barrier("done")
                })
                .unwrap();
            }
        }
    }
}

/// Constants on the device without autodiff, and parameters on the autodiff device, as in the first layer of a model.
#[test]
fn types_on_plain_and_autodiff_devices() {
    for (_, device) in devices() {
        run_ranks(3, |comm| -> Result<(), Failure> {
            let r = comm.rank();
            let plan = plan(comm.clone())?;
            let constant = own(r, ROWS[r], 2, DType::F32, &device.clone().inner());
            let learned = own(r, 2, 3, DType::F32, &device).require_grad();
            let out = halo_exchange(
                &plan,
                "x",
                vec![constant, learned.clone(), own(r, 0, 1, DType::F32, &device)],
            );
            let grads = (out[0].clone().sum() + out[1].clone().sum()).backward();
            let mut expected = vec![1.0; 6];
            if r == 0 {
                expected[3..].fill(2.0);
            }
            assert_eq!(host(learned.grad(&grads).unwrap()), expected);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn different_dtypes_and_widths_are_an_error() {
    let message = |f: &(dyn Fn(usize) -> Tensor<2> + Sync)| {
        let run = run_ranks(2, |comm| -> Result<(), Failure> {
            let r = comm.rank();
            let h = TypeHalo { num_inner: 2, send: vec![vec![]; 2], recv: vec![0; 2] };
            let mut h = [h.clone(), h];
            h[0].send[1] = vec![1];
            h[1].recv[0] = 1;
            let plan = HaloPlan::new(comm, vec![h[r].clone()])?;
            halo_exchange(&plan, "x", vec![f(r)]);
            Ok(())
        });
        run.unwrap_err().message
    };
    let (plain, tracking) = (Device::flex(), Device::flex().autodiff());
    let m = message(&|r| {
        if r == 0 {
            own(0, 2, 2, DType::F32, &tracking).require_grad()
        } else {
            own(1, 2, 2, DType::F32, &plain)
        }
    });
    assert!(m.contains("rank 0 tracks gradients, rank 1 runs on a device without autodiff"), "{m}");
    let m = message(&|r| own(r, 2, 2 + r, DType::F32, &plain));
    assert!(m.contains("expected 12 bytes of F32 rows of widths [3] from rank 0, got 8"), "{m}");
    let m = message(&|r| own(r, 2, 2, if r == 0 { DType::F64 } else { DType::F32 }, &plain));
    assert!(m.contains("of dtype tag"), "{m}");
    let m = message(&|r| own(r, 2 + r, 2, DType::F32, &plain));
    assert!(m.contains("expected 2 rows (one per inner node), got 3"), "{m}");
}

#[test]
fn plans_that_do_not_match_are_an_error() {
    let text = |h: [TypeHalo; 2]| {
        run_ranks(2, |comm| HaloPlan::new(comm.clone(), vec![h[comm.rank()].clone()]).map(drop))
            .unwrap_err()
            .message
    };
    let h = TypeHalo { num_inner: 2, send: vec![vec![]; 2], recv: vec![0; 2] };
    let m = text([TypeHalo { send: vec![vec![], vec![1]], ..h.clone() }, h.clone()]);
    assert!(m.contains("1 rows go to rank 1, which expects 0"), "{m}");
    let m = text([TypeHalo { send: vec![vec![], vec![2]], ..h.clone() }, h.clone()]);
    assert!(m.contains("rows to send must lie in 0..2, got 2"), "{m}");
    let m = text([TypeHalo { recv: vec![0], ..h.clone() }, h]);
    assert!(m.contains("expected 2 entries"), "{m}");
}

/// Repeated passes through three exchanges, with concurrent backward passes: no deadlock, and the same bits every time.
#[test]
fn many_passes_repeat() {
    let parts = partition_graph(
        &typed(1, true),
        &PartitionConfig::new("g", 4).with_method(PartitionMethod::Random),
    )
    .unwrap();
    for (_, device) in devices() {
        run_ranks(4, |comm| -> Result<(), DistError> {
            let part = LocalPartition::new(&parts.part(comm.rank())?, comm, &device)?;
            let x: Vec<_> = (0..4)
                .map(|t| rows("x", part.inner_nodes(t), 3, DType::F64, &device).require_grad())
                .collect();
            let mut first = None;
            for _ in 0..200 {
                let mut h = x.clone();
                for name in ["one", "two", "three"] {
                    // Each own row plus the mean of all source rows.
                    let mix = |(t, y): (usize, Tensor<2>)| {
                        let share = 1.0 / (1.0 + y.dims()[0] as f64);
                        let own = Tensor::<1, Int>::arange(
                            0..part.num_inner(t) as i64,
                            &device.clone().inner(),
                        );
                        y.clone().select(0, own) + y.sum_dim(0) * share
                    };
                    h = part.src_rows(name, h).into_iter().enumerate().map(mix).collect();
                }
                let grads = h
                    .into_iter()
                    .fold(Tensor::<1>::zeros([1], (&device, DType::F64)), |sum, h| sum + h.sum())
                    .backward();
                let bits = x
                    .iter()
                    .filter_map(|x| x.grad(&grads))
                    .flat_map(|g| host(g).into_iter().map(f64::to_bits))
                    .collect::<Vec<_>>();
                assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits);
            }
            Ok(())
        })
        .unwrap();
    }
}

/// Burn runs deeper steps first, so operation chains of different length before two exchanges of the same name would
/// swap their backward passes between ranks. The number of the call makes this an error instead of wrong gradients.
#[test]
fn exchanges_of_the_same_name_are_distinguished() {
    for (_, device) in devices() {
        let device = device.autodiff();
        let run = |uneven: bool| {
            run_ranks(3, |comm| -> Result<(), Failure> {
                let r = comm.rank();
                let plan = one_type(comm)?;
                let input = |long: bool| {
                    let x = own(r, ROWS[r], 2, DType::F64, &device).require_grad();
                    if long { (0..4).fold(x, |x, _| x * 1.5) } else { x }
                };
                let first = uneven && r == 1;
                let a = halo_exchange(&plan, "layer", vec![input(first)]).remove(0);
                let b = halo_exchange(&plan, "layer", vec![input(!first)]).remove(0);
                (a.sum() + b.sum()).backward();
                Ok(())
            })
        };
        run(false).unwrap();
        let e = run(true).unwrap_err().to_string();
        assert!(e.contains("layer #0") && e.contains("layer #1"), "{e}");
    }
}
