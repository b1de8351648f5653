//! Learning curves as an SVG picture: losses above, accuracies below, over epochs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use burn_gnn::models::Epoch;
use plotters::coord::Shift;
use plotters::prelude::*;

/// The part of the picture that a series is drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panel {
    Loss,
    /// Shares of 1.
    Accuracy,
}

/// One curve; value `i` belongs to epoch `i + 1`.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) panel: Panel,
    pub(crate) values: Vec<f64>,
}

const COLOURS: [RGBColor; 4] = [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(44, 160, 44), RGBColor(148, 103, 189)];

/// The argument of `--plot`: refused before any training if its name does not end in `.svg`.
pub(crate) fn svg_file(arg: &str) -> Result<PathBuf> {
    let path = PathBuf::from(arg);
    let ending = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    ensure!(ending, "expected a file name that ends in `.svg`, got `{arg}`");
    Ok(path)
}

/// The curves of a training on the whole graph.
pub(crate) fn of(history: &[Epoch]) -> Vec<Series> {
    let series = |name, panel, value: fn(&Epoch) -> Option<f64>| Series { name, panel, values: history.iter().filter_map(value).collect() };
    let mut all = vec![
        series("training loss", Panel::Loss, |e| Some(e.loss)),
        series("validation loss", Panel::Loss, |e| e.val_loss),
        series("training accuracy", Panel::Accuracy, |e| Some(e.train_accuracy)),
        series("validation accuracy", Panel::Accuracy, |e| e.val_accuracy),
    ];
    all.retain(|s| !s.values.is_empty());
    all
}

/// Draws all series to `path`, under a temporary name first.
///
/// # Errors
/// Another ending than `.svg`, no values, values that are not finite, a file that cannot be written.
pub(crate) fn write(path: &Path, title: &str, series: &[Series]) -> Result<()> {
    svg_file(&path.to_string_lossy())?;
    ensure!(series.iter().any(|s| !s.values.is_empty()), "there is nothing to draw: no series has values");
    for s in series {
        if let Some(i) = s.values.iter().position(|v| !v.is_finite()) {
            bail!("`{}` must be finite to be drawn, got {} in epoch {}", s.name, s.values[i], i + 1);
        }
    }
    let mut svg = String::new();
    draw(&mut svg, title, series).with_context(|| format!("drawing {}", path.display()))?;
    let tmp = path.with_extension("svg.tmp");
    std::fs::write(&tmp, svg).with_context(|| format!("writing {}", tmp.display()))?;
    std::fs::rename(&tmp, path).with_context(|| format!("renaming {} to {}", tmp.display(), path.display()))
}

fn draw(svg: &mut String, title: &str, series: &[Series]) -> Result<()> {
    let panels: Vec<Panel> = [Panel::Loss, Panel::Accuracy].into_iter().filter(|p| series.iter().any(|s| s.panel == *p)).collect();
    let root = SVGBackend::with_string(svg, (760, 40 + 280 * panels.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let inner = root.titled(title, ("sans-serif", 20))?;
    for (area, &panel) in inner.split_evenly((panels.len(), 1)).iter().zip(&panels) {
        let of_panel: Vec<&Series> = series.iter().filter(|s| s.panel == panel).collect();
        draw_panel(area, panel, &of_panel)?;
    }
    Ok(root.present()?)
}

fn draw_panel(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: Panel, series: &[&Series]) -> Result<()> {
    let epochs = series.iter().map(|s| s.values.len()).max().unwrap_or(0).max(2);
    let values = || series.iter().flat_map(|s| s.values.iter().copied());
    let (name, low, high) = match panel {
        Panel::Loss => ("loss", values().fold(0.0, f64::min), values().fold(f64::MIN_POSITIVE, f64::max) * 1.05),
        Panel::Accuracy => ("accuracy", 0.0, 1.0),
    };
    let mut chart =
        ChartBuilder::on(area).margin(12).x_label_area_size(32).y_label_area_size(56).build_cartesian_2d(1.0..epochs as f64, low..high)?;
    chart.configure_mesh().x_desc("epoch").y_desc(name).x_label_formatter(&|x| format!("{x:.0}")).draw()?;
    for (s, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let points = s.values.iter().enumerate().map(|(i, &v)| ((i + 1) as f64, v));
        let style = colour.stroke_width(2);
        let line = chart.draw_series(LineSeries::new(points, style))?;
        line.label(s.name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
    }
    Ok(chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?)
}
