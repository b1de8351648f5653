//! Weights of layers that were trained with DGL or PyTorch Geometric.

mod their;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{DType, TensorData};
use burn_gnn_graph::io::{cut_quoted, read_file};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::ModelError;
pub use their::Their;
use walk::{Loader, Saver};

/// Whose names a state dict has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// DGL's `dgl.nn.pytorch`.
    Dgl,
    /// PyTorch Geometric's `torch_geometric.nn`.
    Pyg,
}

/// A layer that DGL or PyTorch Geometric have too.
pub trait Pretrained: Module + ModuleDisplay {
    /// Where `from` keeps the parameter at `path` (field names joined by dots).
    fn their(&self, from: Framework, path: &str) -> Their;
}

/// The tensors of a PyTorch module by name, as `safetensors.torch.save_file(module.state_dict(), path)` writes them.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_models::{Framework, GraphConvConfig, ModelError, StateDict};
/// let device = Device::flex();
/// let theirs = GraphConvConfig::new(3, 2).with_seed(1).init(&device);
/// let file = StateDict::of(&theirs, Framework::Pyg).to_safetensors()?; // `lin.weight` and `bias`
/// let ours = GraphConvConfig::new(3, 2).with_seed(2).init(&device);
/// let ours = StateDict::from_safetensors(&file)?.load(ours, Framework::Pyg)?;
/// assert_eq!(ours.weight.val().into_data(), theirs.weight.val().into_data());
/// # Ok::<(), ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    tensors: BTreeMap<String, TensorData>,
}

impl StateDict {
    /// From the bytes of a safetensors file; int tensors (such as counters of batches) are left out.
    ///
    /// # Errors
    /// Bytes that are no such file, or an element type other than f16, bf16, f32 and f64.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ModelError> {
        let wrong = |message: String| ModelError::StateDict { message: cut_quoted(message) };
        let file = SafeTensors::deserialize(bytes).map_err(|e| wrong(format!("expected a safetensors file, found: {e}")))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let dtype = match view.dtype() {
                Dtype::F16 => DType::F16,
                Dtype::BF16 => DType::BF16,
                Dtype::F32 => DType::F32,
                Dtype::F64 => DType::F64,
                Dtype::I64 | Dtype::I32 => continue,
                other => return Err(wrong(format!("tensor `{name}` must have elements of f16, bf16, f32 or f64, got {other:?}"))),
            };
            tensors.insert(name.to_owned(), TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype));
        }
        Ok(Self { tensors })
    }

    /// From a safetensors file.
    ///
    /// # Errors
    /// As [`from_safetensors`](Self::from_safetensors), or the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        // Errors of a graph's files name the file; those about bytes do not.
        let bytes = read_file(path).map_err(|e| ModelError::StateDict { message: e.to_string() })?;
        Self::from_safetensors(&bytes).map_err(|e| match e {
            ModelError::StateDict { message } => ModelError::StateDict { message: format!("{}: {message}", path.display()) },
            other => other,
        })
    }

    /// The tensors whose names begin with `prefix`, without it: those of one layer of a model.
    #[must_use]
    pub fn at(&self, prefix: &str) -> Self {
        let rest = |(name, data): (&String, &TensorData)| Some((name.strip_prefix(prefix)?.to_owned(), data.clone()));
        Self { tensors: self.tensors.iter().filter_map(rest).collect() }
    }

    /// The tensors whose names do not begin with `prefix`: what is left when another part of the model has taken its own.
    #[must_use]
    pub fn without(&self, prefix: &str) -> Self {
        let rest = self.tensors.iter().filter(|(name, _)| !name.starts_with(prefix));
        Self { tensors: rest.map(|(name, data)| (name.clone(), data.clone())).collect() }
    }

    /// The parameters of a layer under the names, and with the axes, of another framework. Blocks of a diagonal
    /// stay apart, where DGL lays them flat.
    pub fn of<M: Pretrained>(layer: &M, framework: Framework) -> Self {
        let names = |path: &str| layer.their(framework, path);
        let mut saver = Saver::new(&names);
        layer.visit(&mut saver);
        saver.state
    }

    /// The bytes of a safetensors file, which `safetensors.torch.load` reads.
    ///
    /// # Errors
    /// An element type that is no float.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, ModelError> {
        let wrong = |message: String| ModelError::StateDict { message };
        let mut views = vec![];
        for (name, data) in &self.tensors {
            let dtype = match data.dtype() {
                DType::F16 => Dtype::F16,
                DType::BF16 => Dtype::BF16,
                DType::F32 => Dtype::F32,
                DType::F64 => Dtype::F64,
                other => return Err(wrong(format!("tensor `{name}` must have elements of f16, bf16, f32 or f64, got {other:?}"))),
            };
            let view =
                TensorView::new(dtype, data.shape().to_vec(), data.as_bytes()).map_err(|e| wrong(format!("tensor `{name}`: {e}")))?;
            views.push((name.as_str(), view));
        }
        safetensors::serialize(views, None).map_err(|e| wrong(e.to_string()))
    }

    /// The tensors by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &TensorData)> {
        self.tensors.iter().map(|(name, data)| (name.as_str(), data))
    }

    /// The layer with all its parameters taken from here, in the precision it has.
    ///
    /// # Errors
    /// A parameter that has no tensor or one of another shape, or a tensor that no parameter takes: the layer was
    /// described differently.
    pub fn load<M: Pretrained>(&self, layer: M, from: Framework) -> Result<M, ModelError> {
        let described = layer.clone();
        let names = |path: &str| described.their(from, path);
        let mut loader = Loader::new(self, &names);
        let layer = layer.map(&mut loader);
        let used = loader.finish()?;
        let left: Vec<&str> = self.tensors.keys().map(String::as_str).filter(|k| !used.iter().any(|u| u == k)).collect();
        if left.is_empty() {
            return Ok(layer);
        }
        let message = format!("no parameter of the layer takes {left:?}; its options differ from those of the state dict");
        Err(ModelError::StateDict { message: cut_quoted(message) })
    }
}
