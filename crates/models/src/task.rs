//! Describes node classification on a graph, or on one rank's part of it.

use std::sync::Arc;

use burn::tensor::{Bool, Int, Tensor};
use burn_gnn_graph::Frame;
use burn_gnn_ops::GraphView;

use crate::{GradientSync, ModelError, NoSync, NodeTensors, TypeInput, TypeMap};

/// Labelled nodes of a training, validation or test set that this rank holds.
///
/// A clone shares the lists, and devices copy them once for as long as one of them lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Input-row numbers of the target type.
    pub index: Arc<[u32]>,
    /// Class of each row.
    pub labels: Arc<[u32]>,
    /// Number of rows over all ranks.
    pub total: usize,
}

impl Rows {
    /// Rows of a whole graph: `ids` with their labels.
    ///
    /// # Errors
    /// An id without a label (-1), out of range, or a label not below `num_classes`.
    pub fn new(ids: &[u32], labels: &[i64], num_classes: usize) -> Result<Self, ModelError> {
        let label = |&id: &u32| {
            let Some(&l) = labels.get(id as usize) else {
                let range = format!("0..{}", labels.len());
                return Err(ModelError::out_of_range("node of the split", range, id));
            };
            if l < 0 || l as usize >= num_classes {
                let (arg, range) = (format!("label of node {id}"), format!("0..{num_classes}"));
                return Err(ModelError::out_of_range(arg, range, l));
            }
            Ok(l as u32)
        };
        Ok(Self {
            index: ids.into(),
            labels: ids.iter().map(label).collect::<Result<_, _>>()?,
            total: ids.len(),
        })
    }

    /// Rows of a sampled batch: the row of each seed of this rank among the outputs (`seed_rows` of the batch), the
    /// labels of these seeds in the same order, and the seeds of all ranks, over which a loss is averaged
    /// (`global_seeds` of a loaded batch).
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_gnn_models::Rows;
    /// let labels = Tensor::<1, Int>::from_data([2, 0], &Device::flex());
    /// let rows = Rows::of_batch(&[0, 1], labels.clone(), 5)?; // three more seeds are on other ranks
    /// assert_eq!((&rows.labels[..], rows.total), (&[2, 0][..], 5));
    /// assert!(Rows::of_batch(&[0], labels.clone(), 5).is_err()); // a label too many
    /// assert!(Rows::of_batch(&[0, 1], labels - 1, 5).is_err()); // -1 is no class
    /// # Ok::<(), burn_gnn_models::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// Not one label per row, or a label that is no class (negative). That labels are below the number of logits is
    /// for the loss to check.
    ///
    /// # Cost
    /// Labels are read from their device.
    pub fn of_batch(
        seed_rows: &[u32],
        labels: Tensor<1, Int>,
        total: usize,
    ) -> Result<Self, ModelError> {
        let labels: Vec<i64> = labels.into_data().iter::<i64>().collect();
        if labels.len() != seed_rows.len() {
            let range = format!("{} labels, one per seed", seed_rows.len());
            return Err(ModelError::out_of_range("labels", range, labels.len()));
        }
        if let Some(label) = labels.iter().find(|&&l| u32::try_from(l).is_err()) {
            let range = "classes, from 0 (leave nodes without a label out of the seeds)";
            return Err(ModelError::out_of_range("label of a seed", range, label));
        }
        let labels = labels.iter().map(|&l| l as u32).collect();
        Ok(Self { index: seed_rows.into(), labels, total })
    }

    /// The rows that a rank holds: `local[id]` is the rank's row of node `id`, if it owns it. The order of
    /// the split is kept, the total stays.
    #[must_use]
    pub fn on_rank(&self, local: impl Fn(u32) -> Option<u32>) -> Self {
        let local = |(&i, &l): (&u32, &u32)| Some((local(i)?, l));
        let (index, labels): (Vec<_>, Vec<_>) =
            self.index.iter().zip(&*self.labels).filter_map(local).unzip();
        Self { index: index.into(), labels: labels.into(), total: self.total }
    }
}

/// A graph (or this rank's part), features, and the rows to learn from.
#[derive(Debug)]
pub struct NodeTask<'a, G: ?Sized> {
    /// What layers run on.
    pub graph: &'a G,
    /// Features of the input nodes by node type, on the plain device.
    pub features: NodeTensors,
    /// The node type to classify.
    pub target: String,
    /// Training nodes.
    pub train: Rows,
    /// Validation nodes; may be empty.
    pub val: Rows,
    /// Test nodes; may be empty.
    pub test: Rows,
}

impl<'a, G: GraphView + ?Sized> NodeTask<'a, G> {
    /// The task that the columns of a graph state, as `Dataset::to_graph` writes them: features `x` of any node type,
    /// and of `target` the classes `y` (-1 where unknown) and the masks `train_mask`, `val_mask` and `test_mask`, of
    /// which the last two may be missing.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::karate_club;
    /// use burn_gnn_models::NodeTask;
    /// let g = karate_club().to_graph(&Device::flex())?;
    /// let task = NodeTask::from_columns(&g, "_N")?;
    /// assert_eq!((task.train.total, task.val.total, task.test.total), (2, 0, 32));
    /// assert_eq!(task.features["_N"].dims(), [34, 34]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A type or column that the graph does not have, a column of another shape or type, a node of a mask without a
    /// class.
    ///
    /// # Cost
    /// `y` and the masks are read from their device once.
    pub fn from_columns(graph: &'a G, target: &str) -> Result<Self, ModelError> {
        Self::on_ranks(graph, target, &NoSync)
    }

    /// [`from_columns`](Self::from_columns) of a graph whose nodes are spread over ranks: each rank has the rows that
    /// it owns, and totals are those of all ranks. Collective.
    ///
    /// # Errors
    /// As [`from_columns`](Self::from_columns).
    pub fn on_ranks(
        graph: &'a G,
        target: &str,
        sync: &impl GradientSync,
    ) -> Result<Self, ModelError> {
        let schema = graph.schema();
        let t = schema.ntype(target)?;
        let x = (0..schema.ntypes().len())
            .map(|t| graph.node_columns(t).and_then(|f| f.get::<2>("x").ok()));
        let features = NodeTensors::from_list(schema, x);
        let message = "the view has no node columns, of which `y` is read; give a graph whose nodes have a column `y`";
        let frame = graph.node_columns(t).ok_or_else(|| ModelError::input(target, message))?;
        if frame.column("y").is_err() && frame.column("train_mask").is_err() {
            let message = "expected the columns `y` and `train_mask` (`val_mask`, `test_mask`; `x` for features), found \
                           neither; insert them, or make the graph by `Dataset::to_graph`";
            return Err(ModelError::input(target, message));
        }
        let y = frame.to_ints("y")?;
        let classes = y.iter().max().map_or(0, |&y| (y + 1).max(0) as usize);
        let mut rows = [
            masked(frame, "train_mask", true)?,
            masked(frame, "val_mask", false)?,
            masked(frame, "test_mask", false)?,
        ]
        .map(|ids| Rows::new(&ids, &y, classes));
        let mut totals =
            rows.each_ref().map(|rows| rows.as_ref().map_or(0.0, |rows| rows.total as f64));
        sync.sum(&mut totals);
        for (total, rows) in totals.iter().zip(&mut rows) {
            if let Ok(rows) = rows {
                rows.total = *total as usize;
            }
        }
        let [train, val, test] = rows;
        Ok(Self {
            graph,
            features,
            target: target.to_owned(),
            train: train?,
            val: val?,
            test: test?,
        })
    }

    /// What a model reads of each node type: features where a type has them, a learned embedding per node otherwise.
    pub fn inputs(&self) -> TypeMap<TypeInput> {
        self.features.clone().map(|_, x| TypeInput::Features(x.dims()[1]))
    }
}

/// Nodes of a mask.
fn masked(frame: &Frame, name: &str, required: bool) -> Result<Vec<u32>, ModelError> {
    if !required && frame.column(name).is_err() {
        return Ok(vec![]);
    }
    let mask = frame.get_as::<1, Bool>(name)?.into_data();
    Ok((0..).zip(mask.iter::<bool>()).filter(|m| m.1).map(|m| m.0).collect())
}
