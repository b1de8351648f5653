//! Trains models of knowledge graphs.
