//! Seeds the draws of layers: initial weights and keys of dropout masks.

use std::cell::Cell;

use burn::tensor::{DType, Device, Distribution, Tensor};
use burn_gnn_graph::Stream;

/// The seed of a scope and the number of streams taken from it.
#[derive(Clone, Copy)]
struct Scope {
    seed: u64,
    taken: u64,
}

thread_local! {
    static SCOPE: Cell<Option<Scope>> = const { Cell::new(None) };
}

/// Runs `init` with a seed for the initialisation of layers: initial weights, rows of embeddings, keys of dropout masks.
/// Draw `i` of the scope is a function of (`seed`, `i`), so layers in one scope differ, and a model is the same for the
/// same seed on every rank, thread and device.
///
/// Without a scope every draw is seeded by the generator of the device, as in Burn's layers: `device.seed(seed)` makes it
/// repeatable in a single-threaded program. Ranks with separate generators, and ranks that are threads of one process,
/// then have different weights and dropout keys, so initialise a model for ranks in a scope. If you have no seed, rank 0
/// can draw one for all: `seeded(broadcast_seed(&*comm)?, || config.init(&device))` with `broadcast_seed` of
/// `burn-gnn-dist`, whose `check_replicas` compares the parameters of ranks.
///
/// The scope applies to layers of this library (and to custom layers that call [`next_stream`]) on the thread that calls
/// `seeded`; threads that `init` starts are outside of it. Scopes nest: an inner scope has its own counter, and the
/// outer one continues after it. A scope also ends when `init` panics.
///
/// # Layers of Burn
/// Burn's own layers, such as `Linear`, draw from the generator of their backend, which is shared by the process.
/// `seeded` seeds the generators of the CPU backends when it begins, as `device.seed(seed)` does, and does not restore
/// their state: draws after the scope are functions of `seed` too. On a GPU call `device.seed(seed)` in addition.
///
/// Burn draws a parameter when it is first used. Results are repeatable if every model is used before the next one is
/// created. To create several models first, use each in its scope:
/// `seeded(0, || { let m = Net::new(&device); m.valid(); m })`. On ranks that are threads with one generator, send models
/// with layers of Burn by `broadcast_module` of `burn-gnn-dist`.
///
/// # Cost
/// Draws in a scope are free. Without a scope every draw reads three numbers from the device.
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

/// Seeds the generators of the CPU backends, from which Burn's layers draw. Seeding a GPU would initialise it.
#[allow(deprecated)] // `Device::ndarray`: Burn has deprecated the backend
fn seed_backends(_seed: u64) {
    #[cfg(feature = "flex")]
    Device::flex().seed(_seed);
    #[cfg(feature = "ndarray")]
    Device::ndarray().seed(_seed);
}

/// Returns the random stream of the next initial values: from the innermost [`seeded`] scope, or with a seed from the
/// generator of `device`. Custom layers call it once per parameter.
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

/// Draws a seed from the generator of the device.
fn drawn(device: &Device) -> u64 {
    // Every backend draws uniform f32, which have 24 random bits.
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
        // The outer scope continues after an inner scope returns or panics.
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

    /// Draws of Burn's layers are seeded too.
    #[test]
    fn generators_of_the_cpu_are_seeded() {
        let draw = |seed| {
            seeded(seed, || {
                Tensor::<1>::random([4], Distribution::Default, &Device::flex()).into_data()
            })
        };
        // Other tests of this process draw from the same generator, so one of several tries must succeed.
        assert!((0..100).any(|_| draw(1) == draw(1)));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn scopes_are_local_to_threads() {
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
