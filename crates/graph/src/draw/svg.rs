//! Renders a drawing as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::draw::drawing::{Drawing, Line};
use burn_gnn_structure::internal::count_noun;

/// Width and height of the picture without the legend, and the smallest width of the legend.
const SIZE: [f64; 2] = [960.0, 640.0];
const LEGEND: f64 = 220.0;
/// Height of a legend entry, and estimated widths of a letter and of a wide character.
const ENTRY: f64 = 18.0;
const LETTER: f64 = 7.5;
const WIDE: f64 = 13.0;
/// Longest text of a legend entry; the tooltip has the full text.
const LETTERS: usize = 60;
/// Space around nodes.
const MARGIN: f64 = 40.0;
/// Height of the title.
const HEAD: f64 = 40.0;
/// Largest number of nodes with labels.
const LABELLED: usize = 80;
/// Largest number of legend entries.
const SHOWN: usize = 20;

/// Colours of node types or groups, then of edge types.
const COLORS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7",
    "#9c755f", "#8c8c8c",
];
const EDGE_COLORS: [&str; 6] = ["#7f7f7f", "#1b6ca8", "#b5651d", "#6a4c93", "#2a7f62", "#a23b3b"];

impl Drawing<'_> {
    /// Renders the picture as an SVG document.
    pub fn to_svg(&self) -> String {
        draw(self)
    }
}

pub(super) fn draw(drawing: &Drawing<'_>) -> String {
    let (lines, light) = drawing.lines();
    let legend = legend(drawing, &lines, light);
    let widest = legend.iter().map(|entry| text_width(&entry.text)).fold(0.0, f64::max);
    let width = SIZE[0] + LEGEND.max((widest + 40.0).ceil());
    let height = (SIZE[1] + HEAD).max(HEAD + MARGIN + ENTRY * legend.len() as f64 + MARGIN);
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
    edges(drawing, &lines, &places, radius, &mut out);
    nodes(drawing, &places, radius, &mut out);
    out.push_str("</g>\n");
    for (i, entry) in legend.iter().enumerate() {
        entry.write(HEAD + MARGIN + ENTRY * i as f64, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Writes to a `String`, which cannot fail.
macro_rules! add {
    ($out:expr, $($arg:tt)*) => { let _ = writeln!($out, $($arg)*); };
}

fn edges(
    drawing: &Drawing<'_>,
    lines: &[Line],
    places: &[[f64; 2]],
    radius: f64,
    out: &mut String,
) {
    // Several edges between a pair of nodes are curved, so that they do not overlap.
    let pair = |line: &Line| (line.ends.0.min(line.ends.1), line.ends.0.max(line.ends.1));
    let mut between: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    lines.iter().for_each(|line| *between.entry(pair(line)).or_default() += 1);
    let mut drawn: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let range = weight_range(lines);
    out.push_str("<g fill=\"none\">\n");
    for line in lines {
        let ((u, v), t) = (line.ends, line.etype);
        let color = EDGE_COLORS[t % EDGE_COLORS.len()];
        let name = escaped(&drawing.graph.schema().etypes()[t].to_string());
        let nth = drawn.entry(pair(line)).or_default();
        let bend = *nth as f64 - (between[&pair(line)] - 1) as f64 / 2.0;
        *nth += 1;
        let strength = line.weight.map_or(0.3, |w| {
            f64::from(w - range.0) / f64::from((range.1 - range.0).max(f32::MIN_POSITIVE))
        });
        let (width, opacity) = (0.6 + 4.4 * strength, 0.35 + 0.6 * strength);
        let weight = line.weight.map_or(String::new(), |w| format!(", weight {w}"));
        let edge = match line.reverse {
            None => format!("edge {}", drawing.edge_label(t, line.edge)),
            Some(reverse) => format!(
                "edges {} and {}",
                drawing.edge_label(t, line.edge),
                drawing.edge_label(t, reverse)
            ),
        };
        let path = if u == v {
            self_loop(places[u], radius, bend)
        } else {
            let arrow = line.reverse.is_none().then_some(width);
            curve(places[u], places[v], u < v, bend, radius, arrow)
        };
        add!(
            out,
            "<path class=\"edge\" d=\"{path}\" stroke=\"{color}\" stroke-width=\"{width:.2}\" stroke-opacity=\"{opacity:.2}\"><title>{name}, {edge}{weight}</title></path>"
        );
    }
    out.push_str("</g>\n");
}

/// A curve between the borders of two nodes, with an arrow head of this width, if any.
fn curve(
    from: [f64; 2],
    to: [f64; 2],
    forward: bool,
    bend: f64,
    radius: f64,
    arrow: Option<f64>,
) -> String {
    let d = [to[0] - from[0], to[1] - from[1]];
    let length = d[0].hypot(d[1]).max(1e-6);
    let (unit, side) = ([d[0] / length, d[1] / length], if forward { 1.0 } else { -1.0 });
    let shift = bend * side * 14.0;
    let middle =
        [(from[0] + to[0]) / 2.0 - unit[1] * shift, (from[1] + to[1]) / 2.0 + unit[0] * shift];
    let (start, end) = (toward(from, middle, radius), toward(to, middle, radius + 1.0));
    let point = |p: [f64; 2]| format!("{:.1} {:.1}", p[0], p[1]);
    let line = format!("M{}Q{} {}", point(start), point(middle), point(end));
    let Some(width) = arrow else { return line };
    let head = 4.0 + width;
    let back = toward(end, middle, head);
    let normal = [-(end[1] - back[1]) * 0.45, (end[0] - back[0]) * 0.45];
    let wing = |side: f64| point([back[0] + side * normal[0], back[1] + side * normal[1]]);
    format!("{line}M{}L{}L{}", wing(1.0), point(end), wing(-1.0))
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
            let (joint, group) = (offsets[t] + v, drawing.group(t, v));
            let ([x, y], id) = (places[joint], drawing.label(t, v));
            let color = color(t, group.as_ref().map(|group| group.0));
            let group = group.map_or(String::new(), |group| format!(", {}", group.1));
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
            add!(
                out,
                "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"{color}\" {border}><title>{said}</title></circle>"
            );
            if places.len() <= LABELLED {
                // Loops point away from the legend.
                let (x, anchor) = if x + r + text_width(&id) < SIZE[0] {
                    (x + r + 2.0, "")
                } else {
                    (x - r - 2.0, " text-anchor=\"end\"")
                };
                add!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{:.1}\"{anchor}>{}</text>",
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

/// Smallest and largest weight of all lines.
fn weight_range(lines: &[Line]) -> (f32, f32) {
    let weights = lines.iter().filter_map(|line| line.weight);
    weights.fold((f32::MAX, f32::MIN), |(l, h), w| (l.min(w), h.max(w)))
}

/// Estimated width of a text.
fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_ascii() { LETTER } else { WIDE }).sum()
}

/// Symbol of a legend entry.
enum Mark {
    None,
    Node(&'static str),
    Edge(&'static str),
}

struct Entry {
    mark: Mark,
    /// At most [`LETTERS`] long.
    text: String,
    /// The full text, if it was shortened.
    whole: Option<String>,
}

impl Entry {
    fn new(mark: Mark, text: String) -> Self {
        match text.char_indices().nth(LETTERS) {
            None => Self { mark, text, whole: None },
            Some((end, _)) => {
                Self { mark, text: format!("{}…", &text[..end]), whole: Some(text) }
            }
        }
    }

    fn write(&self, y: f64, out: &mut String) {
        let x = SIZE[0] + 10.0;
        let (mark, x) = match self.mark {
            Mark::None => (String::new(), x),
            Mark::Node(color) => {
                (format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"6\" fill=\"{color}\"/>"), x + 12.0)
            }
            Mark::Edge(color) => {
                let from = x - 6.0;
                let path =
                    format!("<path d=\"M{from} {y}h12\" stroke=\"{color}\" stroke-width=\"3\"/>");
                (path, x + 12.0)
            }
        };
        let whole = self.whole.as_deref().map(|text| format!("<title>{}</title>", escaped(text)));
        add!(
            out,
            "{mark}<text class=\"legend\" x=\"{x}\" y=\"{}\">{}{}</text>",
            y + 4.0,
            whole.unwrap_or_default(),
            escaped(&self.text)
        );
    }
}

/// Entries of the legend: the meaning of colours and widths.
fn legend(drawing: &Drawing<'_>, lines: &[Line], light: usize) -> Vec<Entry> {
    let schema = drawing.graph.schema();
    let mut nodes = vec![];
    for (t, ntype) in schema.ntypes().iter().enumerate() {
        let count = drawing.graph.node_counts()[t];
        match drawing.groups.get(&t) {
            None => nodes.push((Mark::Node(color(t, None)), format!("{ntype} ({count})"))),
            Some(groups) => {
                let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
                groups.iter().for_each(|&g| *sizes.entry(g).or_default() += 1);
                nodes.extend(sizes.into_iter().map(|(g, size)| {
                    let text = format!("{ntype}, {} ({size})", drawing.group_name(t, g));
                    (Mark::Node(color(t, Some(g))), text)
                }));
            }
        }
    }
    let edges = schema.etypes().iter().enumerate().map(|(t, etype)| {
        let mark = Mark::Edge(EDGE_COLORS[t % EDGE_COLORS.len()]);
        (mark, format!("{etype} ({})", drawing.graph.relations()[t].num_edges()))
    });
    let mut out = vec![];
    for (what, entries) in [("node", nodes), ("edge", edges.collect())] {
        let rest = entries.len().saturating_sub(SHOWN);
        out.extend(entries.into_iter().take(SHOWN).map(|(mark, text)| Entry::new(mark, text)));
        if rest > 0 {
            let text = format!("… and {rest} more kinds of {what}s");
            out.push(Entry::new(Mark::None, text));
        }
    }
    let (low, high) = weight_range(lines);
    if low <= high {
        out.push(Entry::new(Mark::None, format!("width: weight {low} to {high}")));
    }
    if let Some(least) = drawing.min_weight.filter(|_| light > 0) {
        let text = format!("not drawn: {} of weight below {least}", count_noun(light, "edge"));
        out.push(Entry::new(Mark::None, text));
    }
    out
}

/// Escapes a text for XML.
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
