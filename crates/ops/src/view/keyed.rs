//! Wraps views: another draw key (`Keyed`), references, edge weights and features (`EdgeTypes`).

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{Frame, Graph, Relation, Schema, of_etype};
use burn_gnn_plan::{DegreeScale, DegreesOf};

use crate::view::GraphView;
use crate::view::draw_key::DrawKey;
use crate::view::edge_types::EdgeTypes;

/// A view with another draw key; returned by [`GraphView::at_step`] and [`GraphView::without_dropout`].
#[derive(Debug)]
pub struct Keyed<'a, G: ?Sized> {
    view: &'a G,
    key: DrawKey,
}

impl<'a, G: GraphView + ?Sized> Keyed<'a, G> {
    /// `view` with the draw key `key`.
    pub fn new(view: &'a G, key: DrawKey) -> Self {
        Self { view, key }
    }
}

/// Forwards all methods of a view except the draw key, edge weights and edge features to another view.
macro_rules! as_view {
    ($self:ident => $view:expr) => {
        fn schema(&$self) -> &Schema {
            $view.schema()
        }
        #[track_caller]
        fn relation(&$self, etype: usize) -> &Relation {
            $view.relation(etype)
        }
        #[track_caller]
        fn num_src(&$self, ntype: usize) -> usize {
            $view.num_src(ntype)
        }
        #[track_caller]
        fn num_dst(&$self, ntype: usize) -> usize {
            $view.num_dst(ntype)
        }
        #[track_caller]
        fn total_nodes(&$self, ntype: usize) -> u64 {
            $view.total_nodes(ntype)
        }
        #[track_caller]
        fn total_edges(&$self, etype: usize) -> u64 {
            $view.total_edges(etype)
        }
        #[track_caller]
        fn src_rows(&$self, call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
            $view.src_rows(call, x)
        }
        #[track_caller]
        fn dst_rows(&$self, ntype: usize, x: Tensor<2>) -> Tensor<2> {
            $view.dst_rows(ntype, x)
        }
        #[track_caller]
        fn with_dst_rows(&$self, ntype: usize, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
            $view.with_dst_rows(ntype, x)
        }
        #[track_caller]
        fn in_degrees(&$self, etype: usize) -> Cow<'_, [u32]> {
            $view.in_degrees(etype)
        }
        #[track_caller]
        fn input_in_degrees(&$self, etype: usize) -> Option<Cow<'_, [u32]>> {
            $view.input_in_degrees(etype)
        }
        #[track_caller]
        fn out_degrees(&$self, etype: usize) -> Cow<'_, [u32]> {
            $view.out_degrees(etype)
        }
        #[track_caller]
        fn degree_scale(&$self, etype: usize, of: DegreesOf, power: f64) -> DegreeScale {
            $view.degree_scale(etype, of, power)
        }
        #[track_caller]
        fn original_ids(&$self, ntype: usize) -> Option<Arc<[u64]>> {
            $view.original_ids(ntype)
        }
        #[track_caller]
        fn original_edge_ids(&$self, etype: usize) -> Option<Arc<[u64]>> {
            $view.original_edge_ids(etype)
        }
        #[track_caller]
        fn node_columns(&$self, ntype: usize) -> Option<&Frame> {
            $view.node_columns(ntype)
        }
        #[track_caller]
        fn edge_columns(&$self, etype: usize) -> Option<&Frame> {
            $view.edge_columns(etype)
        }
        fn whole_graph(&$self) -> Option<&Graph> {
            $view.whole_graph()
        }
    };
}

/// Forwards edge weights and edge features to another view.
macro_rules! edges_of_view {
    ($self:ident => $view:expr) => {
        #[track_caller]
        fn edge_weight(&$self, etype: usize) -> Option<Tensor<1>> {
            $view.edge_weight(etype)
        }
        #[track_caller]
        fn edge_features(&$self, etype: usize) -> Option<Tensor<2>> {
            $view.edge_features(etype)
        }
    };
}

impl<G: GraphView + ?Sized> GraphView for Keyed<'_, G> {
    as_view!(self => self.view);
    edges_of_view!(self => self.view);

    fn draw_key(&self) -> DrawKey {
        self.key
    }
}

impl<G: GraphView + ?Sized> GraphView for &G {
    as_view!(self => (**self));
    edges_of_view!(self => (**self));

    fn draw_key(&self) -> DrawKey {
        (**self).draw_key()
    }
}

/// A view whose edge weights and features are passed to every layer of a model.
impl GraphView for EdgeTypes<'_> {
    as_view!(self => self.view());

    fn draw_key(&self) -> DrawKey {
        self.view().draw_key()
    }
    #[track_caller]
    fn edge_weight(&self, etype: usize) -> Option<Tensor<1>> {
        of_etype(self.weights(), etype).clone()
    }
    #[track_caller]
    fn edge_features(&self, etype: usize) -> Option<Tensor<2>> {
        of_etype(self.features(), etype).clone()
    }
}
