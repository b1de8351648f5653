//! Corrupts links: uniform, popular, hard, in-batch, historical and inductive negatives.
