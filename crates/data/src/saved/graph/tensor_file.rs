//! Writes and reads the tensors of a graph.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use bytemuck::{AnyBitPattern, NoUninit};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::files::{MAX_HEADER, TensorViews, format_error, io_error, open, reserve};

/// The description that the tensors belong to.
pub(super) const JSON: &str = "graph.json";

/// The tensor file, if it is as long as its header says; the header is looked at before memory is taken for the rest.
pub(super) fn read_tensors(path: &Path) -> Result<Vec<u8>, DataError> {
    /// Where one tensor lies; the entry of free metadata has no offsets.
    #[derive(Deserialize)]
    struct Place {
        data_offsets: Option<[u64; 2]>,
    }
    let (file, len) = open(path)?;
    let (mut file, mut bytes) = (file.take(8), vec![]);
    file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    let header = <[u8; 8]>::try_from(&bytes[..]).map_or(0, u64::from_le_bytes);
    if header <= MAX_HEADER {
        let header = header.min(len);
        reserve(path, header, &mut bytes)?;
        file.set_limit(header);
        file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    }
    let places: Option<HashMap<String, Place>> =
        bytes.get(8..).and_then(|text| serde_json::from_slice(text).ok());
    let Some(places) = places else {
        // The parser says what is wrong; it needs no more than the header for that.
        let found = SafeTensors::read_metadata(&bytes)
            .err()
            .map_or("another header".to_owned(), |e| e.to_string());
        return Err(format_error(path, format!("expected a safetensors file, found: {found}")));
    };
    let data = places.values().filter_map(|p| p.data_offsets).map(|o| o[1]).max().unwrap_or(0);
    let expected = data.saturating_add(bytes.len() as u64);
    if expected != len {
        return Err(format_error(
            path,
            format!(
                "expected a safetensors file of {expected} bytes as its header says, found {len}"
            ),
        ));
    }
    reserve(path, data, &mut bytes)?;
    file.set_limit(data);
    file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    Ok(bytes)
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
        let tensors = TensorViews::parse(bytes).map_err(|found| {
            format_error(path, format!("expected a safetensors file, found {found}"))
        })?;
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
    /// The numbers of a tensor of rank 1. Copies, since bytes in a file are aligned to nothing.
    pub(super) fn numbers<T: AnyBitPattern + NoUninit>(
        &self,
        key: &str,
        dtype: Dtype,
        count: u64,
    ) -> Result<Vec<T>, DataError> {
        Ok(bytemuck::pod_collect_to_vec(self.get(key, dtype, &[count])?.data()))
    }
}
