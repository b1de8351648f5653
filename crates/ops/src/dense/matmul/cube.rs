//! Multiplies on GPUs by Burn's products, which are tuned for each device, and gradients of weights in parts (split-K).
//!
//! A gradient of weights, `xᵀ · g` over the rows of all nodes, has a long inner axis and few entries. A product that
//! assigns each tile of the result to one thread block occupies few blocks, each of which loops over all nodes. Rows are
//! therefore divided into parts that are multiplied in parallel, and the results are added in the order of the parts.
//! Before, a GCN epoch of 169,343 nodes took 29 ms on an H200, nine tenths of them in two such products
//! (docs/measurements/2026-11-26-gpus.md).

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice};

use crate::primitives::{narrow, widen};

/// Smallest number of rows of a part.
const ROWS: usize = 2048;
/// Largest number of entries of the results of all parts together, unless a single part has more.
const ENTRIES: usize = 1 << 24;

/// Rows of a part. It depends on shapes only, so that every run adds in the same order.
fn rows_of_part(rows: usize, entries: usize) -> usize {
    let parts = (ENTRIES / entries.max(1)).max(1);
    rows.div_ceil(parts).max(1).next_multiple_of(ROWS)
}

/// `lᵀ · r` for `l: [n, k]` and `r: [n, m]`.
pub(super) fn transposed_product<B: Backend>(
    l: FloatTensor<B>,
    r: FloatTensor<B>,
) -> FloatTensor<B> {
    let (n, k, m, dtype) = (l.shape()[0], l.shape()[1], r.shape()[1], l.dtype());
    let part = rows_of_part(n, k * m);
    let parts = n / part;
    if parts < 2 {
        return B::float_matmul(B::float_transpose(l), r);
    }
    // 16-bit floats are summed in f32 and rounded once, so parts must not be rounded.
    let (l, r) = (widen::<B>(l), widen::<B>(r));
    let rows = |x: &FloatTensor<B>, from: usize, to: usize, width: usize| {
        B::float_slice(x.clone(), &[Slice::from(from..to), Slice::from(0..width)])
    };
    let in_parts = |x: &FloatTensor<B>, width: usize| {
        B::float_reshape(rows(x, 0, parts * part, width), Shape::from(vec![parts, part, width]))
    };
    let each = B::float_matmul(B::float_swap_dims(in_parts(&l, k), 1, 2), in_parts(&r, m));
    let sum = B::float_sum_dim(each, 0);
    let mut sum = B::float_reshape(sum, Shape::from(vec![k, m]));
    if parts * part < n {
        let rest = |x: &FloatTensor<B>, width| rows(x, parts * part, n, width);
        let product = B::float_matmul(B::float_transpose(rest(&l, k)), rest(&r, m));
        sum = B::float_add(sum, product);
    }
    narrow::<B>(sum, dtype)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::backend::Flex;
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::TensorData;

    use super::*;

    #[test]
    fn parts_are_few_and_long() {
        assert_eq!(rows_of_part(169_343, 128 * 256), ROWS);
        assert_eq!(rows_of_part(1 << 20, 1024 * 1024), 1 << 16);
        assert_eq!(rows_of_part(10, 1 << 30), ROWS);
    }

    /// Integers, whose sums are exact in any order; with and without a remainder after the last part.
    #[test]
    fn parts_add_up() {
        const K: usize = 3;
        const M: usize = 2;
        for n in [100, 2 * ROWS - 1, 2 * ROWS, 3 * ROWS + 700] {
            let numbers =
                |len: usize, by: usize| (0..len).map(|i| (i * by % 17) as f32 - 8.0).collect();
            let (l, r): (Vec<f32>, Vec<f32>) = (numbers(n * K, 5), numbers(n * M, 7));
            let want: Vec<f32> = (0..K * M)
                .map(|at| (0..n).map(|i| l[i * K + at / M] * r[i * M + at % M]).sum())
                .collect();
            let device = Default::default();
            let tensor =
                |data, width| Flex::float_from_data(TensorData::new(data, vec![n, width]), &device);
            let got = transposed_product::<Flex>(tensor(l, K), tensor(r, M));
            let got = burn::backend::try_read_sync(Flex::float_into_data(got)).unwrap().unwrap();
            assert_eq!(got.try_to_vec::<f32>().unwrap(), want, "{n} rows");
        }
    }
}
