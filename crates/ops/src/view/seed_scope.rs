//! Draws initial values and keys of dropout masks from the seed of a scope, or from the generator of the device.

use std::cell::Cell;
use std::sync::Arc;

use burn::module::{Flag, Module, Param};
use burn::tensor::{DType, Device, Distribution, Tensor};
use burn_gnn_graph::NodeKey;
use burn_gnn_graph::internal::OrPanic;

use crate::{DrawKey, EdgeDropout, Edges, GraphView, RowDropout, Stream, dropout};

/// The seed of a scope and how many streams were taken from it.
#[derive(Clone, Copy)]
struct Scope {
    seed: u64,
    taken: u64,
}

thread_local! {
    static SCOPE: Cell<Option<Scope>> = const { Cell::new(None) };
}

/// Runs `init` with a seed for all that layers draw when they are made: initial weights, rows of embeddings, keys of
/// dropout masks. Draw `i` of the scope is a function of (`seed`, `i`), so two layers made in it differ, and a model
/// made in it is the same for the same seed, on every rank, thread and device.
///
/// Without a scope every draw is seeded by the generator of the device, as Burn's own layers are: `device.seed(seed)`
/// makes it repeatable in a single-threaded program. Ranks that do not share that generator, or that are threads of one
/// process, then have different weights and dropout keys: make a model for ranks in a scope. To pick no seed, let rank
/// 0 draw one for all: `seeded(broadcast_seed(&*comm)?, || config.init(&device))` with `broadcast_seed` of
/// `burn-gnn-dist`, whose `check_replicas` compares the parameters of ranks.
///
/// The scope holds for layers of this library (and for custom layers that draw by [`next_stream`]) on the thread that
/// calls `seeded`; threads that `init` starts are outside of it. Scopes nest: an inner scope has its own counter, and
/// the outer one continues after it. It also ends when `init` panics.
///
/// # Layers of Burn
/// Burn's own layers, such as `Linear`, draw from the generator of their backend, which the process shares. `seeded`
/// seeds those of the CPU backends when it begins, as `device.seed(seed)` does, and does not put back what they were:
/// draws after it are a function of `seed` too. On a GPU call `device.seed(seed)` as well. Burn draws a parameter when
/// it is first used. A program that uses one model before it makes the next repeats its bits; where several models are
/// made first, draw each inside of its scope: `seeded(0, || { let m = Net::new(&device); m.valid(); m })`. On ranks,
/// which are threads with one generator, send models with layers of Burn by `broadcast_module` of `burn-gnn-dist`.
///
/// # Cost
/// Nothing per draw; without a scope every draw reads three numbers from the device.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_ops::{next_stream, seeded};
/// let device = Device::flex();
/// let two = || [(); 2].map(|()| next_stream(&device));
/// assert_eq!(seeded(1, two), seeded(1, two));
/// assert_ne!(seeded(1, two), seeded(2, two));
/// assert_ne!(seeded(1, two)[0], seeded(1, two)[1]);
///
/// // Without a scope, the generator of the device.
/// device.seed(7);
/// let first = two();
/// assert_ne!(first[0], first[1]);
/// device.seed(7);
/// assert_eq!(two(), first);
/// ```
pub fn seeded<T>(seed: u64, init: impl FnOnce() -> T) -> T {
    struct Outer(Option<Scope>);
    impl Drop for Outer {
        fn drop(&mut self) {
            SCOPE.set(self.0);
        }
    }
    let _outer = Outer(SCOPE.replace(Some(Scope { seed, taken: 0 })));
    seed_backends(seed);
    init()
}

/// Seeds the generators that layers of Burn draw from on the CPU. Those of GPUs are not reached without starting them.
#[allow(deprecated)] // `Device::ndarray`: Burn has deprecated the backend, users still ask for it
fn seed_backends(_seed: u64) {
    #[cfg(feature = "flex")]
    Device::flex().seed(_seed);
    #[cfg(feature = "ndarray")]
    Device::ndarray().seed(_seed);
}

/// The stream of the next initial values: of the innermost [`seeded`] scope, or with a seed from the generator of
/// `device`. Custom layers take one for each parameter.
///
/// ```
/// use burn::module::Param;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{glorot_uniform, next_stream, seeded};
/// let device = Device::flex();
/// let weight = || Param::from_tensor(Tensor::<2>::from_data(glorot_uniform(next_stream(&device), 4, 2, [4, 2]), &device));
/// let [a, b] = seeded(1, || [weight(), weight()]);
/// assert_ne!(a.val().into_data(), b.val().into_data());
/// ```
pub fn next_stream(device: &Device) -> Stream {
    let scope = SCOPE.get().unwrap_or_else(|| Scope { seed: drawn(device), taken: 0 });
    if SCOPE.get().is_some() {
        SCOPE.set(Some(Scope { taken: scope.taken + 1, ..scope }));
    }
    Stream::new(scope.seed, "layer", scope.taken)
}

/// A seed from the generator of the device.
fn drawn(device: &Device) -> u64 {
    // Uniform f32 have 24 random bits, and every backend draws them.
    let bits = Tensor::<1>::random(
        [3],
        Distribution::Default,
        (&device.clone().without_autodiff(), DType::F32),
    );
    bits.into_data().iter::<f64>().fold(0u64, |seed, u| (seed << 24) ^ (u * 16_777_216.0) as u64)
}

/// Dropout of a layer: the key of its masks, next to seed, step, original id and column, and Burn's training flag. The
/// key is taken when the layer is made, as its initial weights are (see [`seeded`]), so that the masks of two layers
/// differ and ranks agree on them.
///
/// It is a module, as Burn's `Dropout` is: a layer keeps it as a field, **without** `#[module(skip)]`, so that
/// `freeze`, `freeze_group`, `valid` and `train` reach its flag. The key itself never changes, in clones and loaded
/// records neither.
///
/// Entries are dropped by Burn's rule, where tensors are on an autodiff device and the flag is enabled:
///
/// | module | dropout |
/// | --- | --- |
/// | made on an autodiff device | yes |
/// | [`no_grad`](Module::no_grad), [`set_require_grad`](Module::set_require_grad) | yes: gradients alone stop |
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
    /// Whether the layer trains: disabled by `freeze` and `valid`, enabled again by `unfreeze` and `train`.
    pub training: Param<Flag>,
}

impl DropoutKey {
    /// The next key; `device` is asked where there is no scope.
    pub fn new(device: &Device) -> Self {
        Self { key: Self::of(next_stream(device)), training: Param::from_bool(true) }
    }

    /// The key of one of several places in a layer or model where entries are dropped; it has the flag of this one, as
    /// it is now.
    #[must_use]
    pub fn at(&self, place: usize) -> Self {
        let key = Self::of(Stream::new(self.key, "place", place as u64));
        Self { key, training: self.training.clone() }
    }

    /// Dropout of the features of the input nodes of a type, keyed by original ids; the identity on devices without
    /// autodiff, in a module that does not [train](Self::training), and for probability 0.
    ///
    /// # Panics
    /// There is no such type.
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

    /// What [`dropout`](Self::dropout) does to `x`, for an operator that does it on the way; `None` where that is
    /// nothing.
    ///
    /// # Panics
    /// There is no such type.
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

    /// As [`of_inputs`](Self::of_inputs), of the destinations that a layer computes: on a block the first of the input
    /// nodes.
    ///
    /// # Panics
    /// There is no such type.
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

    /// Dropout of numbers on edges (weights, attention), keyed by original edge ids; `None` where that is nothing. `x`
    /// tells whether gradients are tracked.
    pub fn of_edges<const D: usize>(
        &self,
        edges: &Edges<'_>,
        prob: f64,
        x: &Tensor<D>,
    ) -> Option<EdgeDropout> {
        let stream = self.stream(edges.view(), &edges.edge_type().to_string(), prob, x)?;
        Some(EdgeDropout { prob, stream, ids: edges.original_edge_ids() })
    }

    fn stream<const D: usize>(
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
    use std::panic::catch_unwind;

    use super::*;

    fn next() -> Stream {
        next_stream(&Device::flex())
    }

    #[test]
    fn scopes_nest_and_end() {
        let straight = seeded(5, || [(); 3].map(|()| next()));
        assert!(
            straight[0] != straight[1] && straight[1] != straight[2] && straight[0] != straight[2]
        );
        // The outer scope goes on where it was, after a result and after a panic.
        let nested = seeded(5, || {
            let first = next();
            assert_eq!(seeded(5, next), first);
            let second = next();
            let panics = catch_unwind(|| seeded(6, || assert_eq!(next(), first, "another seed")));
            assert!(panics.is_err());
            [first, second, next()]
        });
        assert_eq!(nested, straight);
        assert!(SCOPE.get().is_none());
    }

    /// Not only streams: what layers of Burn draw.
    #[test]
    fn generators_of_the_cpu_are_seeded() {
        let draw = |seed| {
            seeded(seed, || {
                Tensor::<1>::random([4], Distribution::Default, &Device::flex()).into_data()
            })
        };
        // Other tests of this process draw from the generator too: of some tries one is undisturbed.
        assert!((0..100).any(|_| draw(1) == draw(1)));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn threads_have_scopes_of_their_own() {
        let draws = |seed| {
            std::thread::scope(|s| {
                [(); 4]
                    .map(|()| s.spawn(move || seeded(seed, || [next(), next()])))
                    .map(|t| t.join().unwrap())
            })
        };
        let (one, two) = (draws(1), draws(2));
        assert!(one.iter().all(|d| *d == one[0]) && one[0] != two[0]);
        seeded(1, || {
            std::thread::scope(|s| assert!(s.spawn(|| SCOPE.get().is_none()).join().unwrap()))
        });
    }

    #[test]
    fn without_a_scope_the_device_draws() {
        let streams: std::collections::HashSet<Stream> = (0..100).map(|_| next()).collect();
        assert_eq!(streams.len(), 100);
    }

    #[test]
    fn keys_differ_by_place() {
        let key = seeded(1, || DropoutKey::new(&Device::flex()));
        assert!(key.at(0).key != key.at(1).key && key.at(0).key != key.key);
        assert_eq!(key.key, seeded(1, || DropoutKey::new(&Device::flex())).key);
        assert_eq!(key.clone().valid().train().key, key.key);
    }
}
