//! Writes a drawing as SVG.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Drawing;

/// Width and height of the picture without its legend, and the legend's width.
const SIZE: [f64; 2] = [960.0, 640.0];
const LEGEND: f64 = 220.0;
/// Space around nodes.
const MARGIN: f64 = 40.0;
/// Room for the title.
const HEAD: f64 = 40.0;
/// Nodes up to which each has a label.
const LABELLED: usize = 80;
/// Entries of the legend.
const SHOWN: usize = 20;

/// Colours of node types or groups, then of edge types.
const COLORS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7",
    "#9c755f", "#8c8c8c",
];
const EDGE_COLORS: [&str; 6] = ["#7f7f7f", "#1b6ca8", "#b5651d", "#6a4c93", "#2a7f62", "#a23b3b"];

pub(super) fn draw(drawing: &Drawing<'_>) -> String {
    let (width, height) = (SIZE[0] + LEGEND, SIZE[1] + HEAD);
    let title = if drawing.title.is_empty() { "Graph" } else { &drawing.title };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"18\">{title}</text>\n",
        title = escaped(title),
    );
    let inner = [SIZE[0] - 2.0 * MARGIN, SIZE[1] - 2.0 * MARGIN];
    let places: Vec<[f64; 2]> = drawing
        .places()
        .iter()
        .map(|p| [MARGIN + p[0] * inner[0], HEAD + MARGIN + (1.0 - p[1]) * inner[1]])
        .collect();
    let radius = (160.0 / (places.len().max(1) as f64).sqrt()).clamp(3.0, 12.0);
    out.push_str("<g class=\"view\">\n");
    edges(drawing, &places, radius, &mut out);
    nodes(drawing, &places, radius, &mut out);
    out.push_str("</g>\n");
    legend(drawing, &mut out);
    out.push_str("</svg>\n");
    out
}

/// Writes to a text, which takes everything.
macro_rules! add {
    ($out:expr, $($arg:tt)*) => { let _ = writeln!($out, $($arg)*); };
}

fn edges(drawing: &Drawing<'_>, places: &[[f64; 2]], radius: f64, out: &mut String) {
    let endpoints = drawing.edges();
    // Edges between one pair of nodes, in either direction, are bent away from one another.
    let mut between: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    endpoints.iter().for_each(|&(u, v)| *between.entry((u.min(v), u.max(v))).or_default() += 1);
    let mut drawn: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let range = weight_range(drawing);
    let mut at = 0;
    out.push_str("<g fill=\"none\">\n");
    for (t, relation) in drawing.graph.relations().iter().enumerate() {
        let color = EDGE_COLORS[t % EDGE_COLORS.len()];
        let name = escaped(&drawing.graph.schema().etypes()[t].to_string());
        for e in 0..relation.num_edges() {
            let (u, v) = endpoints[at];
            at += 1;
            let pair = (u.min(v), u.max(v));
            let nth = drawn.entry(pair).or_default();
            let bend = *nth as f64 - (between[&pair] - 1) as f64 / 2.0;
            *nth += 1;
            let weight = drawing.weights.get(&t).map(|w| w[e]);
            let strength = weight.map_or(0.3, |w| {
                f64::from(w - range.0) / f64::from((range.1 - range.0).max(f32::MIN_POSITIVE))
            });
            let (width, opacity) = (0.6 + 4.4 * strength, 0.35 + 0.6 * strength);
            let said = weight.map_or(String::new(), |w| format!(", weight {w}"));
            let path = if u == v {
                self_loop(places[u], radius, bend)
            } else {
                curve(places[u], places[v], u < v, bend, radius, width)
            };
            add!(
                out,
                "<path class=\"edge\" d=\"{}\" stroke=\"{color}\" stroke-width=\"{width:.2}\" stroke-opacity=\"{opacity:.2}\"><title>{name}, edge {e}{said}</title></path>",
                path
            );
        }
    }
    out.push_str("</g>\n");
}

/// A line from the border of one node to that of another, bent, with an arrow head.
fn curve(
    from: [f64; 2],
    to: [f64; 2],
    forward: bool,
    bend: f64,
    radius: f64,
    width: f64,
) -> String {
    let d = [to[0] - from[0], to[1] - from[1]];
    let length = d[0].hypot(d[1]).max(1e-6);
    let (unit, side) = ([d[0] / length, d[1] / length], if forward { 1.0 } else { -1.0 });
    let shift = bend * side * 14.0;
    let middle =
        [(from[0] + to[0]) / 2.0 - unit[1] * shift, (from[1] + to[1]) / 2.0 + unit[0] * shift];
    let (start, end) = (toward(from, middle, radius), toward(to, middle, radius + 1.0));
    let head = 4.0 + width;
    let back = toward(end, middle, head);
    let normal = [-(end[1] - back[1]) * 0.45, (end[0] - back[0]) * 0.45];
    let point = |p: [f64; 2]| format!("{:.1} {:.1}", p[0], p[1]);
    let wing = |side: f64| point([back[0] + side * normal[0], back[1] + side * normal[1]]);
    let (start, middle, end) = (point(start), point(middle), point(end));
    format!("M{start}Q{middle} {end}M{}L{end}L{}", wing(1.0), wing(-1.0))
}

/// The point at a distance from `a` in the direction of `b`.
fn toward(a: [f64; 2], b: [f64; 2], distance: f64) -> [f64; 2] {
    let length = (b[0] - a[0]).hypot(b[1] - a[1]).max(1e-6);
    [a[0] + (b[0] - a[0]) / length * distance, a[1] + (b[1] - a[1]) / length * distance]
}

fn self_loop(at: [f64; 2], radius: f64, bend: f64) -> String {
    let r = radius * (1.0 + 0.4 * bend.abs());
    format!(
        "M{:.1} {:.1}a{r:.1} {r:.1} 0 1 1 {:.1} 0",
        at[0] - radius * 0.6,
        at[1] - radius * 0.8,
        radius * 1.2
    )
}

fn nodes(drawing: &Drawing<'_>, places: &[[f64; 2]], radius: f64, out: &mut String) {
    let (offsets, highlighted) = (drawing.offsets(), drawing.is_highlighted());
    let many = drawing.graph.schema().ntypes().len() > 1;
    for (t, (ntype, frame)) in
        drawing.graph.schema().ntypes().iter().zip(drawing.graph.node_frames()).enumerate()
    {
        for v in 0..frame.len() {
            let (joint, groups) = (offsets[t] + v, drawing.groups.get(&t));
            let [x, y] = places[joint];
            let id = frame
                .ids()
                .and_then(|ids| ids.id(v as u32))
                .map_or_else(|| v.to_string(), |id| id.to_string());
            let group = groups.map_or(String::new(), |g| format!(", group {}", g[v]));
            let said = escaped(&if many {
                format!("{ntype} {id}{group}")
            } else {
                format!("{id}{group}")
            });
            let (r, border) = if highlighted[joint] {
                (radius * 1.4, "stroke=\"#000000\" stroke-width=\"3\"")
            } else {
                (radius, "stroke=\"#ffffff\"")
            };
            let color = color(t, groups.map(|g| g[v]));
            add!(
                out,
                "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"{color}\" {border}><title>{said}</title></circle>"
            );
            if places.len() <= LABELLED {
                add!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    x + r + 2.0,
                    y + 4.0,
                    escaped(&id)
                );
            }
        }
    }
}

fn color(ntype: usize, group: Option<u32>) -> &'static str {
    COLORS[group.map_or(ntype, |g| g as usize) % COLORS.len()]
}

/// Least and largest of all weights.
fn weight_range(drawing: &Drawing<'_>) -> (f32, f32) {
    drawing.weights.values().flatten().fold((f32::MAX, f32::MIN), |(l, h), &w| (l.min(w), h.max(w)))
}

/// What colours and widths say.
fn legend(drawing: &Drawing<'_>, out: &mut String) {
    let (schema, mut y) = (drawing.graph.schema(), HEAD + MARGIN);
    let x = SIZE[0] + 10.0;
    let mut heads = vec![];
    for (t, ntype) in schema.ntypes().iter().enumerate() {
        let count = drawing.graph.node_counts()[t];
        match drawing.groups.get(&t) {
            None => heads.push((color(t, None), format!("{ntype} ({count})"))),
            Some(groups) => {
                let distinct: BTreeSet<u32> = groups.iter().copied().collect();
                let size = |g: u32| groups.iter().filter(|&&of| of == g).count();
                heads.extend(
                    distinct
                        .into_iter()
                        .map(|g| (color(t, Some(g)), format!("{ntype}, group {g} ({})", size(g)))),
                );
            }
        }
    }
    let rest = heads.len().saturating_sub(SHOWN);
    let mut line = |mark: &dyn Fn(f64) -> String, x: f64, text: &str| {
        add!(out, "{}<text x=\"{x}\" y=\"{}\">{text}</text>", mark(y), y + 4.0);
        y += 18.0;
    };
    for (color, text) in heads.into_iter().take(SHOWN) {
        let mark = |y| format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"6\" fill=\"{color}\"/>");
        line(&mark, x + 12.0, &escaped(&text));
    }
    if rest > 0 {
        line(&|_| String::new(), x, &format!("… and {rest} more"));
    }
    for (t, etype) in schema.etypes().iter().enumerate().take(SHOWN) {
        let color = EDGE_COLORS[t % EDGE_COLORS.len()];
        let text = format!("{etype} ({})", drawing.graph.relations()[t].num_edges());
        let from = x - 6.0;
        let mark =
            |y| format!("<path d=\"M{from} {y}h12\" stroke=\"{color}\" stroke-width=\"3\"/>");
        line(&mark, x + 12.0, &escaped(&text));
    }
    if !drawing.weights.is_empty() {
        let (low, high) = weight_range(drawing);
        line(&|_| String::new(), x, &format!("width: weight {low} to {high}"));
    }
}

/// A text inside a document.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
