//! Defines `Fanouts`: how many edges are sampled per node, relation and hop.

use burn_gnn_graph::internal::check_len;
use burn_gnn_graph::{EdgeName, Graph, GraphError};

/// Number of edges to sample per node, for each hop and relation.
///
/// Numbers are listed from the seeds outward: `[15, 10]` samples 15 edges per seed and 10 per node found. -1 means all
/// edges, 0 none. (DGL lists them from the input layer to the seeds.)
///
/// ```
/// use burn_gnn_sampling::Fanouts;
/// let same: Fanouts = [15, 10].into(); // for every relation
/// let typed = Fanouts::per_relation([(("author", "writes", "paper"), [5, 5]), (("paper", "cites", "paper"), [10, 0])]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanouts(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Every(Vec<i64>),
    PerRelation(Vec<(EdgeName, Vec<i64>)>),
}

/// Fan-out of all edges.
pub(crate) const ALL: u32 = u32::MAX;
const LIMIT: i64 = u32::MAX as i64 - 1;

impl Fanouts {
    /// All edges of every relation, for `hops` hops.
    pub fn all(hops: usize) -> Self {
        Self(Kind::Every(vec![-1; hops]))
    }
    /// One list per relation, all of the same length. Every relation of the graph must have a list. A relation is given by
    /// its triple, or by its name alone if that is unique.
    pub fn per_relation<E: Into<EdgeName>, L: AsRef<[i64]>>(
        lists: impl IntoIterator<Item = (E, L)>,
    ) -> Self {
        Self(Kind::PerRelation(
            lists.into_iter().map(|(e, l)| (e.into(), l.as_ref().to_vec())).collect(),
        ))
    }

    /// Validates the fan-outs for a graph, as `[hop][relation]`.
    pub(crate) fn resolve(&self, g: &Graph) -> Result<Vec<Vec<u32>>, GraphError> {
        let etypes = g.schema().etypes();
        match &self.0 {
            Kind::Every(hops) => {
                let one = |(hop, &value): (usize, &i64)| {
                    Ok(vec![number("(every)", hop, value)?; etypes.len()])
                };
                hops.iter().enumerate().map(one).collect()
            }
            Kind::PerRelation(lists) => {
                let mut of: Vec<Option<&[i64]>> = vec![None; etypes.len()];
                for (name, list) in lists {
                    if of[g.schema().etype(name)?].replace(list).is_some() {
                        return Err(GraphError::Duplicate {
                            what: "edge type",
                            name: name.to_string(),
                        });
                    }
                }
                let hops = lists.first().map_or(0, |(_, list)| list.len());
                let mut out = vec![vec![0; etypes.len()]; hops];
                for (t, (name, list)) in etypes.iter().zip(of).enumerate() {
                    let remedy = "add one number per hop: 0 for no edges, -1 for all";
                    let missing = || GraphError::MissingRelation {
                        arg: "fanouts",
                        relation: name.to_string(),
                        remedy,
                    };
                    let list = list.ok_or_else(missing)?;
                    check_len("fanouts", "hops of the first relation given", hops, list.len())
                        .map_err(|e| e.in_relation(&name.to_string()))?;
                    for (hop, &value) in list.iter().enumerate() {
                        out[hop][t] = number(&name.to_string(), hop, value)?;
                    }
                }
                Ok(out)
            }
        }
    }
}

fn number(relation: &str, hop: usize, value: i64) -> Result<u32, GraphError> {
    match value {
        -1 => Ok(ALL),
        0..=LIMIT => Ok(value as u32),
        _ => Err(GraphError::Fanout { relation: relation.to_owned(), hop, limit: LIMIT, value }),
    }
}

impl From<Vec<i64>> for Fanouts {
    fn from(hops: Vec<i64>) -> Self {
        Self(Kind::Every(hops))
    }
}
impl From<&[i64]> for Fanouts {
    fn from(hops: &[i64]) -> Self {
        hops.to_vec().into()
    }
}
impl<const N: usize> From<[i64; N]> for Fanouts {
    fn from(hops: [i64; N]) -> Self {
        hops.to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_per_hop_and_relation_and_what_is_refused() {
        let g = Graph::builder().nodes("a", 1).edges(("a", "r", "a"), vec![], vec![]).edges(
            ("a", "s", "a"),
            vec![],
            vec![],
        );
        let g = g.build().unwrap();
        let (r, s) = (("a", "r", "a"), ("a", "s", "a"));
        assert_eq!(Fanouts::from([3, -1]).resolve(&g).unwrap(), [[3, 3], [ALL, ALL]]);
        assert_eq!(
            Fanouts::per_relation([(s, [0, 1]), (r, [-1, 2])]).resolve(&g).unwrap(),
            [[ALL, 0], [2, 1]]
        );
        let text = |f: Fanouts| f.resolve(&g).unwrap_err().to_string();
        let refused = "fan-out of relation `(every)`, hop 1: must be -1 (all), 0 (none) or a number of edges up to 4294967294, got -2";
        assert_eq!(text([3, -2].into()), refused);
        let missing = "`fanouts` has no entry for relation `a:s:a`; add one number per hop: 0 for no edges, -1 for all";
        assert_eq!(text(Fanouts::per_relation([(r, [1])])), missing);
        let unequal = Fanouts::per_relation([(r, vec![1, 2]), (s, vec![1])]);
        assert_eq!(
            text(unequal),
            "`fanouts` of relation `a:s:a`: expected length 2 (hops of the first relation given), got 1; give 2 entries"
        );
        assert!(matches!(
            Fanouts::per_relation([(r, [1]), (r, [1])]).resolve(&g),
            Err(GraphError::Duplicate { .. })
        ));
        assert!(matches!(
            Fanouts::per_relation([(("a", "x", "a"), [1])]).resolve(&g),
            Err(GraphError::UnknownEdgeType { .. })
        ));
    }
}
