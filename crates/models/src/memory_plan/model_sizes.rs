//! Predicts the memory of a training step from the sizes of a model.

use crate::memory_plan::plan::F32;

/// Numbers of rows and edges of one layer, on a graph, a block or a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerRows {
    /// Number of source rows; on a partition, its own nodes and halo nodes.
    pub sources: usize,
    /// Number of destination rows.
    pub destinations: usize,
    /// Number of edges.
    pub edges: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gcn,
    Sage,
    Gat { heads: usize },
}

/// Sizes of a model, for [`plan_full_batch`](crate::plan_full_batch) and [`plan_mini_batch`](crate::plan_mini_batch). The
/// model consists of layers with ReLU (GAT: ELU or ReLU) between them, trained with cross entropy and
/// [`FusedAdam`](crate::FusedAdam).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSizes {
    pub(super) kind: Kind,
    pub(super) widths: Vec<usize>,
    dropout: bool,
}

impl ModelSizes {
    /// Describes a [`Gcn`](crate::Gcn). `widths[i]` is the input feature size of layer `i`, the last entry the number of
    /// classes.
    pub fn gcn(widths: impl Into<Vec<usize>>) -> Self {
        Self { kind: Kind::Gcn, widths: widths.into(), dropout: false }
    }
    /// Describes a [`Sage`](crate::Sage) with the mean aggregator. `widths` is as in [`gcn`](Self::gcn).
    pub fn sage(widths: impl Into<Vec<usize>>) -> Self {
        Self { kind: Kind::Sage, widths: widths.into(), dropout: false }
    }
    /// Describes a [`Gat`](crate::Gat) with `heads` concatenated heads in hidden layers, one head in the last layer
    /// (`out_heads` 1), and no residuals. `widths` is as in [`gcn`](Self::gcn), with the sizes of all heads together.
    pub fn gat(widths: impl Into<Vec<usize>>, heads: usize) -> Self {
        Self { kind: Kind::Gat { heads }, widths: widths.into(), dropout: false }
    }
    /// Adds dropout between layers and, for a GCN or GAT, of the input features.
    #[must_use]
    pub fn with_dropout(mut self) -> Self {
        self.dropout = true;
        self
    }
    /// Input feature size of each layer, and the number of classes.
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }
    /// Whether there is dropout.
    pub fn has_dropout(&self) -> bool {
        self.dropout
    }
    /// Number of layers.
    pub fn num_layers(&self) -> usize {
        self.widths.len().saturating_sub(1)
    }
    /// Number of parameters: weights and biases.
    pub fn num_parameters(&self) -> usize {
        // Numbers of matrices, and of vectors of the output size: a bias, and two attention vectors of a GAT.
        let (matrices, vectors) = match self.kind {
            Kind::Gcn => (1, 1),
            Kind::Sage => (2, 1),
            Kind::Gat { .. } => (1, 3),
        };
        self.widths.windows(2).map(|w| matrices * w[0] * w[1] + vectors * w[1]).sum()
    }
    /// Bytes of a step in addition to parameters, optimizer, structure and features: tensors that layers keep for
    /// backward, and the largest temporary memory of an operator. Layer `i` runs on `rows[i]`.
    ///
    /// Let `S` and `D` be the numbers of source and destination rows of a layer and `I` and `O` its feature sizes, in f32:
    ///
    /// * If `I > O`, the layer multiplies first: `p = x W` takes `S·O`, the sum over neighbours `D·O`, and the input is
    ///   kept. Backward needs the gradients of result and `p`, `D·O + S·O`, then those of `p` and input, `S·O + S·I`.
    /// * Otherwise it aggregates first: the sums `D·I` are kept, the product takes `D·O`. Backward needs the gradients of
    ///   result and sums, `D·O + D·I`, then those of sums and input, `D·I + S·I`.
    /// * SAGE keeps its input in both cases, and backward also needs the gradient of destination rows, `D·I`.
    /// * GAT keeps its input, `z = x W` of `S·O`, scores of `(S + D)·H` for `H` heads, sums and result of `2·D·O`, and two
    ///   numbers per destination and head. Backward needs the gradients of sums and `z`, `D·O + S·O`, of scores,
    ///   `(S + D)·H`, and of each edge, `E·H`; then that of `z` twice; then those of `z` and input. On blocks, where
    ///   `D < S`, a copy of the first rows of `z` is added.
    /// * A ReLU after a product keeps one bit per entry. A ReLU after a sum over neighbours keeps the result, and backward
    ///   needs its gradient twice, `D·O` more. Dropout keeps its key; it copies the features of a GCN and the result of a
    ///   sum over neighbours.
    ///
    /// # Panics
    /// `rows` does not have one entry per layer.
    #[track_caller]
    pub fn step_bytes(&self, rows: &[LayerRows]) -> usize {
        self.step(rows, (0..rows.len()).map(|i| self.layer(i, rows[i])).collect())
    }

    /// Feature size that each layer exchanges between ranks, and whether gradients are sent back.
    pub fn exchanges(&self) -> Vec<(usize, bool)> {
        let of = |(i, w): (usize, &[usize])| if w[0] > w[1] { (w[1], true) } else { (w[0], i > 0) };
        self.widths.windows(2).enumerate().map(of).collect()
    }

    /// [`step_bytes`](Self::step_bytes) of a rank with `inner` own nodes, `halo` halo nodes and `edges` in-edges, including
    /// the rows that it sends and receives.
    ///
    /// Let `w` be the feature size of an [exchange](Self::exchanges). Forward needs the rows before the exchange, the rows
    /// after it and the messages, `inner·w + 2·halo·w` more; backward needs their gradients.
    pub fn step_bytes_of_part(&self, inner: usize, halo: usize, edges: usize) -> usize {
        let rows = vec![
            LayerRows { sources: inner + halo, destinations: inner, edges };
            self.num_layers()
        ];
        let layer = |(i, (w, tracked)): (usize, (usize, bool))| {
            let (mut layer, messages) = (self.layer(i, rows[i]), 2 * halo * w * F32);
            if w < self.widths[i] {
                // The product is exchanged, so its input has no halo rows.
                let of_halo = halo * self.widths[i] * F32;
                let of_input = of_halo.min(layer.input);
                layer.input -= of_input;
                layer.forward = layer.forward.saturating_sub(of_input) + inner * w * F32;
                layer.backward_of_input =
                    layer.backward_of_input.saturating_sub(if i == 0 { 0 } else { of_halo });
            } else if layer.input == 0 {
                // The input features of the first layer and the received rows are concatenated to a new tensor.
                layer.forward += (inner + halo) * w * F32;
            }
            layer.forward += messages;
            layer.backward_of_input += if tracked { inner * w * F32 + messages } else { 0 };
            layer
        };
        self.step(&rows, self.exchanges().into_iter().enumerate().map(layer).collect())
    }

    #[track_caller]
    fn step(&self, rows: &[LayerRows], layers: Vec<Layer>) -> usize {
        assert_eq!(rows.len(), self.num_layers(), "`rows` must have one entry per layer");
        let mut step = Step::default();
        for layer in &layers {
            step.allocate(layer.forward);
            step.kept += layer.kept();
        }
        if let (Some(rows), Some(classes)) = (rows.last(), self.widths.last()) {
            // Logits and their gradient.
            step.allocate(2 * rows.destinations * classes * F32);
        }
        for layer in layers.iter().rev() {
            step.allocate(layer.backward);
            step.kept -= layer.freed();
            step.allocate(layer.backward_of_input);
            step.kept -= layer.kept() - layer.freed();
        }
        step.peak
    }

    fn layer(&self, i: usize, rows: LayerRows) -> Layer {
        match self.kind {
            Kind::Gat { heads } => self.gat_layer(i, rows, heads),
            Kind::Gcn | Kind::Sage => self.sum_layer(i, rows),
        }
    }

    /// Bytes of an attention layer. The next layer keeps the result as its input too.
    fn gat_layer(&self, i: usize, rows: LayerRows, heads: usize) -> Layer {
        let (s, d) = (rows.sources * F32, rows.destinations * F32);
        let (i_size, o_size) = (self.widths[i], self.widths[i + 1]);
        let (is_first, is_last) = (i == 0, i + 1 == self.num_layers());
        let heads = if is_last { 1 } else { heads };
        let (z, sums, scores) = (s * o_size, d * o_size, (s + d) * heads);
        let input = if is_first && self.dropout { s * i_size } else { 0 };
        let d_input = if is_first { 0 } else { s * i_size };
        // The logits are a copy with the bias, then the mean over heads.
        let result = if is_last { 0 } else { sums };
        let of_sums = sums + 2 * d * heads;
        // On a block, the destination rows of `z` are copied, and the gradient of the copy is added to zeros.
        let (copy, spread) = if d < s { (sums, z) } else { (0, 0) };
        let kept = z + copy + scores + of_sums;
        let attention = sums + z + scores + rows.edges * heads * F32;
        let of_scores = (2 * z + spread + copy + scores).saturating_sub(of_sums);
        Layer {
            input,
            keeps_input: true,
            kept_sums: kept,
            kept_result: result,
            forward: input + kept + if is_last { 2 * sums } else { result },
            backward: attention.max(of_scores).saturating_sub(result),
            backward_of_input: (z + d_input).saturating_sub(result),
        }
    }

    /// Bytes of a layer that sums over neighbours, before or after a product.
    fn sum_layer(&self, i: usize, rows: LayerRows) -> Layer {
        let (s, d) = (rows.sources * F32, rows.destinations * F32);
        let (i_size, o_size) = (self.widths[i], self.widths[i + 1]);
        let (is_first, is_last) = (i == 0, i + 1 == self.num_layers());
        let (sage, first_product) = (self.kind == Kind::Sage, i_size > o_size);
        // The input. Features belong to the caller unless dropout copies them, and a result that the previous layer keeps
        // is part of that layer.
        let is_kept_before = !is_first && !sage && self.widths[i - 1] > i_size && !self.dropout;
        let input =
            if (is_first && (sage || !self.dropout)) || is_kept_before { 0 } else { s * i_size };
        let bits = if is_last { 0 } else { rows.destinations * o_size.div_ceil(8) };
        let (result, product, sums) = (d * o_size, s * o_size, d * i_size);
        let d_input = if is_first { 0 } else { s * i_size };
        // The gradient of destination rows, which is added to that of sources later.
        let d_self = if is_first || !sage { 0 } else { d * i_size };
        let mut layer = Layer { input, keeps_input: sage || first_product, ..Layer::default() };
        if first_product {
            let copy = if self.dropout && !is_last { result } else { 0 };
            layer.kept_result = if sage {
                bits
            } else if is_last {
                0
            } else {
                result
            };
            layer.forward = input
                + if sage {
                    product + result + bits
                } else {
                    (product + result).max(result + copy)
                };
            // The gradient after the ReLU is a separate tensor from that of the result.
            let cut = if sage || is_last { 0 } else { result };
            layer.backward = result + cut + d_self + product;
            layer.backward_of_input = d_self + product + d_input;
        } else {
            layer.kept_sums = sums;
            layer.kept_result = bits;
            let product = sums + result + bits;
            // An input that is not kept is freed before the product.
            layer.forward =
                if layer.keeps_input { input + product } else { product.max(input + sums) };
            let d_sums = if is_first { 0 } else { sums };
            layer.backward = result + d_self;
            layer.backward_of_input = d_self + d_sums + result.max(d_input);
        }
        layer
    }
}

/// Bytes of one layer.
#[derive(Clone, Copy, Debug, Default)]
struct Layer {
    /// The input, unless the caller or the previous layer keeps it.
    input: usize,
    keeps_input: bool,
    /// Sums over neighbours, which a product keeps for backward.
    kept_sums: usize,
    /// The sign bits or the result that a ReLU keeps.
    kept_result: usize,
    /// Peak of forward, including the input.
    forward: usize,
    /// Peak of what backward allocates before the inputs of products are freed.
    backward: usize,
    /// Peak of what backward allocates after that.
    backward_of_input: usize,
}

impl Layer {
    fn kept(&self) -> usize {
        self.freed() + self.kept_result
    }
    /// Bytes that products keep, which are freed before the gradient of the input is allocated.
    fn freed(&self) -> usize {
        self.kept_sums + if self.keeps_input { self.input } else { 0 }
    }
}

/// Bytes that layers have kept so far, and the peak.
#[derive(Debug, Default)]
struct Step {
    kept: usize,
    peak: usize,
}

impl Step {
    fn allocate(&mut self, bytes: usize) {
        self.peak = self.peak.max(self.kept + bytes);
    }
}
