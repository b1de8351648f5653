//! Tabulates the sizes of all parts.

use std::fmt;

use burn_gnn_graph::internal::count_noun;
use rayon::prelude::*;

use super::partitioned_graph::PartitionedGraph;
use crate::error::DistError;
use crate::partition_book::Numbering;

/// Up to this number of parts, the table prints the size of each part per type. Beyond it, only the smallest and the
/// largest size are printed.
const COLUMNS: usize = 8;

/// Sizes of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartStats {
    /// Nodes that the part owns.
    pub nodes: u64,
    /// Edges that the part owns.
    pub edges: u64,
    /// Nodes of other parts that the part holds a copy of.
    pub halo: u64,
    /// Edges that the part owns and whose source another part owns.
    pub cut: u64,
}

/// Sizes of one node type or edge type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeStats {
    /// Name of the type.
    pub name: String,
    /// Nodes or edges that each part owns.
    pub parts: Vec<u64>,
}

impl TypeStats {
    /// Largest part relative to the mean. 1 means perfectly balanced; also 1 if the type is empty.
    pub fn balance(&self) -> f64 {
        balance(self.parts.iter().copied())
    }
}

/// Sizes of all parts. `Display` prints a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTable {
    /// Sizes of each part.
    pub parts: Vec<PartStats>,
    /// Sizes by node type.
    pub node_types: Vec<TypeStats>,
    /// Sizes by edge type.
    pub edge_types: Vec<TypeStats>,
    method: &'static str,
}

fn balance(sizes: impl Iterator<Item = u64> + Clone) -> f64 {
    let (sum, parts, most) =
        (sizes.clone().sum::<u64>(), sizes.clone().count(), sizes.max().unwrap_or(0));
    if sum == 0 { 1.0 } else { most as f64 * parts as f64 / sum as f64 }
}

impl PartitionTable {
    /// Sum over all parts.
    pub fn total(&self) -> PartStats {
        let add = |a: PartStats, b: &PartStats| PartStats {
            nodes: a.nodes + b.nodes,
            edges: a.edges + b.edges,
            halo: a.halo + b.halo,
            cut: a.cut + b.cut,
        };
        self.parts.iter().fold(PartStats::default(), add)
    }
    /// Largest number of nodes of a part relative to the mean.
    pub fn node_balance(&self) -> f64 {
        balance(self.parts.iter().map(|p| p.nodes))
    }
    /// Largest number of edges of a part relative to the mean.
    pub fn edge_balance(&self) -> f64 {
        balance(self.parts.iter().map(|p| p.edges))
    }
    /// Share of edges between parts; 0 for a graph without edges.
    pub fn cut_share(&self) -> f64 {
        let total = self.total();
        if total.edges == 0 { 0.0 } else { total.cut as f64 / total.edges as f64 }
    }
}

impl PartitionedGraph {
    /// Computes the sizes of all parts.
    ///
    /// # Errors
    /// As [`part`](Self::part).
    pub fn table(&self) -> Result<PartitionTable, DistError> {
        let stats = |p: usize| {
            Ok(PartStats {
                nodes: self.book.nodes.part_total(p),
                edges: self.book.edges.part_total(p),
                halo: self.outline(p)?.halo.len() as u64,
                cut: self.crossing.entering(p),
            })
        };
        let parts = self.config.num_parts;
        let by_type = |names: Vec<String>, of: &Numbering| {
            let sizes = |(t, name)| {
                Ok(TypeStats {
                    name,
                    parts: (0..parts).map(|p| of.inner(p, t)).collect::<Result<_, _>>()?,
                })
            };
            names.into_iter().enumerate().map(sizes).collect::<Result<Vec<_>, DistError>>()
        };
        let schema = self.book.schema();
        Ok(PartitionTable {
            parts: (0..parts).into_par_iter().map(stats).collect::<Result<_, DistError>>()?,
            node_types: by_type(schema.ntypes().to_vec(), &self.book.nodes)?,
            edge_types: by_type(
                schema.etypes().iter().map(ToString::to_string).collect(),
                &self.book.edges,
            )?,
            method: self.config.method.name(),
        })
    }
}

impl fmt::Display for PartitionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.parts.len();
        writeln!(f, "{} by {}", count_noun(n, "part"), self.method)?;
        writeln!(
            f,
            "{:>7} {:>12} {:>12} {:>12} {:>12} {:>7}",
            "part", "nodes", "edges", "halo", "cut", "cut %"
        )?;
        let mut row = |name: &str, p: &PartStats| {
            let share = if p.edges == 0 { 0.0 } else { 100.0 * p.cut as f64 / p.edges as f64 };
            writeln!(
                f,
                "{name:>7} {:>12} {:>12} {:>12} {:>12} {share:>7.1}",
                p.nodes, p.edges, p.halo, p.cut
            )
        };
        for (i, p) in self.parts.iter().enumerate() {
            row(&i.to_string(), p)?;
        }
        row("all", &self.total())?;
        writeln!(
            f,
            "{:>7} {:>12.3} {:>12.3}",
            "balance",
            self.node_balance(),
            self.edge_balance()
        )?;
        if self.node_types.len() > 1 || self.edge_types.len() > 1 {
            by_type(f, "nodes", &self.node_types)?;
            by_type(f, "edges", &self.edge_types)?;
        }
        Ok(())
    }
}

fn by_type(f: &mut fmt::Formatter<'_>, what: &str, types: &[TypeStats]) -> fmt::Result {
    let width = types.iter().map(|t| t.name.chars().count()).max().unwrap_or(0).max(what.len());
    let parts = types.first().map_or(0, |t| t.parts.len());
    write!(f, "\n{what:<width$}")?;
    if parts > COLUMNS {
        write!(f, " {:>10} {:>10}", "smallest", "largest")?;
    } else {
        (0..parts).try_for_each(|p| write!(f, " {:>10}", format!("part {p}")))?;
    }
    writeln!(f, " {:>12} {:>7}", "all", "balance")?;
    for t in types {
        write!(f, "{:<width$}", t.name)?;
        if parts > COLUMNS {
            let (least, most) = (t.parts.iter().min(), t.parts.iter().max());
            write!(f, " {:>10} {:>10}", least.copied().unwrap_or(0), most.copied().unwrap_or(0))?;
        } else {
            t.parts.iter().try_for_each(|n| write!(f, " {n:>10}"))?;
        }
        writeln!(f, " {:>12} {:>7.3}", t.parts.iter().sum::<u64>(), t.balance())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_table() {
        let part = |nodes, edges, halo, cut| PartStats { nodes, edges, halo, cut };
        let kind =
            |name: &str, parts: &[u64]| TypeStats { name: name.into(), parts: parts.to_vec() };
        let mut table = PartitionTable {
            parts: vec![part(3, 6, 1, 2), part(1, 2, 2, 0)],
            node_types: vec![kind("a", &[3, 0]), kind("b", &[0, 1])],
            edge_types: vec![kind("a:to:b", &[6, 2])],
            method: "metis",
        };
        assert_eq!(
            (table.node_balance(), table.edge_balance(), table.cut_share()),
            (1.5, 1.5, 0.25)
        );
        let text = table.to_string();
        let expected = [
            "2 parts by metis",
            "   part        nodes        edges         halo          cut   cut %",
            "      0            3            6            1            2    33.3",
            "      1            1            2            2            0     0.0",
            "    all            4            8            3            2    25.0",
            "balance        1.500        1.500",
            "",
            "nodes     part 0     part 1          all balance",
            "a              3          0            3   2.000",
            "b              0          1            1   2.000",
            "",
            "edges      part 0     part 1          all balance",
            "a:to:b          6          2            8   1.500",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        table.node_types[1].parts = (0..9).collect();
        table.node_types[0].parts = vec![0; 9];
        assert!(
            table.to_string().contains("b              0          8           36   2.000"),
            "{table}"
        );
    }
}
