//! Names and layouts of the parameters of a layer in DGL and PyTorch Geometric.

use burn::module::{Module, ModuleDisplay};
use burn_gnn_ops::MessagePassing;

use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;

/// The framework that wrote a state dict, or that reads one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// DGL's `dgl.nn.pytorch`.
    Dgl,
    /// PyTorch Geometric's `torch_geometric.nn`.
    Pyg,
}

/// Mapping between the parameters of a layer or model and a state dict of DGL or PyTorch Geometric.
///
/// Custom layers with an `impl MessagePassing` have an implementation: the name of a parameter is its path, and fields of
/// Burn's `Linear` and norms are translated ([`ParamMapping::same`]). Use [`StateDict::renamed`](crate::StateDict::renamed)
/// for other names. A model of several layers implements the trait by calling its layers:
///
/// ```
/// use burn::module::Module;
/// use burn::nn::Linear;
/// use burn_gnn_models::{Buffer, Framework, GinConv, Pretrained, ParamMapping};
///
/// #[derive(Module, Debug)]
/// struct Net {
///     conv1: GinConv,
///     lin: Linear,
/// }
///
/// impl Pretrained for Net {
///     fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
///         match path.split_once('.') {
///             Some(("conv1", rest)) => self.conv1.param_mapping(from, rest).under("conv1."),
///             _ => ParamMapping::same(path), // `lin.weight`, transposed because the field is a `Linear`
///         }
///     }
///     fn buffers(&self, from: Framework) -> Vec<Buffer> {
///         self.conv1.buffers(from).into_iter().map(|b| b.under("conv1.")).collect()
///     }
/// }
/// ```
pub trait Pretrained: Module + ModuleDisplay {
    /// Returns name and layout in the framework `from` of the parameter at `path` (field names joined by dots).
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping;

    /// Returns the tensors that `from` saves with the layer and that are not parameters here: numbers that are options of
    /// the layer, and tensors that are not read.
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        vec![]
    }
}

/// Parameters of a custom layer have the same names in a state dict, unless the caller renames them.
impl<L: MessagePassing + Module + ModuleDisplay> Pretrained for L {
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        ParamMapping::same(path)
    }
}

/// Maps the parameter at `path` of a model with a list of layers `layers`, which PyG calls `convs`.
pub(crate) fn in_layers<M: Pretrained>(layers: &[M], from: Framework, path: &str) -> ParamMapping {
    match indexed(path) {
        Some(("layers", i, rest)) if i < layers.len() => {
            layers[i].param_mapping(from, rest).under(&layer_prefix(from, i))
        }
        _ => ParamMapping::same(path),
    }
}

/// Splits a path `list.index.rest`.
pub(crate) fn indexed(path: &str) -> Option<(&str, usize, &str)> {
    let (list, rest) = path.split_once('.')?;
    let (i, rest) = rest.split_once('.')?;
    Some((list, i.parse().ok()?, rest))
}

/// Returns the buffers of the layers of a model.
pub(crate) fn buffers_of_layers<M: Pretrained>(layers: &[M], from: Framework) -> Vec<Buffer> {
    let of = |(i, layer): (usize, &M)| {
        layer.buffers(from).into_iter().map(move |b| b.under(&layer_prefix(from, i)))
    };
    layers.iter().enumerate().flat_map(of).collect()
}

/// Converts the name of a type to a key of PyG's `ModuleDict` and `ParameterDict`, which must not contain dots.
pub(crate) fn pyg_key(name: &str) -> String {
    name.replace('.', "#")
}

fn layer_prefix(from: Framework, i: usize) -> String {
    match from {
        Framework::Dgl => format!("layers.{i}."),
        Framework::Pyg => format!("convs.{i}."),
    }
}
