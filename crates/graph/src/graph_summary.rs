//! Summarises a graph in a few lines of text.

use std::fmt;

use burn_gnn_structure::internal::{counted, noun, readable_bytes};

use crate::{Frame, Graph};

/// Rows of `Display` beyond which the rest is counted.
const SHOWN: usize = 24;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.schema();
        let [nodes, ntypes, edges, etypes] = [
            (self.total_nodes(), "node"),
            (s.ntypes().len(), "type"),
            (self.total_edges(), "edge"),
            (s.etypes().len(), "type"),
        ]
        .map(|(n, what)| counted(n, what));
        writeln!(f, "Graph: {nodes} of {ntypes}, {edges} of {etypes}")?;
        let row = |count: usize, what: &str, frame: &Frame| {
            let columns = frame.columns().map(|(n, c)| format!("  {n}{:?}", c.shape().as_slice()));
            let columns = columns.collect::<String>();
            format!("{count:>10} {:<5}{columns}", noun(count, what)).trim_end().to_owned()
        };
        let width = s
            .ntypes()
            .iter()
            .map(String::len)
            .chain(s.etypes().iter().take(SHOWN).map(|t| t.to_string().len()))
            .max()
            .unwrap_or(0);
        for (i, t) in s.ntypes().iter().enumerate().take(SHOWN) {
            let row = row(self.node_counts()[i], "node", &self.node_frames()[i]);
            writeln!(f, "  {t:<width$}  {row}")?;
        }
        if s.ntypes().len() > SHOWN {
            writeln!(f, "  … and {} more node types", s.ntypes().len() - SHOWN)?;
        }
        for (i, t) in s.etypes().iter().enumerate().take(SHOWN) {
            let t = t.to_string();
            let row = row(self.relations()[i].num_edges(), "edge", &self.edge_frames()[i]);
            writeln!(f, "  {t:<width$}  {row}")?;
        }
        if s.etypes().len() > SHOWN {
            writeln!(f, "  … and {} more edge types", s.etypes().len() - SHOWN)?;
        }
        let (edges, derived) = (8 * self.total_edges(), self.derived_bytes());
        let features =
            self.node_frames().iter().chain(self.edge_frames()).map(Frame::column_bytes).sum();
        let [edges, features, derived] =
            [edges, features, derived.host + derived.device].map(readable_bytes);
        writeln!(
            f,
            "  memory: edges {edges}, features {features}, derived {derived}; `stats()` counts degrees, loops and isolated nodes"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_a_table() {
        let text = Graph::builder()
            .nodes("paper", 4)
            .edges(("paper", "cites", "paper"), vec![0], vec![1])
            .build()
            .unwrap()
            .to_string();
        assert!(text.starts_with("Graph: 4 nodes of 1 type, 1 edge of 1 type"), "{text}");
        assert!(
            text.lines().any(|l| l.contains("paper:cites:paper") && l.ends_with("1 edge")),
            "{text}"
        );
        assert!(
            text.lines()
                .last()
                .unwrap()
                .starts_with("  memory: edges 8 B, features 0 B, derived 0 B;"),
            "{text}"
        );
        let many = (0..40).fold(Graph::builder().nodes("a", 1), |b, i| {
            b.edges(("a", format!("r{i}"), "a"), vec![], vec![])
        });
        assert!(many.build().unwrap().to_string().contains("… and 16 more edge types"));
    }
}
