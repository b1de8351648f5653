//! Stores the columns of a frame that are no tensors: lists, texts, file ids and global ids.

use std::sync::Arc;

use crate::features::frame::Frame;
use burn_gnn_structure::{GlobalIds, GraphError, NodeIds, Ragged, Texts};

impl Frame {
    /// Adds a column of lists, or replaces one. Lists have names of their own beside the columns, and rows of derived
    /// graphs take their lists along; new rows have empty ones.
    ///
    /// # Errors
    /// The number of rows is not [`len`](Self::len).
    pub fn insert_list(&mut self, name: &str, list: Ragged) -> Result<(), GraphError> {
        self.check_rows(format_args!("list {name}"), list.len())?;
        self.lists.insert(name.to_owned(), list);
        Ok(())
    }
    /// A column of lists.
    ///
    /// # Errors
    /// No such column of lists.
    pub fn list(&self, name: &str) -> Result<&Ragged, GraphError> {
        self.lists.get(name).ok_or_else(|| self.unknown(name, &self.lists))
    }
    /// Columns of lists by name.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &Ragged)> {
        self.lists.iter().map(|(n, l)| (n.as_str(), l))
    }
    /// Takes a column of lists out.
    pub fn remove_list(&mut self, name: &str) -> Option<Ragged> {
        self.lists.remove(name)
    }

    /// Adds a column of texts, or replaces one. Texts have names of their own beside columns and lists, and rows of
    /// derived graphs take theirs along; new rows have empty ones.
    ///
    /// # Errors
    /// The number of texts is not [`len`](Self::len).
    pub fn insert_text(&mut self, name: &str, texts: Texts) -> Result<(), GraphError> {
        self.check_rows(format_args!("text {name}"), texts.len())?;
        self.texts.insert(name.to_owned(), Arc::new(texts));
        Ok(())
    }
    /// A column of texts.
    ///
    /// # Errors
    /// No such column of texts.
    pub fn text(&self, name: &str) -> Result<&Texts, GraphError> {
        self.texts.get(name).map(|texts| &**texts).ok_or_else(|| self.unknown(name, &self.texts))
    }
    /// Columns of texts by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &Texts)> {
        self.texts.iter().map(|(name, texts)| (name.as_str(), &**texts))
    }
    /// Takes a column of texts out.
    pub fn remove_text(&mut self, name: &str) -> Option<Texts> {
        self.texts.remove(name).map(Arc::unwrap_or_clone)
    }

    /// Sets the global ids of the rows: their ids in the graph that this one is a part of, or wherever else 64-bit
    /// numbers identify rows. Derived graphs keep or drop them as [`set_ids`](Self::set_ids) says.
    ///
    /// # Errors
    /// The number of ids is not [`len`](Self::len).
    pub fn set_global_ids(&mut self, ids: GlobalIds) -> Result<(), GraphError> {
        self.check_rows(format_args!("global ids"), ids.len())?;
        self.global_ids = Some(Arc::new(ids));
        Ok(())
    }
    /// The ids that [`set_global_ids`](Self::set_global_ids) gave the rows.
    pub fn global_ids(&self) -> Option<&GlobalIds> {
        self.global_ids.as_deref()
    }

    /// Sets the ids that the rows have in the files that they come from. Subgraphs keep those of their nodes; they are
    /// dropped where nodes without such an id are added or several graphs are joined.
    ///
    /// # Errors
    /// The number of ids is not [`len`](Self::len).
    pub fn set_ids(&mut self, ids: NodeIds) -> Result<(), GraphError> {
        self.check_rows(format_args!("ids"), ids.len())?;
        self.ids = Some(Arc::new(ids));
        Ok(())
    }
    /// The ids that the rows have in the files that they come from, where they are known.
    pub fn ids(&self) -> Option<&NodeIds> {
        self.ids.as_deref()
    }

    /// The lists and texts of `from` at `rows`.
    pub(crate) fn take_lists(&mut self, from: &Self, rows: &[u32]) -> Result<(), GraphError> {
        from.lists.iter().try_for_each(|(name, list)| self.insert_list(name, list.select(rows)))?;
        let select = |texts: &Texts| texts.select(rows.iter().map(|&r| r as usize));
        from.texts.iter().try_for_each(|(name, texts)| self.insert_text(name, select(texts)))
    }
    /// The lists, texts and ids of `from` at `rows`; `None` for all rows as they are.
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
    /// The lists and texts of `from` and then empty ones.
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
                .contains("text name`: expected length 3")
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
            "`nodes of `_N`: list words`: expected length 3 (one row per node or edge), got 0; give 3 entries"
        );
        assert!(
            f.set_ids(NodeIds::new(Ids::Int(vec![1])))
                .unwrap_err()
                .to_string()
                .contains("ids`: expected length 3")
        );
        assert_eq!(
            f.list("x").unwrap_err().to_string(),
            "nodes of `_N`: no column `x`; there are [\"words\"]: name one of these"
        );
        assert!(f.remove_list("words").is_some() && f.lists().count() == 0);
    }
}
