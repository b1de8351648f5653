//! Dispatches loops to the widest instruction set of the processor, at run time.
//!
//! A default build for x86-64 uses SSE2 only, which makes the loops of this crate two to four times slower.
//! [`vectorised`] compiles a loop for three instruction sets and selects one at run time. There are no intrinsics: loops
//! are written so that the compiler vectorises them. Additions have a fixed order (no fused multiply-add, fixed lanes in
//! reductions), so results have the same bits on every instruction set. On AArch64 the baseline includes NEON.
#![allow(unsafe_code, reason = "calls functions for detected instruction sets, on x86-64 only")]

/// A loop that is compiled for several instruction sets.
///
/// `run` and all hot functions that it calls must be `#[inline(always)]`: code that is not inlined is compiled for the
/// baseline. A closure is inlined if it is called in one place. A closure that is passed to another function is compiled
/// for the baseline, so it must not do expensive work: a dot product in the closure of `EdgeRows::put` ran at half speed.
pub(crate) trait Vectorised {
    /// The result of the loop.
    type Out;
    /// The loop.
    fn run(self) -> Self::Out;
}

/// A loop that keeps a block of columns in registers; the size of the block depends on the instruction set.
pub trait Blocked {
    /// The loop. Registers hold up to `16 * WIDE` 32-bit columns.
    fn run<const WIDE: usize>(self);
}

/// The instruction sets that a loop is compiled for.
pub trait InstructionSets {
    /// Runs `work` with the widest of these instruction sets that the processor supports.
    fn run<W: Blocked>(work: W);
}

/// All instruction sets, for hot loops.
pub struct AllLevels;
/// Baseline and AVX2, for 16-bit types, whose loops are dominated by conversions.
pub struct UpToAvx2;
/// Baseline only, for all other loops, because each instruction set costs compile time.
pub struct Baseline;

impl InstructionSets for AllLevels {
    #[inline]
    fn run<W: Blocked>(work: W) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match level() {
            // SAFETY: `level` has found every feature that `avx512_blocked` enables.
            Level::Avx512 => return unsafe { avx512_blocked(work) },
            // SAFETY: `level` has found every feature that `avx2_blocked` enables.
            Level::Avx2 => return unsafe { avx2_blocked(work) },
            Level::Baseline => {}
        }
        work.run::<1>()
    }
}

impl InstructionSets for UpToAvx2 {
    #[inline]
    fn run<W: Blocked>(work: W) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if level() != Level::Baseline {
            // SAFETY: `level` has detected every feature that `avx2_blocked` enables: both other levels include them.
            return unsafe { avx2_blocked(work) };
        }
        work.run::<1>()
    }
}

impl InstructionSets for Baseline {
    #[inline]
    fn run<W: Blocked>(work: W) {
        work.run::<1>()
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn avx512_blocked<W: Blocked>(work: W) {
    work.run::<8>()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,f16c")]
fn avx2_blocked<W: Blocked>(work: W) {
    work.run::<4>()
}

/// Runs `work` with the widest instruction set that the processor supports.
#[inline]
pub(crate) fn vectorised<W: Vectorised>(work: W) -> W::Out {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    match level() {
        // SAFETY: `level` has found every feature that `avx512` enables.
        Level::Avx512 => return unsafe { avx512(work) },
        // SAFETY: `level` has found every feature that `avx2` enables.
        Level::Avx2 => return unsafe { avx2(work) },
        Level::Baseline => {}
    }
    work.run()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Baseline,
    Avx2,
    Avx512,
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(
    clippy::disallowed_methods,
    reason = "a constant of the process, found without other threads"
)]
fn level() -> Level {
    static LEVEL: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    *LEVEL.get_or_init(|| {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("f16c");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let found = match (avx512, avx2) {
            (true, _) => Level::Avx512,
            (false, true) => Level::Avx2,
            (false, false) => Level::Baseline,
        };
        // To measure and test lower levels on a newer processor.
        match std::env::var("BURN_GNN_SIMD").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") if found != Level::Baseline => Level::Avx2,
            _ => found,
        }
    })
}

/// The instruction set that kernels of this process use: `avx512`, `avx2` or `baseline` on x86-64, else the name of
/// the architecture.
pub fn instruction_set() -> &'static str {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    match level() {
        Level::Avx512 => "avx512",
        Level::Avx2 => "avx2",
        Level::Baseline => "baseline",
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::env::consts::ARCH
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn avx512<W: Vectorised>(work: W) -> W::Out {
    work.run()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,f16c")]
fn avx2<W: Vectorised>(work: W) -> W::Out {
    work.run()
}

/// Runs a loop of 32-bit elements with the widest instruction set, and of other types with the baseline, which saves code
/// size.
#[inline(always)]
pub(crate) fn widest<T, W: Vectorised>(work: W) -> W::Out {
    if size_of::<T>() == 4 { vectorised(work) } else { work.run() }
}
