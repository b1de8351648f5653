//! Holds the input features of a layer on one relation.

use burn::tensor::Tensor;

use crate::check::check_rows;
use crate::error::OpsError;
use crate::view::edges::Edges;

/// Features of the input nodes of an edge type: one tensor where it joins nodes of one type, else
/// `(source, destination)`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Tensors are handles; a box would be one more for every user to write.
pub enum ConvInput {
    /// The edge type joins nodes of one type: the same features at both endpoints.
    Same(Tensor<2>),
    /// Features of the source type and features of the destination type.
    Pair(Tensor<2>, Tensor<2>),
}

impl From<Tensor<2>> for ConvInput {
    fn from(x: Tensor<2>) -> Self {
        Self::Same(x)
    }
}
impl From<(Tensor<2>, Tensor<2>)> for ConvInput {
    fn from((src, dst): (Tensor<2>, Tensor<2>)) -> Self {
        Self::Pair(src, dst)
    }
}

/// Features of both endpoints of a relation, where the relation indexes them.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// One row per source node, projected by the layer.
    pub src: Tensor<2>,
    /// One row per destination node, as they were given.
    pub dst: Tensor<2>,
    /// Whether both endpoints were given the same features: then destinations are the first of the sources.
    pub shared: bool,
}

impl Endpoints {
    /// Projects source features, exchanges them between ranks, and selects the rows of destinations.
    ///
    /// # Errors
    /// One tensor for an edge type that joins two node types; wrong numbers of rows.
    pub fn exchange(
        op: &'static str,
        edges: &Edges<'_>,
        x: ConvInput,
        project: impl FnOnce(Tensor<2>) -> Tensor<2>,
    ) -> Result<Self, OpsError> {
        let ((s, d), relation) = (edges.endpoints(), edges.relation());
        let (src, dst, shared) = match x {
            ConvInput::Same(x) if s == d => {
                let (src, dst) = edges.view().with_dst_rows(d, x);
                (src, dst, true)
            }
            ConvInput::Same(_) => {
                return Err(OpsError::TwoTables { op, etype: edges.edge_type().to_string() });
            }
            ConvInput::Pair(src, dst) => (src, edges.dst_rows(dst), false),
        };
        let rows = |why, expected, x: &Tensor<2>| check_rows(op, "x", why, expected, x.dims()[0]);
        rows("one per destination of the relation", relation.num_dst(), &dst)?;
        let src = edges.src_rows(op, project(src));
        rows("one per source of the relation", relation.num_src(), &src)?;
        Ok(Self { src, dst, shared })
    }

    /// Projected features of destinations: the first rows of the projected sources `src` where both endpoints share
    /// features, which saves the product.
    pub fn projected_dst(
        &self,
        src: &Tensor<2>,
        project: impl FnOnce(Tensor<2>) -> Tensor<2>,
    ) -> Tensor<2> {
        let rows = self.dst.dims()[0];
        match self.shared {
            true if src.dims()[0] == rows => src.clone(),
            true => src.clone().slice_dim(0, 0..rows),
            false => project(self.dst.clone()),
        }
    }
}
