//! Seeds the draws of layers: initial weights and keys of dropout masks.

use std::cell::Cell;

use burn::tensor::{DType, Device, Distribution, Tensor};
use burn_gnn_graph::Stream;

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
}
