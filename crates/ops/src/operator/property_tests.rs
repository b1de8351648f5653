//! Properties of operators that only the crate itself can see, each on all of them: what a backend without kernels
//! runs, what is kept for backward, gradients of gradients.

use std::cell::RefCell;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{DType, Device, TensorData};
use burn_gnn_testutil::{assert_close, graphs};

use super::{BackwardCall, GnnBackend, Gradient, Operator, SavedForBackward, Tensors};
use crate::families::{self, Typed, devices};

/// What the calls of this thread do beside computing.
enum Watch {
    /// Reference instead of kernels, gradients too.
    Plain,
    /// Notes how autodiff would differentiate the operators that run on a CPU backend.
    Gradients(Vec<(&'static str, Gradient)>),
    /// Checks that backward reads what is kept for it; counts the tensors that were.
    Kept(usize),
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs `f` under a watch, and returns what it saw.
fn watched<R>(watch: Watch, f: impl FnOnce() -> R) -> (R, Watch) {
    WATCH.set(Some(watch));
    let result = f();
    (result, WATCH.take().expect("a watch lasts as long as its call"))
}

/// What stands instead of a kernel's results; called by the CPU backends.
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

/// Called by autodiff with what it is about to keep.
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

/// Asserts that gradients change with every tensor that is kept, and returns how many there are.
fn read_by_backward<B: GnnBackend, O: Operator>(
    op: &O,
    inputs: &Tensors<B>,
    tracked: &[bool],
    keeps: &SavedForBackward,
) -> usize {
    let op = op.tracked();
    let results = B::run(inputs.clone(), op.clone());
    // Another number in every entry: neither a shift nor a factor alone.
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
            "{}, tracked {tracked:?}: tensor {i} is kept for nothing: {op:?}",
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
            // Attention keeps all of its inputs whatever is tracked: layers make scores of the features, so both are.
            if family.name.contains("attention") && tracked[1..].iter().all(|tracked| !tracked) {
                continue;
            }
            let run = || family.run_tracking(&g, &values, (&device, DType::F64), false, &tracked);
            let (_, Watch::Kept(count)) = watched(Watch::Kept(0), run) else {
                unreachable!("the watch that was set")
            };
            total += count;
        }
    }
    assert!(total > 300, "only {total} tensors were kept");
}

/// A gradient is an operator without one, unless Burn or an operator of the library differentiates it again.
#[test]
fn gradients_of_gradients_are_refused() {
    // Products of matrices and masks are their own gradients; a sum and a copy along edges are those of each other.
    const DIFFERENTIABLE: [&str; 4] = ["matmul_rows", "dropout", "gspmm", "gsddmm"];
    let g = Typed::new(&graphs::small());
    let device = Device::flex();
    for family in families::all(3) {
        let values = family.values(&g, 4);
        let forward = vec![false; values.len() - 1];
        let names = |watch| match watch {
            Watch::Gradients(seen) => seen,
            _ => unreachable!("the watch that was set"),
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

/// Who still holds a buffer after the call has dropped its operands: autodiff keeps what an operator names, and nothing
/// beside.
#[test]
fn buffers_that_are_not_kept_are_free() {
    let relation = graphs::small();
    let leaf = |rows: usize, tracked: bool| {
        let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(
            vec![1.5f32; 2 * rows],
            [rows, 2],
        )));
        if tracked { x.require_grad() } else { x }
    };
    let plan = crate::gspmm::GspmmPlan::new(
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
        let out = Ad::run(Vec::from(inputs).into(), crate::gspmm::Gspmm::new(plan.clone()))
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
fn a_refusal_names_the_operator() {
    let plan = crate::edge_softmax::SoftmaxPlan::edges(
        "edge_softmax",
        &graphs::small(),
        crate::NormBy::Dst,
        &[],
    )
    .unwrap();
    let leaf =
        || FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; 8], [8])));
    let _ =
        Ad::run(vec![leaf().require_grad(), leaf()].into(), crate::edge_softmax::SoftmaxGrad(plan));
}
