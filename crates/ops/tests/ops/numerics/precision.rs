//! `with_precision`: the bits of explicit casts, gradients in the type of the input, the end of the scope.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;

use crate::{f64s, numbers};

const TYPES: [(Precision, FloatDType, f64); 2] =
    [(Precision::F16, FloatDType::F16, 2e-3), (Precision::BF16, FloatDType::BF16, 2e-2)];

fn relation() -> Relation {
    Relation::from_coo(4, 3, vec![0, 1, 1, 3, 2, 0], vec![2, 0, 0, 2, 2, 2]).unwrap()
}

fn leaf<const D: usize>(seed: u64, shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data = TensorData::new(numbers(seed, shape.iter().product()), shape);
    Tensor::from_data(data, (&Device::flex().autodiff(), dtype)).require_grad()
}

/// Result and both gradients of `f`, with their element types.
fn run(
    f: impl FnOnce(Tensor<2>, Tensor<2>) -> Tensor<2>,
    op: BinaryOp,
) -> ([Vec<f64>; 3], [DType; 3]) {
    let (x, w) = (leaf(1, [4, 5], DType::F32), leaf(2, [6, 5], DType::F32));
    let y = f(x.clone(), w.clone());
    // A non-constant cotangent that is exact in 16 bits.
    let g = TensorData::new((0..15).map(|i| f64::from(i - 7)).collect::<Vec<_>>(), [3, 5]);
    let g = Tensor::<2>::from_data(g, (&Device::flex().autodiff(), y.dtype()));
    let grads = (y.clone() * g).sum().backward();
    let types = |x: Option<&Tensor<2>>| x.map_or(DType::F32, |x| x.dtype());
    let (dx, dw) = (x.grad(&grads), w.grad(&grads));
    assert_eq!((dx.is_some(), dw.is_some()), (op.uses_lhs(), op.uses_rhs()));
    let types = [y.dtype(), types(dx.as_ref()), types(dw.as_ref())];
    ([f64s(y), dx.map_or(vec![], f64s), dw.map_or(vec![], f64s)], types)
}

#[test]
fn the_bits_of_a_cast_by_hand() {
    let r = relation();
    for (setting, dtype, tolerance) in TYPES {
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                let what = format!("{setting:?} {op:?} {reduce:?}");
                let (got, types) =
                    run(|x, w| with_precision(setting, || gspmm(&r, op, reduce, x, w)), op);
                let (want, _) = run(|x, w| gspmm(&r, op, reduce, x.cast(dtype), w.cast(dtype)), op);
                assert_eq!(got, want, "{what}");
                assert_eq!(types, [dtype.into(), DType::F32, DType::F32], "{what}");
                if reduce.selects() {
                    continue; // rounding may make another edge win
                }
                let (full, _) = run(|x, w| gspmm(&r, op, reduce, x, w), op);
                assert_ne!(got[0], full[0], "{what}: nothing was rounded");
                for (a, b) in got.iter().flatten().zip(full.iter().flatten()) {
                    assert!(
                        (a - b).abs() <= tolerance * (8.0 + b.abs()),
                        "{what}: {a} against {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn sums_are_kept_in_f32() {
    // In bf16 256 + 1 is 256, in f16 2048 + 1 is 2048.
    let n = 4096;
    let star = Relation::from_coo(n, 1, (0..n as u32).collect(), vec![0; n]).unwrap();
    for (setting, ..) in TYPES {
        let x = Tensor::<2>::ones([n, 3], &Device::flex().autodiff()).require_grad();
        let w = Tensor::<2>::ones([1, 3], &Device::flex().autodiff()).require_grad();
        assert_eq!(f64s(with_precision(setting, || copy_u_sum(&star, x.clone()))), [4096.0; 3]);
        // The gradient of one row that 4096 edges read.
        let spread = star.reverse();
        let y = with_precision(setting, || copy_u_sum(&spread, w.clone()));
        let grads = y.cast(FloatDType::F32).sum().backward();
        assert_eq!(f64s(w.grad(&grads).unwrap()), [4096.0; 3]);
    }
}

#[test]
fn the_scope_ends() {
    assert_eq!(precision(), Precision::Full);
    with_precision(Precision::BF16, || {
        assert_eq!(precision(), Precision::BF16);
        with_precision(Precision::F16, || assert_eq!(precision(), Precision::F16));
        with_precision(Precision::Full, || {
            let x = Tensor::<2>::ones([4, 1], &Device::flex());
            assert_eq!(copy_u_sum(&relation(), x).dtype(), DType::F32);
        });
        assert_eq!(precision(), Precision::BF16);
        // The setting is local to a thread.
        assert_eq!(std::thread::spawn(precision).join().unwrap(), Precision::Full);
    });
    assert_eq!(precision(), Precision::Full);
    let panic =
        std::panic::catch_unwind(|| with_precision(Precision::F16, || panic!("on purpose")));
    assert!(panic.is_err());
    assert_eq!(precision(), Precision::Full);
    // A panic of an operator ends the scope too.
    let wrong = Tensor::<2>::ones([5, 1], &Device::flex());
    assert!(
        with_precision(Precision::F16, || try_gspmm_copy(
            &relation(),
            Side::Lhs,
            Reduce::Sum,
            wrong
        ))
        .is_err()
    );
    let x = Tensor::<2>::ones([4, 1], &Device::flex());
    assert_eq!(copy_u_sum(&relation(), x).dtype(), DType::F32);
}

#[test]
fn backward_does_not_ask_for_the_setting() {
    let r = relation();
    let grads_of = |inside: bool| {
        let (x, w) = (leaf(1, [4, 5], DType::F32), leaf(2, [6, 1], DType::F32));
        let (grads, x, w) = with_precision(Precision::BF16, || {
            let y: Tensor<2> = u_mul_e_sum(&r, x.clone(), w.clone());
            (inside.then(|| y.clone().sum().backward()).ok_or(y), x, w)
        });
        let grads = grads.unwrap_or_else(|y| y.sum().backward());
        (f64s(x.grad(&grads).unwrap()), f64s(w.grad(&grads).unwrap()))
    };
    assert_eq!(grads_of(true), grads_of(false));
}

#[test]
fn which_inputs_are_cast() {
    let r = relation();
    with_precision(Precision::BF16, || {
        for (own, out) in [
            (DType::F64, DType::F64),
            (DType::F32, DType::BF16),
            (DType::F16, DType::BF16),
            (DType::BF16, DType::BF16),
        ] {
            assert_eq!(copy_u_sum(&r, leaf(1, [4, 2], own)).dtype(), out, "{own:?}");
        }
        // Operands of different 16- or 32-bit types are cast to one type; f64 is not cast and does not match.
        let mixed = |l, w| {
            try_gspmm::<2, 2, 2>(
                &r,
                BinaryOp::Mul,
                Reduce::Sum,
                leaf(1, [4, 2], l),
                leaf(2, [6, 2], w),
            )
        };
        assert_eq!(mixed(DType::F32, DType::F16).unwrap().dtype(), DType::BF16);
        let error = mixed(DType::F64, DType::F32).unwrap_err();
        assert!(
            matches!(
                error,
                OpsError::Dtype { arg: "lhs", actual: DType::F64, expected: DType::BF16, .. }
            ),
            "{error}"
        );
        // Operators without messages do not cast.
        let x = Tensor::<2>::ones([4, 2], &Device::flex());
        assert_eq!(dropout(x, 0.5, burn_gnn_ops::Stream::new(0, "x", 0), None).dtype(), DType::F32);
    });
}

/// A tensor that is not in row-major order, and a tensor with more entries than a thread processes.
#[test]
fn any_layout_and_size() {
    let n = 300_000;
    let ids: Vec<u32> = (0..n as u32).collect();
    let own = Relation::from_coo(n, n, ids.clone(), ids).unwrap();
    let x = Tensor::<2>::from_data(
        TensorData::new(numbers(3, 2 * n), [2, n]),
        (&Device::flex(), DType::F32),
    )
    .transpose();
    let y = with_precision(Precision::BF16, || copy_u_sum(&own, x.clone()));
    assert_eq!(f64s(y), f64s(x.cast(FloatDType::BF16)));
}

/// A CPU device without 16-bit floats, if this build has one.
fn without_halves() -> Option<Device> {
    burn_gnn_testutil::devices().into_iter().nth(1)
}

#[test]
fn a_device_without_16_bit_types() {
    let Some(narrow) = without_halves() else { return };
    let x = Tensor::<2>::ones([4, 2], &narrow);
    let error = with_precision(Precision::F16, || {
        try_gspmm_copy(&relation(), Side::Lhs, Reduce::Sum, x.clone())
    })
    .unwrap_err();
    let device = format!("{:?}", x.device());
    assert_eq!(
        error.to_string(),
        format!(
            "gspmm: `with_precision` casts `lhs` to F16, which {device} does not support; use another precision or device"
        )
    );
    let w = Tensor::<2>::ones([6, 2], &narrow);
    let error =
        with_precision(Precision::BF16, || try_gspmm_copy(&relation(), Side::Rhs, Reduce::Sum, w))
            .unwrap_err();
    assert!(error.to_string().contains("casts `rhs` to BF16"), "{error}");
    assert_eq!(copy_u_sum(&relation(), x).dtype(), DType::F32);
}

/// An operator on flat inputs of given lengths, which it reshapes.
struct Family {
    name: &'static str,
    lengths: &'static [usize],
    /// The argument in the error on a device without the element type: the first input.
    arg: &'static str,
    call: fn(&[Tensor<1>]) -> Result<Tensor<1>, OpsError>,
}

fn stack() -> RelationStack {
    RelationStack::new(3, &[4], &[(0, relation()), (0, relation())]).unwrap()
}

fn flat<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let n = x.shape().num_elements();
    x.reshape([n])
}

fn as2(x: &Tensor<1>, shape: [usize; 2]) -> Tensor<2> {
    x.clone().reshape(shape)
}

fn as3(x: &Tensor<1>, shape: [usize; 3]) -> Tensor<3> {
    x.clone().reshape(shape)
}

fn index() -> RelationalIndex {
    RelationalIndex::new(&relation(), &[0u8, 1, 1, 0, 1, 0], 2)
}

macro_rules! family {
    ($name:literal, $arg:literal, $lengths:expr, |$x:ident| $call:expr) => {
        Family { name: $name, lengths: &$lengths, arg: $arg, call: |$x| $call.map(flat) }
    };
}

fn families() -> Vec<Family> {
    let mut all = vec![
        family!("gsddmm", "lhs", [20, 15], |x| {
            try_gsddmm::<2, 2, 2>(
                &relation(),
                SddmmOp::Dot,
                Target::Src,
                Target::Dst,
                as2(&x[0], [4, 5]),
                as2(&x[1], [3, 5]),
            )
        }),
        family!("gsddmm", "lhs", [20, 30], |x| {
            try_gsddmm::<2, 2, 2>(
                &relation(),
                SddmmOp::Div,
                Target::Src,
                Target::Edge,
                as2(&x[0], [4, 5]),
                as2(&x[1], [6, 5]),
            )
        }),
        family!("gsddmm", "lhs", [20], |x| try_gsddmm_copy(
            &relation(),
            Target::Src,
            as2(&x[0], [4, 5])
        )),
        family!("gsddmm", "rhs", [15], |x| {
            let x = as2(&x[0], [3, 5]);
            try_gsddmm::<2, 2, 2>(
                &relation(),
                SddmmOp::CopyRhs,
                Target::Src,
                Target::Dst,
                x.clone(),
                x,
            )
        }),
        family!("edge_softmax", "logits", [18], |x| try_edge_softmax(
            &relation(),
            as2(&x[0], [6, 3]),
            NormBy::Dst
        )),
        family!("edge_softmax_on", "logits", [9], |x| try_edge_softmax_on(
            &relation(),
            &[5, 1, 2],
            as2(&x[0], [3, 3]),
            NormBy::Dst
        )),
        family!("edge_softmax_across", "logits", [18, 18], |x| {
            try_edge_softmax_across(&stack(), x.iter().map(|x| as2(x, [6, 3])).collect())
                .map(|y| Tensor::cat(y, 0))
        }),
        family!("segment_softmax", "x", [18], |x| try_segment_softmax(
            as2(&x[0], [6, 3]),
            &Segments::from_lengths(&[2, 0, 4])
        )),
        family!("segment_mm", "a", [18, 30], |x| {
            try_segment_mm(
                as2(&x[0], [6, 3]),
                as3(&x[1], [2, 3, 5]),
                &Segments::from_lengths(&[2, 4]),
            )
        }),
        family!("gather_mm", "a", [18, 30], |x| {
            try_gather_mm(
                as2(&x[0], [6, 3]),
                as3(&x[1], [2, 3, 5]),
                &TypeIndex::new(&[1u8, 0, 1, 1, 0, 1], 2),
            )
        }),
        family!("relational_aggregate", "x", [16, 40, 6], |x| {
            let weight = RelationalWeight::Full(as3(&x[1], [2, 4, 5]));
            try_relational_aggregate(&index(), as2(&x[0], [4, 4]), weight, Some(x[2].clone()))
        }),
        family!("relational_aggregate", "x", [16, 60, 6], |x| {
            let weight =
                RelationalWeight::Basis { bases: as3(&x[1], [3, 4, 5]), coeff: as2(&x[2], [2, 3]) };
            try_relational_aggregate(&index().mean(), as2(&x[0], [4, 4]), weight, None)
        }),
        family!("relational_aggregate", "x", [16, 24], |x| {
            let weight = RelationalWeight::BlockDiagonal(x[1].clone().reshape([2, 2, 2, 3]));
            try_relational_aggregate(&index(), as2(&x[0], [4, 4]), weight, None)
        }),
        family!("gat_attention", "z", [24, 8, 6], |x| {
            let (a, b) = (as2(&x[1], [4, 2]), as2(&x[2], [3, 2]));
            try_gat_attention(&relation(), as3(&x[0], [4, 2, 3]), a, b, &GatOptions::default())
        }),
        family!("gat_attention_weights", "a_src", [8, 6], |x| {
            try_gat_attention_weights(
                &relation(),
                as2(&x[0], [4, 2]),
                as2(&x[1], [3, 2]),
                &GatOptions::default(),
            )
        }),
        family!("attention", "logits", [12, 24], |x| try_attention(
            &relation(),
            as2(&x[0], [6, 2]),
            as3(&x[1], [4, 2, 3]),
            None
        )),
        family!("weighted_aggregate", "x", [20, 6, 5], |x| {
            let options =
                AggregateOptions { activation: Activation::Elu(1.0), ..Default::default() };
            try_weighted_aggregate(
                &relation(),
                as2(&x[0], [4, 5]),
                Some(x[1].clone()),
                Some(x[2].clone()),
                &options,
            )
        }),
        family!("bias_activation", "x", [20, 5], |x| {
            try_bias_activation(as2(&x[0], [4, 5]), Some(x[1].clone()), Activation::Elu(1.0), None)
        }),
        family!("matmul_rows", "x", [20, 15], |x| try_matmul_rows(
            as2(&x[0], [4, 5]),
            as2(&x[1], [5, 3])
        )),
        family!("multi_gspmm", "sources", [20], |x| try_multi_gspmm(
            &stack(),
            vec![as2(&x[0], [4, 5])],
            Reduce::Mean
        )),
    ];
    for reduce in SegmentReduce::ALL {
        let call: fn(&[Tensor<1>]) -> _ = match reduce {
            SegmentReduce::Sum => |x| segment(x, SegmentReduce::Sum),
            SegmentReduce::Mean => |x| segment(x, SegmentReduce::Mean),
            SegmentReduce::Max => |x| segment(x, SegmentReduce::Max),
            SegmentReduce::Min => |x| segment(x, SegmentReduce::Min),
        };
        all.push(Family { name: "segment_reduce", lengths: &[18], arg: "x", call });
    }
    for call in [
        (|x| cross(x, Reduce::Sum, CrossReduce::Sum)) as fn(&[Tensor<1>]) -> _,
        |x| cross(x, Reduce::Mean, CrossReduce::Mean),
        |x| cross(x, Reduce::Max, CrossReduce::Sum),
    ] {
        all.push(Family { name: "multi_gspmm_cross", lengths: &[20], arg: "sources", call });
    }
    all
}

fn segment(x: &[Tensor<1>], reduce: SegmentReduce) -> Result<Tensor<1>, OpsError> {
    try_segment_reduce(as2(&x[0], [6, 3]), &Segments::from_lengths(&[2, 0, 4]), reduce).map(flat)
}

fn cross(x: &[Tensor<1>], reduce: Reduce, cross: CrossReduce) -> Result<Tensor<1>, OpsError> {
    try_multi_gspmm_cross(&stack(), vec![as2(&x[0], [4, 5])], reduce, cross).map(flat)
}

#[test]
fn every_family_has_the_bits_of_a_cast_by_hand() {
    for (position, family) in families().into_iter().enumerate() {
        for (setting, dtype, _) in TYPES {
            let what = format!("{} ({position}), {setting:?}", family.name);
            let outcome = |f: &dyn Fn(&[Tensor<1>]) -> Tensor<1>| {
                let leaves: Vec<_> = family
                    .lengths
                    .iter()
                    .zip(1..)
                    .map(|(&n, seed)| leaf(seed, [n], DType::F32))
                    .collect();
                let y = f(&leaves);
                let n = y.shape().num_elements();
                let c =
                    TensorData::new((0..n).map(|i| (i % 15) as f64 - 7.0).collect::<Vec<_>>(), [n]);
                let c = Tensor::<1>::from_data(c, (&Device::flex().autodiff(), y.dtype()));
                let grads = (y.clone() * c).sum().backward();
                let d: Vec<_> = leaves.iter().map(|x| x.grad(&grads).unwrap()).collect();
                assert!(d.iter().all(|d| d.dtype() == DType::F32), "{what}: gradients");
                (
                    y.dtype(),
                    f64s(y).into_iter().map(f64::to_bits).collect::<Vec<_>>(),
                    d.into_iter().map(f64s).collect::<Vec<_>>(),
                )
            };
            let got = outcome(&|x| with_precision(setting, || (family.call)(x)).unwrap());
            let by_hand = outcome(&|x| {
                (family.call)(&x.iter().map(|x| x.clone().cast(dtype)).collect::<Vec<_>>()).unwrap()
            });
            assert_eq!(got.0, DType::from(dtype), "{what}");
            assert_eq!(got, by_hand, "{what}");
            let full = outcome(&|x| (family.call)(x).unwrap());
            assert!(full.0 == DType::F32 && full.1 != got.1, "{what}: nothing was rounded");
        }
    }
}

#[test]
fn every_family_names_itself_on_a_device_without_16_bit_types() {
    let Some(narrow) = without_halves() else { return };
    for family in families() {
        let inputs: Vec<_> =
            family.lengths.iter().map(|&n| Tensor::<1>::ones([n], &narrow)).collect();
        let error =
            with_precision(Precision::BF16, || (family.call)(&inputs)).unwrap_err().to_string();
        let want = format!("{}: `with_precision` casts `{}` to BF16", family.name, family.arg);
        assert!(error.starts_with(&want), "{error}, not {want}");
        (family.call)(&inputs).unwrap();
    }
}
