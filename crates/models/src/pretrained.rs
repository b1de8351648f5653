//! Weights of layers that were trained with DGL or PyTorch Geometric.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ModuleDisplay, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor, TensorData};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::ModelError;

/// Whose names a state dict has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// DGL's `dgl.nn.pytorch`.
    Dgl,
    /// PyTorch Geometric's `torch_geometric.nn`.
    Pyg,
}

/// Where another framework keeps a parameter, and how it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Their {
    name: String,
    transposed: bool,
}

impl Their {
    /// Under `name`, with its axes in our order. Fields of Burn's `Linear` and `LayerNorm` are translated
    /// without being told: `Linear` is transposed, `gamma` and `beta` are `weight` and `bias`.
    pub fn same(name: impl Into<String>) -> Self {
        Self { name: name.into(), transposed: false }
    }
    /// Under `name`, a matrix with its axes the other way round.
    pub fn transposed(name: impl Into<String>) -> Self {
        Self { name: name.into(), transposed: true }
    }
    /// With a prefix before the name.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.name.insert_str(0, prefix);
        self
    }

    /// With a suffix behind the name.
    #[must_use]
    pub fn followed_by(mut self, suffix: &str) -> Self {
        self.name.push_str(suffix);
        self
    }

    /// What fields of Burn's own modules add to it.
    fn inside(mut self, container: &str, rank: usize) -> Self {
        match container {
            "Struct:Linear" if rank == 2 => self.transposed = true,
            "Struct:LayerNorm" => {
                for (ours, theirs) in [("gamma", "weight"), ("beta", "bias")] {
                    if let Some(start) = self.name.strip_suffix(ours) {
                        self.name = format!("{start}{theirs}");
                    }
                }
            }
            _ => {}
        }
        self
    }
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
        let wrong = |message: String| ModelError::StateDict { message };
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
        let bytes = std::fs::read(path).map_err(|e| ModelError::StateDict { message: format!("{}: {e}", path.display()) })?;
        Self::from_safetensors(&bytes)
    }

    /// The tensors whose names begin with `prefix`, without it: those of one layer of a model.
    #[must_use]
    pub fn at(&self, prefix: &str) -> Self {
        let rest = |(name, data): (&String, &TensorData)| Some((name.strip_prefix(prefix)?.to_owned(), data.clone()));
        Self { tensors: self.tensors.iter().filter_map(rest).collect() }
    }

    /// The parameters of a layer under the names, and with the axes, of another framework. Blocks of a diagonal
    /// stay apart, where DGL lays them flat.
    pub fn of<M: Pretrained>(layer: &M, framework: Framework) -> Self {
        let mut saver = Saver { their: &|path: &str| layer.their(framework, path), place: Place::default(), state: Self::default() };
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
        let names = layer.clone();
        let mut loader =
            Loader { state: self, their: &|path: &str| names.their(from, path), place: Place::default(), used: vec![], error: None };
        let layer = layer.map(&mut loader);
        if let Some(error) = loader.error {
            return Err(error);
        }
        let left: Vec<&str> = self.tensors.keys().map(String::as_str).filter(|k| !loader.used.iter().any(|u| u == k)).collect();
        if left.is_empty() {
            return Ok(layer);
        }
        Err(ModelError::StateDict {
            message: format!("no parameter of the layer takes {left:?}; its options differ from those of the state dict"),
        })
    }
}

/// Where a walk through a module stands: field names, and the types that hold them.
#[derive(Default)]
struct Place(Vec<(String, String)>);

impl Place {
    fn path(&self) -> String {
        self.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }
    fn container(&self) -> &str {
        self.0.last().map_or("", |(_, container)| container)
    }
}

struct Loader<'a> {
    state: &'a StateDict,
    their: &'a dyn Fn(&str) -> Their,
    place: Place,
    used: Vec<String>,
    error: Option<ModelError>,
}

impl Loader<'_> {
    /// The tensor of the parameter at the current path, and whether its axes are the other way round.
    fn find(&mut self, shape: &[usize]) -> Result<(TensorData, bool), ModelError> {
        let path = self.place.path();
        let Their { name, transposed } = (self.their)(&path).inside(self.place.container(), shape.len());
        let wrong = |message| Err(ModelError::StateDict { message });
        let Some(data) = self.state.tensors.get(&name) else {
            let names: Vec<&String> = self.state.tensors.keys().collect();
            return wrong(format!("parameter `{path}` is looked for under `{name}`, found only {names:?}"));
        };
        let mut expected = shape.to_vec();
        if transposed {
            expected.reverse();
        }
        let actual = data.shape().to_vec();
        // Blocks of a diagonal may lie flat.
        let flat = !transposed && expected.iter().product::<usize>() == actual.iter().product::<usize>();
        if expected != actual && !flat {
            return wrong(format!("tensor `{name}` must have shape {expected:?}, got {actual:?}"));
        }
        self.used.push(name);
        Ok((data.clone(), transposed))
    }
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.place.0.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.val().dims();
        let (data, transposed) = match self.find(&shape) {
            Ok(found) => found,
            Err(error) => {
                self.error.get_or_insert(error);
                return param;
            }
        };
        param.map(|t| {
            let (tracked, autodiff) = (t.is_require_grad(), t.is_autodiff());
            let device = t.device().without_autodiff();
            let mut stored = shape;
            if transposed {
                stored.reverse();
            }
            let (bytes, _, dtype) = data.into_parts();
            let plain = Tensor::<D>::from_data(TensorData::from_bytes(bytes, stored, dtype), (&device, t.dtype()));
            let plain = if transposed { plain.transpose() } else { plain };
            // A leaf is made anew on the plain device.
            if autodiff { plain.autodiff().set_require_grad(tracked) } else { plain }
        })
    }
}

struct Saver<'a> {
    their: &'a dyn Fn(&str) -> Their,
    place: Place,
    state: StateDict,
}

impl ModuleVisitor for Saver<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.place.0.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Their { name, transposed } = (self.their)(&self.place.path()).inside(self.place.container(), D);
        let value = param.val();
        let value = if transposed { value.transpose() } else { value };
        self.state.tensors.insert(name, value.into_data());
    }
}
