//! Tests that drawings show every node, edge, group and weight of the graph.

use crate::draw::drawing::{Drawing, DrawingLayout};
use crate::graph::Graph;
use burn_gnn_structure::{Ids, NodeIds};

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

/// Node 16 of a ring and those around it are called by their numbers there.
#[test]
fn subgraphs_keep_their_names() {
    let n = 20u32;
    let (a, b): (Vec<u32>, Vec<u32>) = (0..n).map(|v| (v, (v + 1) % n)).unzip();
    let g = Graph::homogeneous(20, [a.clone(), b.clone()].concat(), [b, a].concat()).unwrap();
    let around = g.khop_in_subgraph([("_N", [16])], 1).unwrap();
    let drawing = Drawing::of_subgraph(&around.subgraph)
        .unwrap()
        .with_highlighted("_N", &around.seeds[0])
        .unwrap();
    let svg = drawing.clone().undirected().to_svg();
    let highlighted = svg.lines().find(|l| l.contains("stroke-width=\"3\"><title>")).unwrap();
    assert!(highlighted.contains("<title>16</title>"), "{highlighted}");
    let names: Vec<&str> = svg
        .lines()
        .filter(|l| l.starts_with("<text x") && !l.contains("font-size"))
        .map(|l| l.split(['>', '<']).nth(2).unwrap())
        .collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["15", "16", "17"]);
    // 15 - 16 and 16 - 17, each a line without a head, by both edges' ids in the ring.
    let lines: Vec<&str> = svg.lines().filter(|l| l.contains("class=\"edge\"")).collect();
    assert_eq!(lines.len(), 2);
    for ids in ["edges 15 and 35<", "edges 16 and 36<"] {
        assert!(lines.iter().any(|l| l.contains(ids)), "{lines:?}");
    }
    let path = |l: &str| l.split('"').nth(3).unwrap().to_owned();
    assert!(lines.iter().all(|l| !path(l).contains('L')), "{lines:?}");
    // Directed: four arrows.
    let svg = drawing.to_svg();
    let lines: Vec<&str> = svg.lines().filter(|l| l.contains("class=\"edge\"")).collect();
    assert!(lines.len() == 4 && lines.iter().all(|l| path(l).matches('L').count() == 2));
    let mut other = around.subgraph.clone();
    other.node_ids.clear();
    assert!(Drawing::of_subgraph(&other).is_err());
}

/// The picture is as large as its legend.
#[test]
fn the_legend_is_not_cut_off() {
    let relation = "a relation with quite a long name that says what it is about";
    let mut b = Graph::builder().nodes("node type of some length", 30);
    for i in 0..25 {
        let ty = "node type of some length";
        b = b.edges((ty, &*format!("{i} {relation}"), ty), vec![0], vec![1]);
    }
    let g = b.build().unwrap();
    let groups: Vec<u32> = (0..30).collect();
    let svg = Drawing::new(&g).unwrap().with_groups(0, &groups).unwrap().to_svg();
    let view: Vec<f64> = svg
        .split_once("viewBox=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(view, _)| view.split(' ').map(|n| n.parse().unwrap()).collect())
        .unwrap();
    let legend: Vec<&str> = svg.lines().filter(|l| l.contains("class=\"legend\"")).collect();
    assert_eq!(legend.len(), 20 + 1 + 20 + 1);
    for entry in legend {
        let tag = &entry[entry.find("<text").unwrap()..];
        let (x, y) = (attribute(tag, "x"), attribute(tag, "y"));
        let text = tag.rsplit_once("</text>").unwrap().0.rsplit_once('>').unwrap().1;
        assert!(y + 10.0 < view[3] && x + 7.0 * text.chars().count() as f64 <= view[2], "{entry}");
        assert!(text.chars().count() <= 61);
    }
    assert!(
        svg.contains("… and 10 more kinds of nodes") && svg.contains("… and 5 more kinds of edges")
    );
    // All of a text that is shortened is in its tooltip.
    let whole = format!("node type of some length:3 {relation}:node type of some length (1)");
    assert!(svg.contains(&format!("<title>{whole}</title>")));
}

#[test]
fn names_of_groups_and_light_edges() {
    let g = Graph::homogeneous(3, vec![0, 1, 2, 1], vec![1, 2, 0, 0]).unwrap();
    let drawing = || Drawing::new(&g).unwrap().with_groups("_N", &[0, 1, 0]).unwrap();
    let named = drawing().with_group_names("_N", ["Mr. <Hi>", "Officer"]).unwrap();
    let svg = named.to_svg();
    for text in ["_N, Mr. &lt;Hi&gt; (2)", "_N, Officer (1)", "<title>1, Officer</title>"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let e = drawing().with_group_names("_N", ["one"]).unwrap_err().to_string();
    assert!(e.contains("a name for each group") && e.contains("1 names"), "{e}");
    assert!(Drawing::new(&g).unwrap().with_group_names("_N", ["one"]).is_err());
    let weighted = || drawing().with_edge_weights("_E", &[0.1, 0.9, 0.5, 0.3]).unwrap();
    let svg = weighted().with_min_weight(0.4).unwrap().to_svg();
    assert_eq!(svg.matches("class=\"edge\"").count(), 2);
    assert!(svg.contains("edge 1, weight 0.9") && svg.contains("edge 2, weight 0.5"));
    assert!(svg.contains("not drawn: 2 edges of weight below 0.4"));
    assert!(svg.contains("width: weight 0.5 to 0.9"));
    // 0 -> 1 and 1 -> 0 are one line of the larger weight.
    let svg = weighted().undirected().with_min_weight(0.2).unwrap().to_svg();
    assert!(svg.contains("edges 0 and 3, weight 0.3") && !svg.contains("not drawn"));
    assert_eq!(circles(&svg), circles(&weighted().to_svg()), "nodes stay");
    assert!(
        drawing().with_min_weight(1.0).is_err() && weighted().with_min_weight(f32::NAN).is_err()
    );
}
