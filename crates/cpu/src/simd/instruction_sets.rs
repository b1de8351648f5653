//! Dispatches loops to the widest instruction set of the processor.
//!
//! A default build of x86-64 may use nothing newer than SSE2, and the loops of this crate run two to
//! four times slower so. [`vectorised`] compiles a loop three times and chooses when it runs. There are
//! no intrinsics: loops are written so that the compiler vectorises them, and additions keep one order,
//! so results are the same bits on every level (no fused multiply-add, fixed lanes in reductions).
//! On AArch64 the baseline has NEON already.
#![allow(unsafe_code, reason = "calls for instruction sets that were found, on x86-64 alone")]

/// A loop that is compiled for several instruction sets.
///
/// `run` and everything it calls that matters must be `#[inline(always)]`; what is not inlined stays baseline code.
/// A closure is inlined if it is called in one place; one that is given to another function is called once per
/// instruction set, so nothing that costs belongs into it: a dot in the closure of `EdgeRows::put` ran at half
/// speed.
pub(crate) trait Vectorised {
    /// What the loop returns.
    type Out;
    /// The loop.
    fn run(self) -> Self::Out;
}

/// A loop that keeps columns in registers: how many depends on the instruction set.
pub trait Blocked {
    /// The loop; up to `16 * WIDE` 32-bit columns fit into registers.
    fn run<const WIDE: usize>(self);
}

/// Which instruction sets a loop is compiled for.
pub trait InstructionSets {
    /// Runs `work` with the widest vectors there are among those.
    fn run<W: Blocked>(work: W);
}

/// Every level: for the loops that programs spend their time in.
pub struct AllLevels;
/// Baseline and AVX2: for 16-bit types, whose loops spend their time in conversions.
pub struct UpToAvx2;
/// Baseline code only: for the rest, as each level costs compile time.
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
            // SAFETY: `level` has found every feature that `avx2_blocked` enables, as both other levels have.
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

/// Runs `work` with the widest vectors there are.
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
        // For measuring and testing lower levels on a newer machine.
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

/// Runs a loop with wide vectors where its element type has them; other types would only cost code.
#[inline(always)]
pub(crate) fn widest<T, W: Vectorised>(work: W) -> W::Out {
    if size_of::<T>() == 4 { vectorised(work) } else { work.run() }
}
