//! Converts a part to a graph of local ids, as DGL's `load_partition` does.

use burn::tensor::{Device, TensorData};
use burn_gnn_graph::{Frame, Graph, HomoId};

use super::partition::{Features, Partition};
use crate::column::column;
use crate::error::DistError;

/// The id columns of one type, which every local graph has.
#[derive(Clone, Default)]
struct Flags {
    ids: Vec<i64>,
    originals: Vec<i64>,
    inner: Vec<bool>,
    /// Part that owns each node; empty for edges.
    parts: Vec<i64>,
}

impl Flags {
    /// Appends an entry and returns its row.
    fn push(&mut self, id: u64, original: u64, inner: bool) -> u32 {
        self.ids.push(id as i64);
        self.originals.push(original as i64);
        self.inner.push(inner);
        (self.ids.len() - 1) as u32
    }
    fn insert(self, frame: &mut Frame, inner: &str, device: &Device) -> Result<(), DistError> {
        let n = self.ids.len();
        let mut columns = vec![
            ("_ID", TensorData::new(self.ids, [n])),
            ("orig_id", TensorData::new(self.originals, [n])),
            (inner, TensorData::new(self.inner, [n])),
        ];
        if inner == "inner_node" {
            columns.push(("part_id", TensorData::new(self.parts, [n])));
        }
        columns.into_iter().try_for_each(|(name, data)| {
            Ok(frame.insert_column(name, column(name, data, device)?)?)
        })
    }
}

impl Partition {
    /// Converts the part to a graph of its local nodes and edges, as DGL's `load_partition` does. Inner nodes and edges
    /// of a type come first, in ascending id. Halo nodes follow by owner and id, all other edges by id. Tensors are on
    /// `device`, without its autodiff.
    ///
    /// | column | of | |
    /// | --- | --- | --- |
    /// | `_ID` | nodes, edges | type-wise id, as the [`PartitionBook`](crate::PartitionBook) and [`DistGraph`](crate::DistGraph) use it |
    /// | `orig_id` | nodes, edges | id in the input graph |
    /// | `inner_node`, `inner_edge` | nodes, edges | whether the part owns it |
    /// | `part_id` | nodes | the part that owns it |
    /// | `trainer_id` | nodes | if parts have several trainers: the trainer; -1 for halo nodes |
    ///
    /// Feature columns follow. A part only has the features of its inner nodes and edges. The rows of halo nodes and
    /// other edges are zeros; `inner_node` and `inner_edge` distinguish them. Lists, texts and ids of the input's
    /// frames are available for all rows.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_dist::{PartitionConfig, partition_graph};
    /// use burn_gnn_graph::Graph;
    /// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
    /// let part = partition_graph(&ring, &PartitionConfig::new("ring", 2))?.part(1)?;
    /// let local = part.to_graph(&Device::flex())?;
    /// let inner = local.nodes("_N")?.get_as::<1, burn::tensor::Bool>("inner_node")?;
    /// assert_eq!(inner.into_data().iter::<bool>().filter(|i| *i).count(), 3);
    /// assert_eq!(local.nodes("_N")?.get_int::<1>("_ID")?.into_data().iter::<i64>().next(), Some(3));
    /// # Ok::<(), burn_gnn_dist::DistError>(())
    /// ```
    ///
    /// # Errors
    /// A feature column has one of these names or more than five axes.
    ///
    /// # Cost
    /// `O(V + E)` for the nodes and edges of the part, and a copy of its features.
    pub fn to_graph(&self, device: &Device) -> Result<Graph, DistError> {
        let (device, schema) = (device.clone().inner(), self.book.schema());
        let mut nodes = vec![Flags::default(); schema.ntypes().len()];
        let mut edges = vec![Flags::default(); schema.etypes().len()];
        let mut rows = Vec::with_capacity(self.nid.len());
        for (i, (&global, &original)) in self.nid.iter().zip(&self.orig_nid).enumerate() {
            let (part, id) = self.book.nodes.locate(HomoId(global))?;
            rows.push(nodes[id.ty].push(id.id, original, i < self.num_inner_nodes));
            nodes[id.ty].parts.push(part as i64);
        }
        let mut endpoints = vec![(vec![], vec![]); edges.len()];
        for (j, (&global, &original)) in self.eid.iter().zip(&self.orig_eid).enumerate() {
            let id = self.book.global_to_edge(HomoId(global))?;
            edges[id.ty].push(id.id, original, j < self.num_inner_edges);
            endpoints[id.ty].0.push(rows[self.src[j] as usize]);
            endpoints[id.ty].1.push(rows[self.dst[j] as usize]);
        }
        let mut builder = Graph::builder();
        for (name, of) in schema.ntypes().iter().zip(&nodes) {
            builder = builder.nodes(name, of.ids.len());
        }
        for (etype, (src, dst)) in schema.etypes().iter().zip(endpoints) {
            builder = builder.edges(etype.clone(), src, dst);
        }
        let mut graph = builder.build()?;
        // Inner nodes are ordered by type.
        let mut trainers = self.trainer_id.as_deref();
        for (t, (name, of)) in schema.ntypes().iter().zip(nodes).enumerate() {
            let (n, frame) = (of.ids.len(), graph.nodes_mut(name)?);
            of.insert(frame, "inner_node", &device)?;
            if let Some(rest) = trainers {
                let (own, tail) = rest.split_at(self.book.nodes.inner(self.part, t)? as usize);
                trainers = Some(tail);
                let mut values: Vec<i64> = own.iter().map(|&trainer| i64::from(trainer)).collect();
                values.resize(n, -1);
                frame.insert_column(
                    "trainer_id",
                    column("trainer_id", TensorData::new(values, [n]), &device)?,
                )?;
            }
            insert_features(frame, &self.node_feats, t, n, &device)?;
            self.attributes[0][t].insert(frame)?;
        }
        for (t, of) in edges.into_iter().enumerate() {
            let (n, frame) = (of.ids.len(), graph.edges_mut(t)?);
            of.insert(frame, "inner_edge", &device)?;
            insert_features(frame, &self.edge_feats, t, n, &device)?;
            self.attributes[1][t].insert(frame)?;
        }
        Ok(graph)
    }
}

/// Inserts feature columns into a frame of `rows` rows. Rows after those of the features are zeros.
fn insert_features(
    frame: &mut Frame,
    feats: &Features,
    ty: usize,
    rows: usize,
    device: &Device,
) -> Result<(), DistError> {
    for ((_, name), data) in feats.iter().filter(|((t, _), _)| *t == ty) {
        if frame.column(name).is_ok() {
            let expected = "feature names other than `_ID`, `orig_id`, `inner_node`, `inner_edge`, `part_id` and `trainer_id`".into();
            return Err(DistError::Config {
                arg: "features",
                expected,
                found: format!("column `{name}` of {}", frame.label()),
            });
        }
        let mut shape = data.shape().as_slice().to_vec();
        shape[0] = rows;
        let mut bytes = data.as_bytes().to_vec();
        bytes.resize(shape.iter().product::<usize>() * data.dtype().size(), 0);
        let data = TensorData::from_bytes_vec(bytes, shape, data.dtype());
        frame.insert_column(name, column(name, data, device)?)?;
    }
    Ok(())
}
