//! Typed products against the reference and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences,
    panic_text,
};

#[derive(Clone, Debug)]
enum Rows {
    Segments(Segments),
    Types(TypeIndex),
}

impl Rows {
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::Segments(s) => (s.num_rows(), s.len()),
            Self::Types(t) => (t.num_rows(), t.num_types()),
        }
    }
}

/// Result and gradients of `a` and `b`.
type Outcome = [Vec<f64>; 3];

fn run(
    rows: &Rows,
    a: &TensorData,
    b: &TensorData,
    place: (&Device, DType),
    reference: bool,
) -> Outcome {
    let device = place.0.clone().autodiff();
    let a = Tensor::<2>::from_data(a.clone(), (&device, place.1)).require_grad();
    let b = Tensor::<3>::from_data(b.clone(), (&device, place.1)).require_grad();
    let y = match (rows, reference) {
        (Rows::Segments(s), false) => segment_mm(a.clone(), b.clone(), s),
        (Rows::Segments(s), true) => segment_mm_reference(a.clone(), b.clone(), s),
        (Rows::Types(t), false) => gather_mm(a.clone(), b.clone(), t),
        (Rows::Types(t), true) => gather_mm_reference(a.clone(), b.clone(), t),
    };
    let cotangent = TensorData::new(numbers(7, y.shape().num_elements()), y.shape());
    let mut loss = (y.clone() * Tensor::from_data(cotangent, (&device, place.1))).sum();
    if reference {
        loss = loss + (a.clone() * 0.0).sum() + (b.clone() * 0.0).sum();
    }
    let grads = loss.backward();
    [f64s(y), f64s(a.grad(&grads).unwrap()), f64s(b.grad(&grads).unwrap())]
}

fn random(rows: &Rows, [i, o]: [usize; 2], seed: u64) -> [TensorData; 2] {
    let (n, t) = rows.sizes();
    [
        TensorData::new(numbers(seed, n * i), [n, i]),
        TensorData::new(numbers(seed + 1, t * i * o), [t, i, o]),
    ]
}

#[track_caller]
fn near(what: &str, a: &Outcome, b: &Outcome, tolerance: f64) {
    for (name, (a, b)) in ["out", "d a", "d b"].iter().zip(a.iter().zip(b)) {
        assert_close(&format!("{what}, {name}"), a, b, tolerance);
    }
}

fn types(n: usize) -> Vec<u16> {
    let stream = Stream::new(3, "types", 0);
    (0..n as u64).map(|i| [0, 0, 0, 2, 2, 4][(stream.uniform(i, 0) * 6.0) as usize]).collect()
}

#[test]
fn values_and_gradients_are_those_of_the_reference() {
    let rows = [
        Rows::Segments(Segments::from_lengths(&[3, 0, 1, 140, 5])),
        Rows::Segments(Segments::from_lengths(&[2100, 0, 1030])),
        Rows::Segments(Segments::from_lengths(&[])),
        Rows::Segments(Segments::from_lengths(&[0, 0])),
        Rows::Types(TypeIndex::new(&types(300), 5)),
        Rows::Types(TypeIndex::new(&types(2500), 5)),
        Rows::Types(TypeIndex::new::<u8>(&[], 2)),
    ];
    for (backend, device) in devices() {
        for rows in &rows {
            // In registers, and by gemm (more than 32 · 32 entries).
            for widths in
                [[1, 1], [5, 3], [16, 16], [33, 20], [4, 64], [70, 65], [128, 40], [0, 3], [3, 0]]
            {
                let [a, b] = random(rows, widths, 5);
                let [kernel, reference] =
                    [false, true].map(|r| run(rows, &a, &b, (&device, DType::F64), r));
                near(
                    &format!("{backend}, {:?}, {widths:?}", rows.sizes()),
                    &kernel,
                    &reference,
                    1e-10,
                );
            }
        }
    }
}

#[test]
fn finite_differences() {
    for rows in [
        Rows::Segments(Segments::from_lengths(&[2, 0, 3])),
        Rows::Types(TypeIndex::new(&[2u32, 0, 2, 2, 0], 3)),
    ] {
        for (backend, device) in devices() {
            let operands = random(&rows, [3, 2], 9);
            let loss = |operands: &[TensorData; 2]| -> f64 {
                let [y, ..] = run(&rows, &operands[0], &operands[1], (&device, DType::F64), false);
                y.iter().zip(numbers(7, y.len())).map(|(a, b)| a * b).sum()
            };
            let got = run(&rows, &operands[0], &operands[1], (&device, DType::F64), false);
            for operand in 0..2 {
                let n = operands[operand].num_elements();
                let differences = central_differences(n, 1e-5, |i, by| {
                    let mut operands = operands.clone();
                    operands[operand].as_mut_slice::<f64>().unwrap()[i] += by;
                    loss(&operands)
                });
                assert_close(
                    &format!("{backend}, operand {operand}"),
                    &got[operand + 1],
                    &differences,
                    1e-7,
                );
            }
            // The matrix of the empty segment, and of no row's type.
            assert_eq!(got[2][6..12], [0.0; 6]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn gather_mm_is_segment_mm_of_sorted_rows(types in proptest::collection::vec(0u8..5, 0..60), i in 0usize..20, o in 0usize..20) {
        let index = TypeIndex::new(&types, 5);
        let rows = Rows::Types(index.clone());
        let [a, b] = random(&rows, [i, o], 3);
        for (backend, device) in devices() {
            let got = run(&rows, &a, &b, (&device, DType::F64), false);
            near(backend, &got, &run(&rows, &a, &b, (&device, DType::F64), true), 1e-12);
            // Sorted before: the same bits, as rows of a type keep their order.
            let values = a.as_slice::<f64>().unwrap();
            let sorted: Vec<f64> = index.rows().iter().flat_map(|&r| values[r as usize * i..][..i].to_vec()).collect();
            let sorted = TensorData::new(sorted, [types.len(), i]);
            let y = segment_mm(
                Tensor::from_data(sorted, (&device, DType::F64)),
                Tensor::from_data(b.clone(), (&device, DType::F64)),
                index.segments(),
            );
            let back: Vec<f64> = index.rows().iter().flat_map(|&r| got[0][r as usize * o..][..o].to_vec()).collect();
            prop_assert_eq!(f64s(y), back);
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for rows in [
        Rows::Segments(Segments::from_lengths(&[9000, 3, 0, 2500])),
        Rows::Types(TypeIndex::new(&types(12_000), 5)),
    ] {
        for (backend, device) in devices() {
            for widths in [[48, 40], [80, 96]] {
                let [a, b] = random(&rows, widths, 1);
                assert_same_bits_on_threads(format_args!("{backend}, {widths:?}"), || {
                    run(&rows, &a, &b, (&device, DType::F32), false).concat()
                });
            }
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let rows = Rows::Types(TypeIndex::new(&types(500), 5));
    let device = Device::flex();
    for (dtype, ulp) in HALVES {
        for widths in [[9, 20], [80, 70]] {
            let [a, b] = random(&rows, widths, 2).map(|x| x.convert_dtype(dtype));
            let [half, single] = [dtype, DType::F32].map(|d| {
                run(
                    &rows,
                    &a.clone().convert_dtype(d),
                    &b.clone().convert_dtype(d),
                    (&device, d),
                    false,
                )
            });
            for (k, name) in ["out", "d a", "d b"].iter().enumerate() {
                let share = if k == 0 { ulp } else { 4.0 * ulp };
                let what = format_args!("{dtype:?}, {widths:?}, {name}");
                assert_close_to_largest(what, &half[k], &single[k], share);
            }
        }
    }
}

#[test]
fn infinities_and_nan_stay_visible() {
    for (backend, device) in devices() {
        for n in [2, 80] {
            let (a, b) =
                (Tensor::<2>::ones([3, n], &device), Tensor::<3>::ones([2, n, n], &device));
            let bad = a.clone().slice_fill([1..2, 0..1], f32::NAN);
            let y = f64s(segment_mm(bad, b.clone(), &Segments::from_lengths(&[1, 2])));
            assert!(y.iter().enumerate().all(|(i, y)| y.is_nan() == (i / n == 1)), "{backend}");
            let bad = a.slice_fill([2..3, 1..2], f32::INFINITY);
            let y = f64s(gather_mm(bad, b, &TypeIndex::new(&[1u8, 0, 1], 2)));
            assert!(
                y.iter().enumerate().all(|(i, &y)| (y == f64::INFINITY) == (i / n == 2)),
                "{backend}"
            );
        }
    }
}

#[test]
fn what_is_refused() {
    let device = Device::flex();
    let (a, b) = (Tensor::<2>::ones([3, 2], &device), Tensor::<3>::ones([2, 2, 4], &device));
    let s = Segments::from_lengths(&[1, 2]);
    let text = |a: &Tensor<2>, b: &Tensor<3>| {
        try_segment_mm(a.clone(), b.clone(), &s).unwrap_err().to_string()
    };
    let short = Tensor::<2>::ones([2, 2], &device);
    assert_eq!(
        text(&short, &b),
        "segment_mm: `a` must have 3 rows (rows of the segments), got 2; give as many rows"
    );
    assert_eq!(
        text(&a, &Tensor::ones([3, 2, 4], &device)),
        "segment_mm: `b` must have shape [2, 2, 4], got [3, 2, 4]; transpose or reshape it, or correct the other operands"
    );
    assert_eq!(
        text(&a, &Tensor::ones([2, 3, 4], &device)),
        "segment_mm: `b` must have shape [2, 2, 4], got [2, 3, 4]; transpose or reshape it, or correct the other operands"
    );
    assert_eq!(
        text(&a, &Tensor::ones([2, 2, 4], (&device, DType::F64))),
        "segment_mm: `b` is F64 and `a` is F32; cast one of them"
    );
    let types = TypeIndex::new(&[0u8, 1], 2);
    let error = try_gather_mm(a.clone(), b.clone(), &types).unwrap_err().to_string();
    assert_eq!(
        error,
        "gather_mm: `a` must have 2 rows (one per row of `types`), got 3; give as many rows"
    );
    let error = TypeIndex::try_new(&[0u16, 2], 2).unwrap_err().to_string();
    assert_eq!(error, "type_index: `types[1]` must lie in 0..2 (types), got 2; number them from 0");
    let text = panic_text(|| gather_mm(a, b, &types));
    assert!(text.starts_with("gather_mm: `a` must have 2 rows"), "{text}");
}
