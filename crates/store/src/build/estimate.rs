//! Estimates the memory, disk space and time of a build.

use std::time::Duration;

/// Estimate of the memory, disk space and time of a build.
///
/// ```
/// use burn_gnn_store::CscBuild;
/// let plan = CscBuild::new("papers.csc", 111_059_956, 111_059_956).with_memory(2 << 30).plan(1_615_685_872)?;
/// assert!(plan.memory <= 2 << 30 && plan.file < 8_000_000_000 && plan.peak_disk - plan.file <= 8 * 1_615_685_872);
/// println!("{plan}");
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildPlan {
    /// Bytes of memory, without those of the stream.
    pub memory: u64,
    /// Bytes of the runs.
    pub temporary: u64,
    /// Bytes of the result.
    pub file: u64,
    /// Peak of the bytes on disk, the result included.
    pub peak_disk: u64,
    /// Approximate time on two cores and a disk of 1 GB/s, without the time of the stream.
    pub time: Duration,
}

/// Throughput of sorting and merging in edges per second.
const SORT_RATE: f64 = 25e6;
const MERGE_RATE: f64 = 40e6;
/// Throughput of a disk in bytes per second.
const DISK_RATE: f64 = 1e9;

impl BuildPlan {
    pub(crate) fn new(
        edges: u64,
        kept: u64,
        num_dst: u64,
        run_bytes: usize,
        result_bytes: usize,
        memory: u64,
    ) -> Self {
        let temporary = edges * run_bytes as u64;
        let data = kept * result_bytes as u64 + 8 * (num_dst + 1);
        let file = data + data.div_ceil(1 << 16) * 8 + (1 << 16);
        // Runs are freed while the result grows, so a result that is smaller than the runs never coexists with all of
        // them.
        let peak_disk = temporary + file.min(edges * 8 + file - temporary.min(edges * 8 + file));
        let bytes = (2 * temporary + file) as f64;
        let seconds = edges as f64 / SORT_RATE + kept as f64 / MERGE_RATE + bytes / DISK_RATE;
        Self { memory, temporary, file, peak_disk, time: Duration::from_secs_f64(seconds) }
    }
}

impl std::fmt::Display for BuildPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
        write!(
            f,
            "memory {:.2} GiB, file {:.2} GiB, peak disk usage {:.2} GiB, about {:.0} s",
            gib(self.memory),
            gib(self.file),
            gib(self.peak_disk),
            self.time.as_secs_f64()
        )
    }
}
