//! Says how RDF becomes a graph.

use std::collections::BTreeSet;

/// Syntax of an RDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdfSyntax {
    /// One triple per line.
    NTriples,
    /// With prefixes and abbreviations.
    Turtle,
}

/// How RDF becomes a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdfOptions {
    /// Predicates (IRIs) whose triples make no edges and no nodes, but are kept apart: those that give the label away.
    pub removed: BTreeSet<String>,
    /// The syntax; `None`: by the name of the file, `.nt` or `.ttl`, before `.gz` or `.zst`.
    pub syntax: Option<RdfSyntax>,
    /// Whether IRIs and language tags that break the rules are taken as they are; old data sets have such.
    pub lenient: bool,
    /// Whether a long file draws a progress bar (on a terminal).
    pub progress: bool,
}

impl Default for RdfOptions {
    fn default() -> Self {
        Self { removed: BTreeSet::new(), syntax: None, lenient: false, progress: true }
    }
}

impl RdfOptions {
    /// Every triple is an edge; the syntax follows from the name of the file.
    pub fn new() -> Self {
        Self::default()
    }
    /// Without the edges of a predicate.
    #[must_use]
    pub fn without(mut self, predicate: impl Into<String>) -> Self {
        self.removed.insert(predicate.into());
        self
    }
    /// With this syntax, whatever files are called.
    #[must_use]
    pub fn with_syntax(mut self, syntax: RdfSyntax) -> Self {
        self.syntax = Some(syntax);
        self
    }
    /// With or without a progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// With IRIs as they are.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }
}
