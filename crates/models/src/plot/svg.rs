//! Draws series with `plotters`.

use std::path::Path;

use burn_gnn_data::write_atomic;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Panel, Series};
use crate::error::ModelError;

const COLORS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(44, 160, 44), RGBColor(148, 103, 189)];

/// Draws all series to the file `path`, under a temporary name first.
///
/// # Errors
/// [`ModelError::Plot`] if no series has values or a value is not finite; [`ModelError::Graph`] with the path if the
/// file cannot be written.
pub fn write_svg(path: impl AsRef<Path>, title: &str, series: &[Series]) -> Result<(), ModelError> {
    let plot = |message: String| ModelError::Plot { message };
    if series.iter().all(|s| s.values.is_empty()) {
        return Err(plot(
            "there is nothing to draw: no series has values; record at least one epoch".into(),
        ));
    }
    for s in series {
        if let Some(i) = s.values.iter().position(|v| !v.is_finite()) {
            let (name, value, epoch) = (&s.name, s.values[i], i + 1);
            return Err(plot(format!(
                "`{name}` must be finite to be drawn, got {value} in epoch {epoch}; leave such values out"
            )));
        }
    }
    let mut svg = String::new();
    draw(&mut svg, title, series).map_err(|e| plot(e.to_string()))?;
    Ok(write_atomic(path, |w| w.write_all(svg.as_bytes()))?)
}

/// Labels of an axis, at most.
const LABELS: usize = 11;

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(svg: &mut String, title: &str, series: &[Series]) -> Drawn {
    let panels: Vec<Panel> = [Panel::Loss, Panel::Accuracy]
        .into_iter()
        .filter(|p| series.iter().any(|s| s.panel == *p))
        .collect();
    let root =
        SVGBackend::with_string(svg, (760, 40 + 280 * panels.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let inner = root.titled(title, ("sans-serif", 20))?;
    for (area, &panel) in inner.split_evenly((panels.len(), 1)).iter().zip(&panels) {
        let of_panel: Vec<&Series> = series.iter().filter(|s| s.panel == panel).collect();
        draw_panel(area, panel, &of_panel)?;
    }
    Ok(root.present()?)
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: Panel,
    series: &[&Series],
) -> Drawn {
    let epochs = series.iter().map(|s| s.values.len()).max().unwrap_or(0).max(2);
    let values = || series.iter().flat_map(|s| s.values.iter().copied());
    let (name, low, high) = match panel {
        Panel::Loss => (
            "loss",
            values().fold(0.0, f64::min),
            values().fold(f64::MIN_POSITIVE, f64::max) * 1.05,
        ),
        Panel::Accuracy => ("accuracy", 0.0, 1.0),
    };
    // Whole epochs: between them there is nothing to label.
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(1..epochs, low..high)?;
    chart
        .configure_mesh()
        .x_desc("epoch")
        .y_desc(name)
        .x_labels(epochs.min(LABELS))
        .y_labels(LABELS)
        .y_label_formatter(&|y| label(*y, high))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (s, color) in series.iter().zip(COLORS.iter().cycle()) {
        let points = s.values.iter().enumerate().map(|(i, &v)| (i + 1, v));
        let style = color.stroke_width(2);
        let line = chart.draw_series(LineSeries::new(points, style))?;
        line.label(&s.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
    }
    // Losses fall and accuracies rise: these corners are free.
    let corner = match panel {
        Panel::Loss => SeriesLabelPosition::UpperRight,
        Panel::Accuracy => SeriesLabelPosition::LowerRight,
    };
    let legend = chart
        .configure_series_labels()
        .position(corner)
        .label_font(("sans-serif", 13))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw();
    Ok(legend?)
}

/// A number on an axis that ends at `high`, with as many decimals as tell its labels apart.
fn label(value: f64, high: f64) -> String {
    if high != 0.0 && (high.abs() < 1e-3 || high.abs() >= 1e6) {
        return format!("{value:.1e}");
    }
    let decimals = (2.0 - high.abs().max(1e-3).log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
