//! Defines the errors of this crate.

/// What can be wrong with the description of a layer, model or task.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A size that must divide another does not.
    #[error("`{arg}` = {value} must divide {what} = {of}; choose {what} as a multiple of {value}")]
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
    #[error("`{arg}`: expected {expected} ({why}), got {actual}; give {expected}")]
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
    #[error("node type `{ntype}`: {message}")]
    Input {
        /// The node type.
        ntype: String,
        /// What is wrong.
        message: String,
    },
    /// A layer that needs all nodes of a type was given a view that computes some.
    #[error(
        "{layer}: needs all {total} nodes of type `{ntype}`, this view computes {rows}; {remedy}"
    )]
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
    /// A parameter has no tensor in a state dict.
    #[error(
        "state dict: expected parameter `{parameter}` under {tensor}, found only {found}; \
         rename tensors, take a part with `at`, or describe the layer as it was trained"
    )]
    WeightMissing {
        /// Parameter.
        parameter: String,
        /// Names its tensor may have.
        tensor: String,
        /// Names that there are.
        found: String,
    },
    /// A tensor of a state dict has another shape than its parameter.
    #[error(
        "state dict: parameter `{parameter}`: expected tensor `{tensor}` of shape {expected:?}, found {actual:?}; \
         give the layer the sizes that the weights were trained with"
    )]
    WeightShape {
        /// Parameter.
        parameter: String,
        /// Name of the tensor.
        tensor: String,
        /// Shape that the parameter has there.
        expected: Vec<usize>,
        /// Shape found.
        actual: Vec<usize>,
    },
    /// Tensors of a state dict belong to no parameter.
    #[error(
        "state dict: no parameter of the layer takes {tensors}; give the layer the options that the weights were trained with"
    )]
    WeightsLeft {
        /// Their names.
        tensors: String,
    },
    /// A number of a state dict that is an option here has another value.
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
        /// Value found.
        actual: f64,
    },
    /// Two tensors of a state dict belong to one parameter and differ.
    #[error(
        "state dict: parameter `{parameter}`: expected equal tensors `{tensor}` and `{other}`, found different ones; \
         describe the layer with a weight for each"
    )]
    WeightShared {
        /// Parameter.
        parameter: String,
        /// One tensor.
        tensor: String,
        /// The other.
        other: String,
    },
    /// Two parameters of a module have one id, by which gradients and states of optimizers are kept.
    #[error(
        "parameters `{first}` and `{second}` have one id, so that one takes the gradients of the other; \
         make each part by its own `init`, and load files by `load_weights`, which keeps the ids of the model"
    )]
    SharedParamId {
        /// Path of one of them.
        first: String,
        /// Path of the other.
        second: String,
    },
    /// A file of weights cannot be written or read, or its parameters are not those of the model.
    #[error("weights `{}`: {message}; {remedy}", file.display())]
    Weights {
        /// The file.
        file: std::path::PathBuf,
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A file or tensor of another framework cannot be read.
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
    /// A file, or a description of attributes, is wrong.
    #[error(transparent)]
    Data(Box<burn_gnn_files::DataError>),
    /// Ranks that train together do not fit together.
    #[error(transparent)]
    Ranks(Box<dyn std::error::Error + Send + Sync>),
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
    pub(crate) fn out_of_range(
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

    /// [`OutOfRange`](Self::OutOfRange) unless `ok`.
    pub(crate) fn check_range(
        arg: &str,
        range: &str,
        value: impl ToString,
        ok: bool,
    ) -> Result<(), Self> {
        if ok { Ok(()) } else { Err(Self::out_of_range(arg, range, value)) }
    }

    /// Sizes of a model are at least 1, dropout lies in `0.0..1.0`.
    pub(crate) fn check_sizes(sizes: &[(&str, usize)], dropout: f64) -> Result<(), Self> {
        sizes.iter().try_for_each(|&(arg, size)| Self::check_range(arg, "1..", size, size > 0))?;
        Self::check_range("dropout", "0.0..1.0", dropout, (0.0..1.0).contains(&dropout))
    }

    /// What each head of an attention layer needs, beside a probability of dropout.
    pub(crate) fn check_heads(num_heads: usize, d_head: usize, dropout: f64) -> Result<(), Self> {
        Self::check_sizes(&[("num_heads", num_heads), ("d_head", d_head)], dropout)
    }

    pub(crate) fn check_finite(arg: &str, value: f64) -> Result<(), Self> {
        Self::check_range(arg, "finite numbers", value, value.is_finite())
    }

    /// `why` says where the expected length comes from.
    pub(crate) fn check_length(
        arg: &str,
        why: &str,
        expected: usize,
        actual: usize,
    ) -> Result<(), Self> {
        if expected == actual {
            return Ok(());
        }
        Err(Self::Length { arg: arg.into(), why: why.into(), expected, actual })
    }

    /// `value` must divide `of`.
    pub(crate) fn check_divides(
        (arg, value): (&'static str, usize),
        (what, of): (&'static str, usize),
    ) -> Result<(), Self> {
        if of.is_multiple_of(value) {
            return Ok(());
        }
        Err(Self::NotDivisible { arg, value, what, of })
    }
}
