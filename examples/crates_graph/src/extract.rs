//! Extracts numbered nodes and edges from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, Package};

use crate::manifest_text::{author, bucket, licenses, part, words};

/// One crate.
pub(crate) struct Crate {
    /// Name and version.
    pub(crate) name: String,
    /// Class number, -1 without a category.
    pub(crate) label: i64,
    /// Column of each word, ascending, repeated as often as it occurs.
    pub(crate) buckets: Vec<u32>,
    /// 0 train, 1 val, 2 test.
    pub(crate) part: usize,
}

/// Nodes in the order of their ids, edges sorted and without repeats.
pub(crate) struct CratesGraph {
    pub(crate) crates: Vec<Crate>,
    /// Names of the other nodes by node type.
    pub(crate) others: BTreeMap<&'static str, Vec<String>>,
    pub(crate) relations: Vec<CrateRelation>,
    pub(crate) classes: Vec<String>,
    pub(crate) buckets: u32,
}

/// Edges from crates.
pub(crate) struct CrateRelation {
    pub(crate) name: &'static str,
    /// Node type of destinations.
    pub(crate) dst: &'static str,
    pub(crate) edges: BTreeSet<(u32, u32)>,
}

/// A relation to another node type: its name, the type, and what a package has of it.
type Attribute = (&'static str, &'static str, fn(&Package) -> Vec<String>);

const ATTRIBUTES: [Attribute; 3] = [
    ("has_keyword", "keyword", |p| {
        p.keywords.iter().map(|k| plain(&k.to_lowercase())).filter(|k| !k.is_empty()).collect()
    }),
    ("written_by", "author", |p| {
        p.authors.iter().filter_map(|a| author(a)).map(|h| format!("{h:016x}")).collect()
    }),
    ("licensed_under", "license", |p| p.license.iter().flat_map(|l| licenses(&plain(l))).collect()),
];

/// Builds the graph.
///
/// # Errors
/// `cargo metadata` gave no resolved dependency graph.
pub(crate) fn extract(metadata: &Metadata, buckets: u32) -> anyhow::Result<CratesGraph> {
    let resolve =
        metadata.resolve.as_ref().context("cargo metadata gave no resolved dependencies")?;
    let mut packages: Vec<&Package> = metadata.packages.iter().collect();
    packages.sort_by(|a, b| {
        (a.name.as_str(), &a.version, &a.id).cmp(&(b.name.as_str(), &b.version, &b.id))
    });
    let number: HashMap<_, u32> = packages.iter().zip(0..).map(|(p, i)| (&p.id, i)).collect();

    let classes: Vec<String> =
        packages.iter().filter_map(|p| class(p)).collect::<BTreeSet<_>>().into_iter().collect();
    let crates = packages.iter().map(|p| describe(p, &classes, buckets)).collect();

    let mut relations = vec![];
    for (name, kind) in [
        ("depends", DependencyKind::Normal),
        ("build_depends", DependencyKind::Build),
        ("dev_depends", DependencyKind::Development),
    ] {
        let mut edges = BTreeSet::new();
        for node in &resolve.nodes {
            for dep in node.deps.iter().filter(|d| d.dep_kinds.iter().any(|k| k.kind == kind)) {
                if let (Some(&s), Some(&d)) = (number.get(&node.id), number.get(&dep.pkg)) {
                    edges.insert((s, d));
                }
            }
        }
        relations.push(CrateRelation { name, dst: "crate", edges });
    }
    let mut others = BTreeMap::new();
    for (relation, ntype, of) in ATTRIBUTES {
        let names: Vec<String> =
            packages.iter().flat_map(|p| of(p)).collect::<BTreeSet<_>>().into_iter().collect();
        let find = |name: &String| names.binary_search(name).ok().map(|i| i as u32);
        let edges = packages
            .iter()
            .zip(0..)
            .flat_map(|(p, i)| of(p).iter().filter_map(find).map(|j| (i, j)).collect::<Vec<_>>())
            .collect();
        others.insert(ntype, names);
        relations.push(CrateRelation { name: relation, dst: ntype, edges });
    }
    Ok(CratesGraph { crates, others, relations, classes, buckets })
}

fn describe(p: &Package, classes: &[String], buckets: u32) -> Crate {
    let text = format!("{} {}", p.name.as_str(), p.description.as_deref().unwrap_or(""));
    let mut columns: Vec<u32> = words(&text).map(|w| bucket(&w, buckets)).collect();
    columns.sort_unstable();
    let label = class(p).and_then(|c| classes.binary_search(&c).ok()).map_or(-1, |i| i as i64);
    Crate {
        name: format!("{} {}", p.name.as_str(), p.version),
        label,
        buckets: columns,
        part: part(p.name.as_str()),
    }
}

/// Top level of the first category.
fn class(p: &Package) -> Option<String> {
    let top = plain(&p.categories.first()?.split("::").next()?.to_lowercase());
    (!top.is_empty()).then_some(top)
}

/// A manifest may hold any text; a table field holds no tab and no line end.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
