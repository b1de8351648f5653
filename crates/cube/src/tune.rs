//! Which of several ways to launch a kernel is the fastest, measured by CubeCL's tuner.
//!
//! Variants of a kernel that sums edges differ in how many messages are on their way at a time, in the units of a cube, in
//! the entries that a unit holds, and in the order in which rows are begun. All of them add the edges of a row in one
//! order, so it is only time that the choice changes. It is made once for a kernel, width, element size and
//! [`Degrees`], where there is enough work to tell variants apart; small launches take the first variant.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use burn_cubecl::tensor::CubeTensor;
use cubecl::tune::{LocalTuner, Tunable, TunableSet, local_tuner};
use cubecl::{AutotuneKey, CubeTuneId};
use serde::{Deserialize, Serialize};

use crate::layout::Degrees;

/// One way to launch a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// Messages on their way at a time.
    pub(crate) flight: usize,
    /// Units of a cube at most.
    pub(crate) units: u32,
    /// Rows of many edges are begun first, and neighbours have as many.
    pub(crate) ordered: bool,
    /// Units hold half as many entries as they could.
    pub(crate) halved: bool,
}

const FIRST: Variant = Variant { flight: 4, units: 256, ordered: false, halved: false };

const VARIANTS: [Variant; 8] = [
    FIRST,
    Variant { flight: 8, ..FIRST },
    Variant { flight: 1, ..FIRST },
    Variant { units: 64, ..FIRST },
    Variant { flight: 8, units: 64, ..FIRST },
    Variant { ordered: true, ..FIRST },
    Variant { flight: 8, units: 64, ordered: true, ..FIRST },
    Variant { halved: true, ..FIRST },
];

/// Number of variants of kernels that sum edges; the first is taken where none is measured.
pub const NUM_VARIANTS: usize = VARIANTS.len();

/// Entries of messages, edges times width, from which variants are measured.
const WORK: usize = 1 << 20;

/// What a choice depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, AutotuneKey)]
struct Key {
    /// Kernel and message.
    kernel: String,
    /// Entries of a message.
    width: usize,
    /// Entries that a unit holds.
    vector: usize,
    /// Of an entry.
    bytes: usize,
    degrees: Degrees,
}

/// A launch, as the tuner sees it.
#[derive(Clone)]
struct Call {
    key: Key,
    run: Arc<dyn Fn(Variant) + Send + Sync>,
}

thread_local! {
    static FIXED: Cell<Option<Variant>> = const { Cell::new(None) };
}

/// Runs `f` with kernels that sum edges launched as variant `variant` where they can be, from this thread: to compare them.
/// None is measured meanwhile.
///
/// # Panics
/// If `variant` is not below [`NUM_VARIANTS`].
pub fn with_variant<R>(variant: usize, f: impl FnOnce() -> R) -> R {
    /// Also after a panic.
    struct Before(Option<Variant>);
    impl Drop for Before {
        fn drop(&mut self) {
            FIXED.set(self.0);
        }
    }
    let _before = Before(FIXED.replace(Some(VARIANTS[variant])));
    f()
}

/// Whether variants are measured: unless the environment says `BURN_GNN_TUNE=off`.
pub(crate) fn enabled() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var("BURN_GNN_TUNE").map_or(true, |value| value != "off"))
}

/// One launch over edges with `degrees`.
pub(crate) struct Launch {
    /// Edges that are summed.
    pub(crate) edges: usize,
    /// Entries of a message.
    pub(crate) width: usize,
    /// Entries that a unit holds.
    pub(crate) vector: usize,
    pub(crate) degrees: Degrees,
}

impl Launch {
    /// Runs `run` with the variant that is best for `like`'s device. While variants are measured it runs many times: it
    /// writes all of its result, whatever stood there. `kernel` names the kernel and what it was compiled for.
    pub(crate) fn run(self, like: &CubeTensor, kernel: impl FnOnce() -> String, run: impl Fn(Variant) + Send + Sync + 'static) {
        let can = |v: &Variant| fits(*v, self.vector, &self.degrees);
        if let Some(variant) = FIXED.get() {
            return run(if can(&variant) { variant } else { FIRST });
        }
        if !enabled() || self.edges.saturating_mul(self.width) < WORK {
            return run(FIRST);
        }
        static TUNER: LocalTuner<Key, CubeTuneId> = local_tuner!("rows");
        let id = CubeTuneId::new(&like.client, &like.device);
        let set = TUNER.init(&id, variants);
        let key = Key { kernel: kernel(), width: self.width, vector: self.vector, bytes: like.dtype.size(), degrees: self.degrees };
        TUNER.execute(&id, &like.client, set, Call { key, run: Arc::new(run) });
    }
}

/// Whether a variant is another one than those before it: a function of the key.
fn fits(variant: Variant, vector: usize, degrees: &Degrees) -> bool {
    (!variant.halved || vector > 1) && (!variant.ordered || degrees.ordered)
}

fn variants() -> TunableSet<Key, Call, ()> {
    let set = TunableSet::new_cloning_inputs(|call: &Call| call.key.clone());
    VARIANTS.into_iter().fold(set, |set, variant| {
        let name = format!("{variant:?}");
        set.with(Tunable::new(&name, move |call: Call| {
            if !fits(variant, call.key.vector, &call.key.degrees) {
                return Err("the same as another variant");
            }
            (call.run)(variant);
            Ok(())
        }))
    })
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::device::upload;
    use burn::tensor::{DType, Shape};
    use burn_cubecl::CubeDevice;
    use burn_cubecl::ops::numeric::zeros_client;
    use cubecl::device::{WgpuDevice, WgpuDeviceKind};

    /// The first call for a key runs every variant that differs, later ones the one that was chosen; small launches and those of a
    /// fixed variant run once.
    #[test]
    fn large_launches_are_measured_once() {
        let device = CubeDevice::Wgpu(WgpuDevice::new(WgpuDeviceKind::Cpu));
        let like = upload("numbers", &[1; 1000], &device);
        let ran = |edges: usize, width: usize, vector: usize| {
            let seen = Arc::new(Mutex::new(vec![]));
            let (into, x) = (seen.clone(), like.clone());
            let run = move |variant| {
                into.lock().unwrap().push(variant);
                zeros_client(x.client.clone(), x.device.clone(), Shape::from(vec![1000]), DType::F32);
            };
            let launch = Launch { edges, width, vector, degrees: Degrees::default() };
            launch.run(&like, || "a test".into(), run);
            let seen = seen.lock().unwrap();
            (VARIANTS.into_iter().filter(|v| seen.contains(v)).collect::<Vec<_>>(), seen.len())
        };
        assert_eq!(ran(1000, 16, 4), (vec![FIRST], 1));
        let all: Vec<Variant> = VARIANTS.into_iter().filter(|v| !v.ordered).collect();
        let (seen, times) = ran(WORK, 16, 4);
        assert!(seen == all && times > 2 * all.len(), "{seen:?} {times}");
        let (chosen, times) = ran(WORK, 16, 4);
        assert!(times == 1 && all.contains(&chosen[0]), "{chosen:?} {times}");
        // Another key.
        let (seen, times) = ran(WORK, 3, 1);
        assert!(times > 1 && seen.iter().all(|v| !v.halved), "{seen:?} {times}");
        assert_eq!(with_variant(3, || ran(WORK, 8, 4)), (vec![VARIANTS[3]], 1));
        assert_eq!(with_variant(5, || ran(WORK, 8, 4)), (vec![FIRST], 1));
    }
}
