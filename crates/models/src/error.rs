//! Defines the errors of this crate.

/// Error of a layer, model, task, file of weights or feature encoder.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A size does not divide another one.
    #[error("`{arg}` = {value} must divide {what} = {of}; choose {what} as a multiple of {value}")]
    NotDivisible {
        /// Argument.
        arg: &'static str,
        /// Value of the argument.
        value: usize,
        /// Name of the size that it must divide.
        what: &'static str,
        /// Value of that size.
        of: usize,
    },
    /// A value is out of range.
    #[error("`{arg}` must lie in {range}, got {value}")]
    OutOfRange {
        /// Argument.
        arg: String,
        /// Allowed values.
        range: String,
        /// Actual value.
        value: String,
    },
    /// A length differs from the expected one.
    #[error("`{arg}`: expected {expected} ({why}), got {actual}; give {expected}")]
    Length {
        /// Argument.
        arg: String,
        /// Reason for the expected length.
        why: String,
        /// Expected length.
        expected: usize,
        /// Actual length.
        actual: usize,
    },
    /// The input of a node type is missing, or the model does not expect it.
    #[error("node type `{ntype}`: {message}")]
    Input {
        /// The node type.
        ntype: String,
        /// Description of the error.
        message: String,
    },
    /// A layer requires all nodes of a type, and the view computes only some.
    #[error(
        "{layer}: needs all {total} nodes of type `{ntype}`, this view computes {rows}; {remedy}"
    )]
    PartOfGraph {
        /// Layer.
        layer: &'static str,
        /// Node type.
        ntype: String,
        /// Number of nodes that the view computes.
        rows: usize,
        /// Number of nodes of the whole graph.
        total: u64,
        /// How to fix it.
        remedy: &'static str,
    },
    /// A parameter has no tensor in a state dict.
    #[error(
        "state dict: expected parameter `{parameter}` under {tensor}, found only {found}; \
         rename tensors, select a part with `at`, or initialize the layer with the options that it was trained with"
    )]
    WeightMissing {
        /// Parameter.
        parameter: String,
        /// Expected names of its tensor.
        tensor: String,
        /// Names in the state dict.
        found: String,
    },
    /// A tensor of a state dict has another shape than the parameter.
    #[error(
        "state dict: parameter `{parameter}`: expected tensor `{tensor}` of shape {expected:?}, found {actual:?}; \
         initialize the layer with the sizes that the weights were trained with"
    )]
    WeightShape {
        /// Parameter.
        parameter: String,
        /// Name of the tensor.
        tensor: String,
        /// Expected shape of the tensor.
        expected: Vec<usize>,
        /// Shape of the tensor.
        actual: Vec<usize>,
    },
    /// A state dict has tensors that no parameter reads.
    #[error(
        "state dict: no parameter of the layer reads {tensors}; initialize the layer with the options that the weights were trained with"
    )]
    WeightsLeft {
        /// Names of the tensors.
        tensors: String,
    },
    /// A number of a state dict differs from an option of the layer.
    #[error(
        "state dict: tensor `{tensor}`: expected {expected} (`{option}` of the layer), found {actual}; set `{option}` to {actual}"
    )]
    WeightOption {
        /// Option of the layer.
        option: &'static str,
        /// Name of the tensor.
        tensor: String,
        /// Value of the option.
        expected: f64,
        /// Actual value.
        actual: f64,
    },
    /// Two tensors of a state dict belong to the same parameter and differ.
    #[error(
        "state dict: parameter `{parameter}`: expected equal tensors `{tensor}` and `{other}`, found different ones; \
         initialize the layer with separate weights"
    )]
    WeightShared {
        /// Parameter.
        parameter: String,
        /// Name of the first tensor.
        tensor: String,
        /// Name of the second tensor.
        other: String,
    },
    /// Two parameters of a module have the same id, the key of gradients and optimizer states.
    #[error(
        "parameters `{first}` and `{second}` have the same id, so that one gets the gradients of the other; \
         initialize each part by a separate `init`, and load files by `load_weights`, which keeps the ids of the model"
    )]
    SharedParamId {
        /// Path of the first parameter.
        first: String,
        /// Path of the second parameter.
        second: String,
    },
    /// A file of weights cannot be written or read, or its parameters differ from those of the model.
    #[error("weights `{}`: {message}; {remedy}", file.display())]
    Weights {
        /// The file.
        file: std::path::PathBuf,
        /// Description of the error.
        message: String,
        /// How to fix it.
        remedy: &'static str,
    },
    /// A state dict cannot be read or written.
    #[error("state dict: {message}")]
    StateDict {
        /// Description of the error.
        message: String,
    },
    /// The input of a feature encoder does not match its description.
    #[error("feature encoder: {message}")]
    Encoder {
        /// Description of the error.
        message: String,
    },
    /// A plot cannot be drawn.
    #[error("plot: {message}")]
    Plot {
        /// Description of the error.
        message: String,
    },
    /// A graph or its features are invalid.
    #[error(transparent)]
    Graph(#[from] burn_gnn_graph::GraphError),
    /// A file or a description of attributes is invalid.
    #[error(transparent)]
    Data(Box<burn_gnn_files::DataError>),
    /// A batch could not be made.
    #[error(transparent)]
    Batch(Box<dyn std::error::Error + Send + Sync>),
    /// A checkpoint of training does not fit the run.
    #[error("checkpoint `{}`: {message}; remove it to train from the start", file.display())]
    Checkpoint {
        /// The file.
        file: std::path::PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Communication between ranks failed, or ranks have different data.
    #[error(transparent)]
    Ranks(Box<dyn std::error::Error + Send + Sync>),
    /// The batches of the first epoch have no labelled row on any rank.
    #[error(
        "the training batches have no labelled row; give at least one labelled node, pair or graph"
    )]
    NothingToTrain,
    /// The loss is NaN or infinite.
    #[error(
        "epoch {epoch}, {pass} batch {batch}: the loss is {loss}; lower the learning rate (now {lr})"
    )]
    Diverged {
        /// Epoch, from 0.
        epoch: usize,
        /// `training` or `validation`.
        pass: &'static str,
        /// Batch of the epoch, from 0.
        batch: usize,
        /// Loss.
        loss: f64,
        /// Learning rate.
        lr: f64,
    },
}

burn_gnn_graph::internal::debug_is_message!(ModelError);

impl From<burn_gnn_files::DataError> for ModelError {
    fn from(e: burn_gnn_files::DataError) -> Self {
        match e {
            burn_gnn_files::DataError::Graph(e) => Self::Graph(e),
            other => Self::Data(Box::new(other)),
        }
    }
}

impl ModelError {
    /// A value outside of its range, [`OutOfRange`](Self::OutOfRange).
    pub fn out_of_range(
        arg: impl Into<String>,
        range: impl Into<String>,
        value: impl ToString,
    ) -> Self {
        Self::OutOfRange { arg: arg.into(), range: range.into(), value: value.to_string() }
    }

    pub(crate) fn input(ntype: &str, message: impl Into<String>) -> Self {
        Self::Input { ntype: ntype.to_owned(), message: message.into() }
    }

    pub(crate) fn encoder(message: impl Into<String>) -> Self {
        Self::Encoder { message: message.into() }
    }

    pub(crate) fn state_dict(message: impl ToString) -> Self {
        Self::StateDict { message: message.to_string() }
    }

    /// Returns [`OutOfRange`](Self::OutOfRange) unless `ok`.
    ///
    /// # Errors
    /// `ok` is false.
    pub fn check_range(arg: &str, range: &str, value: impl ToString, ok: bool) -> Result<(), Self> {
        if ok { Ok(()) } else { Err(Self::out_of_range(arg, range, value)) }
    }

    /// Checks that sizes are at least 1 and dropout is in `0.0..1.0`.
    ///
    /// # Errors
    /// A size of 0, or a dropout outside of `0.0..1.0`.
    pub fn check_sizes(sizes: &[(&str, usize)], dropout: f64) -> Result<(), Self> {
        sizes.iter().try_for_each(|&(arg, size)| Self::check_range(arg, "1..", size, size > 0))?;
        Self::check_range("dropout", "0.0..1.0", dropout, (0.0..1.0).contains(&dropout))
    }

    /// Checks the options of an attention layer.
    pub(crate) fn check_heads(num_heads: usize, d_head: usize, dropout: f64) -> Result<(), Self> {
        Self::check_sizes(&[("num_heads", num_heads), ("d_head", d_head)], dropout)
    }

    pub(crate) fn check_finite(arg: &str, value: f64) -> Result<(), Self> {
        Self::check_range(arg, "finite numbers", value, value.is_finite())
    }

    /// Returns [`Length`](Self::Length) if lengths differ; `why` is the reason for the expected length.
    ///
    /// # Errors
    /// `expected` and `actual` differ.
    pub fn check_length(arg: &str, why: &str, expected: usize, actual: usize) -> Result<(), Self> {
        if expected == actual {
            return Ok(());
        }
        Err(Self::Length { arg: arg.into(), why: why.into(), expected, actual })
    }

    /// Returns [`NotDivisible`](Self::NotDivisible) unless `value` divides `of`.
    ///
    /// # Errors
    /// `of` is no multiple of `value`.
    pub fn check_divides(
        (arg, value): (&'static str, usize),
        (what, of): (&'static str, usize),
    ) -> Result<(), Self> {
        if of.is_multiple_of(value) {
            return Ok(());
        }
        Err(Self::NotDivisible { arg, value, what, of })
    }
}
