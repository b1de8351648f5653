//! Columns of a frame that are not tensors: lists, texts, file ids and global ids.

use std::sync::Arc;

use crate::features::frame::Frame;
use burn_gnn_structure::{GlobalIds, GraphError, NodeIds, Ragged, Texts};

impl Frame {
    /// Inserts or replaces a column of lists. Its name may equal that of a tensor column. Derived graphs keep the lists of
    /// their rows; new rows get empty lists.
    ///
    /// # Errors
    /// A number of rows other than [`len`](Self::len).
    pub fn insert_list(&mut self, name: &str, list: Ragged) -> Result<(), GraphError> {
        self.check_rows(format_args!("list `{name}`"), list.len())?;
        self.lists.insert(name.to_owned(), list);
        Ok(())
    }
    /// Returns a column of lists.
    ///
    /// # Errors
    /// Unknown column of lists.
    pub fn list(&self, name: &str) -> Result<&Ragged, GraphError> {
        self.lists.get(name).ok_or_else(|| self.unknown(name, &self.lists))
    }
    /// Iterates over the columns of lists, sorted by name.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &Ragged)> {
        self.lists.iter().map(|(n, l)| (n.as_str(), l))
    }
    /// Removes and returns a column of lists.
    pub fn remove_list(&mut self, name: &str) -> Option<Ragged> {
        self.lists.remove(name)
    }

    /// Inserts or replaces a column of texts. Its name may equal that of a tensor column or list column. Derived graphs keep
    /// the texts of their rows; new rows get empty texts.
    ///
    /// # Errors
    /// A number of texts other than [`len`](Self::len).
    pub fn insert_text(&mut self, name: &str, texts: Texts) -> Result<(), GraphError> {
        self.check_rows(format_args!("text `{name}`"), texts.len())?;
        self.texts.insert(name.to_owned(), Arc::new(texts));
        Ok(())
    }
    /// Returns a column of texts.
    ///
    /// # Errors
    /// Unknown column of texts.
    pub fn text(&self, name: &str) -> Result<&Texts, GraphError> {
        self.texts.get(name).map(|texts| &**texts).ok_or_else(|| self.unknown(name, &self.texts))
    }
    /// Iterates over the columns of texts, sorted by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &Texts)> {
        self.texts.iter().map(|(name, texts)| (name.as_str(), &**texts))
    }
    /// Removes and returns a column of texts.
    pub fn remove_text(&mut self, name: &str) -> Option<Texts> {
        self.texts.remove(name).map(Arc::unwrap_or_clone)
    }

    /// Sets the global ids of the rows: 64-bit ids in a larger graph or in a database. Derived graphs keep or drop them as
    /// described for [`set_ids`](Self::set_ids).
    ///
    /// # Errors
    /// A number of ids other than [`len`](Self::len).
    pub fn set_global_ids(&mut self, ids: GlobalIds) -> Result<(), GraphError> {
        self.check_rows(format_args!("global ids"), ids.len())?;
        self.global_ids = Some(Arc::new(ids));
        Ok(())
    }
    /// The global ids, if set by [`set_global_ids`](Self::set_global_ids).
    pub fn global_ids(&self) -> Option<&GlobalIds> {
        self.global_ids.as_deref()
    }

    /// Sets the ids of the rows in the files that they were read from. Subgraphs keep the ids of their nodes. Adding nodes
    /// and joining graphs drops the ids.
    ///
    /// # Errors
    /// A number of ids other than [`len`](Self::len).
    pub fn set_ids(&mut self, ids: NodeIds) -> Result<(), GraphError> {
        self.check_rows(format_args!("ids"), ids.len())?;
        self.ids = Some(Arc::new(ids));
        Ok(())
    }
    /// The ids of the rows in the files that they were read from, if known.
    pub fn ids(&self) -> Option<&NodeIds> {
        self.ids.as_deref()
    }

    /// Copies the lists and texts of `from` at `rows`.
    pub(crate) fn take_lists(&mut self, from: &Self, rows: &[u32]) -> Result<(), GraphError> {
        from.lists.iter().try_for_each(|(name, list)| self.insert_list(name, list.select(rows)))?;
        let select = |texts: &Texts| texts.select(rows.iter().map(|&r| r as usize));
        from.texts.iter().try_for_each(|(name, texts)| self.insert_text(name, select(texts)))
    }
    /// Copies the lists, texts and ids of `from` at `rows`, or of all rows for `None`.
    pub(crate) fn take_lists_and_ids(
        &mut self,
        from: &Self,
        rows: Option<&[u32]>,
    ) -> Result<(), GraphError> {
        let Some(rows) = rows else {
            self.lists.clone_from(&from.lists);
            self.texts.clone_from(&from.texts);
            self.ids.clone_from(&from.ids);
            self.global_ids.clone_from(&from.global_ids);
            return Ok(());
        };
        self.ids = from.ids.as_ref().map(|ids| Arc::new(ids.select(rows)));
        self.global_ids = from.global_ids.as_ref().map(|ids| Arc::new(ids.select(rows)));
        self.take_lists(from, rows)
    }
    /// Copies the lists and texts of `from`, and appends empty ones for new rows.
    pub(crate) fn extend_lists(&mut self, from: &Self) -> Result<(), GraphError> {
        for (name, list) in &from.lists {
            let mut list = list.clone();
            (from.len..self.len).for_each(|_| list.push([]));
            self.insert_list(name, list)?;
        }
        for (name, texts) in &from.texts {
            let mut texts = Texts::clone(texts);
            (from.len..self.len).for_each(|_| texts.push(""));
            self.insert_text(name, texts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Graph;
    use burn_gnn_structure::{GlobalIds, Ids, NodeIds, Ragged, Texts};

    fn graph() -> Graph {
        let mut g = Graph::homogeneous(3, vec![0, 1, 1], vec![1, 2, 2]).unwrap();
        let lists = || Ragged::new(vec![0, 2, 2, 3], vec![7, 8, 9]).unwrap();
        g.nodes_mut("_N").unwrap().insert_list("words", lists()).unwrap();
        g.nodes_mut("_N").unwrap().set_ids(NodeIds::new(Ids::Int(vec![50, 60, 70]))).unwrap();
        g.edges_mut("_E").unwrap().insert_list("tags", lists()).unwrap();
        g
    }

    #[test]
    fn lists_and_ids_follow_nodes_and_edges() {
        let g = graph();
        let words = |g: &Graph, v| g.nodes("_N").unwrap().list("words").unwrap().row(v).to_vec();
        let tags = |g: &Graph, e| g.edges("_E").unwrap().list("tags").unwrap().row(e).to_vec();
        let sub = g.node_subgraph([("_N", [2, 1])], crate::Relabel::Yes).unwrap();
        assert_eq!((words(&sub.graph, 0), words(&sub.graph, 1)), (vec![9], vec![]));
        assert_eq!(sub.graph.nodes("_N").unwrap().ids().unwrap().number(70), Some(0));
        assert_eq!((tags(&sub.graph, 0), tags(&sub.graph, 1)), (vec![], vec![9]));
        let both = g.add_reverse_edges("_E").unwrap();
        assert_eq!((tags(&both, 3), tags(&both, 5)), (vec![7, 8], vec![9]));
        assert_eq!(both.nodes("_N").unwrap().ids(), g.nodes("_N").unwrap().ids());
        let inverse = g.with_inverse_relations("-inv").unwrap();
        assert_eq!(
            (words(&inverse, 0), inverse.nodes("_N").unwrap().ids().unwrap().number(60)),
            (vec![7, 8], Some(1))
        );
        // Edge 0 of the inverse relation is edge 0 of the relation.
        for relation in ["_E", "_E-inv"] {
            let edges = inverse.edges(relation).unwrap();
            assert_eq!(edges.list("tags").unwrap().row(0), [7, 8], "{relation}");
        }
        let more = g.add_nodes("_N", 1, &[]).unwrap();
        assert_eq!(
            (words(&more, 0), words(&more, 3), more.nodes("_N").unwrap().ids()),
            (vec![7, 8], vec![], None)
        );
        let batch = crate::batch([&g, &g]).unwrap();
        assert_eq!((words(batch.graph(), 3), tags(batch.graph(), 5)), (vec![7, 8], vec![9]));
        let simple = g.to_simple(crate::Combine::First).unwrap();
        assert_eq!((tags(&simple.graph, 1), simple.counts[0].clone()), (vec![], vec![1, 2]));
    }

    /// Texts and global ids go where lists and file ids go.
    #[test]
    fn texts_and_global_ids_follow_nodes_and_edges() {
        let mut g = Graph::homogeneous(3, vec![0, 1, 1], vec![1, 2, 2]).unwrap();
        let texts = || ["a", "", "köln"].into_iter().collect::<Texts>();
        g.nodes_mut(..).unwrap().insert_text("name", texts()).unwrap();
        g.edges_mut(..).unwrap().insert_text("tag", texts()).unwrap();
        g.edges_mut(..)
            .unwrap()
            .set_global_ids(GlobalIds::new(vec![u64::MAX, 0, 7]).unwrap())
            .unwrap();
        let names = |g: &Graph| {
            g.nodes(..).unwrap().text("name").unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let tags = |g: &Graph| {
            g.edges(..).unwrap().text("tag").unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let ids = |g: &Graph| g.edges(..).unwrap().global_ids().map(|ids| ids.as_slice().to_vec());
        let sub = g.node_subgraph([("_N", [2, 1])], crate::Relabel::Yes).unwrap().graph;
        assert_eq!(
            (names(&sub), tags(&sub), ids(&sub)),
            (
                vec!["köln".into(), String::new()],
                vec![String::new(), "köln".into()],
                Some(vec![0, 7])
            )
        );
        let both = g.add_reverse_edges("_E").unwrap();
        assert_eq!(
            (tags(&both), ids(&both)),
            (["a", "", "köln", "a", "", "köln"].map(String::from).to_vec(), None)
        );
        let more = g.add_nodes("_N", 1, &[]).unwrap();
        assert_eq!((names(&more)[3].as_str(), ids(&more)), ("", Some(vec![u64::MAX, 0, 7])));
        let batch = crate::batch([&g, &g]).unwrap();
        assert_eq!(
            (names(batch.graph()).len(), tags(batch.graph())[5].as_str(), ids(batch.graph())),
            (6, "köln", None)
        );
        assert_eq!(tags(&g.to_simple(crate::Combine::First).unwrap().graph), ["a", ""]);
        let merged = crate::merge([&g, &more]).unwrap();
        assert_eq!(
            (names(&merged), tags(&merged).len()),
            (["a", "", "köln", ""].map(String::from).to_vec(), 6)
        );
        let f = g.nodes_mut(..).unwrap();
        assert!(
            f.insert_text("name", Texts::new())
                .unwrap_err()
                .to_string()
                .contains("text `name`: expected length 3")
        );
        assert_eq!(
            f.text("x").unwrap_err().to_string(),
            "nodes of `_N`: no column `x`; there are [\"name\"]: name one of these"
        );
        assert!(f.remove_text("name").is_some_and(|t| t == texts()) && f.texts().count() == 0);
    }

    #[test]
    fn refusals() {
        let mut g = graph();
        let f = g.nodes_mut("_N").unwrap();
        let e = f.insert_list("words", Ragged::default()).unwrap_err().to_string();
        assert_eq!(
            e,
            "nodes of `_N`: list `words`: expected length 3 (one row per node or edge), got 0; give 3 entries"
        );
        assert!(
            f.set_ids(NodeIds::new(Ids::Int(vec![1])))
                .unwrap_err()
                .to_string()
                .contains("nodes of `_N`: ids: expected length 3")
        );
        assert_eq!(
            f.list("x").unwrap_err().to_string(),
            "nodes of `_N`: no column `x`; there are [\"words\"]: name one of these"
        );
        assert!(f.remove_list("words").is_some() && f.lists().count() == 0);
    }
}
