//! Partitions a graph in a file without loading its edges into memory.

mod assign;
mod part;
mod reader;
mod verify;

use std::hash::Hasher;
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn_gnn_files::{create_dirs, sync_dir};
use burn_gnn_structure::EdgeReader;
use twox_hash::XxHash3_64;

use assign::rows_of;
pub use assign::{Assignment, StreamCut, StreamMethod};
pub use part::StoredPart;

use crate::StoredCsc;
use crate::csc::{EDGE_IDS, INDPTR, KIND as CSC, SOURCES, TIMES, WEIGHTS};
use crate::error::{StoreError, io};
use crate::section_writer::{SectionWriter, replace};
use crate::sections::{Header, SectionFile};

/// Kind of the file of a part's nodes, and its sections.
const KIND: &str = "part";
const INNER: &str = "inner";
const HALO: &str = "halo";
const OWNERS: &str = "owners";
const STARTS: &str = "starts";
/// A fact of both files of a part: the fingerprint of the partitioning.
const FINGERPRINT: &str = "fingerprint";
/// No row in the part.
const NONE: u32 = u32::MAX;

/// Parts of a graph in a folder: of each its inner nodes with all of their in-edges, and the halo nodes where those
/// come from.
#[derive(Clone, Debug)]
pub struct StoredParts {
    dir: PathBuf,
    parts: usize,
}

fn paths(dir: &Path, part: usize) -> [PathBuf; 2] {
    ["nodes", "csc"].map(|name| dir.join(format!("part-{part:05}.{name}")))
}

/// Removes parts of another cut, which would be taken for parts of this one.
fn remove_parts(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let (entry, is_part) = (entry?, |name: &str| {
            let number = name.strip_prefix("part-").and_then(|rest| rest.split_once('.'));
            number.is_some_and(|(n, of)| n.parse::<u32>().is_ok() && ["nodes", "csc"].contains(&of))
        });
        if entry.file_name().to_str().is_some_and(is_part) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Assignment {
    /// Writes every part: `part-<number>.nodes` and `part-<number>.csc`, of which a rank needs its own. Edges keep
    /// the ids, weights and times that the file has. Parts that are in the folder are removed first.
    ///
    /// # Errors
    /// Another number of nodes than the file has; a relation between two node types; [`StoreError::Data`],
    /// [`StoreError::Damaged`].
    ///
    /// # Cost
    /// Two passes over the file, part by part; 8 bytes of memory per node and 4 per halo node of a part.
    pub fn write(&self, csc: &StoredCsc, dir: impl AsRef<Path>) -> Result<StoredParts, StoreError> {
        let dir = dir.as_ref();
        create_dirs(dir).map_err(io(dir))?;
        self.check(csc)?;
        remove_parts(dir).map_err(io(dir))?;
        let (fingerprint, mut local) = (self.fingerprint(csc), vec![NONE; self.part_of.len()]);
        for part in 0..self.parts {
            self.write_part(csc, dir, (part, fingerprint), &mut local)?;
        }
        sync_dir(dir).map_err(io(dir))?;
        Ok(StoredParts { dir: dir.into(), parts: self.parts })
    }

    /// A hash of the assignment and of the graph's sizes.
    fn fingerprint(&self, csc: &StoredCsc) -> u64 {
        let mut hash = XxHash3_64::new();
        hash.write(bytemuck::cast_slice(&[self.parts as u64, csc.num_edges()]));
        hash.write(bytemuck::cast_slice(&self.part_of));
        hash.finish()
    }

    fn write_part(
        &self,
        csc: &StoredCsc,
        dir: &Path,
        (part, fingerprint): (usize, u64),
        local: &mut [u32],
    ) -> Result<(), StoreError> {
        let inner =
            || (0..).zip(&self.part_of).filter(|&(_, &p)| p as usize == part).map(|(v, _)| v);
        let mut num_inner = 0;
        for v in inner() {
            local[v as usize] = num_inner;
            num_inner += 1;
        }
        let mut edges = 0u64;
        rows_of(csc, inner(), &mut |_, _, row| {
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
        let mut header = Header::new(KIND)
            .with("part", part)
            .with("parts", self.parts)
            .with("nodes", self.part_of.len())
            .with(FINGERPRINT, fingerprint);
        header.section(INNER, 4 * u64::from(num_inner));
        header.section(HALO, 4 * halo.len() as u64);
        header.section(OWNERS, 4 * halo.len() as u64);
        header.section(STARTS, 8 * u64::from(num_inner));
        replace(&nodes, header, |out| {
            out.put(1, bytemuck::cast_slice(&halo))?;
            halo.iter().try_for_each(|&u| out.put(2, &self.part_of[u as usize].to_le_bytes()))?;
            inner().try_for_each(|v: u32| {
                out.put(0, &v.to_le_bytes())?;
                out.put(3, &csc.row(v)?.0.to_le_bytes())
            })
        })?;
        let mut header = Header::new(CSC)
            .with("num_src", num_inner as usize + halo.len())
            .with("num_dst", num_inner);
        header = header.with("num_edges", edges).with(FINGERPRINT, fingerprint);
        header.section(INDPTR, 8 * (u64::from(num_inner) + 1));
        header.section(SOURCES, 4 * edges);
        for (name, has, each) in [
            (EDGE_IDS, csc.has_edge_ids(), 8),
            (WEIGHTS, csc.has_weights(), 4),
            (TIMES, csc.has_times(), 8),
        ] {
            if has {
                header.section(name, each * edges);
            }
        }
        replace(&path, header, |out| {
            let (mut sum, mut mapped, mut more) = (0u64, vec![], Columns::default());
            rows_of(csc, inner(), &mut |_, start, row| {
                out.put(0, &sum.to_le_bytes())?;
                sum += row.len() as u64;
                mapped.clear();
                mapped.extend(row.iter().map(|&u| local[u as usize]));
                out.put(1, bytemuck::cast_slice(&mapped))?;
                more.copy(csc, start..start + row.len() as u64, out)
            })?;
            out.put(0, &sum.to_le_bytes())
        })?;
        inner().chain(halo).for_each(|v| local[v as usize] = NONE);
        Ok(())
    }
}

/// What edges have besides sources, of one row.
#[derive(Debug, Default)]
struct Columns {
    ids: Vec<u64>,
    weights: Vec<f32>,
    times: Vec<i64>,
}

impl Columns {
    /// Appends those of a row to the sections behind the sources.
    fn copy(
        &mut self,
        csc: &StoredCsc,
        row: Range<u64>,
        out: &mut SectionWriter,
    ) -> Result<(), StoreError> {
        self.ids.clear();
        self.weights.clear();
        self.times.clear();
        let mut section = 2;
        let mut put = |has: bool, bytes: &[u8]| -> Result<(), StoreError> {
            if has {
                out.put(section, bytes)?;
                section += 1;
            }
            Ok(())
        };
        put(csc.edge_ids_of(row.clone(), &mut self.ids)?, bytemuck::cast_slice(&self.ids))?;
        put(csc.weights_of(row.clone(), &mut self.weights)?, bytemuck::cast_slice(&self.weights))?;
        put(csc.times_of(row, &mut self.times)?, bytemuck::cast_slice(&self.times))
    }
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

    /// Opens one part; [`StoredPart::open`] does without the files of part 0.
    ///
    /// # Errors
    /// As [`StoredPart::open`].
    pub fn part(&self, part: usize) -> Result<StoredPart, StoreError> {
        StoredPart::open(&self.dir, part)
    }
}
