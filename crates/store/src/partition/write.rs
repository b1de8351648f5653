//! Writes the files of parts.

use std::ops::Range;
use std::path::Path;

use burn_gnn_files::{create_dirs, sync_dir};
use burn_gnn_structure::EdgeReader;

use super::assignment::Assignment;
use super::files::{
    FINGERPRINT, HALO, INNER, KIND, NONE, NodeCounts, OWNERS, STARTS, TYPES, Types, edges_path,
    nodes_path, part_file,
};
use super::relation_files::{GraphFiles, RelationFiles};
use super::row_stream::rows_of;
use super::stored_parts::StoredParts;
use crate::csc::{EDGE_IDS, INDPTR, KIND as CSC, SOURCES, StoredCsc, TIMES, WEIGHTS};
use crate::error::{StoreError, format, io};
use crate::section_writer::{SectionWriter, replace};
use crate::sections::Header;

/// Removes the parts of an earlier partitioning, which could be mistaken for new ones.
fn remove_parts(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| part_file(name).is_some()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Assignment {
    /// Writes all parts: for part 7, the nodes as `part-00007.nodes` and the edges of type number 0 as
    /// `part-00007.0.csc`. A rank only needs the files of its part. Edges keep the ids, weights and times of the
    /// graph's files. Existing parts in the folder are removed first.
    ///
    /// # Errors
    /// Node types or numbers of nodes that differ from the files; [`StoreError::Data`], [`StoreError::Damaged`].
    ///
    /// # Cost
    /// Two passes over the files in total, and several passes over the assignment for each part. Memory: 8 bytes per
    /// node, and 4 per halo node of a part.
    pub fn write(
        &self,
        graph: &(impl GraphFiles + ?Sized),
        dir: impl AsRef<Path>,
    ) -> Result<StoredParts, StoreError> {
        let (dir, of) = (dir.as_ref(), graph.relations()?);
        create_dirs(dir).map_err(io(dir))?;
        self.check(&of)?;
        remove_parts(dir).map_err(io(dir))?;
        let mut writer = PartWriter {
            cut: self,
            of: &of,
            dir,
            fingerprint: self.fingerprint(&of),
            local: of.counts.iter().map(|&n| vec![NONE; n]).collect(),
        };
        (0..self.parts).try_for_each(|part| writer.write(part))?;
        sync_dir(dir).map_err(io(dir))?;
        Ok(StoredParts { dir: dir.into(), parts: self.parts, relations: of.files.len() })
    }

    /// The nodes of a type that a part owns.
    fn inner(&self, part: usize, t: usize) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.part_of[t]).filter(move |&(_, &p)| p as usize == part).map(|(v, _)| v)
    }
}

struct PartWriter<'a> {
    cut: &'a Assignment,
    of: &'a RelationFiles<'a>,
    dir: &'a Path,
    fingerprint: u64,
    /// Local id of every node in the part that is being written, or `NONE`.
    local: Vec<Vec<u32>>,
}

impl PartWriter<'_> {
    fn write(&mut self, part: usize) -> Result<(), StoreError> {
        let (cut, of) = (self.cut, self.of);
        let mut inner = vec![];
        for (t, local) in self.local.iter_mut().enumerate() {
            let mut next = 0u32;
            for v in cut.inner(part, t) {
                local[v as usize] = next;
                next += 1;
            }
            inner.push(next);
        }
        let mut edges = vec![];
        for (e, csc) in of.files.iter().enumerate() {
            let ((s, d), mut sum) = (of.schema.endpoints(e), 0u64);
            let local = &mut self.local[s];
            rows_of(csc, cut.inner(part, d), &mut |_, _, row| {
                sum += row.len() as u64;
                // Marks the node; halo nodes are numbered after all of them are known.
                row.iter().for_each(|&u| local[u as usize] = local[u as usize].min(NONE - 1));
                Ok(())
            })?;
            edges.push(sum);
        }
        let mut halo: Vec<Vec<u32>> = vec![];
        for (local, &num_inner) in self.local.iter_mut().zip(&inner) {
            let mut ids: Vec<u32> = vec![];
            for (u, row) in (0..).zip(local) {
                if *row == NONE - 1 {
                    *row = num_inner + ids.len() as u32;
                    ids.push(u);
                }
            }
            halo.push(ids);
        }
        self.write_nodes(part, &inner, &halo)?;
        for (e, &edges) in edges.iter().enumerate() {
            let (s, d) = of.schema.endpoints(e);
            let nodes = [u64::from(inner[s]) + halo[s].len() as u64, u64::from(inner[d])];
            self.write_edges(part, e, nodes, edges)?;
        }
        for ((t, local), halo) in self.local.iter_mut().enumerate().zip(halo) {
            cut.inner(part, t).chain(halo).for_each(|v| local[v as usize] = NONE);
        }
        Ok(())
    }

    fn write_nodes(&self, part: usize, inner: &[u32], halo: &[Vec<u32>]) -> Result<(), StoreError> {
        let (path, schema) = (nodes_path(self.dir, part), &self.of.schema);
        let counts = |(t, name): (usize, &String)| NodeCounts {
            name: name.clone(),
            total: self.of.counts[t] as u64,
            inner: u64::from(inner[t]),
            halo: halo[t].len() as u64,
        };
        let types = Types {
            nodes: schema.ntypes().iter().enumerate().map(counts).collect(),
            edges: schema.etypes().to_vec(),
        };
        let types = serde_json::to_vec(&types).map_err(|e| format(&path, e.to_string()))?;
        let mut header = Header::new(KIND)
            .with("part", part)
            .with("parts", self.cut.parts)
            .with(FINGERPRINT, self.fingerprint);
        let borrowed: u64 = halo.iter().map(|ids| ids.len() as u64).sum();
        header.section(TYPES, types.len() as u64);
        header.section(INNER, 4 * inner.iter().map(|&n| u64::from(n)).sum::<u64>());
        header.section(HALO, 4 * borrowed);
        header.section(OWNERS, 4 * borrowed);
        replace(&path, header, |out| {
            out.put(0, &types)?;
            for (t, ids) in halo.iter().enumerate() {
                self.cut.inner(part, t).try_for_each(|v| out.put(1, &v.to_le_bytes()))?;
                out.put(2, bytemuck::cast_slice(ids))?;
                let owner = |&u: &u32| self.cut.part_of[t][u as usize];
                ids.iter().try_for_each(|u| out.put(3, &owner(u).to_le_bytes()))?;
            }
            Ok(())
        })
    }

    fn write_edges(
        &self,
        part: usize,
        e: usize,
        [sources, inner]: [u64; 2],
        edges: u64,
    ) -> Result<(), StoreError> {
        let (csc, (s, d)) = (self.of.files[e], self.of.schema.endpoints(e));
        let mut header = Header::new(CSC)
            .with("num_src", sources)
            .with("num_dst", inner)
            .with("num_edges", edges)
            .with(FINGERPRINT, self.fingerprint);
        header.section(INDPTR, 8 * (inner + 1));
        header.section(SOURCES, 4 * edges);
        header.section(STARTS, 8 * inner);
        for (name, has, each) in [
            (EDGE_IDS, csc.has_edge_ids(), 8),
            (WEIGHTS, csc.has_weights(), 4),
            (TIMES, csc.has_times(), 8),
        ] {
            if has {
                header.section(name, each * edges);
            }
        }
        replace(&edges_path(self.dir, part, e), header, |out| {
            let (mut sum, mut mapped, mut more) = (0u64, vec![], Columns::default());
            rows_of(csc, self.cut.inner(part, d), &mut |_, start, row| {
                out.put(0, &sum.to_le_bytes())?;
                sum += row.len() as u64;
                mapped.clear();
                mapped.extend(row.iter().map(|&u| self.local[s][u as usize]));
                out.put(1, bytemuck::cast_slice(&mapped))?;
                out.put(2, &start.to_le_bytes())?;
                more.copy(csc, start..start + row.len() as u64, out)
            })?;
            out.put(0, &sum.to_le_bytes())
        })
    }
}

/// Buffers for the ids, weights and times of a row.
#[derive(Debug, Default)]
struct Columns {
    ids: Vec<u64>,
    weights: Vec<f32>,
    times: Vec<i64>,
}

impl Columns {
    /// Appends the ids, weights and times of a row to the sections after `STARTS`.
    fn copy(
        &mut self,
        csc: &StoredCsc,
        row: Range<u64>,
        out: &mut SectionWriter,
    ) -> Result<(), StoreError> {
        self.ids.clear();
        self.weights.clear();
        self.times.clear();
        let mut section = 3;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{CscBuild, EdgeIter};

    /// `verify` detects parts of two assignments even if their fingerprints are equal.
    #[test]
    fn verify_does_not_rely_on_fingerprints() {
        let dir = tempfile::tempdir().unwrap();
        let (file, parts) = (dir.path().join("csc"), dir.path().join("parts"));
        CscBuild::new(&file, 6, 6).run(EdgeIter::new([(0, 1), (2, 3), (4, 5), (1, 0)])).unwrap();
        let csc = StoredCsc::open(&file).unwrap();
        create_dirs(&parts).unwrap();
        let of = csc.relations().unwrap();
        let write = |part: usize, part_of: [u32; 6]| {
            let cut = Assignment::new(part_of.to_vec(), 2).unwrap();
            let local = vec![vec![NONE; 6]];
            PartWriter { cut: &cut, of: &of, dir: &parts, fingerprint: 7, local }
                .write(part)
                .unwrap();
        };
        let verify = || StoredParts::open(&parts).unwrap().verify(&csc);
        let of_first = [0, 1, 0, 1, 0, 1];
        write(0, of_first);
        for (second, found) in [
            ([0, 1, 0, 1, 0, 0], Some("`_N`, node 5: expected in one part, found in none")),
            ([0, 1, 0, 1, 1, 1], Some("`_N`, node 4: expected in one part, found in 0 and 1")),
            (of_first, None),
        ] {
            write(1, second);
            match (verify(), found) {
                (Ok(()), None) => {}
                (Err(e), Some(text)) => assert!(e.to_string().contains(text), "{e}"),
                other => panic!("{second:?}: {other:?}"),
            }
        }
    }

    /// The header of a part can declare any number of parts, so `bytes` lists the folder.
    #[test]
    fn bytes_counts_the_files_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (file, parts) = (dir.path().join("csc"), dir.path().join("parts"));
        CscBuild::new(&file, 2, 2).run(EdgeIter::new([(0, 1)])).unwrap();
        let csc = StoredCsc::open(&file).unwrap();
        create_dirs(&parts).unwrap();
        let (of, cut) = (csc.relations().unwrap(), Assignment::new(vec![0; 2], 1 << 31).unwrap());
        let local = vec![vec![NONE; 2]];
        PartWriter { cut: &cut, of: &of, dir: &parts, fingerprint: 7, local }.write(0).unwrap();
        std::fs::write(parts.join("notes.txt"), [0; 9]).unwrap();
        let stored = StoredParts::open(&parts).unwrap();
        let len = |name: &str| std::fs::metadata(parts.join(name)).unwrap().len();
        assert_eq!(stored.parts(), 1 << 31);
        assert_eq!(stored.bytes(), len("part-00000.nodes") + len("part-00000.0.csc"));
    }
}
