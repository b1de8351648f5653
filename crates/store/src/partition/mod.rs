//! Cuts a graph in a file, and writes its parts, without holding its edges.

mod assign;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::{create_dirs, sync_dir};
use burn_gnn_structure::EdgeReader;

pub use assign::{Assignment, StreamCut, StreamMethod};
use assign::{each_row, rows_of};

use crate::StoredCsc;
use crate::csc::{INDPTR, KIND as CSC, SOURCES};
use crate::error::{StoreError, format, io};
use crate::section_writer::SectionWriter;
use crate::sections::{Header, SectionFile};

/// Kind of the file of a part's nodes, and its sections.
const KIND: &str = "part";
const INNER: &str = "inner";
const HALO: &str = "halo";
/// No row in the part.
const NONE: u32 = u32::MAX;

/// Parts of a graph in a folder: of each its inner nodes with all of their in-edges, and the halo nodes where those come from.
#[derive(Clone, Debug)]
pub struct StoredParts {
    dir: PathBuf,
    parts: usize,
}

/// One part. Inner nodes come first, then halo nodes, each in ascending original id; only edges into inner nodes are there, in the order
/// of the whole graph. So draws that are keyed by original ids are those of the whole graph.
#[derive(Debug)]
pub struct StoredPart {
    csc: Arc<StoredCsc>,
    inner: Vec<u32>,
    halo: Vec<u32>,
}

impl StoredPart {
    /// In-edges of inner nodes, by local ids.
    pub fn csc(&self) -> &Arc<StoredCsc> {
        &self.csc
    }
    /// Original ids of inner nodes.
    pub fn inner(&self) -> &[u32] {
        &self.inner
    }
    /// Original ids of halo nodes.
    pub fn halo(&self) -> &[u32] {
        &self.halo
    }
}

fn paths(dir: &Path, part: usize) -> [PathBuf; 2] {
    ["nodes", "csc"].map(|name| dir.join(format!("part-{part:05}.{name}")))
}

impl Assignment {
    /// Writes every part: `part-<number>.nodes` and `part-<number>.csc`.
    ///
    /// # Errors
    /// Another number of nodes than the file has; [`StoreError::Data`], [`StoreError::Damaged`].
    ///
    /// # Cost
    /// Two passes over the file, part by part; 8 bytes of memory per node.
    pub fn write(&self, csc: &StoredCsc, dir: impl AsRef<Path>) -> Result<StoredParts, StoreError> {
        let dir = dir.as_ref();
        create_dirs(dir).map_err(io(dir))?;
        if self.part_of.len() != csc.num_nodes().1 {
            let why = format!("expected the parts of {} nodes, found those of {}", csc.num_nodes().1, self.part_of.len());
            return Err(format(csc.path(), why));
        }
        let mut local = vec![NONE; self.part_of.len()];
        for part in 0..self.parts {
            self.write_part(csc, dir, part, &mut local)?;
        }
        sync_dir(dir).map_err(io(dir))?;
        Ok(StoredParts { dir: dir.into(), parts: self.parts })
    }

    fn write_part(&self, csc: &StoredCsc, dir: &Path, part: usize, local: &mut [u32]) -> Result<(), StoreError> {
        let inner = || (0..).zip(&self.part_of).filter(|&(_, &p)| p as usize == part).map(|(v, _)| v);
        let mut num_inner = 0;
        for v in inner() {
            local[v as usize] = num_inner;
            num_inner += 1;
        }
        let mut edges = 0u64;
        rows_of(csc, inner(), &mut |_, row| {
            edges += row.len() as u64;
            // Any number: halo nodes are numbered when all of them are known.
            row.iter().for_each(|&u| local[u as usize] = local[u as usize].min(NONE - 1));
            Ok(())
        })?;
        let mut halo: Vec<u32> = vec![];
        for (u, row) in (0..).zip(&mut *local) {
            if *row == NONE - 1 {
                *row = num_inner + halo.len() as u32;
                halo.push(u);
            }
        }
        let [nodes, path] = paths(dir, part);
        let mut header = Header::new(KIND).with("part", part).with("parts", self.parts).with("nodes", self.part_of.len());
        header.section(INNER, 4 * u64::from(num_inner));
        header.section(HALO, 4 * halo.len() as u64);
        replace(&nodes, header, |out| {
            inner().try_for_each(|v: u32| out.put(0, &v.to_le_bytes()))?;
            out.put(1, bytemuck::cast_slice(&halo))
        })?;
        let mut header = Header::new(CSC).with("num_src", num_inner as usize + halo.len()).with("num_dst", num_inner);
        header = header.with("num_edges", edges);
        header.section(INDPTR, 8 * (u64::from(num_inner) + 1));
        header.section(SOURCES, 4 * edges);
        replace(&path, header, |out| {
            let (mut sum, mut mapped) = (0u64, vec![]);
            rows_of(csc, inner(), &mut |_, row| {
                out.put(0, &sum.to_le_bytes())?;
                sum += row.len() as u64;
                mapped.clear();
                mapped.extend(row.iter().map(|&u| local[u as usize]));
                out.put(1, bytemuck::cast_slice(&mapped))
            })?;
            out.put(0, &sum.to_le_bytes())
        })?;
        inner().chain(halo).for_each(|v| local[v as usize] = NONE);
        Ok(())
    }
}

/// Writes a file of sections under another name, then gives it its own.
fn replace(path: &Path, header: Header, put: impl FnOnce(&mut SectionWriter) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let temporary = path.with_extension("writing");
    let mut out = SectionWriter::create(&temporary, header)?;
    put(&mut out)?;
    out.finish(&[])?;
    std::fs::rename(&temporary, path).map_err(io(path))
}

impl StoredParts {
    /// Parts that were written to `dir`.
    ///
    /// # Errors
    /// There is none; as [`part`](Self::part).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        let [path, _] = paths(dir, 0);
        let parts = SectionFile::open(&path, KIND)?.header.number(&path, "parts")?;
        Ok(Self { dir: dir.into(), parts: parts as usize })
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let len = |path: PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
        (0..self.parts).flat_map(|p| paths(&self.dir, p)).map(len).sum()
    }

    /// Opens one part: what a rank needs, and nothing of the others. Node lists are read, 4 bytes per node of the part.
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Damaged`]; files that do not go together.
    pub fn part(&self, part: usize) -> Result<StoredPart, StoreError> {
        let [path, csc] = paths(&self.dir, part);
        let (file, csc) = (SectionFile::open(&path, KIND)?, StoredCsc::open(csc)?);
        let list = |name: &str| -> Result<Vec<u32>, StoreError> {
            let section = file.section(name).ok_or_else(|| format(&path, format!("expected a section `{name}`, found none")))?;
            section.check_range(0..section.bytes().len())?;
            Ok(section.numbers::<u32>().to_vec())
        };
        let (inner, halo, of) = (list(INNER)?, list(HALO)?, csc.num_nodes());
        if of != (inner.len() + halo.len(), inner.len()) {
            let why = format!("expected edges from {} to {} nodes, found {of:?}", inner.len() + halo.len(), inner.len());
            return Err(format(csc.path(), why));
        }
        Ok(StoredPart { csc, inner, halo })
    }

    /// Compares the parts with the graph that they were cut from: every node is inner in one part, with all of its in-edges in their order;
    /// halo nodes are where these come from, and no others. Compares all checksums as well.
    ///
    /// # Errors
    /// [`StoreError::Data`] that says what is wrong where; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// A pass over the graph and over the parts; memory for one part's nodes and a bit per node.
    pub fn verify(&self, whole: &StoredCsc) -> Result<(), StoreError> {
        let n = whole.num_nodes().1;
        let (mut seen, mut edges) = (vec![0u64; n.div_ceil(64)], 0u64);
        for p in 0..self.parts {
            let part = self.part(p)?;
            let wrong = |why: String| format(part.csc.path(), why);
            part.csc.verify()?;
            let (inner, halo) = (&part.inner, &part.halo);
            if !inner.is_sorted_by(|a, b| a < b) || !halo.is_sorted_by(|a, b| a < b) {
                return Err(wrong("expected nodes in ascending original id, found another order".into()));
            }
            for &v in inner {
                let Some(word) = seen.get_mut(v as usize / 64).filter(|_| (v as usize) < n) else {
                    return Err(wrong(format!("expected nodes in 0..{n}, found {v}")));
                };
                if *word >> (v % 64) & 1 == 1 {
                    return Err(wrong(format!("node {v}: expected in one part, found in two")));
                }
                *word |= 1 << (v % 64);
            }
            if let Some(v) = halo.iter().find(|v| inner.binary_search(v).is_ok()) {
                return Err(wrong(format!("node {v}: expected inner or halo, found both")));
            }
            let mut used = vec![false; halo.len()];
            let original = |u: u32| inner.get(u as usize).or_else(|| halo.get(u as usize - inner.len())).copied();
            let mut row_of = vec![];
            each_row(&part.csc, |local, row| {
                let v = inner[local as usize];
                let (start, len) = whole.row(v)?;
                row_of.clear();
                whole.sources_of(start..start + u64::from(len), &mut row_of)?;
                if !row.iter().map(|&u| original(u)).eq(row_of.iter().map(|&u| Some(u))) {
                    return Err(wrong(format!("node {v}: expected the in-edges of the graph, found others")));
                }
                row.iter().filter(|&&u| u as usize >= inner.len()).for_each(|&u| used[u as usize - inner.len()] = true);
                edges += row.len() as u64;
                Ok(())
            })?;
            if let Some(at) = used.iter().position(|u| !u) {
                return Err(wrong(format!("halo node {}: expected an edge from it, found none", halo[at])));
            }
        }
        if edges != whole.num_edges() || seen.iter().map(|w| w.count_ones() as usize).sum::<usize>() != n {
            return Err(format(&self.dir, format!("expected {n} nodes and {} edges in the parts, found fewer", whole.num_edges())));
        }
        Ok(())
    }
}
