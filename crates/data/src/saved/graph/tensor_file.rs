//! Reads the tensor file of a graph.

use std::io::{Read, Seek};
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use bytemuck::{AnyBitPattern, NoUninit};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::files::{TensorIndex, TensorViews, format_error, io_error, open, reserve};

/// The description that the tensors belong to.
pub(super) const JSON: &str = "graph.json";

/// Reads the tensor file. Its header is read first, and memory is allocated for the rest only if the file has the length
/// that the header states.
pub(super) fn read_tensors(path: &Path) -> Result<Vec<u8>, DataError> {
    let (mut file, len) = open(path)?;
    let header = TensorIndex::read(&file, len).map_err(|e| io_error(path, e))?;
    drop(header.map_err(|found| no_safetensors(path, &found))?);
    let mut bytes = vec![];
    reserve(path, len, &mut bytes)?;
    file.rewind().map_err(|e| io_error(path, e))?;
    file.take(len).read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    Ok(bytes)
}

fn no_safetensors(path: &Path, found: &str) -> DataError {
    format_error(path, format!("expected a safetensors file, found {found}"))
}

pub(super) struct TensorFile<'a> {
    pub(super) json: &'a Path,
    pub(super) path: &'a Path,
    /// Length of the file.
    pub(super) bytes: u64,
    pub(super) tensors: TensorViews<'a>,
    pub(super) device: &'a Device,
}

impl<'a> TensorFile<'a> {
    pub(super) fn new(
        json: &'a Path,
        path: &'a Path,
        bytes: &'a [u8],
        fingerprint: &str,
        device: &'a Device,
    ) -> Result<Self, DataError> {
        let tensors = TensorViews::parse(bytes).map_err(|found| no_safetensors(path, &found))?;
        let found = tensors.text("fingerprint").unwrap_or("none");
        if found != fingerprint {
            let why = format!(
                "expected fingerprint {fingerprint} as {JSON} says, found {found}; the files are of two different writes"
            );
            return Err(format_error(path, why));
        }
        Ok(Self { json, path, bytes: bytes.len() as u64, tensors, device })
    }

    pub(super) fn get(
        &self,
        key: &str,
        dtype: Dtype,
        shape: &[u64],
    ) -> Result<TensorView<'_>, DataError> {
        let view = self.tensors.tensor(key).ok_or_else(|| {
            format_error(self.path, format!("expected a tensor `{key}`, found none"))
        })?;
        let same_shape = view.shape().iter().map(|&n| n as u64).eq(shape.iter().copied());
        if view.dtype() != dtype || !same_shape {
            let (d, s) = (view.dtype(), view.shape());
            return Err(format_error(
                self.path,
                format!("`{key}`: expected {dtype:?} {shape:?} as {JSON} says, found {d:?} {s:?}"),
            ));
        }
        Ok(view)
    }
    /// Copies the numbers of a tensor of rank 1, since bytes in a file are not aligned.
    pub(super) fn numbers<T: AnyBitPattern + NoUninit>(
        &self,
        key: &str,
        dtype: Dtype,
        count: u64,
    ) -> Result<Vec<T>, DataError> {
        Ok(bytemuck::pod_collect_to_vec(self.get(key, dtype, &[count])?.data()))
    }
}
