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
    /// The IRI against which relative ones of Turtle are resolved until a file gives its own (`@base`): that of the
    /// document, which ontologies leave out where they were meant to be fetched from there.
    pub base: Option<String>,
    /// Whether IRIs and language tags that break the rules are taken as they are; old data sets have such.
    pub lenient: bool,
    /// Whether a long file draws a progress bar (on a terminal).
    pub progress: bool,
}

impl Default for RdfOptions {
    fn default() -> Self {
        Self { removed: BTreeSet::new(), syntax: None, base: None, lenient: false, progress: true }
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
    /// With a base for the relative IRIs of Turtle, an absolute IRI.
    ///
    /// ```
    /// use burn_gnn_data::{RdfOptions, read_rdf};
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let dir = tempfile::tempdir().unwrap();
    ///     let path = dir.path().join("prov.ttl");
    ///     std::fs::write(&path, "<#Agent> a <Class> .").unwrap();
    ///     let prov = read_rdf(&path, &RdfOptions::new().with_base("http://www.w3.org/ns/prov"))?;
    ///     let ids = prov.graph.nodes("entity")?.ids().unwrap();
    ///     assert_eq!(ids.number("http://www.w3.org/ns/prov#Agent"), Some(0));
    ///     assert_eq!(ids.number("http://www.w3.org/ns/Class"), Some(1));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn with_base(mut self, iri: impl Into<String>) -> Self {
        self.base = Some(iri.into());
        self
    }
    /// With or without a progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// With IRIs as they are; relative ones of Turtle need a base all the same.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }
}
