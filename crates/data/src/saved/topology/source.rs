//! Reads or memory-maps the arrays of a topology file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::internal::{LayoutArrays, U32Array};
use burn_gnn_graph::{EdgeType, GraphError, Relation};
use safetensors::Dtype;

use crate::files::{MappedFile, TensorIndex, TensorInfo, format_error, io_error};

/// Error for a file in another format, or a damaged file.
pub(super) fn other_file(path: &Path, found: &str) -> DataError {
    format_error(path, format!("expected a file that `Topology::write` wrote, found {found}"))
}

/// Array of u32 in a mapped file.
struct MappedU32Array {
    map: Arc<MappedFile>,
    /// Offset in bytes.
    start: usize,
    /// End offset in bytes.
    end: usize,
}

impl MappedU32Array {
    /// `None` if the range is outside the file, which may have been truncated after its length was checked, or if it is
    /// not aligned to four bytes.
    fn new(map: Arc<MappedFile>, start: usize, bytes: usize) -> Option<Self> {
        let end = start.checked_add(bytes)?;
        let fits = map
            .get(start..end)
            .is_some_and(|part| bytemuck::try_cast_slice::<u8, u32>(part).is_ok());
        fits.then_some(Self { map, start, end })
    }
}

impl AsRef<[u32]> for MappedU32Array {
    fn as_ref(&self) -> &[u32] {
        bytemuck::cast_slice(&self.map[self.start..self.end])
    }
}

/// An open topology file.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) file: File,
    /// Offset of the data.
    pub(super) data: u64,
    /// The mapped file, if it is opened with [`Placement::Mapped`](burn_gnn_sampling::Placement::Mapped).
    pub(super) map: Option<Arc<MappedFile>>,
    pub(super) header: TensorIndex,
}

impl Source<'_> {
    pub(super) fn relation(
        &self,
        t: &EdgeType,
        num_src: usize,
        num_dst: usize,
        used: &mut usize,
    ) -> Result<Relation, DataError> {
        let mut key = |name: &str| {
            *used += 1;
            format!("{t}/{name}")
        };
        // Node ids may stay in the mapped file. Offsets and edge ids, on which unsafe code relies, are copied to memory,
        // because another process could modify a mapped file after the check.
        let (src, dst) = (self.nodes(&key("src"))?, self.nodes(&key("dst"))?);
        if src.len() != dst.len() {
            return Err(format_error(
                self.path,
                format!(
                    "`{t}`: expected as many sources as destinations, found {} and {}",
                    src.len(),
                    dst.len()
                ),
            ));
        }
        let mut layout = |name: &str| -> Result<LayoutArrays, DataError> {
            let indices = self.nodes(&key(&format!("{name}/indices")))?;
            let indptr = self.numbers(&key(&format!("{name}/indptr")))?;
            let ids = format!("{name}/edge_ids");
            let has_ids = self.header.tensor(&format!("{t}/{ids}")).is_some();
            let edge_ids = if has_ids { Some(self.numbers(&key(&ids))?) } else { None };
            Ok(LayoutArrays { indptr, indices, edge_ids })
        };
        let (csc, csr) = (layout("csc")?, layout("csr")?);
        Relation::from_layouts(num_src, num_dst, src, dst, csc, csr).map_err(|e| match e {
            GraphError::Layout { layout, found, .. } => {
                format_error(self.path, format!("`{t}/{layout}`: expected the layout of the edges, found {found}; save the graph again"))
            }
            e => e.in_relation(&t.to_string()).into(),
        })
    }

    /// Offset and length of a tensor in bytes.
    fn tensor(&self, key: &str) -> Result<(u64, usize), DataError> {
        let TensorInfo { dtype, shape, data } = self.header.tensor(key).ok_or_else(|| {
            format_error(self.path, format!("expected a tensor `{key}`, found none"))
        })?;
        if dtype != Dtype::U32 || shape.len() != 1 {
            return Err(format_error(
                self.path,
                format!("`{key}`: expected u32 of rank 1, found {dtype:?} {shape:?}"),
            ));
        }
        Ok((self.data + data.start, (data.end - data.start) as usize))
    }

    /// Node ids of a tensor, in memory or in the mapped file.
    fn nodes(&self, key: &str) -> Result<U32Array, DataError> {
        let Some(map) = &self.map else { return self.numbers(key).map(U32Array::from) };
        let (offset, bytes) = self.tensor(key)?;
        let words = usize::try_from(offset)
            .ok()
            .and_then(|start| MappedU32Array::new(map.clone(), start, bytes));
        words.map(|words| U32Array::shared(Arc::new(words))).ok_or_else(|| {
            format_error(
                self.path,
                format!("`{key}`: expected an offset at a multiple of four bytes, found another"),
            )
        })
    }

    /// Reads a tensor to memory.
    fn numbers(&self, key: &str) -> Result<Vec<u32>, DataError> {
        let (offset, bytes) = self.tensor(key)?;
        self.read(offset, bytes).map_err(|e| io_error(self.path, e))
    }

    fn read(&self, offset: u64, bytes: usize) -> std::io::Result<Vec<u32>> {
        let (mut file, mut words) = (&self.file, vec![]);
        // A sparse file may be much longer than the memory.
        words.try_reserve_exact(bytes / 4).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        words.resize(bytes / 4, 0);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }
}
