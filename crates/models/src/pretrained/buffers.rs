//! Describes tensors of a state dict that are not parameters of a layer here.

/// A tensor that another framework saves with a layer, and that is not a parameter here.
///
/// ```
/// use burn_gnn_models::Buffer;
/// let fixed = Buffer::option("eps", 0.5, "init_eps"); // weights with another ε return an error
/// let unread = Buffer::unread("lin_skip.weight").zeros([4, 3]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Accepted names; the first one is used for saving.
    pub(super) names: Vec<String>,
    /// Expected number, and the option of the layer that sets it. `None`: the tensor is not read.
    pub(super) option: Option<(f64, &'static str)>,
    /// Shape for saving.
    pub(super) shape: Option<Vec<usize>>,
}

impl Buffer {
    /// A number that is the option `option` of the layer here, with the value `value`.
    pub fn option(name: impl Into<String>, value: f64, option: &'static str) -> Self {
        Self { names: vec![name.into()], option: Some((value, option)), shape: None }
    }
    /// A tensor that does not affect the output of the layer. It is saved only with [`zeros`](Self::zeros).
    pub fn unread(name: impl Into<String>) -> Self {
        Self { names: vec![name.into()], option: None, shape: None }
    }
    /// Saves the tensor as zeros of this shape, which a strict `load_state_dict` of PyTorch requires.
    #[must_use]
    pub fn zeros(mut self, shape: impl Into<Vec<usize>>) -> Self {
        self.shape = Some(shape.into());
        self
    }
    /// Adds a prefix to every name.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        self.under_any(&[prefix])
    }
    /// Adds alternative prefixes to every name. The first one is used for saving.
    #[must_use]
    pub fn under_any(mut self, prefixes: &[impl AsRef<str>]) -> Self {
        self.names = prefixes
            .iter()
            .flat_map(|p| self.names.iter().map(move |name| format!("{}{name}", p.as_ref())))
            .collect();
        self
    }
}
