//! Formulas of layers with gates.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use burn_gnn_graph::Graph;
use burn_gnn_models::*;

use super::{drawn, endpoints, linear, same, sigmoid};
use crate::fixtures::views::graph;
use crate::{devices, matrix};

/// States of an LSTM after each row, by PyTorch's gates.
fn lstm(cell: &LstmCell, xs: &[Tensor<2>]) -> Vec<Tensor<2>> {
    let (n, d) = (xs[0].dims()[0], cell.hh.weight.val().dims()[0]);
    let (mut h, mut c) =
        (matrix(&xs[0].device(), "", n, d) * 0.0, matrix(&xs[0].device(), "", n, d) * 0.0);
    let mut states = vec![];
    for x in xs {
        let gates = (linear(&cell.ih, x.clone()) + linear(&cell.hh, h)).chunk(4, 1);
        c = sigmoid(gates[1].clone()) * c + sigmoid(gates[0].clone()) * gates[2].clone().tanh();
        h = sigmoid(gates[3].clone()) * c.clone().tanh();
        states.push(h.clone());
    }
    states
}

#[test]
fn gated_graph_conv() {
    for device in &devices() {
        let g = Graph::builder()
            .nodes("a", 4)
            .edges(("a", "r", "a"), vec![0, 1, 3, 3], vec![1, 1, 0, 1])
            .edges(("a", "s", "a"), vec![2, 0], vec![1, 3])
            .build()
            .unwrap();
        let layer = drawn(GatedGraphConvConfig::from_graph(&g, 3, 2).init(device));
        let x = matrix(device, "x", 4, 2);
        let mut h = Tensor::cat(vec![x.clone(), matrix(device, "", 4, 1) * 0.0], 1);
        for _ in 0..2 {
            let a = (0..2)
                .map(|r| {
                    let (s, d) = endpoints(device, &g.relations()[r]);
                    d.transpose().matmul(linear(&layer.linears[r], s.matmul(h.clone())))
                })
                .reduce(|a, b| a + b)
                .unwrap();
            let (i, k) =
                (linear(&layer.ih, a).chunk(3, 1), linear(&layer.hh, h.clone()).chunk(3, 1));
            let r = sigmoid(i[0].clone() + k[0].clone());
            let z = sigmoid(i[1].clone() + k[1].clone());
            let n = (i[2].clone() + r * k[2].clone()).tanh();
            h = n.clone() + z * (h - n);
        }
        same("gated_graph_conv", &layer.forward(&g, x)[&g.schema().ntypes()[0]], &h);
    }
}

#[test]
fn lstm_over_neighbours_and_layers() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let layer =
            drawn(SageConvConfig::new(4, 3).with_aggregator(SageAggregator::Lstm).init(device));
        let r = &g.relations()[0];
        let row = |v: u32| x.clone().slice_dim(0, v as usize..v as usize + 1);
        let last = |v: usize| {
            let xs: Vec<_> = (0..r.num_edges())
                .filter(|&e| r.dst()[e] as usize == v)
                .map(|e| row(r.src()[e]))
                .collect();
            if xs.is_empty() {
                row(0) * 0.0
            } else {
                lstm(layer.lstm.as_ref().unwrap(), &xs).pop().unwrap()
            }
        };
        let h = Tensor::cat((0..6).map(last).collect(), 0);
        let want = linear(&layer.fc_neigh, h) + linear(layer.fc_self.as_ref().unwrap(), x.clone());
        same("sage_conv lstm", &layer.forward(&g, x), &want);

        let xs: Vec<_> = (0..3).map(|l| matrix(device, &format!("layer {l}"), 5, 2)).collect();
        let jk = drawn(
            JumpingKnowledgeConfig::new(Jumping::Lstm).with_num_layers(3).with_d(2).init(device),
        );
        let there = lstm(jk.lstm.as_ref().unwrap(), &xs);
        let mut back =
            lstm(jk.lstm_reverse.as_ref().unwrap(), &xs.iter().rev().cloned().collect::<Vec<_>>());
        back.reverse();
        let score = |(a, b): (&Tensor<2>, &Tensor<2>)| {
            linear(jk.att.as_ref().unwrap(), Tensor::cat(vec![a.clone(), b.clone()], 1))
        };
        let shares =
            softmax(Tensor::cat(there.iter().zip(&back).map(score).collect(), 1), 1).chunk(3, 1);
        let want = xs.iter().zip(shares).map(|(x, s)| x.clone() * s).reduce(|a, b| a + b).unwrap();
        same("jumping_knowledge lstm", &jk.forward(xs.clone()), &want);
        let join = |mode| JumpingKnowledgeConfig::new(mode).init(device).forward(xs.clone());
        same("jumping_knowledge cat", &join(Jumping::Cat), &Tensor::cat(xs.clone(), 1));
        same(
            "jumping_knowledge max",
            &join(Jumping::Max),
            &xs[0].clone().max_pair(xs[1].clone()).max_pair(xs[2].clone()),
        );
    }
}
