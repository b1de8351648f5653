//! Reductions and softmax over segments against the reference and finite differences, and corner cases.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers, with_rows};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences,
    panic_text,
};

/// What is computed over segments.
#[derive(Clone, Copy, Debug)]
enum How {
    Reduce(SegmentReduce),
    Softmax,
    LogSumExp,
    LogSoftmax,
}

fn all() -> impl Iterator<Item = How> {
    SegmentReduce::ALL.into_iter().map(How::Reduce).chain([
        How::Softmax,
        How::LogSumExp,
        How::LogSoftmax,
    ])
}

/// By definition.
fn log_softmax_reference<const D: usize>(x: Tensor<D>, s: &Segments) -> Tensor<D> {
    if x.shape().num_elements() == 0 {
        return x;
    }
    let ids: Vec<i32> = (0..s.len()).flat_map(|k| s.range(k).map(move |_| k as i32)).collect();
    let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [s.num_rows()]), &x.device());
    x.clone() - segment_logsumexp_reference(x, s).select(0, ids)
}

fn run<const D: usize>(
    x: &TensorData,
    s: &Segments,
    how: How,
    place: (&Device, DType),
    reference: bool,
) -> [Vec<f64>; 2] {
    let device = place.0.clone().autodiff();
    let x = Tensor::<D>::from_data(x.clone(), (&device, place.1)).require_grad();
    let y = match (how, reference) {
        (How::Reduce(reduce), false) => segment_reduce(x.clone(), s, reduce),
        (How::Reduce(reduce), true) => segment_reduce_reference(x.clone(), s, reduce),
        (How::Softmax, false) => segment_softmax(x.clone(), s),
        (How::Softmax, true) => segment_softmax_reference(x.clone(), s),
        (How::LogSumExp, false) => segment_logsumexp(x.clone(), s),
        (How::LogSumExp, true) => segment_logsumexp_reference(x.clone(), s),
        (How::LogSoftmax, false) => segment_log_softmax(x.clone(), s),
        (How::LogSoftmax, true) => log_softmax_reference(x.clone(), s),
    };
    let cotangent = TensorData::new(numbers(7, y.shape().num_elements()), y.shape());
    let mut loss = (y.clone() * Tensor::from_data(cotangent, (&device, place.1))).sum();
    if reference {
        loss = loss + (x.clone() * 0.0).sum();
    }
    let grads = loss.backward();
    [f64s(y), f64s(x.grad(&grads).unwrap())]
}

/// Random entries, the features chosen by rank.
fn by_rank(
    features: &[usize],
    seed: u64,
    s: &Segments,
    how: How,
    place: (&Device, DType),
    reference: bool,
) -> [Vec<f64>; 2] {
    let shape = with_rows(s.num_rows(), features);
    let x = TensorData::new(numbers(seed, shape.iter().product()), shape);
    match features.len() {
        0 => run::<1>(&x, s, how, place, reference),
        1 => run::<2>(&x, s, how, place, reference),
        _ => run::<3>(&x, s, how, place, reference),
    }
}

#[test]
fn values_and_gradients_are_those_of_the_reference() {
    for lengths in [&[3usize, 0, 1, 4][..], &[0, 0], &[], &[5], &[0, 1, 0, 0, 2, 0], &[1; 40]] {
        let s = Segments::from_lengths(lengths);
        for (backend, device) in devices() {
            for how in all() {
                for features in [&[][..], &[1], &[5], &[33], &[2, 3], &[0]] {
                    let what = format!("{backend}, {how:?}, {lengths:?}, {features:?}");
                    let [a, b] = [false, true]
                        .map(|r| by_rank(features, 4, &s, how, (&device, DType::F64), r));
                    assert_close(&format!("{what}, out"), &a[0], &b[0], 1e-12);
                    assert_close(&format!("{what}, d x"), &a[1], &b[1], 1e-12);
                }
            }
        }
    }
}

#[test]
fn finite_differences() {
    let s = Segments::from_lengths(&[3, 0, 1, 2]);
    for (backend, device) in devices() {
        for how in all() {
            let x = TensorData::new(numbers(1, 18), [6, 3]);
            let loss = |x: &TensorData| -> f64 {
                let [y, _] = run::<2>(x, &s, how, (&device, DType::F64), false);
                y.iter().zip(numbers(7, y.len())).map(|(a, b)| a * b).sum()
            };
            let differences = central_differences(18, 1e-5, |i, by| {
                let mut x = x.clone();
                x.as_mut_slice::<f64>().unwrap()[i] += by;
                loss(&x)
            });
            let [_, d] = run::<2>(&x, &s, how, (&device, DType::F64), false);
            assert_close(&format!("{backend}, {how:?}"), &d, &differences, 1e-7);
            assert!(d.iter().any(|&d| d.abs() > 1e-3), "zeros prove nothing");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_segments(lengths in proptest::collection::vec(0usize..7, 0..12), width in 0usize..20, seed in 0u64..99) {
        let s = Segments::from_lengths(&lengths);
        prop_assert_eq!(&s, &Segments::from_offsets(&s.offsets().iter().map(|&o| o as usize).collect::<Vec<_>>()));
        for (backend, device) in devices() {
            for how in all() {
                let [a, b] = [false, true].map(|r| by_rank(&[width], seed, &s, how, (&device, DType::F64), r));
                assert_close(backend, &a[0], &b[0], 1e-12);
                assert_close(backend, &a[1], &b[1], 1e-12);
            }
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    // Dozens of pieces, one segment of a third of the rows, empty ones between.
    let lengths: Vec<usize> = (0..900).map(|i| if i == 400 { 4000 } else { i % 17 }).collect();
    let s = Segments::from_lengths(&lengths);
    for (backend, device) in devices() {
        for how in all() {
            assert_same_bits_on_threads(format_args!("{backend}, {how:?}"), || {
                by_rank(&[24], 2, &s, how, (&device, DType::F32), false).concat()
            });
        }
    }
}

#[test]
fn softmax_is_safe_for_any_size_of_logits() {
    let s = Segments::from_lengths(&[2, 2, 1, 2]);
    for (backend, device) in devices() {
        let x = Tensor::<1>::from_data(
            [1000.0, 999.0, -1000.0, -1000.0, 3e38, f32::NEG_INFINITY, 0.0],
            &device,
        );
        let y = f64s(segment_softmax(x, &s));
        let want = [0.731_058_6, 0.268_941_4, 0.5, 0.5, 1.0, 0.0, 1.0];
        assert_close(backend, &y, &want, 1e-6);
        for bad in [f32::NAN, f32::INFINITY] {
            let x = Tensor::<1>::from_data([1.0, bad, 2.0, 2.0, 0.0, 0.0, 0.0], &device);
            let y = f64s(segment_softmax(x, &s));
            assert!(
                y[0].is_nan() && y[1].is_nan() && y[2..] == [0.5, 0.5, 1.0, 0.5, 0.5],
                "{backend}: {y:?}"
            );
        }
    }
}

#[test]
fn masks() {
    const INF: f32 = f32::INFINITY;
    let s = Segments::from_lengths(&[2, 3, 0, 1, 2, 2, 1, 1]);
    let x = [-INF, -INF, 1.0, -INF, 1.0, -INF, -INF, f32::NAN, f32::NAN, -INF, INF, 7.0];
    let want = [0.0, 0.0, 0.5, 0.0, 0.5, 0.0];
    let places = devices().into_iter().flat_map(|(name, device)| {
        [DType::F32, DType::F64].map(|dtype| (name, device.clone(), dtype))
    });
    let half = [DType::F16, DType::BF16].map(|dtype| ("flex", Device::flex(), dtype));
    for (backend, device, dtype) in places.chain(half) {
        for (name, f) in [
            ("kernel", segment_softmax::<2> as fn(_, &Segments) -> _),
            ("reference", segment_softmax_reference),
        ] {
            let what = format!("{backend}, {dtype:?}, {name}");
            // Two columns: the first is 0 everywhere.
            let both: Vec<f32> = x.iter().flat_map(|&x| [0.0, x]).collect();
            let both = Tensor::<2>::from_data(
                TensorData::new(both, [12, 2]),
                (&device.clone().autodiff(), dtype),
            )
            .require_grad();
            let y = f(both.clone(), &s);
            let column =
                |y: &[f64], j: usize| y.iter().copied().skip(j).step_by(2).collect::<Vec<_>>();
            let values = f64s(y.clone());
            assert!(values.iter().step_by(2).all(|&y| y > 0.3), "{what}: {values:?}");
            let masked = column(&values, 1);
            assert!(
                masked[..6] == want
                    && masked[6..11].iter().all(|y| y.is_nan())
                    && masked[11] == 1.0,
                "{what}: {masked:?}"
            );
            let c: Vec<f64> = (0..24).map(f64::from).collect();
            let grads = (y * Tensor::<2>::from_data(
                TensorData::new(c, [12, 2]),
                (&device.clone().autodiff(), dtype),
            ))
            .sum()
            .backward();
            let d = f64s(both.grad(&grads).unwrap());
            let masked = column(&d, 1);
            assert_eq!(masked[..6], [0.0, 0.0, -1.0, 0.0, 1.0, 0.0], "{what}");
            assert!(
                masked[6..11].iter().all(|d| d.is_nan()) && masked[11] == 0.0,
                "{what}: {masked:?}"
            );
            assert!(column(&d, 0).iter().all(|d| d.is_finite()), "{what}: {d:?}");
        }
    }
}

/// Values and gradients of PyTorch's `logsumexp` of each segment, but for segments without rows, which are 0 here.
#[test]
fn logsumexp_of_any_size_and_of_masks() {
    const INF: f32 = f32::INFINITY;
    let s = Segments::from_lengths(&[2, 2, 0, 2, 3, 1, 2, 2]);
    let x = [1000.0, 999.0, -1e30, -1e30, -INF, -INF, 0.5, -INF, 1.5, INF, INF, 2.0, f32::NAN, 1.0];
    let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-6 * b.abs();
    let places = devices().into_iter().flat_map(|(name, device)| {
        [DType::F32, DType::F64].map(|dtype| (name, device.clone(), dtype))
    });
    for (backend, device, dtype) in places {
        for (name, f) in [
            ("kernel", segment_logsumexp::<1> as fn(_, &Segments) -> _),
            ("reference", segment_logsumexp_reference),
        ] {
            let what = format!("{backend}, {dtype:?}, {name}");
            let on = device.clone().autodiff();
            let x = Tensor::<1>::from_data(TensorData::new(x.to_vec(), [14]), (&on, dtype));
            let x = x.require_grad();
            let y = f(x.clone(), &s);
            let values = f64s(y.clone());
            let want = [1_000.313_261_7, -1e30, 0.0, -f64::INFINITY, 1.813_261_7, f64::INFINITY];
            assert!(values.iter().zip(want).all(|(&a, b)| close(a, b)), "{what}: {values:?}");
            assert!(values[6] == f64::INFINITY && values[7].is_nan(), "{what}: {values:?}");
            let grads = y.narrow(0, 0, 5).sum().backward();
            let d = f64s(x.grad(&grads).unwrap());
            let want =
                [0.731_058_6, 0.268_941_4, 0.5, 0.5, 0.0, 0.0, 0.268_941_4, 0.0, 0.731_058_6];
            assert!(d.iter().zip(want).all(|(&a, b)| close(a, b)), "{what}: {d:?}");
        }
        let x = Tensor::<1>::from_data(TensorData::new(x.to_vec(), [14]), (&device, dtype));
        let y = f64s(segment_log_softmax(x, &s));
        // As exact for entries of 1e30 as for small ones.
        let want = [-0.313_261_7, -1.313_261_7, -2f64.ln(), -2f64.ln()];
        assert!(y.iter().zip(want).all(|(&a, b)| close(a, b)), "{backend}: {y:?}");
        let want = [-1.313_261_7, -f64::INFINITY, -0.313_261_7];
        assert!(y[6..9].iter().zip(want).all(|(&a, b)| close(a, b)), "{backend}: {y:?}");
        assert!(y[4].is_nan() && y[5].is_nan(), "only masks: {y:?}");
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let s = Segments::from_lengths(&[30, 0, 3000, 1]);
    let device = Device::flex();
    for (dtype, ulp) in HALVES {
        for how in all() {
            let x = TensorData::new(numbers(3, 3031 * 4), [3031, 4]).convert_dtype(dtype);
            let [a, b] = [dtype, DType::F32]
                .map(|d| run::<2>(&x.clone().convert_dtype(d), &s, how, (&device, d), false));
            assert_close(&format!("{dtype:?}, {how:?}, out"), &a[0], &b[0], ulp);
            assert_close_to_largest(
                format_args!("{dtype:?}, {how:?}, d x"),
                &a[1],
                &b[1],
                4.0 * ulp,
            );
        }
    }
}

#[test]
fn what_is_refused() {
    let text = |r: Result<Segments, PlanError>| r.unwrap_err().to_string();
    let limit = u32::MAX as usize - 1;
    assert_eq!(
        text(Segments::try_from_lengths(&[1, usize::MAX])),
        format!(
            "segments: lengths[0..=1] must sum to at most {limit} rows, got 1 before lengths[1] = {}; use several calls",
            usize::MAX
        )
    );
    assert!(text(Segments::try_from_lengths(&[limit, 1])).contains("must sum to at most"));
    assert_eq!(
        text(Segments::try_from_offsets(&[])),
        "segments: offsets must hold at least one number, the 0 at the beginning, got none; give `[0]`"
    );
    assert_eq!(
        text(Segments::try_from_offsets(&[1, 2])),
        "segments: offsets[0] must be 0, got 1; compute offsets as the cumulative sum of the lengths, from 0"
    );
    assert_eq!(
        text(Segments::try_from_offsets(&[0, 3, 2])),
        "segments: offsets[2] must be at least 3 (offsets never decrease), got 2; \
         compute offsets as the cumulative sum of the lengths, from 0"
    );
    assert!(
        text(Segments::try_from_offsets(&[0, limit + 1])).contains("offsets[1] must be at most")
    );
    let x = Tensor::<2>::ones([4, 2], &Device::flex());
    let s = Segments::from_lengths(&[2, 1]);
    for error in [
        try_segment_reduce(x.clone(), &s, SegmentReduce::Max).unwrap_err(),
        try_segment_softmax(x.clone(), &s).unwrap_err(),
    ] {
        assert!(
            error.to_string().ends_with(
                ": `x` must have 3 rows (rows of the segments), got 4; give as many rows"
            ),
            "{error}"
        );
    }
    let text = panic_text(|| segment_softmax(x.clone(), &s));
    assert!(text.starts_with("segment_softmax: `x` must have 3 rows"), "{text}");
}

/// Nodes and edges of a batch against loops over its graphs.
#[test]
fn readout_of_a_batch() {
    use burn_gnn_graph::{Graph, batch};
    let make = |atoms, bonds: &[(u32, u32)]| {
        let (src, dst) = bonds.iter().copied().unzip();
        Graph::builder()
            .nodes("atom", atoms)
            .nodes("ring", 1)
            .edges(("atom", "bond", "atom"), src, dst)
            .build()
            .unwrap()
    };
    let graphs = [make(3, &[(0, 1), (2, 1)]), make(0, &[]), make(2, &[(1, 0)])];
    let batch = batch(&graphs).unwrap();
    for (backend, device) in devices() {
        let x = |rows: usize| {
            Tensor::<2>::from_data(
                TensorData::new(numbers(3, rows * 2), [rows, 2]),
                (&device, DType::F64),
            )
        };
        for reduce in SegmentReduce::ALL {
            let whole = |lengths: &[usize], rows| {
                let mut at = 0;
                let of_graph = |&n: &usize| {
                    at += n;
                    f64s(segment_reduce(
                        x(rows).slice_dim(0, at - n..at),
                        &Segments::from_lengths(&[n]),
                        reduce,
                    ))
                };
                lengths.iter().flat_map(of_graph).collect::<Vec<_>>()
            };
            let nodes = f64s(readout_nodes(&batch, "atom", x(5), reduce));
            assert_close(
                &format!("{backend}, {reduce:?}, nodes"),
                &nodes,
                &whole(&[3, 0, 2], 5),
                0.0,
            );
            let edges = f64s(readout_edges(&batch, "bond", x(3), reduce));
            assert_close(
                &format!("{backend}, {reduce:?}, edges"),
                &edges,
                &whole(&[2, 0, 1], 3),
                0.0,
            );
        }
        let e = try_readout_nodes(&batch, "bead", x(5), SegmentReduce::Sum).unwrap_err();
        assert!(e.to_string().contains("unknown node type `bead`"), "{e}");
        let e =
            try_readout_nodes(&batch, "atom", x(4), SegmentReduce::Sum).unwrap_err().to_string();
        assert!(e.contains("`x` must have 5 rows (rows of the segments), got 4"), "{e}");
    }
}
