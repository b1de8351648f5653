//! Summarises one part in a few lines of text.

use std::fmt;

use burn::tensor::TensorData;
use burn_gnn_graph::HomoId;
use burn_gnn_graph::internal::{count_noun, noun, readable_bytes};

use super::partition::{Features, Partition};

/// Number of types that the summary lists. It only counts further types.
const MAX_LISTED: usize = 24;

impl fmt::Display for Partition {
    /// Prints counts by type, feature columns with the shape of a row, in-degrees, and the memory of the part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (halo, outside) =
            (self.nid.len() - self.num_inner_nodes, self.eid.len() - self.num_inner_edges);
        writeln!(
            f,
            "part {} of {} of `{}`: {}, {}, {}, {}",
            self.part,
            self.book.num_parts(),
            self.graph_name,
            count_noun(self.num_inner_nodes, "inner node"),
            count_noun(halo, "halo node"),
            count_noun(self.num_inner_edges, "inner edge"),
            count_noun(outside, "other")
        )?;
        let schema = self.book.schema();
        let names: Vec<String> = schema
            .ntypes()
            .iter()
            .cloned()
            .chain(schema.etypes().iter().map(ToString::to_string))
            .collect();
        let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        let columns = |feats: &Features, ty: usize| {
            let own = feats.iter().filter(|c| c.0.0 == ty);
            own.map(|((_, name), data)| format!("  {name}{:?}", &data.shape()[..][1..]))
                .collect::<String>()
        };
        let ntypes = schema.ntypes().len();
        let halo = self.halo_by_type();
        for (t, name) in names[..ntypes].iter().enumerate().take(MAX_LISTED) {
            let inner = self.book.nodes.inner(self.part, t).unwrap_or(0);
            writeln!(
                f,
                "  {name:<width$}  {inner:>10} {:<5} {:>10} halo{}",
                noun(inner, "node"),
                halo[t],
                columns(&self.node_feats, t)
            )?;
        }
        if ntypes > MAX_LISTED {
            writeln!(f, "  … and {} more node types", ntypes - MAX_LISTED)?;
        }
        let etypes = &names[ntypes..];
        let mut first = 0;
        for (t, name) in etypes.iter().enumerate() {
            let inner = self.book.edges.inner(self.part, t).unwrap_or(0) as usize;
            if t < MAX_LISTED {
                let (mean, max) = self.in_degrees(first..first + inner, schema.endpoints(t).1);
                let degrees = format!("in-degree {mean:.1} on average, {max} at most");
                writeln!(
                    f,
                    "  {name:<width$}  {inner:>10} {:<5}  {degrees}{}",
                    noun(inner, "edge"),
                    columns(&self.edge_feats, t)
                )?;
            }
            first += inner;
        }
        if etypes.len() > MAX_LISTED {
            writeln!(f, "  … and {} more edge types", etypes.len() - MAX_LISTED)?;
        }
        let bytes = |data: &TensorData| data.bytes().len();
        let features = self.node_feats.values().chain(self.edge_feats.values()).map(bytes).sum();
        let structure = 4 * (self.src.len() + self.dst.len())
            + 8 * (self.nid.len() + self.eid.len() + self.orig_nid.len() + self.orig_eid.len())
            + 4 * self.trainer_id.as_ref().map_or(0, Vec::len);
        writeln!(
            f,
            "  memory: structure {}, features {}",
            readable_bytes(structure),
            readable_bytes(features)
        )
    }
}

impl Partition {
    /// Number of halo nodes by node type.
    fn halo_by_type(&self) -> Vec<usize> {
        let mut counts = vec![0; self.book.ntypes().len()];
        for &id in &self.nid[self.num_inner_nodes..] {
            // Ids were validated on construction.
            if let Ok((_, id)) = self.book.nodes.locate(HomoId(id)) {
                counts[id.ty] += 1;
            }
        }
        counts
    }

    /// Mean and largest in-degree of the inner nodes of type `dst`, counting the inner edges at these positions.
    fn in_degrees(&self, edges: std::ops::Range<usize>, dst: usize) -> (f64, u32) {
        let mut degrees = vec![0u32; self.num_inner_nodes];
        let count = edges.len();
        self.dst[edges].iter().for_each(|&v| degrees[v as usize] += 1);
        let nodes = self.book.nodes.inner(self.part, dst).unwrap_or(0);
        (
            if nodes == 0 { 0.0 } else { count as f64 / nodes as f64 },
            degrees.into_iter().max().unwrap_or(0),
        )
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, Tensor};
    use burn_gnn_graph::Graph;

    use crate::partition::{PartitionConfig, PartitionMethod, partition_graph};

    #[test]
    fn printed_summary() {
        let mut g = Graph::builder()
            .nodes("a", 3)
            .nodes("b", 2)
            .edges(("a", "to", "b"), vec![0, 1, 2, 2], vec![0, 0, 1, 0])
            .edges(("b", "of", "b"), vec![1], vec![0])
            .build()
            .unwrap();
        g.nodes_mut("a")
            .unwrap()
            .insert("x", Tensor::<2>::zeros([3, 16], &Device::flex()))
            .unwrap();
        let method = PartitionMethod::custom([("a", vec![0, 1, 0]), ("b", vec![0, 1])]);
        let parts =
            partition_graph(&g, &PartitionConfig::new("g", 2).with_method(method).with_num_hops(0))
                .unwrap();
        let text = parts.part(0).unwrap().to_string();
        let expected = [
            "part 0 of 2 of `g`: 3 inner nodes, 2 halo nodes, 4 inner edges, 0 others",
            "  a                2 nodes          1 halo  x[16]",
            "  b                1 node           1 halo",
            "  a:to:b           3 edges  in-degree 3.0 on average, 3 at most",
            "  b:of:b           1 edge   in-degree 1.0 on average, 1 at most",
        ];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..5], expected, "{text}");
        assert!(
            lines[5].starts_with("  memory: structure 1") && lines[5].ends_with("features 128 B"),
            "{text}"
        );
    }
}
