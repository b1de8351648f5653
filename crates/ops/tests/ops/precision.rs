//! Mixed precision: the bits of a cast by hand, gradients in the input's type, and a scope that ends.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{
    BinaryOp, OpsError, Precision, Reduce, Side, copy_u_sum, dropout, gspmm, precision, try_gspmm, try_gspmm_copy, u_mul_e_sum,
    with_precision,
};

use super::{f64s, numbers};

const TYPES: [(Precision, FloatDType, f64); 2] = [(Precision::F16, FloatDType::F16, 2e-3), (Precision::BF16, FloatDType::BF16, 2e-2)];

fn relation() -> Relation {
    Relation::from_coo(4, 3, vec![0, 1, 1, 3, 2, 0], vec![2, 0, 0, 2, 2, 2]).unwrap()
}

fn leaf<const D: usize>(seed: u64, shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data = TensorData::new(numbers(seed, shape.iter().product()), shape);
    Tensor::from_data(data, (&Device::flex().autodiff(), dtype)).require_grad()
}

/// Result and both gradients of `f`, with the types of all three.
fn run(f: impl FnOnce(Tensor<2>, Tensor<2>) -> Tensor<2>, op: BinaryOp) -> ([Vec<f64>; 3], [DType; 3]) {
    let (x, w) = (leaf(1, [4, 5], DType::F32), leaf(2, [6, 5], DType::F32));
    let y = f(x.clone(), w.clone());
    // A cotangent that is not the same everywhere, exact in 16 bits.
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
                let (got, types) = run(|x, w| with_precision(setting, || gspmm(&r, op, reduce, x, w)), op);
                let (want, _) = run(|x, w| gspmm(&r, op, reduce, x.cast(dtype), w.cast(dtype)), op);
                assert_eq!(got, want, "{what}");
                assert_eq!(types, [dtype.into(), DType::F32, DType::F32], "{what}");
                if reduce.selects() {
                    continue; // rounding may make another edge win
                }
                let (full, _) = run(|x, w| gspmm(&r, op, reduce, x, w), op);
                assert_ne!(got[0], full[0], "{what}: nothing was rounded");
                for (a, b) in got.iter().flatten().zip(full.iter().flatten()) {
                    assert!((a - b).abs() <= tolerance * (8.0 + b.abs()), "{what}: {a} against {b}");
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
        // Other threads have settings of their own.
        assert_eq!(std::thread::spawn(precision).join().unwrap(), Precision::Full);
    });
    assert_eq!(precision(), Precision::Full);
    let panic = std::panic::catch_unwind(|| with_precision(Precision::F16, || panic!("on purpose")));
    assert!(panic.is_err());
    assert_eq!(precision(), Precision::Full);
    // An operator whose arguments are wrong leaves by the same door.
    let wrong = Tensor::<2>::ones([5, 1], &Device::flex());
    assert!(with_precision(Precision::F16, || try_gspmm_copy(&relation(), Side::Lhs, Reduce::Sum, wrong)).is_err());
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
        for (own, out) in [(DType::F64, DType::F64), (DType::F32, DType::BF16), (DType::F16, DType::BF16), (DType::BF16, DType::BF16)] {
            assert_eq!(copy_u_sum(&r, leaf(1, [4, 2], own)).dtype(), out, "{own:?}");
        }
        // Operands of two 16- or 32-bit types meet; f64 stays and does not fit.
        let mixed = |l, w| try_gspmm::<2, 2, 2>(&r, BinaryOp::Mul, Reduce::Sum, leaf(1, [4, 2], l), leaf(2, [6, 2], w));
        assert_eq!(mixed(DType::F32, DType::F16).unwrap().dtype(), DType::BF16);
        let error = mixed(DType::F64, DType::F32).unwrap_err();
        assert!(matches!(error, OpsError::Dtype { lhs: DType::F64, rhs: DType::BF16, .. }), "{error}");
        // No message passing, no cast.
        let x = Tensor::<2>::ones([4, 2], &Device::flex());
        assert_eq!(dropout(x, 0.5, burn_gnn_ops::Stream::new(0, "x", 0), None).dtype(), DType::F32);
    });
}

/// A tensor that is not stored in row-major order, and one of more entries than a thread takes.
#[test]
fn any_layout_and_size() {
    let n = 300_000;
    let ids: Vec<u32> = (0..n as u32).collect();
    let own = Relation::from_coo(n, n, ids.clone(), ids).unwrap();
    let x = Tensor::<2>::from_data(TensorData::new(numbers(3, 2 * n), [2, n]), (&Device::flex(), DType::F32)).transpose();
    let y = with_precision(Precision::BF16, || copy_u_sum(&own, x.clone()));
    assert_eq!(f64s(y), f64s(x.cast(FloatDType::BF16)));
}

#[test]
// Burn has deprecated its ndarray backend; people still use it.
#[allow(deprecated)]
fn a_device_without_16_bit_types() {
    let x = Tensor::<2>::ones([4, 2], &Device::ndarray());
    let error = with_precision(Precision::F16, || try_gspmm_copy(&relation(), Side::Lhs, Reduce::Sum, x.clone())).unwrap_err();
    let device = format!("{:?}", x.device());
    assert_eq!(
        error.to_string(),
        format!("gspmm: `with_precision` asks to cast `lhs` to F16, which {device} does not have; leave the setting or the device")
    );
    let w = Tensor::<2>::ones([6, 2], &Device::ndarray());
    let error = with_precision(Precision::BF16, || try_gspmm_copy(&relation(), Side::Rhs, Reduce::Sum, w)).unwrap_err();
    assert!(error.to_string().contains("cast `rhs` to BF16"), "{error}");
    assert_eq!(copy_u_sum(&relation(), x).dtype(), DType::F32);
}
