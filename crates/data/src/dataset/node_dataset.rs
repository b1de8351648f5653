//! Data sets for node classification: a graph with features, labels and splits.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;

use crate::dataset::features::Features;
use crate::dataset::split::Split;
use crate::files::{format_error, same_count};

/// A data set for node classification: a graph with features, labels and splits.
///
/// Features are stored next to the graph in the format of the file, because a sparse matrix may be a hundred times
/// smaller than its dense tensor. The frames of `graph` are empty; [`to_graph`](Self::to_graph) fills them.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Short name.
    pub name: String,
    /// Graph structure. Its frames are empty.
    pub graph: Graph,
    /// Node type to classify.
    pub target: String,
    /// Number of classes.
    pub num_classes: usize,
    /// Name of each class.
    pub class_names: Vec<String>,
    /// Class of each node of the target type; -1 for a node without a label.
    pub labels: Vec<i64>,
    /// Features by node type. A node type without features has no entry.
    pub features: BTreeMap<String, Features>,
    /// Splits by name.
    pub splits: BTreeMap<String, Split>,
    /// Whether the files store the reverse of every edge, in the same or in another edge type. If not, add reverse
    /// edge types with [`Graph::with_inverse_relations`] before a relational model is trained.
    pub inverse_edges_stored: bool,
}

impl Dataset {
    /// Creates a data set with one node type, edges stored in both directions, and one split named `public`.
    pub(crate) fn homogeneous(
        name: &str,
        graph: Graph,
        class_names: Vec<String>,
        labels: Vec<i64>,
        features: Features,
        split: Split,
    ) -> Self {
        let target = graph.schema().ntypes()[0].clone();
        Self {
            name: name.to_owned(),
            graph,
            num_classes: class_names.len(),
            class_names,
            labels,
            features: BTreeMap::from([(target.clone(), features)]),
            splits: BTreeMap::from([("public".to_owned(), split)]),
            target,
            inverse_edges_stored: true,
        }
    }

    /// Returns the graph with features, labels and splits in its node frames, as PyG's `Data` and DGL's data sets
    /// store them.
    ///
    /// | column | node types | shape, type |
    /// | --- | --- | --- |
    /// | `x` | those with features | `[nodes, features]`, float |
    /// | `y` | the target type | `[nodes]`, int; -1 for a node without a label |
    /// | `train_mask`, `val_mask`, `test_mask` | the target type, if the data set has one split | `[nodes]`, bool |
    /// | `train_mask_<split>`, … | the target type, if it has several splits | `[nodes]`, bool |
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::karate_club;
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let g = karate_club().to_graph(&Device::flex())?;
    ///     let nodes = g.nodes(..)?;
    ///     assert_eq!(nodes.get::<2>("x")?.dims(), [34, 34]);
    ///     assert_eq!(nodes.get_int::<1>("y")?.dims(), [34]);
    ///     assert_eq!(nodes.get_as::<1, burn::tensor::Bool>("train_mask")?.int().sum().into_scalar::<i64>(), 2);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// * [`GraphError::OutOfMemory`](burn_gnn_graph::GraphError::OutOfMemory) if the dense features do not fit in
    ///   memory.
    /// * A node id of a split is out of range.
    ///
    /// # Cost
    /// The structure is shared. Features are copied to dense tensors; use [`features`](Self::features) directly if
    /// they are sparse with many columns.
    pub fn to_graph(&self, device: &Device) -> Result<Graph, DataError> {
        let mut g = self.graph.clone();
        for (ntype, features) in &self.features {
            g.nodes_mut(ntype.as_str())?.insert("x", features.to_tensor(device)?)?;
        }
        let nodes = g.nodes_mut(self.target.as_str())?;
        let labels = TensorData::new(self.labels.clone(), [self.labels.len()]);
        nodes.insert("y", Tensor::<1, Int>::from_data(labels, device))?;
        for (name, split) in &self.splits {
            let suffix = if self.splits.len() == 1 { String::new() } else { format!("_{name}") };
            split.insert_named(nodes, &suffix, device)?;
        }
        Ok(g)
    }
}

/// Class names from a description, or `0`, `1`, … if the description has none.
pub(crate) fn described_class_names(
    described_in: &Path,
    num_classes: u64,
    names: Option<Vec<String>>,
    nodes: usize,
) -> Result<Vec<String>, DataError> {
    /// Number of classes that is accepted for any number of nodes. A larger number is accepted up to the number of
    /// nodes, so that a short description cannot allocate names without limit.
    const FREE: u64 = 1 << 16;
    let limit = FREE.max(nodes as u64);
    match names {
        Some(names) => {
            same_count(described_in, "class names", num_classes, names.len()).map(|()| names)
        }
        None if num_classes <= limit => Ok((0..num_classes).map(|c| c.to_string()).collect()),
        None => Err(format_error(
            described_in,
            format!("num_classes: expected at most {limit} for {nodes} nodes, found {num_classes}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::karate_club;
    use burn::tensor::Bool;

    #[test]
    fn to_graph_copies_features_labels_and_splits() {
        let device = Device::flex();
        let mut club = karate_club();
        let g = club.to_graph(&device).unwrap();
        let nodes = g.nodes(..).unwrap();
        assert_eq!(
            nodes.get_int::<1>("y").unwrap().into_data().iter::<i64>().collect::<Vec<_>>(),
            club.labels
        );
        let x = nodes.get::<2>("x").unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(x, club.features["_N"].to_dense());
        let mask = |g: &Graph, name: &str| -> Vec<u32> {
            let mask = g.nodes(..).unwrap().get_as::<1, Bool>(name).unwrap().into_data();
            (0..34).filter(|&i| mask.iter::<bool>().nth(i as usize).unwrap()).collect()
        };
        let split = club.splits["public"].clone();
        assert_eq!(
            [mask(&g, "train_mask"), mask(&g, "val_mask"), mask(&g, "test_mask")],
            [split.train, vec![], split.test]
        );
        assert!(
            club.graph.nodes(..).unwrap().columns().next().is_none(),
            "the graph of the data set is unchanged"
        );

        // With several splits, the columns carry the name of the split. Ids out of range are errors.
        club.splits.insert("second".into(), Split { train: vec![5], val: vec![6], test: vec![7] });
        let g = club.to_graph(&device).unwrap();
        assert_eq!(
            [mask(&g, "train_mask_public"), mask(&g, "val_mask_second")],
            [vec![0, 33], vec![6]]
        );
        club.splits.insert("third".into(), Split { train: vec![34], val: vec![], test: vec![] });
        let e = club.to_graph(&device).unwrap_err().to_string();
        assert!(e.contains("train_mask_third") && e.contains("34"), "{e}");
    }
}
