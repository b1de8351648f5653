//! Chooses the fastest launch configuration of a kernel, measured by CubeCL's autotuner.
//!
//! Variants of a kernel that sums edges differ in how many messages are in flight, in the threads of a block, in the
//! entries that a thread holds, and in the order in which rows are started. All of them add the edges of a row in one
//! order, so it is only time that the choice changes. It is made once for a kernel, width, element size and
//! [`Degrees`], where there is enough work to distinguish variants and a layout is launched over again and again; other
//! launches take the first variant.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use burn_cubecl::tensor::CubeTensor;
use cubecl::tune::{LocalTuner, Tunable, TunableSet, TuneGroup, local_tuner};
use cubecl::{AutotuneKey, CubeTuneId};
use serde::{Deserialize, Serialize};

use crate::degrees::Degrees;

/// One way to launch a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// Messages in flight.
    pub(crate) flight: usize,
    /// Threads of a block at most.
    pub(crate) threads: u32,
    /// Rows of many edges are started first, and neighbours have as many.
    pub(crate) ordered: bool,
    /// Threads hold half as many entries as they could.
    pub(crate) halved: bool,
}

const FIRST: Variant = Variant { flight: 4, threads: 256, ordered: false, halved: false };

const VARIANTS: [Variant; 8] = [
    FIRST,
    Variant { flight: 8, ..FIRST },
    Variant { flight: 1, ..FIRST },
    Variant { threads: 64, ..FIRST },
    Variant { flight: 8, threads: 64, ..FIRST },
    Variant { ordered: true, ..FIRST },
    Variant { flight: 8, threads: 64, ordered: true, ..FIRST },
    Variant { halved: true, ..FIRST },
];

/// Number of variants of kernels that sum edges; the first is taken where none is measured.
pub const NUM_VARIANTS: usize = VARIANTS.len();

/// Entries of messages, edges times width, from which variants are measured.
const WORK: usize = 1 << 20;

/// Launches over one layout before one is measured: blocks of mini-batches never reach this number, and would not
/// amortise the measurement.
const PATIENCE: usize = 8;

/// What a choice depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, AutotuneKey)]
struct Key {
    /// Kernel and message.
    kernel: String,
    /// Entries of a message.
    width: usize,
    /// Entries that a thread holds.
    vector: usize,
    /// Of an entry.
    bytes: usize,
    degrees: Degrees,
    /// Whether there is an order of rows.
    ordered: bool,
}

impl Key {
    /// Whether a variant is another one than those before it.
    fn has(&self, variant: Variant) -> bool {
        (!variant.halved || self.vector > 1) && (!variant.ordered || self.ordered)
    }
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

/// Runs `f` with kernels that sum edges launched as variant `variant`, from this thread: to compare them. A variant
/// that is no other for a launch becomes the first; none is measured meanwhile. Behind Burn's fusion it is another
/// thread that launches, and nothing changes.
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
#[expect(
    clippy::disallowed_methods,
    reason = "a constant of the process, read without other threads"
)]
fn enabled() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var("BURN_GNN_TUNE").map_or(true, |value| value != "off"))
}

/// How a launch gets its variant.
#[derive(Clone, Copy)]
pub(crate) enum Choice {
    /// This one, or the first where it is none.
    Fixed(Variant),
    /// The fastest.
    Measured,
}

impl Choice {
    /// For a launch that sums `work` entries, over a layout that has seen `seen` launches.
    pub(crate) fn new(work: usize, seen: usize) -> Self {
        match FIXED.get() {
            Some(variant) => Self::Fixed(variant),
            None if enabled() && work >= WORK && seen >= PATIENCE => Self::Measured,
            None => Self::Fixed(FIRST),
        }
    }
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self, Self::Measured)
    }
    /// Whether rows may be started in their order by number of edges.
    pub(crate) fn takes_order(&self) -> bool {
        match self {
            Self::Fixed(variant) => variant.ordered,
            Self::Measured => true,
        }
    }
}

/// One launch over rows of edges.
pub(crate) struct Launch {
    pub(crate) choice: Choice,
    /// Entries of a message.
    pub(crate) width: usize,
    /// Entries that a thread holds.
    pub(crate) vector: usize,
    pub(crate) degrees: Degrees,
    /// Whether `table` is an order of rows.
    pub(crate) ordered: bool,
    /// Chunks, or an order of rows; where there is neither, an array that is never read.
    pub(crate) table: CubeTensor,
}

impl Launch {
    /// Runs `run` with its variant. While variants are measured it runs many times: it writes all of its result,
    /// whatever stood there. `operand` has the device and the type of what is read; `kernel` names the kernel and what
    /// it was compiled for.
    pub(crate) fn run(
        self,
        operand: &CubeTensor,
        kernel: impl FnOnce() -> String,
        run: impl Fn(Variant) + Send + Sync + 'static,
    ) {
        static TUNER: LocalTuner<Key, CubeTuneId> = local_tuner!("rows");
        let bytes = operand.dtype.size();
        let key = |kernel| Key {
            kernel,
            width: self.width,
            vector: self.vector,
            bytes,
            degrees: self.degrees,
            ordered: self.ordered,
        };
        match self.choice {
            Choice::Fixed(variant) => {
                run(if key(String::new()).has(variant) { variant } else { FIRST })
            }
            Choice::Measured => {
                let (id, run) = (CubeTuneId::new(&operand.client, &operand.device), Arc::new(run));
                let set = TUNER.init(&id, variants);
                let call = Call { key: key(kernel()), run: run.clone() };
                // The tuner panics where the device gave no time for any variant; the launch does not depend on that.
                if catch_unwind(AssertUnwindSafe(|| TUNER.execute(&id, &operand.client, set, call)))
                    .is_err()
                {
                    run(FIRST);
                }
            }
        }
    }
}

/// Part of the names of variants, so that what CubeCL keeps on disk is of these kernels: to be raised with their
/// meaning.
const REVISION: u32 = 1;

fn variants() -> TunableSet<Key, Call, ()> {
    let set = TunableSet::new_cloning_inputs(|call: &Call| call.key.clone());
    let group = TuneGroup::new("rows", |_: &Key| 0);
    VARIANTS.into_iter().fold(set, |set, variant| {
        let launch = Tunable::new(
            &format!("{REVISION} {variant:?}"),
            move |call: Call| -> Result<(), String> {
                (call.run)(variant);
                Ok(())
            },
        );
        // Those below 0 are left out.
        set.with(launch.group(&group, move |key: &Key| if key.has(variant) { 0 } else { -1 }))
    })
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use std::sync::Mutex;

    use burn::tensor::{DType, Shape};
    use burn_cubecl::ops::numeric::zeros_client;

    use super::*;
    use crate::device::tests::adapter;
    use crate::device::upload;

    #[test]
    fn large_launches_that_come_again_are_measured() {
        let fixed = |choice: Choice| matches!(choice, Choice::Fixed(variant) if variant == FIRST);
        assert!(fixed(Choice::new(WORK - 1, PATIENCE)) && fixed(Choice::new(WORK, PATIENCE - 1)));
        assert!(matches!(Choice::new(WORK, PATIENCE), Choice::Measured));
        assert!(
            matches!(with_variant(3, || Choice::new(WORK, PATIENCE)), Choice::Fixed(variant) if variant == VARIANTS[3])
        );
    }

    /// The first call for a key runs every variant that differs, later ones the one that was chosen; a fixed variant
    /// runs once.
    #[test]
    fn variants_are_measured_once() {
        let Some(device) = adapter() else { return };
        let like = upload("numbers", &[1; 1000], &device);
        let ran = |choice, vector, ordered| {
            let seen = Arc::new(Mutex::new(vec![]));
            let (into, x) = (seen.clone(), like.clone());
            let run = move |variant| {
                into.lock().unwrap().push(variant);
                zeros_client(
                    x.client.clone(),
                    x.device.clone(),
                    Shape::from(vec![1000]),
                    DType::F32,
                );
            };
            let launch = Launch {
                choice,
                width: 16,
                vector,
                degrees: Degrees::default(),
                ordered,
                table: like.clone(),
            };
            // Of this process, should choices be kept on disk.
            launch.run(&like, || format!("a test, {}", std::process::id()), run);
            let seen = seen.lock().unwrap();
            (VARIANTS.into_iter().filter(|v| seen.contains(v)).collect::<Vec<_>>(), seen.len())
        };
        for (vector, ordered) in [(4, false), (1, false), (1, true), (4, true)] {
            let all: Vec<Variant> = VARIANTS
                .into_iter()
                .filter(|v| (ordered || !v.ordered) && (vector > 1 || !v.halved))
                .collect();
            let (seen, times) = ran(Choice::Measured, vector, ordered);
            assert!(seen == all && times > 2 * all.len(), "{seen:?} {times}");
            let (chosen, times) = ran(Choice::Measured, vector, ordered);
            assert!(times == 1 && all.contains(&chosen[0]), "{chosen:?} {times}");
        }
        assert_eq!(ran(Choice::Fixed(VARIANTS[3]), 4, false), (vec![VARIANTS[3]], 1));
        assert_eq!(ran(Choice::Fixed(VARIANTS[5]), 4, false), (vec![FIRST], 1));
    }
}
