//! Summarises the data, and the accuracy of simple baselines on them.

use std::fmt::Write as _;

use burn_gnn::data::Dataset;
use burn_gnn::graph::GraphError;

/// The graph, the labels, and two guesses that a trained network should beat.
///
/// # Errors
/// The data set has no split.
pub(crate) fn summary(data: &Dataset) -> Result<String, GraphError> {
    let (mut out, n) = (data.graph.to_string(), data.labels.len());
    let labelled: Vec<u32> = (0..n as u32).filter(|&v| data.labels[v as usize] >= 0).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} of {n} crates have a label, {} classes",
        labelled.len(),
        data.num_classes
    );
    let _ =
        writeln!(out, "on all labelled crates:  majority {}", guesses(data, &labelled, &labelled));
    for (name, split) in &data.splits {
        let _ = writeln!(
            out,
            "split {name}: {} train, {} val, {} test",
            split.train.len(),
            split.val.len(),
            split.test.len()
        );
        let _ = writeln!(
            out,
            "on its test crates:      majority {}",
            guesses(data, &split.train, &split.test)
        );
    }
    Ok(out)
}

/// Accuracy on `asked` of the most common class of `known`, and of a vote of the neighbours in `known` over all
/// relations between crates in both directions (never of the node itself; ties go to the lower class; without a
/// neighbour the most common class).
fn guesses(data: &Dataset, known: &[u32], asked: &[u32]) -> String {
    let class = |v: u32| data.labels[v as usize] as usize;
    let mut totals = vec![0usize; data.num_classes];
    let mut is_known = vec![false; data.labels.len()];
    for &v in known {
        totals[class(v)] += 1;
        is_known[v as usize] = true;
    }
    let majority = top(&totals);
    let mut votes = vec![vec![]; data.labels.len()];
    let schema = data.graph.schema();
    for (t, r) in data.graph.relations().iter().enumerate() {
        let (s, d) = schema.endpoints(t);
        if schema.ntypes()[s] != data.target || schema.ntypes()[d] != data.target {
            continue;
        }
        for (&u, &v) in r.src().iter().zip(r.dst()).filter(|(u, v)| u != v) {
            for (voter, asker) in [(u, v), (v, u)] {
                if is_known[voter as usize] {
                    votes[asker as usize].push(class(voter));
                }
            }
        }
    }
    let vote = |v: u32| {
        let mut counts = vec![0usize; data.num_classes];
        votes[v as usize].iter().for_each(|&c| counts[c] += 1);
        if votes[v as usize].is_empty() { majority } else { top(&counts) }
    };
    let share = |hits: usize| 100.0 * hits as f64 / asked.len().max(1) as f64;
    let by_class = asked.iter().filter(|&&v| class(v) == majority).count();
    let by_vote = asked.iter().filter(|&&v| class(v) == vote(v)).count();
    let name = data.class_names.get(majority).map_or("", String::as_str);
    format!("{:.1} % ({name}), vote of neighbours {:.1} %", share(by_class), share(by_vote))
}

fn top(counts: &[usize]) -> usize {
    counts.iter().enumerate().max_by_key(|&(i, &n)| (n, std::cmp::Reverse(i))).map_or(0, |(i, _)| i)
}
