use std::time::{Duration, Instant};

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_dist::{
    Communicator, Failure, HaloPlan, Metered, Ranks, ReduceOptions, TypeHalo, all_reduce_gradients,
    all_reduce_gradients_except, all_reduce_gradients_with, halo_exchange, run_ranks,
};
use rayon::prelude::*;

type Nothing = Result<(), Failure>;

/// A failing run ends soon, with the message of the rank at fault, and the next run succeeds.
fn ends(size: usize, rank: usize, message: &str, f: impl Fn(&dyn Communicator) -> Nothing + Sync) {
    let start = Instant::now();
    let failure = run_ranks(size, |comm| f(&*comm)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(failure.rank, rank, "{failure}");
    assert!(failure.message.contains(message), "{failure}");
    let ranks = run_ranks(size, |comm| comm.barrier("again").map(|()| comm.rank())).unwrap();
    assert_eq!(ranks, (0..size).collect::<Vec<_>>());
}

#[test]
fn collectives() {
    for n in [1, 2, 5] {
        run_ranks(n, |comm| crate::collectives::collectives(&*comm)).unwrap();
        run_ranks(n, |comm| crate::collectives::ring(&comm)).unwrap();
        run_ranks(n, |comm| crate::collectives::duplicates(&*comm)).unwrap();
    }
}

#[test]
fn an_error_on_one_rank_ends_all() {
    let f = run_ranks(3, |comm| match comm.rank() {
        1 => Err("bad file".to_owned()),
        _ => comm.barrier("x").map_err(|e| e.to_string()),
    });
    assert_eq!(f.unwrap_err(), Failure { rank: 1, message: "bad file".into() });
}

#[test]
fn a_panic_in_forward_ends_all() {
    ends(4, 2, "panicked: no rows", |comm| {
        assert!(comm.rank() != 2, "no rows");
        comm.barrier("forward")
    });
}

/// A halo of one row from the neighbouring rank.
fn ring(comm: std::sync::Arc<dyn Communicator>) -> Result<std::sync::Arc<HaloPlan>, Failure> {
    let (r, n) = (comm.rank(), comm.size());
    let mut h = TypeHalo { num_inner: 2, send: vec![vec![]; n], recv: vec![0; n] };
    h.send[(r + 1) % n] = vec![1];
    h.recv[(r + n - 1) % n] = 1;
    HaloPlan::new(comm, vec![h])
}

#[test]
fn a_panic_in_backward_ends_all() {
    for bad in [true, false] {
        let run = run_ranks(4, |comm| -> Nothing {
            let plan = ring(comm.clone())?;
            let device = Device::flex().autodiff();
            let x = Tensor::<2>::ones([2, 3], &device).require_grad();
            let y = halo_exchange(&plan, "first", vec![x.clone()]).remove(0);
            // Only the rank at fault has a second exchange in its backward pass.
            let y = if bad && comm.rank() == 2 { y.clone() + halo_exchange_alone(&y) } else { y };
            let grads = y.sum().backward();
            let g = x.grad(&grads).unwrap().sum().into_scalar::<f32>();
            assert_eq!(g, 9.0);
            Ok(())
        });
        if bad {
            let f = run.unwrap_err();
            assert!(f.rank == 2 && f.message.contains("backward broke"), "{f}");
        } else {
            run.unwrap();
        }
    }
}

/// An identity whose backward panics: an exchange over a communicator that breaks.
fn halo_exchange_alone(y: &Tensor<2>) -> Tensor<2> {
    #[derive(Debug)]
    struct Broken(std::sync::atomic::AtomicUsize);
    impl Communicator for Broken {
        fn rank(&self) -> usize {
            0
        }
        fn size(&self) -> usize {
            1
        }
        fn all_gather(&self, _: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
            Ok(vec![bytes])
        }
        fn all_to_all_v(&self, _: &str, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
            assert!(
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0,
                "backward broke"
            );
            Ok(send)
        }
    }
    let h = TypeHalo { num_inner: 3, send: vec![vec![0]], recv: vec![1] };
    let plan = HaloPlan::new(std::sync::Arc::new(Broken(Default::default())), vec![h]).unwrap();
    halo_exchange(&plan, "broken", vec![y.clone()]).remove(0).slice([0..3, 0..3])
}

#[test]
fn a_panic_in_a_rayon_task_ends_all() {
    ends(4, 2, "panicked: task 7", |comm| {
        (0..16).into_par_iter().for_each(|i| assert!(comm.rank() != 2 || i != 7, "task {i}"));
        comm.barrier("after")
    });
}

#[test]
fn an_early_return_ends_all() {
    ends(
        4,
        2,
        "returned while rank",
        |comm| if comm.rank() == 2 { Ok(()) } else { comm.barrier("x") },
    );
    // Also if the other ranks enter the call later.
    ends(2, 1, "returned while rank 0 is in", |comm| {
        if comm.rank() == 1 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
        comm.barrier("x")
    });
}

#[test]
fn another_collective_ends_all() {
    let run = run_ranks(4, |comm| comm.barrier(if comm.rank() == 2 { "b" } else { "a" }));
    let f = run.unwrap_err();
    assert!(f.message.contains("all_gather `a`") && f.message.contains("all_gather `b`"), "{f}");
    let mixed = run_ranks(2, |comm| -> Nothing {
        if comm.rank() == 0 { comm.barrier("a") } else { comm.all_reduce("a", &mut [1.0]) }
    });
    assert!(mixed.unwrap_err().message.contains("all_reduce `a`"));
    let lengths = run_ranks(2, |comm| comm.all_reduce("a", &mut vec![1.0; 1 + comm.rank()]));
    assert!(lengths.unwrap_err().message.contains("reduces"));
    let roots = run_ranks(2, |comm| comm.broadcast("a", comm.rank(), vec![]));
    assert!(roots.is_err());
    let entries =
        run_ranks(2, |comm| comm.all_to_all_v("a", vec![vec![]; 1 + comm.rank()]).map(drop));
    assert!(entries.unwrap_err().message.contains("sends 1 messages"));
}

#[test]
fn a_missing_rank_ends_all() {
    let ranks = Ranks::new(3).timeout(Duration::from_millis(100));
    let f = ranks.run(|comm| {
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(600));
        }
        comm.barrier("x")
    });
    let f = f.unwrap_err();
    assert!(f.rank == 1 && f.message.contains("for ranks [1]"), "{f}");
    assert!(run_ranks(0, |_| Ok::<_, Failure>(())).is_err());
}

/// Two threads of each rank communicate concurrently, in different orders.
#[test]
fn duplicates_are_independent() {
    for n in [1, 2, 4] {
        run_ranks(n, |comm| -> Nothing {
            let (a, b) = (comm.duplicate("a")?, comm.duplicate("b")?);
            let twice = a.duplicate("of a")?;
            let calls = |comm: &dyn Communicator, what: u8| -> Nothing {
                for round in 0..100u8 {
                    let all = comm.all_gather("same name", vec![what, round, comm.rank() as u8])?;
                    assert_eq!(all, (0..n as u8).map(|p| vec![what, round, p]).collect::<Vec<_>>());
                }
                Ok(())
            };
            std::thread::scope(|s| {
                let others: Vec<_> = [&a, &b, &twice]
                    .into_iter()
                    .zip(1..)
                    .map(|(c, what)| s.spawn(move || calls(&**c, what)))
                    .collect();
                calls(&*comm, 0)?;
                others.into_iter().try_for_each(|t| t.join().unwrap())
            })
        })
        .unwrap();
    }
}

/// A failure anywhere ends the calls on all communicators; two threads on one of them get an error.
#[test]
fn failures_reach_duplicates() {
    ends(3, 1, "panicked: in the main thread", |comm| {
        let other = comm.duplicate("other")?;
        assert!(comm.rank() != 1, "in the main thread");
        other.barrier("no other rank")
    });
    ends(2, 1, "returned while rank 0", |comm| {
        let other = comm.duplicate("other")?;
        if comm.rank() == 0 { other.barrier("no other rank") } else { Ok(()) }
    });
    let two = run_ranks(2, |comm| -> Nothing {
        if comm.rank() == 1 {
            return comm.barrier("both").and_then(|()| comm.barrier("both"));
        }
        std::thread::scope(|s| {
            let other = s.spawn(|| comm.barrier("one"));
            comm.barrier("two").and(other.join().unwrap())
        })
    });
    assert!(two.is_err());
}

#[test]
fn traffic_to_other_ranks_is_counted() {
    let traffic = run_ranks(3, |comm| {
        let comm = Metered::new(comm);
        comm.all_gather("g", vec![0; 5])?;
        comm.duplicate("d")?.all_to_all_v("v", vec![vec![0; 1], vec![0; 2], vec![0; 3]])?;
        comm.all_reduce("s", &mut [0.0; 2])?;
        Ok::<_, Failure>((comm.rank() as u64, comm.traffic()))
    });
    for (rank, t) in traffic.unwrap() {
        assert_eq!((t.calls, t.bytes_sent), (3, 10 + 6 - (rank + 1) + 32));
        assert_eq!(t.bytes_received, 10 + 2 * (rank + 1) + 32);
        assert!(t.to_string().starts_with("3 calls, 0.0 MB sent"), "{t}");
    }
}

#[test]
fn every_rank_has_its_own_pool() {
    let threads =
        Ranks::new(2).threads(3).run(|_| Ok::<_, Failure>(rayon::current_num_threads())).unwrap();
    assert_eq!(threads, [3, 3]);
}

/// Reduced gradients are the sum over ranks on every rank. A missing gradient counts as zeros, and skipped
/// parameters keep the gradient of the rank.
#[test]
fn gradients_are_reduced() {
    #[derive(Module, Debug)]
    struct Two {
        shared: Param<Tensor<2>>,
        own: Param<Tensor<1>>,
        frozen: Param<Tensor<1>>,
    }
    for dtype in [DType::F64, DType::F32, DType::F16] {
        run_ranks(3, |comm| -> Nothing {
            let device = Device::flex().autodiff();
            let two = Two {
                shared: Param::from_tensor(
                    Tensor::<2>::ones([2, 2], (&device, dtype)).require_grad(),
                ),
                own: Param::from_tensor(
                    Tensor::<1>::ones([comm.rank() + 1], (&device, dtype)).require_grad(),
                ),
                frozen: Param::from_tensor(Tensor::<1>::ones([1], (&device, dtype))).no_grad(),
            };
            let factor = (comm.rank() + 1) as f32;
            // Rank 1 does not touch the shared parameter.
            let loss = two.own.val().sum() * factor;
            let loss = if comm.rank() == 1 { loss } else { loss + two.shared.val().sum() * factor };
            let grads =
                GradientsParams::from_grads((loss + two.frozen.val().sum()).backward(), &two);
            let grads = all_reduce_gradients_except(&*comm, &two, grads, |path| path == "own")?;
            let host = |t: TensorData| t.convert::<f64>().iter::<f64>().collect::<Vec<_>>();
            let shared = grads.get::<2>(two.shared.id).unwrap();
            assert_eq!(shared.dtype(), dtype);
            assert_eq!(host(shared.into_data()), [4.0; 4]);
            assert_eq!(
                host(grads.get::<1>(two.own.id).unwrap().into_data()),
                vec![f64::from(factor); comm.rank() + 1]
            );
            assert!(grads.get::<1>(two.frozen.id).is_none());
            // Without the exception, modules of different size are an error on every rank.
            let failed = all_reduce_gradients(&*comm, &two, grads).map(drop).unwrap_err();
            assert!(failed.message.contains("`gradients` reduces"), "{failed}");
            Ok(())
        })
        .map(drop)
        .map_err(|f| assert!(f.message.contains("`gradients` reduces"), "{f}"))
        .unwrap_err();
    }
}

/// Ids are the keys of gradients, so two parameters with one id would share them.
#[test]
fn parameters_that_share_an_id_are_an_error() {
    let failed = run_ranks(2, |comm| -> Result<(), Failure> {
        let one = Param::from_tensor(Tensor::<1>::ones([2], &Device::flex().autodiff()));
        let both = (one.clone(), one);
        let grads = GradientsParams::from_grads(both.0.val().sum().backward(), &both);
        all_reduce_gradients(&*comm, &both, grads).map(drop)
    })
    .unwrap_err();
    assert!(failed.message.contains("has the id of an earlier one"), "{failed}");
}

/// Gradients of means over own seeds, weighted by the share of own seeds, sum to the gradient of the mean over all
/// seeds, for any bucket size.
#[test]
fn gradients_are_weighted_by_seeds() {
    #[derive(Module, Debug)]
    struct One {
        w: Param<Tensor<1>>,
    }
    let seeds = [3usize, 0, 5];
    let values =
        |rank: usize| (0..seeds[rank]).map(|i| (rank * 10 + i) as f64 + 0.1).collect::<Vec<_>>();
    let mean = (0..3).flat_map(values).sum::<f64>() / 8.0;
    let mut bits = vec![];
    for bucket_bytes in [0, 8, 24, 1 << 20] {
        let ranks = run_ranks(3, |comm| {
            let (device, own) = (Device::flex().autodiff(), values(comm.rank()));
            let one = One {
                w: Param::from_tensor(Tensor::<1>::ones([7], (&device, DType::F64)).require_grad()),
            };
            let mut grads = GradientsParams::new();
            if !own.is_empty() {
                let factor = own.iter().sum::<f64>() / own.len() as f64;
                grads = GradientsParams::from_grads((one.w.val() * factor).sum().backward(), &one);
            }
            let options = ReduceOptions { weight: own.len() as f64 / 8.0, bucket_bytes };
            let grads = all_reduce_gradients_with(&*comm, &one, grads, options, |_| false)?;
            Ok::<_, Failure>(
                grads.get::<1>(one.w.id).unwrap().into_data().iter::<f64>().collect::<Vec<_>>(),
            )
        });
        for g in ranks.unwrap() {
            assert!(g.iter().all(|g| (g - mean).abs() < 1e-14 * mean), "{g:?} instead of {mean}");
            bits.push(g.iter().map(|g| g.to_bits()).collect::<Vec<_>>());
        }
    }
    assert!(bits.iter().all(|b| *b == bits[0]));
}
