//! Derivative of the halo exchange, with the same collective calls on every rank.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use burn::backend::autodiff::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Shape, TensorMetadata};
use burn::tensor::Slice;

use super::backend::{HaloBackend, Segment, cut, empty, top};
use super::encoding::HaloCall;
use super::routes::HaloPlan;

/// All nodes are compute bound, so that checkpointing does not run a forward again during backward: that would make a
/// collective call out of order.
impl<B: HaloBackend, C: CheckpointStrategy> HaloBackend for Autodiff<B, C> {
    fn halo_pack(
        acc: FloatTensor<Self>,
        x: FloatTensor<Self>,
        ids: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Pack;
        impl<B: HaloBackend> Backward<B, 2> for Pack {
            type State = (usize, [usize; 2], Arc<[u32]>);
            fn backward(
                self,
                ops: Ops<Self::State, 2>,
                grads: &mut Gradients,
                _: &mut Checkpointer,
            ) {
                let [acc, x] = ops.parents;
                let (start, [rows, width], ids) = ops.state;
                let g = grads.consume::<B>(&ops.node);
                if let Some(n) = acc {
                    grads.register::<B>(n.id, cut::<B>(g.clone(), 0, start));
                }
                if let Some(n) = x {
                    grads.register::<B>(n.id, B::halo_unpack(g, start, rows, width, ids));
                }
            }
        }
        let state = (acc.shape()[0], x.shape().dims(), ids.clone());
        let ((acc, acc_node), (x, x_node)) = (acc.into_parts(), x.into_parts());
        let out = B::halo_pack(acc, x, ids);
        match Pack.prepare::<C>([acc_node, x_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }

    fn halo_unpack(
        _: FloatTensor<Self>,
        _: usize,
        _: usize,
        _: usize,
        _: Arc<[u32]>,
    ) -> FloatTensor<Self> {
        unreachable!("runs inside backward, below autodiff")
    }

    fn halo_swap(
        values: FloatTensor<Self>,
        plan: Arc<HaloPlan>,
        call: HaloCall,
    ) -> FloatTensor<Self> {
        collective::<B, C>(values, plan, call, [B::halo_swap, B::halo_swap])
    }

    fn halo_join(
        x: FloatTensor<Self>,
        halo: FloatTensor<Self>,
        segment: Segment,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Join;
        impl<B: HaloBackend> Backward<B, 2> for Join {
            type State = (usize, usize, Segment);
            fn backward(
                self,
                ops: Ops<Self::State, 2>,
                grads: &mut Gradients,
                _: &mut Checkpointer,
            ) {
                let [x, halo] = ops.parents;
                let (inner, total, Segment { start, rows }) = ops.state;
                let g = grads.consume::<B>(&ops.node);
                if let Some(n) = halo {
                    let [_, width] = g.shape().dims();
                    let len = rows * width;
                    let part = (len > 0).then(|| {
                        let part = B::float_slice(
                            g.clone(),
                            &[Slice::from(inner..inner + rows), Slice::from(0..width)],
                        );
                        B::float_reshape(part, Shape::new([len]))
                    });
                    let part = match part {
                        Some(part) if len == total => part,
                        Some(part) => {
                            let zeros = empty::<B>(&g, [total]);
                            B::float_slice_assign(zeros, &[Slice::from(start..start + len)], part)
                        }
                        None => empty::<B>(&g, [total]),
                    };
                    grads.register::<B>(n.id, part);
                }
                if let Some(n) = x {
                    grads.register::<B>(n.id, top::<B>(g, inner));
                }
            }
        }
        let state = (x.shape()[0], halo.shape()[0], segment);
        let ((x, x_node), (halo, halo_node)) = (x.into_parts(), halo.into_parts());
        let out = B::halo_join(x, halo, segment);
        match Join.prepare::<C>([x_node, halo_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }

    fn halo_exchange(
        x: FloatTensor<Self>,
        plan: Arc<HaloPlan>,
        call: HaloCall,
    ) -> FloatTensor<Self> {
        collective::<B, C>(x, plan, call, [B::halo_exchange, B::halo_reduce])
    }

    fn halo_reduce(_: FloatTensor<Self>, _: Arc<HaloPlan>, _: HaloCall) -> FloatTensor<Self> {
        unreachable!("runs inside backward, below autodiff")
    }
}

/// A collective operation or its transpose.
type Exchange<B> = fn(FloatTensor<B>, Arc<HaloPlan>, HaloCall) -> FloatTensor<B>;

/// Runs `exchange` in forward, and `transposed` on the gradient in backward.
fn collective<B: HaloBackend, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    plan: Arc<HaloPlan>,
    mut call: HaloCall,
    [exchange, transposed]: [Exchange<B>; 2],
) -> FloatTensor<Autodiff<B, C>> {
    #[derive(Debug)]
    struct Collective;
    impl<B: HaloBackend> Backward<B, 1> for Collective {
        type State = (Arc<HaloPlan>, HaloCall, Exchange<B>);
        fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
            let _span = tracing::debug_span!("halo_backward").entered();
            let (plan, call, transposed) = ops.state;
            let g = transposed(grads.consume::<B>(&ops.node), plan, call.transposed());
            if let [Some(n)] = ops.parents {
                grads.register::<B>(n.id, g);
            }
        }
    }
    let (out, x) = track_if_any::<B, C>(x, &mut call, |x, call| exchange(x, plan.clone(), call));
    let (_, node) = x.into_parts();
    match Collective.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((plan, call, transposed), out),
        OpsKind::UnTracked(prep) => prep.finish(out),
    }
}

/// Runs the exchange. If the input of any rank is tracked, an untracked input becomes a tracked leaf, so that the
/// backward pass of this rank makes the same collective calls as that of the other ranks.
#[allow(clippy::type_complexity)]
fn track_if_any<B: HaloBackend, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    call: &mut HaloCall,
    run: impl FnOnce(FloatTensor<B>, HaloCall) -> FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<Autodiff<B, C>>) {
    call.autodiff = true;
    call.tracked = x.is_tracked();
    call.any = Arc::default();
    let out = run(x.primitive().clone(), call.clone());
    let x = if call.any.load(Ordering::Relaxed) && !call.tracked {
        <FloatTensor<Autodiff<B, C>>>::new(x.into_primitive()).require_grad()
    } else {
        x
    };
    (out, x)
}
