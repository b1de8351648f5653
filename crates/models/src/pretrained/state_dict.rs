//! Reads and writes state dicts of PyTorch (`StateDict`).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::{DType, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_files::internal::read_file;
use burn_gnn_files::internal::{cut, cut_quoted, open as open_file};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::error::ModelError;
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_visitors::{Loader, NamedTensors, Saver, listed};
use crate::pretrained::weight_names::{Framework, Pretrained};

/// The tensors of a PyTorch module by name, to load weights of DGL and PyTorch Geometric and to save weights for them.
///
/// Files are written by `torch.save(module.state_dict(), path)` or
/// `safetensors.torch.save_file(module.state_dict(), path)`. They contain no state of an optimizer: training starts
/// with a new one. To continue a run of this library, use [`FitConfig::with_checkpoint`](crate::FitConfig) or
/// [`resume_weights`](crate::resume_weights).
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_models::{Framework, GcnConv, GcnConvConfig, ModelError, StateDict};
/// let device = Device::flex();
/// let theirs = GcnConvConfig::new(3, 2).init(&device);
/// let file = StateDict::of(&theirs, Framework::Pyg).to_safetensors()?; // `lin.weight` and `bias`
/// let ours = GcnConvConfig::new(3, 2).init(&device);
/// let ours = StateDict::from_safetensors(&file)?.load(ours, Framework::Pyg)?;
/// let weight = |conv: GcnConv| conv.weight.map(|w| w.val().into_data());
/// assert_eq!(weight(ours), weight(theirs));
/// # Ok::<(), ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    tensors: NamedTensors,
}

/// First bytes of a `.pt` file: a zip archive, or before PyTorch 1.6 a pickle.
const TORCH: [&[u8; 4]; 2] = [b"PK\x03\x04", b"\x80\x02\x8a\x0a"];

/// Element types of parameters, in safetensors and in Burn.
const FLOATS: [(Dtype, DType); 4] = [
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::F32, DType::F32),
    (Dtype::F64, DType::F64),
];

fn no_float(name: &str, found: impl std::fmt::Debug) -> String {
    format!("tensor `{name}` must have elements of f16, bf16, f32 or f64, got {found:?}; cast it")
}

impl StateDict {
    /// Reads the bytes of a safetensors file. Integer and boolean tensors (counters of batches, masks) are skipped.
    ///
    /// # Errors
    /// The bytes are not a safetensors file, or a float tensor is not of type f16, bf16, f32 or f64.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ModelError> {
        let wrong = |message: String| ModelError::state_dict(cut_quoted(message));
        let foreign = |e: safetensors::SafeTensorError| {
            wrong(format!(
                "expected a safetensors file, found: {e}; write it with `safetensors.torch.save_file`"
            ))
        };
        let file = SafeTensors::deserialize(bytes).map_err(foreign)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let dtype = match view.dtype() {
                Dtype::BOOL | Dtype::I64 | Dtype::I32 | Dtype::I16 | Dtype::I8 => continue,
                Dtype::U64 | Dtype::U32 | Dtype::U16 | Dtype::U8 => continue,
                other => match FLOATS.iter().find(|f| f.0 == other) {
                    Some(&(_, ours)) => ours,
                    None => return Err(wrong(no_float(name, other))),
                },
            };
            let data =
                TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype);
            tensors.insert(name.to_owned(), Arc::new(data));
        }
        Ok(Self { tensors })
    }

    /// Reads a safetensors file or, with the feature `torch`, a `.pt` file that `torch.save` wrote (PyTorch 1.6 and later).
    /// The first bytes of the file determine the format.
    ///
    /// In a checkpoint of nested dictionaries, the name of a tensor is the path of its keys, joined by dots:
    /// `{"model": module.state_dict(), "epoch": 7}` is loaded by `StateDict::from_file(path)?.at("model.")`.
    ///
    /// A `.pt` file is a pickle, which is a program. It is not executed, and everything but tensors and containers is an
    /// error ([`read_torch`](https://docs.rs/burn-gnn-data/latest/burn_gnn_data/fn.read_torch.html)). Burn's reader
    /// (`burn-store`) is not used, because this one bounds memory by the size of the file and supports parameters that are
    /// a part of a tensor, a stack of tensors, negated or shared.
    ///
    /// # Errors
    /// As [`from_safetensors`](Self::from_safetensors); the file cannot be read; or it is a `.pt` file, and the feature
    /// `torch` is disabled or it contains more than tensors.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        // Errors of `from_safetensors` do not contain the path.
        if starts_as_torch(path).map_err(ModelError::state_dict)? {
            return Self::from_torch(path);
        }
        let bytes = read_file(path).map_err(ModelError::state_dict)?;
        Self::from_safetensors(&bytes).map_err(|e| match e {
            ModelError::StateDict { message } => {
                ModelError::state_dict(format!("{}: {message}", path.display()))
            }
            other => other,
        })
    }

    #[cfg(feature = "torch")]
    fn from_torch(path: &Path) -> Result<Self, ModelError> {
        let all = burn_gnn_data::read_torch(path).map_err(ModelError::state_dict)?;
        Ok(Self { tensors: all.into_iter().filter(|(_, data)| data.dtype().is_float()).collect() })
    }

    #[cfg(not(feature = "torch"))]
    fn from_torch(path: &Path) -> Result<Self, ModelError> {
        let message = "expected a safetensors file, found one that `torch.save` wrote; build with the feature `torch`, or write it with \
                       `safetensors.torch.save_file`";
        Err(ModelError::state_dict(format!("{}: {message}", path.display())))
    }

    /// Selects the tensors whose names start with `prefix`, for example those of one layer, and removes the prefix.
    #[must_use]
    pub fn at(&self, prefix: &str) -> Self {
        let rest = |(name, data): (&String, &Arc<TensorData>)| {
            Some((name.strip_prefix(prefix)?.to_owned(), data.clone()))
        };
        Self { tensors: self.tensors.iter().filter_map(rest).collect() }
    }

    /// Selects the tensors whose names do not start with `prefix`, for example to exclude another part of a model.
    #[must_use]
    pub fn without(&self, prefix: &str) -> Self {
        let mut rest = self.clone();
        rest.tensors.retain(|name, _| !name.starts_with(prefix));
        rest
    }

    /// Renames tensors. `rename` returns the new name, or `None` to remove a tensor.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_models::{Framework, GcnConvConfig, ModelError, StateDict};
    /// let conv = GcnConvConfig::new(3, 2).init(&Device::flex());
    /// let state = StateDict::of(&conv, Framework::Pyg); // `lin.weight` and `bias`
    /// let state = state.renamed(|name| Some(format!("encoder.{}", name.replace("lin.", "projection."))))?;
    /// assert_eq!(state.tensors().map(|(name, _)| name).collect::<Vec<_>>(), ["encoder.bias", "encoder.projection.weight"]);
    /// # Ok::<(), ModelError>(())
    /// ```
    ///
    /// # Errors
    /// Two tensors get the same name.
    pub fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let mut tensors = BTreeMap::new();
        for (old, data) in &self.tensors {
            let Some(new) = rename(old) else { continue };
            if tensors.insert(new.clone(), data.clone()).is_some() {
                let (new, old) = (cut(&new), cut(old));
                return Err(ModelError::state_dict(format!(
                    "`rename` returned `{new}` for `{old}` and for another tensor; return different names"
                )));
            }
        }
        Ok(Self { tensors })
    }

    /// Creates the state dict of a layer with the names and axes of another framework, for `load_state_dict` of the same
    /// layer there. Tensors that the other layer has and does not read are zeros. If the
    /// [`buffers`](Pretrained::buffers) of a custom layer have no shape for such a tensor, it is omitted; then use
    /// `strict=False`.
    pub fn of<M: Pretrained>(layer: &M, framework: Framework) -> Self {
        let names = |path: &str| layer.param_mapping(framework, path);
        let mut saver = Saver::new(&names);
        layer.visit(&mut saver);
        let mut tensors = saver.state;
        for Buffer { names, option, shape } in layer.buffers(framework) {
            let data = match (option, shape) {
                (Some((value, _)), _) => TensorData::new(vec![value as f32], [1]),
                (None, Some(shape)) => TensorData::zeros::<f32, _>(shape),
                (None, None) => continue,
            };
            tensors.extend(names.into_iter().next().map(|name| (name, Arc::new(data))));
        }
        Self { tensors }
    }

    /// Serializes to the bytes of a safetensors file, for `safetensors.torch.load`.
    ///
    /// # Errors
    /// An element type is not a float.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, ModelError> {
        let mut views = vec![];
        for (name, data) in &self.tensors {
            let Some(&(dtype, _)) = FLOATS.iter().find(|f| f.1 == data.dtype()) else {
                return Err(ModelError::state_dict(no_float(name, data.dtype())));
            };
            let view = TensorView::new(dtype, data.shape().to_vec(), data.as_bytes())
                .map_err(|e| ModelError::state_dict(format!("tensor `{name}`: {e}")))?;
            views.push((name.as_str(), view));
        }
        safetensors::serialize(views, None).map_err(ModelError::state_dict)
    }

    /// Iterates over names and tensors.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &TensorData)> {
        self.tensors.iter().map(|(name, data)| (name.as_str(), data.as_ref()))
    }

    /// Loads all parameters of a layer or model, and keeps its precision.
    ///
    /// # Errors
    /// * [`ModelError::WeightMissing`]: a parameter has no tensor.
    /// * [`ModelError::WeightShape`]: a tensor has another shape.
    /// * [`ModelError::WeightsLeft`]: no parameter reads a tensor, because the layer has other options.
    /// * [`ModelError::WeightOption`]: an option of the layer differs from the saved number.
    /// * [`ModelError::WeightShared`]: two tensors of one parameter differ.
    pub fn load<M: Pretrained>(&self, layer: M, from: Framework) -> Result<M, ModelError> {
        let described = layer.clone();
        let names = |path: &str| described.param_mapping(from, path);
        let mut loader = Loader::new(&self.tensors, &names);
        let layer = layer.map(&mut loader);
        let mut used = loader.finish()?;
        for Buffer { names, option, .. } in described.buffers(from) {
            for tensor in names {
                let Some(data) = self.tensors.get(&tensor) else { continue };
                if let Some((expected, option)) = option {
                    let values: Vec<f64> = data.iter::<f64>().take(2).collect();
                    let &[actual] = values.as_slice() else {
                        let (expected, actual) = (vec![1], data.shape().to_vec());
                        return Err(ModelError::WeightShape {
                            parameter: option.into(),
                            tensor,
                            expected,
                            actual,
                        });
                    };
                    // The other framework computed the number in f32, for example as a sum of logarithms.
                    let near = (actual - expected).abs() <= 1e-4 * expected.abs().max(1e-4);
                    if !near {
                        // Formatted as f32, as the other framework prints it.
                        let actual = (actual as f32).to_string().parse().unwrap_or(actual);
                        return Err(ModelError::WeightOption { option, tensor, expected, actual });
                    }
                }
                used.insert(tensor);
            }
        }
        let mut left = self.tensors.keys().filter(|name| !used.contains(*name)).peekable();
        if left.peek().is_none() {
            return Ok(layer);
        }
        Err(ModelError::WeightsLeft { tensors: listed(left) })
    }
}

/// Whether a file starts with the first bytes of a `.pt` file.
fn starts_as_torch(path: &Path) -> Result<bool, DataError> {
    let (file, _) = open_file(path)?;
    let mut first = vec![];
    // The reader reports a file that cannot be read.
    let _ = file.take(4).read_to_end(&mut first);
    Ok(TORCH.iter().any(|begin| first == **begin))
}
