//! Describes node classification on a graph, or on one rank's part of it.

use burn::tensor::{Bool, Tensor};
use burn_gnn_graph::Frame;
use burn_gnn_ops::{EdgeTypes, GraphView};
use burn_gnn_sampling::SampleKey;

use crate::encoders::type_input::TypeInput;
use crate::error::ModelError;
use crate::inference::features::feature_of_size;
use crate::layers::type_map::{NodeTensors, TypeMap};
use crate::metrics::outcome::Outcome;
use crate::metrics::rows::Rows;
use crate::training::gradient_sync::{GradientSync, NoSync};
use crate::training::task::Task;
use crate::training::tasks::node_classifier::NodeClassifier;

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

impl<M: NodeClassifier, G: GraphView + ?Sized> Task<M, Rows> for NodeTask<'_, G> {
    fn step(&self, model: &M, rows: &Rows, key: SampleKey) -> Result<Outcome, ModelError> {
        let view = GraphView::at_step(&self.graph, key.seed, key.step);
        let is_training = model.devices().iter().any(|device| device.is_autodiff());
        let logits = if is_training {
            model.logits(&view, &self.features, &self.target)
        } else {
            let x = self.features.clone().map(|_, x| x.without_autodiff());
            model.logits(&EdgeTypes::new(&view).without_autodiff(), &x, &self.target)
        };
        Ok(Outcome::classes(logits, rows))
    }

    /// # Errors
    /// Features that are missing, not finite, or of another size than the model was made for
    /// ([`NodeClassifier::feature_sizes`]).
    fn check(&self, model: &M) -> Result<(), ModelError> {
        let schema = self.graph.schema();
        for (ntype, size) in model.feature_sizes(&self.target) {
            feature_of_size(schema, &self.features, &ntype, size)?;
        }
        let features = self.features.clone().into_list(schema)?;
        schema.ntypes().iter().zip(features).try_for_each(|(ntype, x)| check_finite(ntype, x))
    }

    fn is_rank_owned(&self, model: &M, path: &str) -> bool {
        model.is_rank_owned(path)
    }
}

/// Features that are not finite make every loss NaN, whatever the learning rate.
fn check_finite(ntype: &str, x: Option<Tensor<2>>) -> Result<(), ModelError> {
    let Some(x) = x.filter(|x| x.shape().num_elements() > 0) else { return Ok(()) };
    let wrong = x.without_autodiff().is_finite().bool_not();
    if !wrong.clone().any().into_scalar::<bool>() {
        return Ok(());
    }
    let [_, columns] = wrong.dims();
    let first = wrong.into_data().iter::<bool>().position(|wrong| wrong).unwrap_or(0);
    let (row, column) = (first / columns, first % columns);
    let message = format!(
        "expected finite features, found NaN or an infinity, first in column {column} of node {row}; \
         replace them (0, or the mean of the column), the learning rate is not the cause"
    );
    Err(ModelError::input(ntype, message))
}
