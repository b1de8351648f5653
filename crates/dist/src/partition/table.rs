//! Sizes of parts, for people.

use std::fmt;

/// Sizes of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartStats {
    /// Nodes it owns.
    pub nodes: u64,
    /// Edges it owns.
    pub edges: u64,
    /// Nodes of other parts that it holds a copy of.
    pub halo: u64,
    /// Owned edges whose source another part owns.
    pub cut: u64,
}

/// Sizes of all parts; prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTable {
    /// By part.
    pub parts: Vec<PartStats>,
    pub(crate) method: &'static str,
}

impl PartitionTable {
    fn total(&self) -> PartStats {
        let add = |a: PartStats, b: &PartStats| PartStats {
            nodes: a.nodes + b.nodes,
            edges: a.edges + b.edges,
            halo: a.halo + b.halo,
            cut: a.cut + b.cut,
        };
        self.parts.iter().fold(PartStats::default(), add)
    }
}

impl fmt::Display for PartitionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let n = self.parts.len();
        writeln!(f, "{n} part{} by {}", if n == 1 { "" } else { "s" }, self.method)?;
        writeln!(f, "{:>6} {:>12} {:>12} {:>12} {:>12} {:>7}", "part", "nodes", "edges", "halo", "cut", "cut %")?;
        let mut row = |name: &str, p: &PartStats| {
            let share = if p.edges == 0 { 0.0 } else { 100.0 * p.cut as f64 / p.edges as f64 };
            writeln!(f, "{name:>6} {:>12} {:>12} {:>12} {:>12} {share:>7.1}", p.nodes, p.edges, p.halo, p.cut)
        };
        for (i, p) in self.parts.iter().enumerate() {
            row(&i.to_string(), p)?;
        }
        row("all", &total)
    }
}
