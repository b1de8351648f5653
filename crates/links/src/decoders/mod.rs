//! Scores pairs of embeddings, with relations or without.
