//! Names and layouts of the parameters of a layer in DGL and PyTorch Geometric.

use burn::module::{Module, ModuleDisplay};

use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;

/// Whose names a state dict has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// DGL's `dgl.nn.pytorch`.
    Dgl,
    /// PyTorch Geometric's `torch_geometric.nn`.
    Pyg,
}

/// A layer or model that DGL or PyTorch Geometric have too. A model of several layers asks them, under their names:
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
///             _ => ParamMapping::same(path), // `lin.weight`, transposed because it is in a `Linear`
///         }
///     }
///     fn buffers(&self, from: Framework) -> Vec<Buffer> {
///         self.conv1.buffers(from).into_iter().map(|b| b.under("conv1.")).collect()
///     }
/// }
/// ```
pub trait Pretrained: Module + ModuleDisplay {
    /// Where `from` keeps the parameter at `path` (field names joined by dots).
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping;

    /// What `from` saves with the layer that is no parameter here: numbers that are options here, tensors that nothing
    /// reads.
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        vec![]
    }
}

/// Where a model keeps the parameter at `path` of its list of layers `layers`, which PyG calls `convs`; `path` itself
/// for another parameter.
pub(crate) fn in_layers<M: Pretrained>(layers: &[M], from: Framework, path: &str) -> ParamMapping {
    match indexed(path) {
        Some(("layers", i, rest)) if i < layers.len() => {
            layers[i].param_mapping(from, rest).under(&layer_prefix(from, i))
        }
        _ => ParamMapping::same(path),
    }
}

/// A path `list.index.rest`.
pub(crate) fn indexed(path: &str) -> Option<(&str, usize, &str)> {
    let (list, rest) = path.split_once('.')?;
    let (i, rest) = rest.split_once('.')?;
    Some((list, i.parse().ok()?, rest))
}

/// Buffers of a model's layers.
pub(crate) fn buffers_of_layers<M: Pretrained>(layers: &[M], from: Framework) -> Vec<Buffer> {
    let of = |(i, layer): (usize, &M)| {
        layer.buffers(from).into_iter().map(move |b| b.under(&layer_prefix(from, i)))
    };
    layers.iter().enumerate().flat_map(of).collect()
}

/// The name of a type in PyG's `ModuleDict` and `ParameterDict`, whose keys hold no dots.
pub(crate) fn pyg_key(name: &str) -> String {
    name.replace('.', "#")
}

fn layer_prefix(from: Framework, i: usize) -> String {
    match from {
        Framework::Dgl => format!("layers.{i}."),
        Framework::Pyg => format!("convs.{i}."),
    }
}
