//! Draws learning curves as an SVG picture (`--plot`, with the feature `plot`).

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use burn_gnn::models::plot::Series;

#[derive(Clone, Debug, Args)]
pub(crate) struct PlotArgs {
    /// Draw loss and accuracy over epochs (needs the feature `plot`).
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    pub(crate) plot: Option<PathBuf>,
}

impl PlotArgs {
    /// Draws what `series` returns, if a file was named.
    pub(crate) fn draw(&self, title: &str, series: impl FnOnce() -> Vec<Series>) -> Result<()> {
        #[cfg(feature = "plot")]
        if let Some(file) = &self.plot {
            burn_gnn::models::plot::write_svg(file, title, &series())?;
        }
        #[cfg(not(feature = "plot"))]
        let _ = (title, series); // refused by `svg_file`
        Ok(())
    }
}

/// The argument of `--plot`: refused before any training.
fn svg_file(arg: &str) -> Result<PathBuf> {
    let path = PathBuf::from(arg);
    let svg = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    anyhow::ensure!(svg, "expected a file name that ends in `.svg`, got `{arg}`");
    #[cfg(not(feature = "plot"))]
    anyhow::bail!(
        "this build cannot draw; add the feature: cargo run --release --features plot --example ..."
    );
    #[cfg(feature = "plot")]
    Ok(path)
}
