//! Reads tensors from the untrusted files of a part.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use burn_gnn_files::internal::cut;
use burn_gnn_graph::HomoId;
use bytemuck::Pod;
use safetensors::{Dtype, SafeTensors};

use crate::error::DistError;
use crate::partition::format::checksummed_file::{check_sum, read_summed};
use crate::partition::format::metadata::{FORMAT_VERSION, STAMP};
use crate::partition::part::partition::Partition;

/// The bytes of a safetensors file of a part, with a validated stamp and checksum.
pub(super) struct TensorFile {
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
}

impl TensorFile {
    pub(super) fn open(
        json: &Path,
        name: &str,
        fingerprint: &str,
        sum: &str,
    ) -> Result<Self, DistError> {
        let (path, bytes) = read_summed(json, name, sum)?;
        let header = SafeTensors::read_metadata(&bytes)
            .map_err(|e| {
                DistError::format(&path, format!("damaged: {e}; partition the graph again"))
            })?
            .1;
        let stamp =
            header.metadata().as_ref().and_then(|m| m.get(STAMP)).map_or("(none)", String::as_str);
        match stamp.split_once(':') {
            Some((version, found)) if version == FORMAT_VERSION.to_string() => {
                if found == fingerprint {
                    check_sum(&path, &bytes, sum)?;
                    return Ok(Self { path, bytes });
                }
                Err(DistError::Mixed { path, expected: fingerprint.into(), found: cut(found) })
            }
            version => {
                let found = cut(version.map_or(stamp, |v| v.0));
                Err(DistError::Version { path, found, expected: FORMAT_VERSION })
            }
        }
    }
    pub(super) fn tensors(&self) -> Result<SafeTensors<'_>, DistError> {
        SafeTensors::deserialize(&self.bytes).map_err(|e| {
            DistError::format(&self.path, format!("damaged: {e}; partition the graph again"))
        })
    }
}

/// Reads the tensors of a file as lists.
pub(super) struct TensorReader<'a> {
    pub(super) path: &'a Path,
    pub(super) tensors: &'a SafeTensors<'a>,
}

impl TensorReader<'_> {
    pub(super) fn list<T: Pod>(
        &self,
        name: &str,
        dtype: Dtype,
        len: Option<usize>,
    ) -> Result<Vec<T>, DistError> {
        let bad = |message: String| Err(DistError::format(self.path, message));
        let Ok(t) = self.tensors.tensor(name) else {
            return bad(format!("no tensor `{name}`"));
        };
        if t.dtype() != dtype || t.shape().len() != 1 || len.is_some_and(|n| t.shape()[0] != n) {
            let wanted = len.map_or_else(|| "any length".into(), |n| format!("length {n}"));
            return bad(format!(
                "`{name}`: expected a list of {dtype:?} of {wanted}, got {:?} of shape {:?}",
                t.dtype(),
                t.shape()
            ));
        }
        Ok(bytemuck::pod_collect_to_vec(t.data()))
    }
    pub(super) fn ids(&self, name: &str, len: Option<usize>) -> Result<Vec<u64>, DistError> {
        let values: Vec<i64> = self.list(name, Dtype::I64, len)?;
        self.check(name, &values, |v| v >= 0, || "must not be negative".into())?;
        Ok(values.into_iter().map(|v| v as u64).collect())
    }
    pub(super) fn local(
        &self,
        name: &str,
        len: usize,
        bound: usize,
    ) -> Result<Vec<u32>, DistError> {
        let bound = bound.min(u32::MAX as usize) as u64;
        let values = self.ids(name, Some(len))?;
        self.check(name, &values, |v| v < bound, || format!("must lie in 0..{bound}"))?;
        Ok(values.into_iter().map(|v| v as u32).collect())
    }
    /// Reads a list of flags and returns the number of leading ones. All further flags must be zero.
    pub(super) fn flags(&self, name: &str, len: usize) -> Result<usize, DistError> {
        let values: Vec<u8> = self.list(name, Dtype::U8, Some(len))?;
        let inner = values.iter().take_while(|&&v| v == 1).count();
        match values[inner..].iter().position(|&v| v != 0) {
            Some(p) => Err(DistError::format(
                self.path,
                format!(
                    "`{name}`, position {}: expected ones, then zeros, got {}",
                    inner + p,
                    values[inner + p]
                ),
            )),
            None => Ok(inner),
        }
    }
    pub(super) fn trainers(
        &self,
        len: usize,
        part: usize,
        per_part: usize,
    ) -> Result<Vec<u32>, DistError> {
        let values = self.local("trainer_id", len, usize::MAX)?;
        let expected = || format!("expected one of the {per_part} of part {part}");
        self.check("trainer_id", &values, |t| t as usize / per_part == part, expected)?;
        Ok(values)
    }
    /// Returns an error for the first entry that does not satisfy `fits`.
    fn check<T: Copy + Display>(
        &self,
        name: &str,
        values: &[T],
        fits: impl Fn(T) -> bool,
        rule: impl FnOnce() -> String,
    ) -> Result<(), DistError> {
        let Some(p) = values.iter().position(|&v| !fits(v)) else { return Ok(()) };
        let message = format!("`{name}`, position {p}: {}, got {}", rule(), values[p]);
        Err(DistError::format(self.path, message))
    }
    /// Checks the columns that global ids imply: types and owners.
    pub(super) fn check_types(&self, p: &Partition) -> Result<(), DistError> {
        let ntype: Vec<i32> = self.list("NTYPE", Dtype::I32, Some(p.nid.len()))?;
        let owner: Vec<i64> = self.list("part_id", Dtype::I64, Some(p.nid.len()))?;
        let etype: Vec<i32> = self.list("ETYPE", Dtype::I32, Some(p.eid.len()))?;
        let bad = |name: &str, i: usize, expected: usize, got: i64| {
            Err(DistError::format(
                self.path,
                format!("`{name}`, position {i}: expected {expected} by the global id, got {got}"),
            ))
        };
        for (i, &id) in p.nid.iter().enumerate() {
            let (part, typed) = p.book.nodes.locate(HomoId(id))?;
            if ntype[i] as usize != typed.ty {
                return bad("NTYPE", i, typed.ty, i64::from(ntype[i]));
            }
            if owner[i] != part as i64 {
                return bad("part_id", i, part, owner[i]);
            }
        }
        for (i, &id) in p.eid.iter().enumerate() {
            let ty = p.book.global_to_edge(HomoId(id))?.ty;
            if etype[i] as usize != ty {
                return bad("ETYPE", i, ty, i64::from(etype[i]));
            }
        }
        Ok(())
    }
}
