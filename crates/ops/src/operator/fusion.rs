//! Queues operators on fusion backends: a call is queued as one operation.

use burn::backend::fusion::custom::{CustomOpIr, OperationFn, OperationIr, StreamId, TensorIr};
use burn::backend::fusion::{Fusion, FusionBackend};

use crate::operator::definition::{GnnBackend, Operator, Spec};
use crate::operator::tensors::Tensors;

impl<B: FusionBackend + GnnBackend> GnnBackend for Fusion<B> {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        let specs: Vec<_> =
            inputs.floats.iter().map(|x| Spec::new(x.shape.clone(), x.dtype)).collect();
        let Some(results) = op.results(&specs) else { return op.reference(inputs) };
        let client = inputs.floats[0].client.clone();
        let [floats, ints] = [inputs.floats, inputs.ints]
            .map(|x| x.into_iter().map(|x| x.into_ir()).collect::<Vec<_>>());
        let describe =
            |spec: Spec| TensorIr::uninit(client.create_empty_handle(), spec.shape, spec.dtype);
        let outputs = [results.floats, results.ints]
            .map(|specs| specs.into_iter().map(describe).collect::<Vec<_>>());
        let ids =
            outputs.each_ref().map(|outputs| outputs.iter().map(|x| x.id).collect::<Vec<_>>());
        let num_floats = outputs[0].len();
        let call = CustomOpIr {
            id: O::NAME.into(),
            inputs: floats.iter().chain(&ints).cloned().collect(),
            outputs: outputs.into_iter().flatten().collect(),
            scalars: Vec::new(),
        };
        let run =
            OperationFn(move |handles: &mut burn::backend::fusion::custom::HandleContainer<_>| {
                let inputs = Tensors {
                    floats: floats.iter().map(|x| handles.get_float_tensor::<B>(x)).collect(),
                    ints: ints.iter().map(|x| handles.get_int_tensor::<B>(x)).collect(),
                };
                let Tensors { floats, ints } = B::run(inputs, op.clone());
                ids[0]
                    .iter()
                    .zip(floats)
                    .for_each(|(id, x)| handles.register_float_tensor::<B>(id, x));
                ids[1].iter().zip(ints).for_each(|(id, x)| handles.register_int_tensor::<B>(id, x));
                Ok(())
            });
        let mut floats = client.register(StreamId::current(), OperationIr::Custom(call), run);
        let ints = floats.split_off(num_floats);
        Tensors { floats, ints }
    }
}
