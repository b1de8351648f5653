//! Groups nodes into classes that partitioning balances separately.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use burn_gnn_graph::Graph;

use crate::partition::config::PartitionConfig;

/// Maximal number of classes; the smallest ones are merged into the last. Each class costs METIS time and cut edges.
const MAX_CLASSES: usize = 15;

/// Class of every node.
pub(crate) struct Classes {
    /// Class of each node, by global id.
    of: Vec<u8>,
    /// Nodes in each class; none is empty.
    pub(crate) sizes: Vec<usize>,
}

impl Classes {
    /// The classes are the node types, divided by `balance_classes`; one class if `config` requests neither. The graph
    /// has at least one node.
    pub(crate) fn of(graph: &Graph, config: &PartitionConfig) -> Self {
        // Key of a class: its type (0 if types are not distinguished, else number + 1) and the class of the node.
        let types = || {
            graph.schema().ntypes().iter().zip(graph.node_counts()).enumerate().map(
                |(t, (name, &n))| {
                    let classes = config.balance_classes.get(name);
                    let key = if config.balances_ntypes() || classes.is_some() { t + 1 } else { 0 };
                    (key, classes, n)
                },
            )
        };
        let mut sizes: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        for (t, classes, n) in types() {
            match classes {
                Some(classes) => {
                    classes.iter().for_each(|&c| *sizes.entry((t, c)).or_default() += 1)
                }
                None if n > 0 => *sizes.entry((t, 0)).or_default() += n,
                None => {}
            }
        }
        let mut largest: Vec<_> = sizes.into_iter().collect();
        largest.sort_by_key(|&(key, n)| (Reverse(n), key));
        let (mut number, mut joined) = (BTreeMap::new(), vec![0; largest.len().min(MAX_CLASSES)]);
        for (i, (key, n)) in largest.into_iter().enumerate() {
            let class = i.min(MAX_CLASSES - 1);
            number.insert(key, class as u8);
            joined[class] += n;
        }
        let mut of = Vec::with_capacity(graph.total_nodes());
        for (t, classes, n) in types() {
            match classes {
                Some(classes) => of.extend(classes.iter().map(|&c| number[&(t, c)])),
                None if n > 0 => of.resize(of.len() + n, number[&(t, 0)]),
                None => {}
            }
        }
        Self { of, sizes: joined }
    }
    pub(crate) fn class(&self, v: usize) -> usize {
        usize::from(self.of[v])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_given_classes() {
        let g = Graph::builder().nodes("a", 3).nodes("b", 5).nodes("none", 0).build().unwrap();
        let config = PartitionConfig::new("g", 2);
        let c = Classes::of(&g, &config);
        assert_eq!((c.sizes.clone(), c.of), (vec![5, 3], vec![1, 1, 1, 0, 0, 0, 0, 0]));
        let c = Classes::of(&g, &config.clone().with_balance_ntypes(false));
        assert_eq!(c.sizes, [8]);
        // Training nodes of one type are a class of their type; all other types are one class.
        let c = Classes::of(
            &g,
            &config
                .clone()
                .with_balance_ntypes(false)
                .with_balance_mask("b", &[true, false, false, false, true]),
        );
        assert_eq!((c.sizes.clone(), c.of), (vec![3, 3, 2], vec![0, 0, 0, 2, 1, 1, 1, 2]));
        // Beyond the maximal number of classes, the smallest ones are merged.
        let c = Classes::of(
            &Graph::builder().nodes("a", 40).build().unwrap(),
            &config.with_balance_classes("a", (0..40).map(|i| i / 2).collect()),
        );
        assert_eq!((c.sizes.len(), c.sizes[14], c.class(0), c.class(39)), (15, 12, 0, 14));
    }
}
