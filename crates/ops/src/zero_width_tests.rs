//! Rows without entries, which tests of all operators do not cover: kernels against references.

use burn::backend::tensor::{Device, FloatTensor};
use burn::tensor::Shape;
use burn_gnn_plan::{
    Activation, AttentionPlan, EpiloguePlan, NormBy, RelationalPlan, Segments, SoftmaxPlan,
    TypedPlan,
};

use crate::attention::GatOptions;
use crate::attention::call::AttentionGrad;
use crate::dense::epilogue::Epilogue;
use crate::edge_softmax::operator::SoftmaxGrad;
use crate::fallback_tests::{compare_operator, graphs, numbers};
use crate::operator::GnnBackend;
use crate::relational::RelationalIndex;
use crate::relational::call::RelationalGrad;
use crate::relational::operator::Relational;
use crate::typed::operator::TypedGrad;

fn tensor<B: GnnBackend>(seed: u64, shape: impl Into<Shape>) -> FloatTensor<B> {
    numbers::<B>(seed, &shape.into(), &Device::<B>::default())
}

fn attention<B: GnnBackend>(backend: &str) {
    for relation in graphs() {
        for (heads, dim) in [(0, 2), (2, 0)] {
            let plan =
                AttentionPlan::gat("attention", &relation, heads, dim, &GatOptions::default())
                    .unwrap();
            let what = format!("{backend}, {relation:?}, {heads} x {dim}");
            let (n, m) = (relation.num_src(), relation.num_dst());
            let inputs = vec![
                tensor::<B>(1, [n, heads, dim]),
                tensor::<B>(2, [n, heads]),
                tensor::<B>(3, [m, heads]),
            ];
            let results = compare_operator::<B, _>(&what, &plan, inputs.clone()).floats;
            let given = std::iter::once(tensor::<B>(4, plan.out_shape()))
                .chain(results)
                .chain(inputs)
                .collect();
            let grad = AttentionGrad { plan, z: true, first: true, second: true };
            compare_operator::<B, _>(&format!("{what}, gradients"), &grad, given);
        }
    }
}

fn softmax<B: GnnBackend>(backend: &str) {
    let edges = graphs()
        .iter()
        .map(|g| SoftmaxPlan::edges("edge_softmax", g, NormBy::Dst, &[3, 0]).unwrap())
        .collect::<Vec<_>>();
    let segments =
        SoftmaxPlan::segments("segment_softmax", &Segments::from_lengths(&[3, 0, 20, 1]), &[0])
            .unwrap();
    for plan in edges.into_iter().chain([segments]) {
        let what = format!("{backend}, {plan:?}");
        compare_operator::<B, _>(&what, &plan, vec![tensor::<B>(1, plan.shape())]);
        let given = vec![tensor::<B>(2, plan.shape()), tensor::<B>(1, plan.shape())];
        compare_operator::<B, _>(&format!("{what}, gradient"), &SoftmaxGrad(plan), given);
    }
}

fn products<B: GnnBackend>(backend: &str) {
    for (input, output) in [(0, 2), (2, 0)] {
        let what = |name: &str| format!("{backend}, {input} x {output}, {name}");
        for lengths in [&[3usize, 0, 200][..], &[0, 0]] {
            let plan =
                TypedPlan::segments(&Segments::from_lengths(lengths), input, output).unwrap();
            let (a, b, grad) = (
                || tensor::<B>(1, plan.a_shape()),
                || tensor::<B>(2, plan.b_shape()),
                || tensor::<B>(3, plan.out_shape()),
            );
            compare_operator::<B, _>(&what("typed"), &plan, vec![a(), b()]);
            compare_operator::<B, _>(
                &what("typed, d a"),
                &TypedGrad::Rows(plan.clone()),
                vec![grad(), b()],
            );
            compare_operator::<B, _>(
                &what("typed, d b"),
                &TypedGrad::Matrices(plan.clone()),
                vec![grad(), a()],
            );
        }
        for relation in graphs() {
            let index = RelationalIndex::new(&relation, &vec![0u32; relation.num_edges()], 2);
            let plan = RelationalPlan::new(&index, &[input, output]).unwrap();
            let (x, w) =
                (|| tensor::<B>(1, plan.x_shape()), || tensor::<B>(2, plan.weight_shape()));
            compare_operator::<B, _>(
                &what("relational"),
                &Relational { plan: plan.clone(), scaled: false },
                vec![x(), w()],
            );
            let grad = RelationalGrad {
                plan: plan.clone(),
                x: true,
                weight: true,
                norm: false,
                scaled: false,
            };
            compare_operator::<B, _>(
                &what("relational, gradients"),
                &grad,
                vec![tensor::<B>(3, plan.out_shape()), x(), w()],
            );
        }
        let plan = EpiloguePlan::new([input, output], Activation::Elu(0.8), None).unwrap();
        let op = Epilogue { plan, biased: true, open: false };
        compare_operator::<B, _>(
            &what("epilogue"),
            &op,
            vec![tensor::<B>(1, [input, output]), tensor::<B>(2, [output])],
        );
    }
}

#[test]
fn kernels_are_references() {
    on_cpu_backends!(attention);
    on_cpu_backends!(softmax);
    on_cpu_backends!(products);
}
