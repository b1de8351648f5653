//! Reports the instruction set and the threads of CPU kernels.

/// Instruction set and threads of CPU kernels, for bug reports and logs of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuKernels {
    /// `avx512`, `avx2` or `baseline` on x86-64, else the name of the architecture.
    pub instruction_set: &'static str,
    /// Number of threads of the current rayon pool, on which kernels run.
    pub threads: usize,
}

/// Returns the instruction set and the number of threads that CPU kernels use when called on this thread.
///
/// ```
/// let cpu = burn_gnn_ops::cpu_kernels();
/// assert!(cpu.threads > 0 && !cpu.instruction_set.is_empty());
/// ```
pub fn cpu_kernels() -> CpuKernels {
    CpuKernels {
        instruction_set: burn_gnn_cpu::instruction_set(),
        threads: rayon::current_num_threads(),
    }
}
