//! Describes the build and the process, for bug reports.

use std::fmt;

use burn_gnn_ops::{CpuKernels, cpu_kernels};

/// Version of Burn that this crate is built against; `Cargo.toml` requires exactly this version.
const BURN: &str = "0.22.1";

/// Description of a build for bug reports: [`version_info`] returns it, `Display` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionInfo {
    /// Version of this crate.
    pub version: &'static str,
    /// Version of Burn.
    pub burn: &'static str,
    /// Enabled cargo features of this crate, in alphabetical order.
    pub features: Vec<&'static str>,
    /// Instruction set and threads of CPU kernels.
    pub cpu: CpuKernels,
    /// Operating system and architecture, `linux x86_64`.
    pub platform: String,
}

/// Returns versions, cargo features, instruction set and number of threads of the running program.
///
/// ```
/// let info = burn_gnn::version_info();
/// assert!(info.to_string().starts_with("burn-gnn 0."));
/// ```
pub fn version_info() -> VersionInfo {
    macro_rules! enabled {
        ($($feature:literal)*) => {
            [$((cfg!(feature = $feature), $feature)),*]
        };
    }
    let features = enabled!(
        "cube" "cuda" "dataloader" "dist" "download" "f16" "flex" "fusion" "graphml" "links" "metal" "mpi"
        "ndarray" "npz" "parquet" "petgraph" "plot" "rdf" "rocm" "store" "torch" "vulkan" "wgpu" "yaml" "zstd"
    );
    VersionInfo {
        version: env!("CARGO_PKG_VERSION"),
        burn: BURN,
        features: features.into_iter().filter_map(|(on, name)| on.then_some(name)).collect(),
        cpu: cpu_kernels(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}

impl fmt::Display for VersionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "burn-gnn {}, Burn {}", self.version, self.burn)?;
        writeln!(f, "features: {}", self.features.join(" "))?;
        write!(
            f,
            "{}, {} kernels, {} threads",
            self.platform, self.cpu.instruction_set, self.cpu.threads
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the list of features and the version of Burn with the manifest, so that they stay
    /// up to date.
    #[test]
    fn lists_all_features_of_the_manifest() {
        let manifest = include_str!("../Cargo.toml");
        assert!(manifest.contains(&format!("burn = {{ version = \"={BURN}\"")));
        let source = include_str!("version_info.rs");
        let section = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
        for line in section.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, _)) = line.split_once(" = ") else { continue };
            let listed = source.contains(&format!("\"{name}\""));
            assert!(listed || ["default", "formats"].contains(&name), "`{name}` is not listed");
        }
    }

    #[test]
    fn prints_versions_features_and_the_processor() {
        let text = version_info().to_string();
        assert!(text.contains(&format!("Burn {BURN}")), "{text}");
        assert!(text.lines().count() == 3 && text.contains(" threads"), "{text}");
    }
}
