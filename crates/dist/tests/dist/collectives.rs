//! Tests of all communicators, also run by the processes of `processes.rs`.

use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use burn_gnn_dist::{Communicator, Failure, HaloPlan, TypeHalo, halo_exchange};

/// Messages of different lengths on different ranks; sums in rank order.
pub(crate) fn collectives(comm: &dyn Communicator) -> Result<(), Failure> {
    let (r, n) = (comm.rank(), comm.size());
    for round in 0..50u8 {
        let all = comm.all_gather("g", vec![r as u8 + round; r])?;
        assert_eq!(all, (0..n).map(|p| vec![p as u8 + round; p]).collect::<Vec<_>>());
        let got = comm.all_to_all_v("v", (0..n).map(|p| vec![(10 * r + p) as u8; p]).collect())?;
        assert_eq!(got, (0..n).map(|p| vec![(10 * p + r) as u8; r]).collect::<Vec<_>>());
        assert_eq!(comm.broadcast("b", n - 1, vec![r as u8])?, [(n - 1) as u8]);
        let mut x = [0.1 * (r as f64 + 1.0), 1e16];
        comm.all_reduce("s", &mut x)?;
        let sum = (0..n).fold(0.0, |s, p| s + 0.1 * (p as f64 + 1.0));
        assert_eq!(x[0].to_bits(), sum.to_bits());
    }
    // Empty messages, and messages that exceed the buffer of a socket.
    assert_eq!(comm.all_to_all_v("nothing", vec![vec![]; n])?, vec![Vec::<u8>::new(); n]);
    let large = |from: usize, to: usize| vec![(from * n + to) as u8; 3_000_000 + from];
    let got = comm.all_to_all_v("large", (0..n).map(|p| large(r, p)).collect())?;
    assert!((0..n).all(|p| got[p] == large(p, r)));
    let many = 100_003;
    let value = |rank: usize, i: usize| ((rank + 1) * (i % 977)) as f64 * 0.1;
    let mut x: Vec<f64> = (0..many).map(|i| value(r, i)).collect();
    comm.all_reduce("many", &mut x)?;
    for (i, got) in x.into_iter().enumerate() {
        assert_eq!(got.to_bits(), (0..n).fold(0.0, |s, p| s + value(p, i)).to_bits(), "{i}");
    }
    comm.barrier("end")
}

/// Calls on a duplicate from another thread, concurrent with calls on the original.
pub(crate) fn duplicates(comm: &dyn Communicator) -> Result<(), Failure> {
    let (r, n) = (comm.rank(), comm.size());
    let second = comm.duplicate("second")?;
    assert_eq!((second.rank(), second.size()), (r, n));
    std::thread::scope(|s| {
        let other_thread = s.spawn(|| {
            (0..100u8).try_for_each(|i| {
                second.all_gather("second", vec![i]).map(|all| assert_eq!(all, vec![[i]; n]))
            })
        });
        for i in 0..100u8 {
            assert_eq!(comm.all_gather("first", vec![i, i])?, vec![[i, i]; n]);
        }
        other_thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
    })
}

/// Sends one row to the next rank, and its gradient back.
pub(crate) fn ring(comm: &Arc<dyn Communicator>) -> Result<(), Failure> {
    let (r, n) = (comm.rank(), comm.size());
    let mut h = TypeHalo { num_inner: 2, send: vec![vec![]; n], recv: vec![0; n] };
    if n > 1 {
        h.send[(r + 1) % n] = vec![1];
        h.recv[(r + n - 1) % n] = 1;
    }
    let plan = HaloPlan::new(comm.clone(), vec![h])?;
    let device = Device::flex().autodiff();
    let x = Tensor::<2>::full([2, 3], r as f32, &device).require_grad();
    let y = halo_exchange(&plan, "ring", vec![x.clone()]).remove(0);
    let rows: Vec<f32> = y.clone().slice([0..y.dims()[0], 0..1]).into_data().iter().collect();
    let before = ((r + n - 1) % n) as f32;
    assert_eq!(rows, if n > 1 { vec![r as f32, r as f32, before] } else { vec![0.0; 2] });
    // The sent row is also weighted by the number of the receiver.
    let grads = (y * (r as f32 + 1.0)).sum().backward();
    let Some(g) = x.grad(&grads) else { panic!("x has a gradient") };
    let next = if n > 1 { ((r + 1) % n) as f32 + 1.0 } else { 0.0 };
    let own = r as f32 + 1.0;
    assert_eq!(
        g.into_data().iter::<f32>().collect::<Vec<_>>(),
        [own, own, own, own + next, own + next, own + next]
    );
    Ok(())
}
