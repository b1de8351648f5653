//! Writes safetensors files tensor by tensor.

use std::io;

use burn_gnn_graph::Column;
use safetensors::Dtype;

use super::dtypes::BOOL;
use crate::columns::host_column::{self, PART};

/// A tensor that is written to a file.
pub(super) struct Stored<'a> {
    pub(super) key: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    content: Content<'a>,
}

enum Content<'a> {
    Bytes(&'a [u8]),
    /// As u64.
    U32Array(&'a [usize]),
    Column(&'a Column),
}

impl<'a> Stored<'a> {
    /// A tensor of rank 1 with numbers of type `dtype`.
    pub(super) fn numbers<T: bytemuck::NoUninit>(
        key: String,
        dtype: Dtype,
        numbers: &'a [T],
    ) -> Self {
        debug_assert_eq!(size_of::<T>(), dtype.bitsize() / 8);
        Self {
            key,
            dtype,
            shape: vec![numbers.len()],
            content: Content::Bytes(bytemuck::cast_slice(numbers)),
        }
    }
    /// A tensor of rank 1 with offsets as u64.
    pub(super) fn offsets(key: String, offsets: &'a [usize]) -> Self {
        Self {
            key,
            dtype: Dtype::U64,
            shape: vec![offsets.len()],
            content: Content::U32Array(offsets),
        }
    }
    /// A column whose rank and type the format supports.
    pub(super) fn column(key: String, dtype: Dtype, column: &'a Column) -> Self {
        Self {
            key,
            dtype,
            shape: column.shape().as_slice().to_vec(),
            content: Content::Column(column),
        }
    }
    /// Bytes of the tensor.
    pub(super) fn len(&self) -> u64 {
        self.shape.iter().map(|&n| n as u64).product::<u64>() * (self.dtype.bitsize() / 8) as u64
    }
    /// Passes the content to `part` in parts. Each part except the last is a multiple of eight bytes long.
    pub(super) fn each_part(
        &self,
        mut part: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.content {
            Content::Bytes(bytes) => part(bytes),
            Content::U32Array(words) => words.chunks(PART / 8).try_for_each(|words| {
                let words: Vec<u64> = words.iter().map(|&w| w as u64).collect();
                part(bytemuck::cast_slice(&words))
            }),
            Content::Column(column) => {
                // Booleans are stored as bytes.
                let stored = if column.dtype().is_bool() { BOOL } else { column.dtype() };
                host_column::each_part(column, stored, 8, part)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Bool, Device, Tensor, TensorData};
    use safetensors::SafeTensors;

    use super::*;
    use crate::files::tensor_header;

    /// Tensors written in parts equal tensors written at once, and the `safetensors` crate reads them.
    #[test]
    fn columns_of_many_parts() {
        let rows = 2 * PART / 12 + 5;
        let device = Device::flex();
        let floats: Vec<f32> = (0..rows * 3).map(|i| i as f32).collect();
        let masks: Vec<bool> = (0..3 * PART / 2).map(|i| i % 3 == 0).collect();
        let x = Column::new(Tensor::<2>::from_data(
            TensorData::new(floats.clone(), [rows, 3]),
            &device,
        ));
        let m = Column::new(Tensor::<1, Bool>::from_data(
            TensorData::new(masks.clone(), [masks.len()]),
            &device,
        ));
        let ends: Vec<usize> = (0..PART / 8 + 3).collect();
        let stored = [
            Stored::column("x".into(), Dtype::F32, &x),
            Stored::column("m".into(), Dtype::BOOL, &m),
            Stored::offsets("ends".into(), &ends),
            Stored::numbers("empty".into(), Dtype::U32, &[0u32; 0]),
        ];
        let mut file =
            tensor_header(stored.iter().map(|s| (&*s.key, s.dtype, &*s.shape)), [("about", "äöü")]);
        for s in &stored {
            let (mut parts, before) = (vec![], file.len());
            s.each_part(|part| {
                parts.push(part.len());
                file.extend_from_slice(part);
                Ok(())
            })
            .unwrap();
            assert_eq!((file.len() - before) as u64, s.len(), "{}", s.key);
            assert!(
                parts.iter().rev().skip(1).all(|n| n % 8 == 0)
                    && parts.iter().all(|&n| n <= PART + 96),
                "{parts:?}"
            );
            assert!(s.key == "empty" || parts.len() > 1, "{}", s.key);
        }
        let (_, head) = SafeTensors::read_metadata(&file).unwrap();
        assert_eq!(head.metadata().as_ref().unwrap()["about"], "äöü");
        let tensors = SafeTensors::deserialize(&file).unwrap();
        let tensor = |name| tensors.tensor(name).unwrap();
        assert_eq!(
            (tensor("x").shape(), tensor("x").data()),
            (&[rows, 3][..], bytemuck::cast_slice(&floats))
        );
        assert!(tensor("m").data().iter().zip(&masks).all(|(&b, &m)| (b == 1) == m));
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u8, u64>(tensor("ends").data()),
            (0..ends.len() as u64).collect::<Vec<_>>()
        );
        assert!(tensor("empty").data().is_empty());
    }
}
