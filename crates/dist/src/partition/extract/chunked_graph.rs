//! Partitions graphs in DGL's chunked format, with features left in their files.

use std::path::Path;

use burn_gnn_data::{ChunkedData, IdConverter, TypeIds, open_chunked};
use burn_gnn_graph::Graph;

use super::chunked_column::ChunkedColumn;
use super::feature_columns::{FeatureColumn, FeatureColumns};
use super::partitioned_graph::{PartitionedGraph, partition_rows};
use crate::error::DistError;
use crate::partition::config::PartitionConfig;

/// A graph in DGL's chunked format, with its structure in memory and its features in their files.
///
/// The format is that of [`load_chunked`](burn_gnn_data::load_chunked), which reads features into memory. Here features
/// must be `.npy` files (`numpy`), which are memory-mapped. Do not change these files while the graph is in use:
/// overwriting one changes the features, and truncating one kills a program that reads past the new end (SIGBUS on
/// Unix).
///
/// [`partition`](Self::partition) writes the same files, byte for byte, as
/// [`partition_graph`](crate::partition_graph) of the graph with all features in memory.
#[derive(Debug)]
pub struct ChunkedGraph {
    graph: Graph,
    ids: IdConverter,
    node_rows: Vec<FeatureColumns>,
    edge_rows: Vec<FeatureColumns>,
}

impl ChunkedGraph {
    /// Reads the metadata and the edges, and opens the feature files.
    ///
    /// # Errors
    /// Errors of [`open_chunked`]; features in another format than `numpy`, with a wrong number of rows or an
    /// unsupported dtype, or in chunks that differ in dtype or row shape.
    pub fn open(metadata: impl AsRef<Path>) -> Result<Self, DistError> {
        let json = metadata.as_ref();
        let all = open_chunked(json)?;
        let (nodes, edges) = (all.graph.node_counts(), all.graph.relations());
        let (mut node_rows, mut edge_rows) =
            (vec![FeatureColumns::new(); nodes.len()], vec![FeatureColumns::new(); edges.len()]);
        for d in &all.node_data {
            node_rows[d.ty].insert(
                d.name.clone(),
                column(json, d, &all.graph.schema().ntypes()[d.ty], nodes[d.ty])?,
            );
        }
        for d in &all.edge_data {
            let etype = all.graph.schema().etypes()[d.ty].to_string();
            edge_rows[d.ty]
                .insert(d.name.clone(), column(json, d, &etype, edges[d.ty].num_edges())?);
        }
        Ok(Self { graph: all.graph, ids: all.ids, node_rows, edge_rows })
    }

    /// The structure, without features.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Converts global node ids, which follow the order of types in the metadata. Type-wise ids are those of the input,
    /// as in [`Partition::original_nids`](crate::Partition::original_nids).
    pub fn node_ids(&self) -> &TypeIds {
        self.ids.nodes()
    }
    /// Converts global edge ids, as [`node_ids`](Self::node_ids). Edge types are named `src:relation:dst`.
    pub fn edge_ids(&self) -> &TypeIds {
        self.ids.edges()
    }
    /// Partitions the graph as [`partition_graph`](crate::partition_graph) does. Feature rows are copied from the files
    /// when parts are written.
    ///
    /// # Errors
    /// As [`partition_graph`](crate::partition_graph).
    pub fn partition(&self, config: &PartitionConfig) -> Result<PartitionedGraph, DistError> {
        partition_rows(&self.graph, config, self.node_rows.clone(), self.edge_rows.clone())
    }
}

/// Opens a feature of the `count` nodes or edges of type `ty`.
fn column(
    json: &Path,
    data: &ChunkedData,
    ty: &str,
    count: usize,
) -> Result<FeatureColumn, DistError> {
    let name = &data.name;
    if data.format != "numpy" {
        return Err(DistError::format(
            json,
            format!("`{name}` of `{ty}`: expected format `numpy`, got `{}`", data.format),
        ));
    }
    let column = ChunkedColumn::open(&data.files)?;
    if column.len() != count {
        return Err(DistError::format(
            json,
            format!("`{name}` of `{ty}`: expected {count} rows, the files have {}", column.len()),
        ));
    }
    Ok(FeatureColumn::Chunks(column))
}
