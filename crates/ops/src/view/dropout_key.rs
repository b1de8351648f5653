//! Defines `DropoutKey`, by which a layer drops entries.

use std::sync::Arc;

use burn::module::{Flag, Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_graph::{NodeKey, Stream};
use burn_gnn_plan::RowDropout;

use crate::dense::dropout::dropout;
use crate::view::GraphView;
use crate::view::draw_key::DrawKey;
use crate::view::seed_scope::next_stream;

/// Dropout of a layer: a key that makes its masks differ from the masks of other layers, and Burn's training flag. The
/// key is drawn at initialisation like initial weights (see [`seeded`](crate::seeded)), so that ranks have equal keys.
///
/// Like Burn's `Dropout` it is a module: a layer has it as a field **without** `#[module(skip)]`, so that `freeze`,
/// `freeze_group`, `valid` and `train` reach its flag. The key never changes, neither by cloning nor by loading a
/// record.
///
/// Entries are dropped by Burn's rule: if tensors are on an autodiff device and the flag is enabled.
///
/// | module | dropout |
/// | --- | --- |
/// | made on an autodiff device | yes |
/// | [`no_grad`](Module::no_grad), [`set_require_grad`](Module::set_require_grad) | yes: these affect gradients only |
/// | [`freeze`](Module::freeze), or in a frozen group | no |
/// | [`valid`](Module::valid), or made on a plain device | no |
///
/// Masks follow the [draw key](GraphView::draw_key) of the view.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::{DropoutKey, GraphView, seeded};
/// let (g, device) = (Graph::homogeneous(3, vec![0], vec![1])?, Device::flex().autodiff());
/// let [a, b] = seeded(0, || [(); 2].map(|()| DropoutKey::new(&device)));
/// let x = Tensor::<2>::ones([3, 16], &device);
/// let rows = |key: &DropoutKey, step| key.dropout(&g.at_step(1, step), .., 0.5, x.clone()).into_data();
/// assert_eq!(rows(&a, 0), rows(&a, 0));
/// assert_ne!(rows(&a, 0), rows(&b, 0));
/// assert_ne!(rows(&a, 0), rows(&a, 1));
/// let valid = x.clone().inner();
/// assert_eq!(a.dropout(&g.at_step(1, 0), .., 0.5, valid.clone()).into_data(), valid.into_data());
/// // Frozen on the training device.
/// use burn::module::Module;
/// assert_eq!(rows(&b.freeze(), 0), x.clone().into_data());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Module, Debug)]
pub struct DropoutKey {
    #[module(skip)]
    key: u64,
    /// Training flag: disabled by `freeze` and `valid`, enabled by `unfreeze` and `train`.
    pub training: Param<Flag>,
}

impl DropoutKey {
    /// Draws the next key, from the generator of `device` if there is no [`seeded`](crate::seeded) scope.
    pub fn new(device: &Device) -> Self {
        Self { key: Self::of(next_stream(device)), training: Param::from_bool(true) }
    }

    /// Derives the key of the `index`-th dropout of a layer or model. It copies the training flag.
    #[must_use]
    pub fn at(&self, index: usize) -> Self {
        let key = Self::of(Stream::new(self.key, "place", index as u64));
        Self { key, training: self.training.clone() }
    }

    /// Applies dropout to features of the input nodes of a type, keyed by original ids. It is the identity on devices
    /// without autodiff, if the [training flag](Self::training) is disabled, and for probability 0.
    ///
    /// # Panics
    /// An unknown node type.
    #[track_caller]
    pub fn dropout(
        &self,
        view: &dyn GraphView,
        ntype: impl NodeKey,
        prob: f64,
        x: Tensor<2>,
    ) -> Tensor<2> {
        match self.of_inputs(view, ntype, prob, &x) {
            Some(RowDropout { prob, stream, ids }) => dropout(x, prob, stream, ids),
            None => x,
        }
    }

    /// The dropout that [`dropout`](Self::dropout) applies to `x`, for an operator that applies it itself; `None` if no
    /// entries are dropped.
    ///
    /// # Panics
    /// An unknown node type.
    #[track_caller]
    pub fn of_inputs(
        &self,
        view: &dyn GraphView,
        ntype: impl NodeKey,
        prob: f64,
        x: &Tensor<2>,
    ) -> Option<RowDropout> {
        let ntype = view.schema().ntype(ntype).map_err(|e| format!("dropout: {e}")).or_panic();
        let stream = self.stream(view, &view.schema().ntypes()[ntype], prob, x)?;
        Some(RowDropout { prob, stream, ids: view.original_ids(ntype) })
    }

    /// As [`of_inputs`](Self::of_inputs), for the destinations that a layer computes. On a block they are the first input
    /// nodes.
    ///
    /// # Panics
    /// An unknown node type.
    #[track_caller]
    pub fn of_outputs(
        &self,
        view: &dyn GraphView,
        ntype: impl NodeKey,
        prob: f64,
        x: &Tensor<2>,
    ) -> Option<RowDropout> {
        let ntype = view.schema().ntype(ntype).map_err(|e| format!("dropout: {e}")).or_panic();
        let mut dropout = self.of_inputs(view, ntype, prob, x)?;
        let rows = view.num_dst(ntype);
        dropout.ids =
            dropout.ids.map(|ids| if ids.len() > rows { Arc::from(&ids[..rows]) } else { ids });
        Some(dropout)
    }

    pub(crate) fn stream<const D: usize>(
        &self,
        view: &dyn GraphView,
        of: &str,
        prob: f64,
        x: &Tensor<D>,
    ) -> Option<Stream> {
        if prob <= 0.0 || !x.is_autodiff() || !self.training.is_enabled() {
            return None;
        }
        match view.draw_key() {
            DrawKey::Step { seed, step } => {
                Some(Stream::new(seed, &format!("dropout/{:016x}/{of}", self.key), step))
            }
            DrawKey::Fresh => Some(next_stream(&x.device())),
            DrawKey::Never => None,
        }
    }

    fn of(stream: Stream) -> u64 {
        let [low, high] = stream.key();
        (u64::from(high) << 32) | u64::from(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::seed_scope::seeded;

    #[test]
    fn keys_differ_by_index() {
        let key = seeded(1, || DropoutKey::new(&Device::flex()));
        assert!(key.at(0).key != key.at(1).key && key.at(0).key != key.key);
        assert_eq!(key.key, seeded(1, || DropoutKey::new(&Device::flex())).key);
        assert_eq!(key.clone().valid().train().key, key.key);
    }
}
