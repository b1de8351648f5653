//! Files of a partitioned graph.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, TensorData};
use burn_gnn_graph::HomoId;
use burn_gnn_graph::io::write_atomic;
use safetensors::{Dtype, View};
use serde::{Deserialize, Serialize};

use super::extract::Features;
use super::{Partition, PartitionedGraph};
use crate::DistError;

/// Version of the metadata and part files that this program writes and reads.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Key of the metadata entry of part files: `version:fingerprint`. One entry only, so that files of
/// equal content are equal byte for byte.
pub(crate) const STAMP: &str = "burn_gnn_partition";

/// Names of the three files of a part, relative to the metadata file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartFiles {
    pub(crate) node_feats: String,
    pub(crate) edge_feats: String,
    pub(crate) part_graph: String,
}

/// The metadata file; keys as in DGL, then those of this format.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) graph_name: String,
    pub(crate) num_nodes: u64,
    pub(crate) num_edges: u64,
    pub(crate) part_method: String,
    pub(crate) num_parts: usize,
    pub(crate) halo_hops: usize,
    pub(crate) node_map: BTreeMap<String, Vec<[u64; 2]>>,
    pub(crate) edge_map: BTreeMap<String, Vec<[u64; 2]>>,
    pub(crate) ntypes: BTreeMap<String, u64>,
    pub(crate) etypes: BTreeMap<String, u64>,
    pub(crate) format_version: u32,
    pub(crate) seed: u64,
    pub(crate) edge_cut: u64,
    /// Hexadecimal; part files carry the same.
    pub(crate) fingerprint: String,
    /// `part-<i>`, and whatever else a file may hold.
    #[serde(flatten)]
    pub(crate) parts: BTreeMap<String, serde_json::Value>,
}

/// A tensor on its way to a file.
pub(crate) struct Blob<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Cow<'a, [u8]>,
}

impl View for Blob<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn list<T: bytemuck::Pod>(dtype: Dtype, values: Vec<T>) -> Blob<'static> {
    Blob { dtype, shape: vec![values.len()], bytes: Cow::Owned(bytemuck::cast_slice(&values).to_vec()) }
}

fn ids(values: &[u64]) -> Blob<'static> {
    // Ids are below 2^63: they count things in memory.
    list(Dtype::I64, values.iter().map(|&v| v as i64).collect())
}

/// Features as files hold them: booleans one byte each, no quantised floats.
pub(crate) fn to_stored(column: &str, data: TensorData) -> Result<TensorData, DistError> {
    match data.dtype() {
        DType::Bool(_) => Ok(data.convert::<bool>()),
        DType::QFloat(_) => Err(DistError::Config {
            arg: "features",
            expected: "float, int or bool columns".into(),
            found: format!("quantised column `{column}`; dequantise it first"),
        }),
        _ => Ok(data),
    }
}

fn stored_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 | DType::Flex32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U64 => Dtype::U64,
        DType::U32 => Dtype::U32,
        DType::U16 => Dtype::U16,
        DType::U8 => Dtype::U8,
        DType::Bool(_) => Dtype::BOOL,
        DType::QFloat(_) => return None,
    })
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), DistError> {
    Ok(write_atomic(path, |w| w.write_all(bytes))?)
}

fn write_tensors(path: &Path, tensors: BTreeMap<String, Blob<'_>>, stamp: &str) -> Result<(), DistError> {
    let info = HashMap::from([(STAMP.to_owned(), stamp.to_owned())]);
    let bytes = safetensors::serialize(tensors, Some(info)).map_err(|e| DistError::format(path, format!("cannot be written: {e}")))?;
    write_file(path, &bytes)
}

fn features<'a>(feats: &'a Features, names: &[String]) -> BTreeMap<String, Blob<'a>> {
    let blob = |((t, column), data): (&(usize, String), &'a TensorData)| {
        let dtype = stored_dtype(data.dtype())?;
        let blob = Blob { dtype, shape: data.shape().as_slice().to_vec(), bytes: Cow::Borrowed(data.as_bytes()) };
        Some((format!("{}/{column}", names[*t]), blob))
    };
    feats.iter().filter_map(blob).collect()
}

impl Partition {
    fn tensors(&self) -> Result<BTreeMap<String, Blob<'static>>, DistError> {
        let flags = |n: usize, inner: usize| list(Dtype::U8, (0..n).map(|i| u8::from(i < inner)).collect());
        let local = |v: &[u32]| list(Dtype::I64, v.iter().map(|&v| i64::from(v)).collect());
        let located = self.nid.iter().map(|&i| self.book.nodes.locate(HomoId(i))).collect::<Result<Vec<_>, _>>()?;
        let etypes = self.eid.iter().map(|&i| Ok(self.book.joint_to_edge(HomoId(i))?.ty as i32)).collect::<Result<Vec<_>, DistError>>()?;
        let tensors = [
            ("src", local(&self.src)),
            ("dst", local(&self.dst)),
            ("NID", ids(&self.nid)),
            ("EID", ids(&self.eid)),
            ("inner_node", flags(self.nid.len(), self.num_inner_nodes)),
            ("inner_edge", flags(self.eid.len(), self.num_inner_edges)),
            ("NTYPE", list(Dtype::I32, located.iter().map(|l| l.1.ty as i32).collect())),
            ("ETYPE", list(Dtype::I32, etypes)),
            ("part_id", list(Dtype::I64, located.iter().map(|l| l.0 as i64).collect())),
            ("orig_nid", ids(&self.orig_nid)),
            ("orig_eid", ids(&self.orig_eid)),
        ];
        Ok(tensors.into_iter().map(|(n, b)| (n.to_owned(), b)).collect())
    }
}

impl PartitionedGraph {
    /// Writes every part and the metadata into `dir` (made if missing); returns the metadata's path.
    ///
    /// ```text
    /// <name>.json                     keys of DGL's partition configuration, and format_version, seed,
    ///                                 edge_cut, fingerprint
    /// part<i>/graph.safetensors       src dst (i64, local); NID EID (i64, joint); inner_node inner_edge
    ///                                 (u8); NTYPE ETYPE (i32); part_id (i64, owner of each node);
    ///                                 orig_nid orig_eid (i64, type-wise ids of the input graph)
    /// part<i>/node_feats.safetensors  `ntype/column`, rows of inner nodes in id order
    /// part<i>/edge_feats.safetensors  `src:rel:dst/column`, rows of inner edges in id order
    /// ```
    ///
    /// Every file is written to a temporary name and renamed; an old metadata file is removed first and
    /// the new one comes last, so a directory without it is unfinished. Equal partitionings give equal
    /// bytes.
    ///
    /// # Errors
    /// A file cannot be written; what [`part`](Self::part) refuses.
    pub fn write(&self, dir: impl AsRef<Path>) -> Result<PathBuf, DistError> {
        let dir = dir.as_ref();
        fs::create_dir_all(dir).map_err(DistError::io(dir))?;
        let json = dir.join(format!("{}.json", self.config.graph_name));
        if json.exists() {
            fs::remove_file(&json).map_err(DistError::io(&json))?;
        }
        let schema = self.book.schema();
        let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
        let fingerprint = format!("{:016x}", self.fingerprint);
        let stamp = format!("{FORMAT_VERSION}:{fingerprint}");
        let mut parts = BTreeMap::new();
        for p in 0..self.config.num_parts {
            let folder = dir.join(format!("part{p}"));
            fs::create_dir_all(&folder).map_err(DistError::io(&folder))?;
            let file = |name: &str| format!("part{p}/{name}.safetensors");
            let names = PartFiles { node_feats: file("node_feats"), edge_feats: file("edge_feats"), part_graph: file("graph") };
            let part = self.part(p)?;
            write_tensors(&dir.join(&names.part_graph), part.tensors()?, &stamp)?;
            write_tensors(&dir.join(&names.node_feats), features(&part.node_feats, schema.ntypes()), &stamp)?;
            write_tensors(&dir.join(&names.edge_feats), features(&part.edge_feats, &enames), &stamp)?;
            let value = serde_json::to_value(&names).map_err(|e| DistError::format(&json, e.to_string()))?;
            parts.insert(format!("part-{p}"), value);
        }
        let numbers = |names: &[String]| names.iter().cloned().zip(0..).collect();
        let maps = |names: &[String], of: &crate::book::RangeBook| {
            names.iter().enumerate().map(|(t, n)| (n.clone(), of.joint_ranges(t))).collect()
        };
        let metadata = Metadata {
            graph_name: self.config.graph_name.clone(),
            num_nodes: self.book.nodes.total(),
            num_edges: self.book.edges.total(),
            part_method: self.config.method.name().into(),
            num_parts: self.config.num_parts,
            halo_hops: self.config.num_hops,
            node_map: maps(schema.ntypes(), &self.book.nodes),
            edge_map: maps(&enames, &self.book.edges),
            ntypes: numbers(schema.ntypes()),
            etypes: numbers(&enames),
            format_version: FORMAT_VERSION,
            seed: self.config.seed,
            edge_cut: self.edge_cut,
            fingerprint,
            parts,
        };
        let text = serde_json::to_string_pretty(&metadata).map_err(|e| DistError::format(&json, e.to_string()))?;
        write_file(&json, text.as_bytes())?;
        Ok(json)
    }
}
