//! Properties of all operators that need access to private items: the fallback without kernels, saved tensors,
//! gradients of gradients.

use std::cell::RefCell;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{DType, Device, TensorData};
use burn_gnn_testutil::{assert_close, graphs};

use super::definition::SavedForBackward;
use super::{BackwardCall, GnnBackend, Gradient, Operator, Tensors};
use crate::families::{self, Typed, devices};

/// Instrumentation of the calls on this thread.
enum Watch {
    /// Runs references instead of kernels, forward and backward.
    Plain,
    /// Records the differentiation rule of each operator that runs on a CPU backend.
    Gradients(Vec<(&'static str, Gradient)>),
    /// Checks that backward reads every saved tensor, and counts saved tensors.
    Kept(usize),
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs `f` under instrumentation, and returns its result and the records.
fn watched<R>(watch: Watch, f: impl FnOnce() -> R) -> (R, Watch) {
    WATCH.set(Some(watch));
    let result = f();
    (result, WATCH.take().expect("nothing else resets the instrumentation"))
}

/// Replaces the results of a kernel under [`Watch::Plain`]; called by the CPU backends.
pub(crate) fn instead_of_kernel<B: GnnBackend, O: Operator>(
    inputs: &Tensors<B>,
    op: &O,
) -> Option<Tensors<B>> {
    let plain = WATCH.with_borrow_mut(|watch| match watch {
        Some(Watch::Plain) => true,
        Some(Watch::Gradients(seen)) => {
            seen.push((O::NAME, op.gradient(&vec![false; inputs.floats.len()])));
            false
        }
        _ => false,
    });
    plain.then(|| op.reference(inputs.clone()))
}

/// Called by autodiff with the tensors that it is about to save.
pub(crate) fn keeping<B: GnnBackend, O: Operator>(
    op: &O,
    inputs: Tensors<B>,
    tracked: &[bool],
    keeps: &SavedForBackward,
) {
    if WATCH.with_borrow(|watch| matches!(watch, Some(Watch::Kept(_)))) {
        // Calls within this check are not checked.
        let Some(Watch::Kept(seen)) = WATCH.take() else { return };
        let count = read_by_backward(op, &inputs, tracked, keeps);
        WATCH.set(Some(Watch::Kept(seen + count)));
    }
}

/// Asserts that gradients depend on every saved tensor, and returns the number of saved tensors.
fn read_by_backward<B: GnnBackend, O: Operator>(
    op: &O,
    inputs: &Tensors<B>,
    tracked: &[bool],
    keeps: &SavedForBackward,
) -> usize {
    let op = op.tracked();
    let results = B::run(inputs.clone(), op.clone());
    // Changes every entry by a factor and an offset, so that gradients invariant to one of them change too.
    let moved = |x: &FloatTensor<B>| {
        B::float_add_scalar(B::float_mul_scalar(x.clone(), 1.75.into()), 0.375.into())
    };
    let gradients = |other: Option<usize>| {
        let number =
            |i: usize, x: &FloatTensor<B>| if other == Some(i) { moved(x) } else { x.clone() };
        let kept = inputs
            .floats
            .iter()
            .zip(&keeps.inputs)
            .enumerate()
            .map(|(i, (x, &keep))| keep.then(|| number(i, x)));
        let result = keeps.result.then(|| number(inputs.floats.len(), &results.floats[0]));
        let others = results.floats[1..].iter().cloned();
        let call = BackwardCall::<B> {
            grad: moved(&results.floats[0]),
            inputs: kept.collect(),
            results: Tensors {
                floats: result.into_iter().chain(others).collect(),
                ints: results.ints.clone(),
            },
            wants: tracked.to_vec(),
        };
        let gradients = op.backward(call).into_iter().flatten();
        gradients
            .flat_map(|g| crate::fallback_tests::floats::<B>(g).1)
            .map(f64::to_bits)
            .collect::<Vec<_>>()
    };
    let plain = gradients(None);
    let kept = keeps.inputs.iter().chain([&keeps.result]).enumerate().filter(|(_, keep)| **keep);
    kept.map(|(i, _)| {
        assert!(
            gradients(Some(i)) != plain,
            "{}, tracked {tracked:?}: tensor {i} is saved but never read: {op:?}",
            O::NAME
        )
    })
    .count()
}

#[test]
fn without_kernels_everything_is_the_same() {
    for (name, relation) in graphs::named() {
        let g = Typed::new(&relation);
        for width in [1, 2, 8, 19, 40, 70] {
            for family in families::all(width) {
                let values = family.values(&g, 5);
                for (backend, device) in devices() {
                    let run = || family.run(&g, &values, (&device, DType::F64), false);
                    let (plain, _) = watched(Watch::Plain, run);
                    for (i, (kernel, plain)) in run().iter().zip(&plain).enumerate() {
                        assert_close(
                            &format!("{} x {width}, {name}, {backend}, {i}", family.name),
                            kernel,
                            plain,
                            1e-11,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn backward_reads_what_is_kept() {
    let g = Typed::new(&graphs::random(6, 5, 20, 2.0));
    let device = Device::flex();
    let mut total = 0;
    for family in families::all(3) {
        let values = family.values(&g, 6);
        let operands = values.len() - 1;
        for subset in 1..1u32 << operands {
            let tracked: Vec<bool> = (0..operands).map(|i| subset & 1 << i != 0).collect();
            // Attention saves all inputs in every case: layers compute scores from the features, so both are tracked.
            if family.name.contains("attention") && tracked[1..].iter().all(|tracked| !tracked) {
                continue;
            }
            let run = || family.run_tracking(&g, &values, (&device, DType::F64), false, &tracked);
            let (_, Watch::Kept(count)) = watched(Watch::Kept(0), run) else {
                unreachable!("the variant that was set")
            };
            total += count;
        }
    }
    assert!(total > 300, "only {total} tensors were saved");
}

/// Gradients have no gradient, except where Burn or an operator of this crate differentiates them again.
#[test]
fn gradients_of_gradients_are_rejected() {
    // Matrix products and masks have gradients of the same kind; sums and copies along edges are each other's gradient.
    const DIFFERENTIABLE: [&str; 4] = ["matmul_rows", "dropout", "gspmm", "gsddmm"];
    let g = Typed::new(&graphs::small());
    let device = Device::flex();
    for family in families::all(3) {
        let values = family.values(&g, 4);
        let forward = vec![false; values.len() - 1];
        let names = |watch| match watch {
            Watch::Gradients(seen) => seen,
            _ => unreachable!("the variant that was set"),
        };
        let (_, watch) = watched(Watch::Gradients(Vec::new()), || {
            family.run_tracking(&g, &values, (&device, DType::F64), false, &forward)
        });
        let calls = names(watch).len();
        let (_, watch) = watched(Watch::Gradients(Vec::new()), || {
            family.run(&g, &values, (&device, DType::F64), false)
        });
        let backward = names(watch).split_off(calls);
        assert!(!backward.is_empty(), "{}: no operator ran backward", family.name);
        for (name, gradient) in backward {
            let refused = matches!(gradient, Gradient::Refused(_));
            assert!(
                refused || DIFFERENTIABLE.contains(&name),
                "{}: the gradient {name} is differentiated by {gradient:?}",
                family.name
            );
        }
    }
}

type Ad = Autodiff<Flex, NoCheckpointing>;

/// Counts the references to input buffers after the call: autodiff holds the tensors that the operator saves and no
/// others.
#[test]
fn buffers_that_are_not_saved_are_freed() {
    let relation = graphs::small();
    let leaf = |rows: usize, tracked: bool| {
        let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(
            vec![1.5f32; 2 * rows],
            [rows, 2],
        )));
        if tracked { x.require_grad() } else { x }
    };
    let plan = burn_gnn_plan::GspmmPlan::new(
        &relation,
        crate::BinaryOp::Mul,
        crate::Reduce::Sum,
        &[2],
        &[2],
    )
    .unwrap();
    for tracked in [[true, true], [true, false], [false, true], [false, false]] {
        let inputs = [leaf(5, tracked[0]), leaf(8, tracked[1])];
        let buffers = inputs.each_ref().map(|x| x.primitive().data_arc());
        let out =
            Ad::run(Vec::from(inputs).into(), crate::gspmm::operator::Gspmm::new(plan.clone()))
                .read()
                .float();
        let held = buffers.map(|buffer| std::sync::Arc::strong_count(&buffer) > 1);
        assert_eq!(held, [tracked[1], tracked[0]], "tracked {tracked:?}");
        assert_eq!(out.is_tracked(), tracked.contains(&true));
    }
}

#[test]
#[should_panic(
    expected = "edge_softmax: the gradient of a gradient is not implemented; detach the inputs"
)]
fn the_panic_names_the_operator() {
    let plan = burn_gnn_plan::SoftmaxPlan::edges(
        "edge_softmax",
        &graphs::small(),
        crate::NormBy::Dst,
        &[],
    )
    .unwrap();
    let leaf =
        || FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; 8], [8])));
    let _ = Ad::run(
        vec![leaf().require_grad(), leaf()].into(),
        crate::edge_softmax::operator::SoftmaxGrad(plan),
    );
}
