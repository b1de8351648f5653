//! What tests of several operators compare.

use std::fmt::Display;

use burn::tensor::{DType, TensorData};

/// The 16-bit types, with half a unit in the last place of 1.
pub(crate) const HALVES: [(DType, f64); 2] =
    [(DType::F16, 1.0 / 2048.0), (DType::BF16, 1.0 / 256.0)];

/// The nearest numbers of a type.
pub(crate) fn rounded(x: &[f64], dtype: DType) -> Vec<f64> {
    let data = TensorData::new(x.to_vec(), [x.len()]);
    data.convert_dtype(dtype).convert_dtype(DType::F64).try_into_vec().unwrap()
}

/// Whatever `run` returns has the same bits on one thread, two and three.
#[track_caller]
pub(crate) fn same_bits_on_threads(what: impl Display, run: impl Fn() -> Vec<f64> + Sync) {
    let on = |n| -> Vec<u64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(&run).into_iter().map(f64::to_bits).collect()
    };
    let one = on(1);
    for n in [2, 3] {
        assert!(on(n) == one, "{what}, {n} threads");
    }
}

/// Differences are at most `share` of 1 and the largest number together.
#[track_caller]
pub(crate) fn near_the_largest(what: impl Display, a: &[f64], b: &[f64], share: f64) {
    let bound = share * (1.0 + b.iter().fold(0.0f64, |most, x| most.max(x.abs())));
    assert_eq!(a.len(), b.len(), "{what}: lengths");
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= bound), "{what}, bound {bound:e}");
}
