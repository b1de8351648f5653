//! Defines options of the RDF reader.

use std::collections::BTreeSet;

/// Syntax of an RDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdfSyntax {
    /// One triple per line.
    NTriples,
    /// With prefixes and abbreviations.
    Turtle,
}

/// Options of [`read_rdf`](crate::read_rdf).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdfOptions {
    /// Predicates (IRIs) whose triples do not become edges and nodes and are returned separately, such as predicates that
    /// reveal the label.
    pub removed: BTreeSet<String>,
    /// The syntax; `None`: from the extension of the file, `.nt` or `.ttl`, before `.gz` or `.zst`.
    pub syntax: Option<RdfSyntax>,
    /// The base for relative IRIs of Turtle, unless the file has `@base`: the address of the document, which ontologies
    /// omit if they are published at that address.
    pub base: Option<String>,
    /// Whether invalid IRIs and language tags are read unchanged; old data sets contain some.
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
    /// The default: each triple is an edge, and the extension of the file determines the syntax.
    pub fn new() -> Self {
        Self::default()
    }
    /// Removes the edges of a predicate.
    #[must_use]
    pub fn without(mut self, predicate: impl Into<String>) -> Self {
        self.removed.insert(predicate.into());
        self
    }
    /// Sets the syntax, independent of the names of the files.
    #[must_use]
    pub fn with_syntax(mut self, syntax: RdfSyntax) -> Self {
        self.syntax = Some(syntax);
        self
    }
    /// Sets the base for relative IRIs of Turtle, an absolute IRI.
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
    /// Draws a progress bar or none.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// Reads invalid IRIs unchanged. Relative IRIs of Turtle need a base nevertheless.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }
}
