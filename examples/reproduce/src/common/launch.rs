//! Runs ranks as threads of this process, or this process as one rank under MPI.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(not(feature = "mpi"))]
use anyhow::bail;
use anyhow::{Context, Result};
use burn_gnn::dist::{Communicator, run_ranks};
use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Number of parts, one rank each: threads of this process, 4 by default; under MPI as many as `mpirun` has
    /// started.
    #[arg(long)]
    parts: Option<usize>,
    /// Be one rank among those that `mpirun -n N` has started (needs the feature `mpi`).
    #[arg(long)]
    mpi: bool,
    /// Where the parts are written, for all ranks to read; a temporary folder of the first rank's host by default.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl LaunchArgs {
    /// Runs `f` on all ranks and prints their reports by rank. `write` puts the parts, the number of parts is its
    /// argument, into a folder on the first rank, and returns the path that `f` gets on all of them.
    pub(crate) fn run(
        &self,
        write: impl Fn(usize, &Path) -> Result<PathBuf> + Sync + Send,
        f: impl Fn(Arc<dyn Communicator>, &Path) -> Result<String> + Sync + Send,
    ) -> Result<()> {
        let (out, guard) = super::out_dir(self.out.as_deref())?;
        let rank = |comm: Arc<dyn Communicator>| -> Result<()> {
            // A first rank that cannot write fails, which ends the others.
            let written = if comm.rank() == 0 { write(comm.size(), &out)? } else { PathBuf::new() };
            let path = written
                .to_str()
                .context("the path of the parts must be UTF-8")?
                .as_bytes()
                .to_vec();
            let index = PathBuf::from(String::from_utf8(comm.broadcast(
                "where the parts are",
                0,
                path,
            )?)?);
            let report = f(comm.clone(), &index)?;
            let reports = comm.all_gather("reports", report.into_bytes())?;
            if comm.rank() == 0 {
                reports.iter().for_each(|r| print!("{}", String::from_utf8_lossy(r)));
            }
            Ok(())
        };
        let done = if self.mpi { self.under_mpi(rank) } else { self.in_threads(rank) };
        drop(guard);
        done
    }

    fn in_threads(&self, rank: impl Fn(Arc<dyn Communicator>) -> Result<()> + Sync) -> Result<()> {
        run_ranks(self.parts.unwrap_or(4), |comm| rank(comm).map_err(|e| format!("{e:#}")))?;
        Ok(())
    }

    #[cfg(feature = "mpi")]
    fn under_mpi(
        &self,
        rank: impl Fn(Arc<dyn Communicator>) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        burn_gnn::dist::run_mpi(|comm| match self.parts {
            Some(parts) if parts != comm.size() => {
                Err(format!("`--parts {parts}` under {} ranks; leave it out", comm.size()))
            }
            _ => rank(comm).map_err(|e| format!("{e:#}")),
        })?;
        Ok(())
    }

    #[cfg(not(feature = "mpi"))]
    fn under_mpi(
        &self,
        _rank: impl Fn(Arc<dyn Communicator>) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        bail!(
            "`--mpi` needs a build with the feature `mpi`: cargo run --release --features mpi --example ..."
        )
    }
}
