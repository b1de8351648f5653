//! Tests that drawings show every node, edge, group and weight of the graph.

use super::{Drawing, DrawingLayout};
use crate::{Graph, Ids, NodeIds};

/// Two cliques of five, one edge between them, two alone.
fn cliques() -> Graph {
    let (mut src, mut dst) = (vec![], vec![]);
    for base in [0, 5] {
        for (u, v) in (0..5).flat_map(|u| (u + 1..5).map(move |v| (u, v))) {
            src.push(base + u);
            dst.push(base + v);
        }
    }
    src.push(0);
    dst.push(5);
    Graph::homogeneous(12, src, dst).unwrap()
}

/// Tags of a document in which every opened one is closed.
fn tags(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (vec![], vec![]);
    for part in svg.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(closed), _) => assert_eq!(open.pop(), Some(closed)),
            (None, alone) => {
                all.push(tag);
                if !alone {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    all
}

fn attribute(tag: &str, name: &str) -> f64 {
    tag.split_once(&format!("{name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
}

fn circles(svg: &str) -> Vec<[f64; 2]> {
    tags(svg)
        .into_iter()
        .filter(|t| t.starts_with("circle class=\"node\""))
        .map(|t| [attribute(t, "cx"), attribute(t, "cy")])
        .collect()
}

#[test]
fn every_node_and_edge_is_there_once() {
    let g = cliques();
    for layout in [DrawingLayout::Force, DrawingLayout::Layers] {
        let svg = Drawing::new(&g).unwrap().with_layout(layout).to_svg();
        let nodes = circles(&svg);
        assert_eq!(
            (
                nodes.len(),
                tags(&svg).iter().filter(|t| t.starts_with("path class=\"edge\"")).count()
            ),
            (12, 21)
        );
        for (i, a) in nodes.iter().enumerate() {
            assert!(
                (0.0..=960.0).contains(&a[0]) && (0.0..=680.0).contains(&a[1]),
                "{layout:?}: {a:?}"
            );
            assert!(
                nodes[..i].iter().all(|b| (a[0] - b[0]).hypot(a[1] - b[1]) > 5.0),
                "{layout:?}: node {i} hides another"
            );
        }
    }
}

#[test]
fn neighbours_stand_together() {
    let g = cliques();
    let nodes = circles(&Drawing::new(&g).unwrap().to_svg());
    let mean = |pairs: &[(usize, usize)]| {
        pairs
            .iter()
            .map(|&(u, v)| (nodes[u][0] - nodes[v][0]).hypot(nodes[u][1] - nodes[v][1]))
            .sum::<f64>()
            / pairs.len() as f64
    };
    let inside: Vec<_> =
        (0..10).flat_map(|u| (0..u).filter(move |v| u / 5 == v / 5).map(move |v| (u, v))).collect();
    let across: Vec<_> = (1..5).flat_map(|u| (6..10).map(move |v| (u, v))).collect();
    assert!(mean(&inside) * 1.5 < mean(&across), "{} and {}", mean(&inside), mean(&across));
}

#[test]
fn the_same_picture_for_the_same_seed() {
    let g = cliques();
    let draw = |seed, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Drawing::new(&g).unwrap().with_seed(seed).to_html())
    };
    assert_eq!(draw(3, 1), draw(3, 4));
    assert_ne!(draw(3, 1), draw(4, 1));
}

/// 3 -> 1 -> 0 <- 2, and a node alone.
#[test]
fn rows_are_hops() {
    let g = Graph::homogeneous(5, vec![3, 1, 2], vec![1, 0, 0]).unwrap();
    let svg = Drawing::new(&g)
        .unwrap()
        .with_highlighted("_N", &[0])
        .unwrap()
        .with_layout(DrawingLayout::Layers)
        .to_svg();
    let y: Vec<f64> = circles(&svg).iter().map(|c| c[1]).collect();
    assert!(y[0] > y[1] && y[1] == y[2] && y[1] > y[3] && y[4] == y[0], "{y:?}");
    let without = Drawing::new(&g).unwrap().with_layout(DrawingLayout::Layers).to_svg();
    assert_eq!(circles(&without)[0][1], circles(&without)[1][1].max(circles(&without)[0][1]));
}

#[test]
fn groups_weights_and_names() {
    let mut g = Graph::builder()
        .nodes("a", 2)
        .nodes("b", 2)
        .edges(("a", "to", "b"), vec![0, 1, 0], vec![0, 1, 0])
        .edges(("b", "of", "b"), vec![1], vec![1])
        .build()
        .unwrap();
    g.nodes_mut("b")
        .unwrap()
        .set_ids(NodeIds::new(Ids::Text(["x < y & \"z\"", "two"].into_iter().collect())))
        .unwrap();
    let drawing =
        Drawing::new(&g).unwrap().with_title("<parts>").with_groups("a", &[0, 7]).unwrap();
    let drawing = drawing.with_edge_weights("to", &[0.5, 2.0, 1.0]).unwrap();
    let svg = drawing.to_svg();
    let edges: Vec<f64> = tags(&svg)
        .iter()
        .filter(|t| t.starts_with("path class=\"edge\""))
        .map(|t| attribute(t, "stroke-width"))
        .collect();
    assert!(edges[0] < edges[2] && edges[2] < edges[1], "{edges:?}");
    for text in [
        "&lt;parts&gt;",
        "x &lt; y &amp; &quot;z&quot;",
        "a, group 7 (1)",
        "b (2)",
        "a:to:b (3)",
        "width: weight 0.5 to 2",
        "weight 2</title>",
    ] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // Parallel edges are two lines.
    let lines: Vec<&str> = svg
        .lines()
        .filter(|l| l.contains("a:to:b, edge"))
        .map(|l| l.split('"').nth(3).unwrap())
        .collect();
    assert!(lines.len() == 3 && lines[0] != lines[2], "{lines:?}");
    let page = drawing.to_html();
    assert!(
        page.contains(&svg) && page.matches("http").count() == 1 && !page.contains("src="),
        "nothing is loaded"
    );
}

#[test]
fn refusals() {
    let g = cliques();
    let d = || Drawing::new(&g).unwrap();
    assert!(d().with_groups("_N", &[1]).unwrap_err().to_string().contains("expected length 12"));
    assert!(d().with_highlighted("_N", &[12]).is_err() && d().with_highlighted("x", &[]).is_err());
    assert!(d().with_edge_weights("_E", &[1.0; 20]).is_err());
    assert!(
        d().with_edge_weights("_E", &[f32::NAN; 21])
            .unwrap_err()
            .to_string()
            .contains("finite weights")
    );
    let large = Graph::homogeneous(5001, vec![], vec![]).unwrap();
    assert!(Drawing::new(&large).unwrap_err().to_string().contains("at most 5000 nodes"));
    let none = Graph::builder().build().unwrap();
    assert!(circles(&Drawing::new(&none).unwrap().to_svg()).is_empty());
}
