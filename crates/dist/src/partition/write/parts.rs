//! Writes the parts of a graph and the metadata file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use burn_gnn_data::{create_dirs, lock_dir, sync_dir, write_atomic};
use burn_gnn_files::internal::Progress;
use burn_gnn_graph::HomoId;
use rayon::prelude::*;
use safetensors::Dtype;

use super::attributes::entries as attribute_entries;
use super::replace::{is_ours, metadata, other_metadata, settle};
use super::tensors::{Entry, write_tensors};
use crate::error::DistError;
use crate::partition::extract::feature_columns::FeatureColumns;
use crate::partition::extract::partitioned_graph::PartitionedGraph;
use crate::partition::format::metadata::{FORMAT_VERSION, Metadata, OwnerMap, PartFiles};
use crate::partition::format::owner_map;
use crate::partition::part::partition::Partition;
use crate::partition_book::{ByPart, Numbering};

/// Bytes of feature rows in memory, per column being written.
const ROWS_BYTES: usize = 4 << 20;

/// A list of numbers that are stored as i64.
fn as_i64<'a, T: Copy + 'a>(
    name: &str,
    values: impl AsRef<[T]> + 'a,
    to_i64: impl Fn(T) -> i64 + 'a,
) -> Entry<'a> {
    Entry::list(name, Dtype::I64, values.as_ref().len(), move |r, out: &mut Vec<i64>| {
        out.extend(values.as_ref()[r].iter().map(|&v| to_i64(v)))
    })
}
fn flags(name: &str, n: usize, inner: usize) -> Entry<'static> {
    Entry::list(name, Dtype::U8, n, move |r, out: &mut Vec<u8>| {
        out.extend(r.map(|i| u8::from(i < inner)))
    })
}

impl Partition {
    fn entries(&self) -> Result<Vec<Entry<'_>>, DistError> {
        let (nodes, edges) = (&self.book.nodes, &self.book.edges);
        // Inner ids are ordered by type. The types of all other ids are looked up.
        let inner = |of: &Numbering| {
            let mut out = vec![];
            for t in 0..of.num_types() {
                out.resize(out.len() + of.inner(self.part, t)? as usize, t as i32);
            }
            Ok::<_, DistError>(out)
        };
        let (mut ntypes, mut etypes) = (inner(nodes)?, inner(edges)?);
        let mut owners = vec![self.part as u32; ntypes.len()];
        for &i in &self.nid[self.num_inner_nodes..] {
            let (owner, id) = nodes.locate(HomoId(i))?;
            owners.push(owner as u32);
            ntypes.push(id.ty as i32);
        }
        for &i in &self.eid[self.num_inner_edges..] {
            etypes.push(edges.locate(HomoId(i))?.1.ty as i32);
        }
        // Ids are below 2^63, since they count items in memory.
        let id = |id: u64| id as i64;
        let mut entries = vec![
            as_i64("src", &self.src, i64::from),
            as_i64("dst", &self.dst, i64::from),
            as_i64("NID", &self.nid, id),
            as_i64("EID", &self.eid, id),
            flags("inner_node", self.nid.len(), self.num_inner_nodes),
            flags("inner_edge", self.eid.len(), self.num_inner_edges),
            Entry::numbers("NTYPE", Dtype::I32, ntypes),
            Entry::numbers("ETYPE", Dtype::I32, etypes),
            as_i64("part_id", owners, i64::from),
            as_i64("orig_nid", &self.orig_nid, id),
            as_i64("orig_eid", &self.orig_eid, id),
        ];
        entries.extend(self.trainer_id.as_ref().map(|of| as_i64("trainer_id", of, i64::from)));
        Ok(entries)
    }
}

impl PartitionedGraph {
    /// Writes every part and the metadata into `dir`, which is created if needed, and returns the path of the metadata.
    ///
    /// ```text
    /// <name>.json                     keys of DGL's partition configuration, and format_version, seed, edge_cut,
    ///                                 num_trainers_per_machine, fingerprint, checksums (XXH3, 64 bits)
    /// part<i>/graph.safetensors       src dst (i64, local); NID EID (i64, global); inner_node inner_edge
    ///                                 (u8); NTYPE ETYPE (i32); part_id (i64, owner of each node);
    ///                                 orig_nid orig_eid (i64, type-wise ids of the input graph: DGL's orig_id of
    ///                                 nodes and of edges); trainer_id (i64, of inner nodes) if parts have several
    /// part<i>/node_feats.safetensors  `ntype/column`, rows of inner nodes in id order
    /// part<i>/edge_feats.safetensors  `src:rel:dst/column`, rows of inner edges in id order
    /// part<i>/extras.safetensors      lists, texts and ids of all local nodes and edges, if the graph has any:
    ///                                 `list/…/name/indptr` and `/values`, `text/…/name/bytes` and `/ends`, `ids/…`,
    ///                                 `global_ids/…`, where … is `node/ntype` or `edge/src:rel:dst`
    /// node_map.npy edge_map.npy       without reshuffle: owner of each global id (int32)
    /// ```
    ///
    /// Parts are written in parallel, one per thread, and features in chunks. Memory holds the edges of one part per
    /// thread and some MiB of rows. Equal partitionings are equal files, byte for byte.
    ///
    /// An existing partitioning in the folder is replaced atomically by renaming the metadata file. If the process is
    /// killed at any time, the disk is full, or the power fails, the folder contains either the complete old
    /// partitioning or the complete new one:
    ///
    /// 1. New files are written next to the old ones under pending names (`graph-<checksum>.safetensors`) and forced to
    ///    disk. The disk must have room for both.
    /// 2. The metadata file is replaced by a rename. From now on the folder contains the new partitioning; readers fall
    ///    back to pending names.
    /// 3. Pending files get their final names, and files that only the old metadata names are removed.
    ///
    /// # Errors
    /// A file cannot be written; another call writes to the folder; the folder contains a partitioning of another name,
    /// readable or not; errors of [`part`](Self::part). After an error the folder is unchanged, unless only the renames
    /// of the last step failed: then it contains the new partitioning.
    pub fn write(&self, dir: impl AsRef<Path>) -> Result<PathBuf, DistError> {
        let dir = dir.as_ref();
        create_dirs(dir).map_err(DistError::io(dir))?;
        let json = dir.join(format!("{}.json", self.config.graph_name));
        let Some(_lock) = lock_dir(dir).map_err(DistError::io(dir))? else {
            let found = "another write in progress".to_owned();
            return Err(DistError::Config {
                arg: "dir",
                expected: format!("no other write to {}", dir.display()),
                found,
            });
        };
        if let Some((path, other)) = other_metadata(dir, &json) {
            let expected = "a folder without another partitioning, since files of parts have the same names in both".to_owned();
            let found = format!(
                "{} ({other}) next to `graph_name` {:?}; write to another folder, use that name to replace it, or remove that file and the \
                 folders of its parts",
                path.display(),
                self.config.graph_name
            );
            return Err(DistError::Config { arg: "dir", expected, found });
        }
        // Pending files of a killed write get their final names, or are removed.
        let old = metadata(&json);
        settle(dir, &json, old.as_ref(), self.config.num_parts)?;
        let new = match self.write_pending(dir, &json) {
            Ok(new) => new,
            Err(e) => {
                // The metadata may have been renamed before the error.
                let _ = settle(dir, &json, metadata(&json).as_ref(), self.config.num_parts);
                return Err(e);
            }
        };
        settle(dir, &json, Some(&new), self.config.num_parts)?;
        let named: BTreeSet<PathBuf> = new.files(&json).into_iter().map(|f| f.0).collect();
        for (path, _) in old.iter().flat_map(|m| m.files(&json)).filter(|f| !named.contains(&f.0)) {
            // Untrusted metadata may name any file.
            if path.file_name().and_then(|n| n.to_str()).is_some_and(is_ours) {
                let _ = fs::remove_file(&path);
            }
            // Removes the folder if it is empty.
            let _ = path.parent().filter(|p| *p != dir).map(fs::remove_dir);
        }
        Ok(json)
    }

    /// Writes all files under pending names, then the metadata, which makes the new partitioning the current one.
    fn write_pending(&self, dir: &Path, json: &Path) -> Result<Metadata, DistError> {
        let fingerprint = format!("{:016x}", self.fingerprint);
        let stamp = format!("{FORMAT_VERSION}:{fingerprint}");
        let show = self.config.shows_progress(self.graph.total_nodes() + self.graph.total_edges());
        let progress =
            Progress::steps(show, "writing parts", "parts", self.config.num_parts as u64);
        let written: Vec<PartFiles> = (0..self.config.num_parts)
            .into_par_iter()
            .with_max_len(1)
            .map(|p| self.write_part(dir, p, &stamp).inspect(|_| progress.inc(1)))
            .collect::<Result<_, _>>()?;
        let mut parts = BTreeMap::new();
        for (p, files) in written.iter().enumerate() {
            let value =
                serde_json::to_value(files).map_err(|e| DistError::format(json, e.to_string()))?;
            parts.insert(format!("part-{p}"), value);
        }
        let schema = self.book.schema();
        let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
        let (mut type_counts, mut checksums) = (BTreeMap::new(), BTreeMap::new());
        let mut map = |key: &str, names: &[String], of: &Numbering| {
            if self.config.reshuffle {
                return Ok(OwnerMap::Ranges(
                    names
                        .iter()
                        .enumerate()
                        .map(|(t, n)| (n.clone(), of.global_ranges(t)))
                        .collect(),
                ));
            }
            for (t, name) in names.iter().enumerate() {
                type_counts.insert(name.clone(), of.count(t)?);
            }
            let file = format!("{key}.npy");
            checksums.insert(key.to_owned(), owner_map::write(&dir.join(&file), &of.owners())?);
            Ok::<_, DistError>(OwnerMap::File(file))
        };
        let node_map = map("node_map", schema.ntypes(), &self.book.nodes)?;
        let edge_map = map("edge_map", &enames, &self.book.edges)?;
        let numbers = |names: &[String]| names.iter().cloned().zip(0..).collect();
        let mut metadata = Metadata {
            graph_name: self.config.graph_name.clone(),
            num_nodes: self.book.nodes.total(),
            num_edges: self.book.edges.total(),
            part_method: self.config.method.name().into(),
            num_parts: self.config.num_parts,
            halo_hops: self.config.num_hops,
            node_map,
            edge_map,
            ntypes: numbers(schema.ntypes()),
            etypes: numbers(&enames),
            format_version: FORMAT_VERSION,
            seed: self.config.seed,
            edge_cut: self.edge_cut(),
            num_trainers_per_machine: self.config.num_trainers_per_machine,
            type_counts,
            checksums,
            fingerprint,
            checksum: String::new(),
            parts,
        };
        metadata.checksum = metadata.sum();
        let text = serde_json::to_string_pretty(&metadata)
            .map_err(|e| DistError::format(json, e.to_string()))?;
        // Makes the new folders of parts durable before the metadata refers to them.
        sync_dir(dir).map_err(DistError::io(dir))?;
        write_atomic(json, |w| w.write_all(text.as_bytes()))?;
        Ok(metadata)
    }

    fn write_part(&self, dir: &Path, p: usize, stamp: &str) -> Result<PartFiles, DistError> {
        let folder = dir.join(format!("part{p}"));
        create_dirs(&folder).map_err(DistError::io(&folder))?;
        let schema = self.book.schema();
        let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
        let mut checksums = BTreeMap::new();
        let mut write = |key: &str, name: &str, entries: Vec<Entry<'_>>| {
            let file = format!("part{p}/{name}.safetensors");
            checksums.insert(key.to_owned(), write_tensors(&dir.join(&file), stamp, entries)?);
            Ok::<_, DistError>(file)
        };
        let structure = self.structure(p)?;
        let part_graph = write("part_graph", "graph", structure.entries()?)?;
        let attributes = self.attributes(&structure)?;
        drop(structure);
        let entries = attribute_entries(&attributes, [schema.ntypes(), &enames]);
        let extras =
            if entries.is_empty() { None } else { Some(write("extras", "extras", entries)?) };
        let node_feats =
            self.features(p, &self.node_rows, schema.ntypes(), &self.nodes, &self.book.nodes)?;
        let node_feats = write("node_feats", "node_feats", node_feats)?;
        let edge_feats =
            self.features(p, &self.edge_rows, &enames, &self.edges, &self.book.edges)?;
        let edge_feats = write("edge_feats", "edge_feats", edge_feats)?;
        Ok(PartFiles { node_feats, edge_feats, part_graph, extras, checksums })
    }

    fn features<'a>(
        &self,
        part: usize,
        rows: &'a [FeatureColumns],
        names: &[String],
        by_part: &'a [ByPart],
        of: &Numbering,
    ) -> Result<Vec<Entry<'a>>, DistError> {
        let mut entries = vec![];
        for (t, rows) in rows.iter().enumerate() {
            let ids = self.inner_ids(part, t, by_part, of)?;
            for (name, source) in rows {
                let (dtype, row) = source.row();
                let bytes = row.iter().product::<usize>() * dtype.bitsize() / 8;
                let rows_at_a_time = (ROWS_BYTES / bytes.max(1)).max(1);
                let content = move |w: &mut dyn Write| {
                    ids.chunks(rows_at_a_time)
                        .try_for_each(|ids| w.write_all(source.rows(ids).as_bytes()))
                };
                let shape = std::iter::once(ids.len()).chain(row.iter().copied()).collect();
                entries.push(Entry::new(format!("{}/{name}", names[t]), dtype, shape, content));
            }
        }
        Ok(entries)
    }
}
