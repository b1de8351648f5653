//! Reads or maps the arrays of a topology file.

use super::*;

/// Numbers in a mapped file.
struct MappedU32Array {
    map: Arc<MappedFile>,
    /// In bytes.
    start: usize,
    end: usize,
}

impl MappedU32Array {
    /// `None` where the file ends before, which may have become shorter since its length was checked, or where the
    /// numbers are not at a multiple of four bytes.
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

/// A file that is being opened.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) file: File,
    /// Where the data begin.
    pub(super) data: u64,
    /// The whole file, where it is to be mapped.
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
        // Nodes may stay in the file; what unsafe code relies on is memory, which nobody else can change once it was
        // checked.
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

    /// Where a tensor of ids or offsets lies in the file, and how many bytes it has.
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

    /// The numbers of a tensor, read, or left where they are in a mapped file.
    fn nodes(&self, key: &str) -> Result<U32Array, DataError> {
        let Some(map) = &self.map else { return self.numbers(key).map(U32Array::from) };
        let (place, bytes) = self.tensor(key)?;
        let words = usize::try_from(place)
            .ok()
            .and_then(|start| MappedU32Array::new(map.clone(), start, bytes));
        words.map(|words| U32Array::shared(Arc::new(words))).ok_or_else(|| {
            format_error(
                self.path,
                format!("`{key}`: expected a place at a multiple of four bytes, found another"),
            )
        })
    }

    /// The numbers of a tensor, read.
    fn numbers(&self, key: &str) -> Result<Vec<u32>, DataError> {
        let (place, bytes) = self.tensor(key)?;
        self.read(place, bytes).map_err(|e| io_error(self.path, e))
    }

    fn read(&self, place: u64, bytes: usize) -> std::io::Result<Vec<u32>> {
        let (mut file, mut words) = (&self.file, vec![]);
        // A file may claim a length (of holes) that no memory holds.
        words.try_reserve_exact(bytes / 4).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        words.resize(bytes / 4, 0);
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }
}
