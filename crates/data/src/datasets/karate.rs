//! Zachary's karate club, built into the library.

use burn_gnn_graph::Graph;

use crate::dataset::{Dataset, Features, Split};

/// Friends of each member with a higher number, counted from 0; Zachary (1977), figure 1. Node 0 is the instructor,
/// Mr. Hi, and node 33 the officer, John A.
const FRIENDS: [&[u32]; 34] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32],
    &[7, 12, 13],
    &[6, 10],
    &[6, 10, 16],
    &[16],
    &[],
    &[30, 32, 33],
    &[33],
    &[],
    &[],
    &[],
    &[33],
    &[32, 33],
    &[32, 33],
    &[],
    &[],
    &[32, 33],
    &[33],
    &[32, 33],
    &[],
    &[32, 33],
    &[25, 27, 29, 32, 33],
    &[25, 27, 31],
    &[31],
    &[29, 33],
    &[33],
    &[31, 33],
    &[32, 33],
    &[32, 33],
    &[32, 33],
    &[33],
    &[],
];

/// Members of Mr. Hi's club after the split. All other members joined the officer's club.
const MR_HI: [usize; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// Zachary's karate club: 34 members, 78 friendships, and the club that each member joined when the club split up.
///
/// * **Edges** are unweighted and stored in both directions, so there are 156.
/// * **Features** are the identity matrix.
/// * **Labels**: class 0 is Mr. Hi's club, class 1 the officer's, with 17 members each. Member 8 supported the officer
///   but joined Mr. Hi's club; the label is the club.
/// * **Split** `public`: the two leaders, nodes 0 and 33, are training nodes, the other 32 members are test nodes. There
///   are no validation nodes.
///
/// W. W. Zachary, An information flow model for conflict and fission in small groups, Journal of
/// Anthropological Research 33 (1977).
///
/// ```
/// let club = burn_gnn_data::karate_club();
/// assert_eq!(club.graph.total_edges(), 156);
/// assert_eq!((club.labels[0], club.labels[33]), (0, 1));
/// ```
///
/// # Panics
/// Never: the graph is a constant, and a test builds it.
pub fn karate_club() -> Dataset {
    let (mut src, mut dst) = (vec![], vec![]);
    for (u, friends) in FRIENDS.iter().enumerate() {
        for &v in *friends {
            src.extend([u as u32, v]);
            dst.extend([v, u as u32]);
        }
    }
    let n = FRIENDS.len();
    // The ids are the constants above, all below 34.
    let graph = Graph::homogeneous(n, src, dst).expect("the karate club is a valid graph");
    let eye = (0..n as u32).collect::<Vec<_>>();
    let features =
        Features::Sparse { rows: n, cols: n, row: eye.clone(), col: eye, value: vec![1.0; n] };
    let split = Split { train: vec![0, 33], val: vec![], test: (1..33).collect() };
    let class_names = vec!["Mr. Hi".into(), "Officer".into()];
    let labels = (0..n).map(|v| i64::from(!MR_HI.contains(&v))).collect();
    Dataset::homogeneous("karate", graph, class_names, labels, features, split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_match_the_paper() {
        let club = karate_club();
        let r = &club.graph.relations()[0];
        assert_eq!((r.num_src(), r.num_edges()), (34, 2 * 78));
        let degrees: Vec<u32> = r.in_degrees().collect();
        assert_eq!((degrees[0], degrees[33], degrees[11]), (16, 17, 1));
        // Degrees of `networkx.karate_club_graph()`.
        let expected = [
            16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2, 2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4,
            3, 4, 4, 6, 12, 17,
        ];
        assert_eq!(degrees, expected);
        assert_eq!(degrees, r.out_degrees().collect::<Vec<_>>());
        let mut pairs: Vec<(u32, u32)> =
            r.src().iter().copied().zip(r.dst().iter().copied()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 156, "no friendship is listed twice");
        assert!(pairs.iter().all(|&(u, v)| u != v && pairs.binary_search(&(v, u)).is_ok()));
    }

    #[test]
    fn labels_features_and_split() {
        let club = karate_club();
        assert_eq!(club.labels.iter().filter(|&&l| l == 0).count(), 17);
        assert_eq!((club.labels[8], club.labels[9]), (0, 1));
        let f = &club.features[&club.target];
        assert_eq!((f.rows(), f.cols()), (34, 34));
        assert_eq!(f.to_dense().iter().sum::<f32>(), 34.0);
        let s = &club.splits["public"];
        assert_eq!((s.train.len(), s.val.len(), s.test.len()), (2, 0, 32));
    }
}
