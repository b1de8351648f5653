//! Describes tensors of a state dict that are no parameters here.

/// A tensor that another framework saves with a layer and that is no parameter here.
///
/// ```
/// use burn_gnn_models::Buffer;
/// let fixed = Buffer::option("eps", 0.5, "init_eps"); // the layer is refused weights with another ε
/// let unread = Buffer::unread("lin_skip.weight").zeros([4, 3]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Names it may have.
    pub(super) names: Vec<String>,
    /// The number it must hold, and the option of the layer that says so; none: it is not read.
    pub(super) option: Option<(f64, &'static str)>,
    /// Shape that it is written with.
    pub(super) shape: Option<Vec<usize>>,
}

impl Buffer {
    /// One number that is the option `option` of the layer here, which has `value`.
    pub fn option(name: impl Into<String>, value: f64, option: &'static str) -> Self {
        Self { names: vec![name.into()], option: Some((value, option)), shape: None }
    }
    /// A tensor that does not influence what the layer computes. It is not written, unless with [`zeros`](Self::zeros).
    pub fn unread(name: impl Into<String>) -> Self {
        Self { names: vec![name.into()], option: None, shape: None }
    }
    /// Written as zeros of this shape, so that a strict `load_state_dict` of PyTorch finds it.
    #[must_use]
    pub fn zeros(mut self, shape: impl Into<Vec<usize>>) -> Self {
        self.shape = Some(shape.into());
        self
    }
    /// With a prefix before every name.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        self.under_any(&[prefix])
    }
    /// With any of some prefixes before every name; the first is written.
    #[must_use]
    pub fn under_any(mut self, prefixes: &[impl AsRef<str>]) -> Self {
        self.names = prefixes
            .iter()
            .flat_map(|p| self.names.iter().map(move |name| format!("{}{name}", p.as_ref())))
            .collect();
        self
    }
}
