/// What can be wrong with the description of a layer, model or task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A size that must divide another does not.
    #[error("`{arg}` = {value} must divide {what} = {of}")]
    NotDivisible {
        /// Argument.
        arg: &'static str,
        /// Its value.
        value: usize,
        /// What it must divide.
        what: &'static str,
        /// Value of that.
        of: usize,
    },
    /// A value outside its range.
    #[error("`{arg}` must lie in {range}, got {value}")]
    OutOfRange {
        /// Argument.
        arg: String,
        /// Allowed values.
        range: String,
        /// Value found.
        value: String,
    },
    /// Two lengths that must agree do not.
    #[error("`{arg}`: expected {expected} ({why}), got {actual}")]
    Length {
        /// Argument.
        arg: String,
        /// Where the expected length comes from.
        why: String,
        /// Expected length.
        expected: usize,
        /// Length found.
        actual: usize,
    },
    /// A node type has no input where the model expects one, or the reverse.
    #[error("node type {ntype}: {message}")]
    Input {
        /// Number of the node type.
        ntype: usize,
        /// What is wrong.
        message: String,
    },
    /// A layer that needs all nodes of a type was given a view that computes some.
    #[error("{layer}: needs all {total} nodes of type `{ntype}`, this view computes {rows}; {remedy}")]
    PartOfGraph {
        /// Layer.
        layer: &'static str,
        /// Node type.
        ntype: String,
        /// Nodes that the view computes.
        rows: usize,
        /// Nodes of the whole graph.
        total: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// Weights of another framework do not fit the layer.
    #[error("state dict: {message}")]
    StateDict {
        /// What is wrong.
        message: String,
    },
    /// What a feature encoder is given does not fit it.
    #[error("feature encoder: {message}")]
    Encoder {
        /// What is wrong.
        message: String,
    },
    /// What cannot be drawn.
    #[error("plot: {message}")]
    Plot {
        /// What is wrong.
        message: String,
    },
    /// A graph or its features do not fit.
    #[error(transparent)]
    Graph(#[from] burn_gnn_graph::GraphError),
    /// A split has no training node on any rank.
    #[error("the split has no training node; give at least one labelled node")]
    NothingToTrain,
    /// The loss is no number any more.
    #[error("epoch {epoch}: the loss is {loss}; lower the learning rate (now {lr})")]
    Diverged {
        /// Epoch, from 0.
        epoch: usize,
        /// Loss.
        loss: f64,
        /// Learning rate.
        lr: f64,
    },
}

impl ModelError {
    /// Sizes of a model are at least 1, dropout lies in `0.0..1.0`.
    pub(crate) fn check_sizes(sizes: &[(&str, usize)], dropout: f64) -> Result<(), Self> {
        if let Some((arg, _)) = sizes.iter().find(|s| s.1 == 0) {
            return Err(Self::OutOfRange { arg: (*arg).into(), range: "1..".into(), value: "0".into() });
        }
        if !(0.0..1.0).contains(&dropout) {
            return Err(Self::OutOfRange { arg: "dropout".into(), range: "0.0..1.0".into(), value: dropout.to_string() });
        }
        Ok(())
    }

    pub(crate) fn check_finite(arg: &str, value: f64) -> Result<(), Self> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Self::OutOfRange { arg: arg.into(), range: "finite numbers".into(), value: value.to_string() })
    }
}
