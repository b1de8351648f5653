//! Selects rows of tensors by ids on the CPU, and converts ids to tensors.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_graph::row_index;

/// A number of a row: node ids and edge ids of graphs and batches, original ids, labels.
pub trait RowId: Copy + std::fmt::Display {
    /// The row, if it is one.
    fn row(self) -> Option<usize>;
}

macro_rules! row_id {
    ($($id:ty),*) => {
        $(impl RowId for $id {
            fn row(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
        })*
    };
}

row_id!(u32, u64, usize, i32, i64);

/// Rows `ids` of `x`, in this order, on its device: features of the nodes of a batch, weights of its edges, the logits
/// of test nodes. An id may occur several times; gradients flow to `x`.
///
/// # Shapes
/// `x: [rows, ..]`, result `[ids.len(), ..]`.
///
/// # Panics
/// An id outside of `0..rows`.
///
/// # Cost
/// The ids are copied to the device of `x`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::select_rows;
/// let x = Tensor::<2>::from_data([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], &Device::flex());
/// let ids: Vec<u32> = vec![2, 0]; // such as `block.src_nodes("paper")`
/// let rows = select_rows(x, &ids).into_data();
/// assert_eq!(rows.try_to_vec::<f32>()?, [4.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn select_rows<const D: usize, I: RowId>(x: Tensor<D>, ids: impl AsRef<[I]>) -> Tensor<D> {
    let (ids, rows) = (ids.as_ref(), x.dims()[0]);
    let mut numbers = Vec::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        match id.row().filter(|&row| row < rows) {
            Some(row) => numbers.push(row),
            None => panic!(
                "select_rows: `ids[{at}]` must lie in 0..{rows} (rows of the tensor), got {id}"
            ),
        }
    }
    if numbers.is_empty() {
        return x.slice_dim(0, 0..0);
    }
    let index = row_index(numbers.into_iter(), &x.device().without_autodiff());
    x.select(0, index)
}

/// Ids on the CPU as a tensor, for layers and Burn modules that take one: the relations of a
/// decoder of links, the indices of an `Embedding`, the labels of a loss of Burn. Rows of a tensor are selected without it,
/// by [`select_rows`].
///
/// The tensor has the default integer type of the device, or int64 if an id is beyond 31 bits.
///
/// # Panics
/// A negative id.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_models::id_tensor;
/// let relations: Vec<u32> = vec![2, 0];
/// let ids = id_tensor(&relations, &Device::flex());
/// assert_eq!(ids.into_data().iter::<i64>().collect::<Vec<_>>(), [2, 0]);
/// ```
#[track_caller]
pub fn id_tensor<I: RowId>(ids: impl AsRef<[I]>, device: &Device) -> Tensor<1, Int> {
    let number = |(at, id): (usize, &I)| match id.row() {
        Some(row) => row as i64,
        None => panic!("id_tensor: `ids[{at}]` must be a number from 0, got {id}"),
    };
    let ids: Vec<i64> = ids.as_ref().iter().enumerate().map(number).collect();
    let (fits, n) = (ids.iter().all(|&id| id <= i64::from(i32::MAX)), ids.len());
    let data = TensorData::new(ids, [n]);
    if fits {
        Tensor::from_data(data, device)
    } else {
        Tensor::from_data(data, (device, DType::I64))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use burn_gnn_testutil::panic_text;

    use super::*;

    #[test]
    fn rows_come_in_the_order_of_ids_with_gradients() {
        let x = Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex().autodiff()).require_grad();
        let y = select_rows(x.clone(), [2i64, 0, 2]);
        assert_eq!(y.clone().into_data().try_to_vec::<f32>().unwrap(), [3.0, 1.0, 3.0]);
        let grad = x.grad(&y.sum().backward()).unwrap();
        assert_eq!(grad.into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.0, 2.0]);
        assert_eq!(select_rows(x, Vec::<u32>::new()).dims(), [0]);
    }

    #[test]
    fn ids_become_a_tensor_of_any_width() {
        let values = |t: Tensor<1, Int>| t.into_data().iter::<i64>().collect::<Vec<_>>();
        let d = Device::flex();
        let own = Tensor::<1, Int>::from_data([1, 2], &d).dtype();
        let few = id_tensor([1u32, 0, 7], &d);
        assert_eq!((few.dtype(), values(few)), (own, vec![1, 0, 7]));
        let large = id_tensor([u32::MAX, 1], &d);
        assert_eq!((large.dtype(), values(large)), (DType::I64, vec![i64::from(u32::MAX), 1]));
        assert_eq!(id_tensor(Vec::<u64>::new(), &d).dims(), [0]);
        let text = panic_text(|| id_tensor([0, -1i64], &d));
        assert!(text.contains("`ids[1]` must be a number from 0, got -1"), "{text}");
    }

    #[test]
    fn ids_that_are_no_rows_are_named() {
        let x = || Tensor::<2>::ones([3, 2], &Device::flex());
        let text = panic_text(|| select_rows(x(), [0u32, 3]));
        assert!(text.contains("`ids[1]` must lie in 0..3 (rows of the tensor), got 3"), "{text}");
        let text = panic_text(|| select_rows(x(), [-1i64]));
        assert!(text.contains("`ids[0]`") && text.contains("got -1"), "{text}");
    }
}
