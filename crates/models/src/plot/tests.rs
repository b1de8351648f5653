//! Tests that every value of a series is a point of the picture.

use std::path::Path;

use super::{Panel, Series, write_svg};

fn series() -> Vec<Series> {
    let (losses, accuracies) =
        (vec![2.0, 1.0, 0.5, 0.25, 0.125, 0.0, 0.0625], vec![0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 0.5]);
    vec![
        Series { name: "training loss".into(), panel: Panel::Loss, values: losses },
        Series { name: "validation accuracy".into(), panel: Panel::Accuracy, values: accuracies },
    ]
}

/// Tags of a document in which every opened one is closed, with their attributes.
fn tags(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (vec![], vec![]);
    for part in svg.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(closed), _) => assert_eq!(open.pop(), Some(closed)),
            (None, true) => all.push(tag),
            (None, false) => {
                open.push(name);
                all.push(tag);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    all
}

/// Points of the polylines with as many points as there are epochs.
fn lines(svg: &str, epochs: usize) -> Vec<Vec<(f64, f64)>> {
    let points = |tag: &str| -> Option<Vec<(f64, f64)>> {
        let list = tag.strip_prefix("polyline")?.split("points=\"").nth(1)?.split('"').next()?;
        let pair =
            |p: &str| p.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
        Some(list.split_whitespace().map(|p| pair(p).unwrap()).collect())
    };
    tags(svg).into_iter().filter_map(points).filter(|p| p.len() == epochs).collect()
}

#[test]
fn every_value_is_a_point_at_its_height() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.svg");
    write_svg(&file, "a < b & \"c\"", &series()).unwrap();
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("a &lt; b &amp; &quot;c&quot;"), "{svg}");
    for word in ["epoch", "loss", "accuracy", "training loss", "validation accuracy"] {
        assert!(svg.contains(word), "{word}");
    }
    let lines = lines(&svg, 7);
    assert_eq!(lines.len(), 2, "{svg}");
    for (line, s) in lines.iter().zip(series()) {
        // Heights are a line through the first and the sixth value, to a pixel.
        let (a, b) = ((s.values[0], line[0].1), (s.values[5], line[5].1));
        let slope = (b.1 - a.1) / (b.0 - a.0);
        assert!(slope < 0.0, "larger values stand higher: {line:?}");
        let step = (line[6].0 - line[0].0) / 6.0;
        assert!(step > 50.0, "{line:?}");
        for (i, (&(x, y), v)) in line.iter().zip(&s.values).enumerate() {
            assert!((x - line[0].0 - step * i as f64).abs() <= 1.0, "{line:?}");
            assert!((y - a.1 - slope * (v - a.0)).abs() <= 1.5, "{line:?}");
        }
    }
    // Every epoch has one label, which is a whole number; the axes are named, and losses have different labels.
    let texts: Vec<&str> = svg
        .split("<text")
        .skip(1)
        .map(|t| t.split_once('>').unwrap().1.split('<').next().unwrap().trim())
        .collect();
    for epoch in 1..=7 {
        assert_eq!(
            texts.iter().filter(|t| **t == epoch.to_string()).count(),
            2,
            "epoch {epoch}, in two panels: {texts:?}"
        );
    }
    assert!(
        texts.contains(&"2.00")
            && texts.contains(&"0.20")
            && texts.contains(&"loss")
            && texts.contains(&"epoch"),
        "{texts:?}"
    );
    // Nothing else is left in the folder.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_drawn_or_written_is_an_error() {
    let text =
        |path: &str, s: &[Series]| write_svg(Path::new(path), "t", s).unwrap_err().to_string();
    assert!(text("/no/such/folder/run.svg", &series()).contains("/no/such/folder/run.svg"));
    assert_eq!(
        text("run.svg", &[]),
        "plot: there is nothing to draw: no series has values; record at least one epoch"
    );
    let mut broken = series();
    broken[0].values[2] = f64::NAN;
    assert_eq!(
        text("run.svg", &broken),
        "plot: `training loss` must be finite to be drawn, got NaN in epoch 3; leave such values out"
    );
}
