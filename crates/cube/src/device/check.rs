//! Checks the operands of kernels before launches without bounds checks.
//!
//! Shapes, element types, devices and lengths of buffers are checked at every call, which costs nothing; ids are
//! checked once, when what holds them is made: a [`Relation`](burn_gnn_graph::Relation), a plan, a
//! [`RowIndex`](crate::RowIndex).

use burn::tensor::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// An operand that an operator looks at.
#[track_caller]
pub(crate) fn given(op: &str, arg: &str, x: Option<CubeTensor>) -> CubeTensor {
    x.unwrap_or_else(|| panic!("{op}: `{arg}` is missing, which the operator looks at"))
}

#[track_caller]
fn check_float(op: &str, arg: &str, x: &CubeTensor) {
    assert!(x.dtype.is_float(), "{op}: `{arg}` must have a float type, got {:?}", x.dtype);
}

/// Bytes up to the last entry of a tensor, and bytes of its buffer.
pub(crate) fn bytes_held(x: &CubeTensor) -> (u128, u128) {
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let last = shape
        .iter()
        .zip(&strides[..])
        .map(|(&n, &stride)| n.saturating_sub(1) as u128 * stride as u128)
        .sum::<u128>();
    let entries = if x.meta.num_elements() == 0 { 0 } else { last + 1 };
    (entries * x.dtype.size() as u128, u128::from(x.handle.size_in_used()))
}

/// An operator, and the element type and device of its operands.
pub(crate) struct Call {
    op: &'static str,
    /// The operand that has them.
    like: &'static str,
    dtype: DType,
    device: CubeDevice,
}

impl Call {
    /// Operands are as `arg`, which is made of floats. It is not held: what nobody else holds is written in place.
    #[track_caller]
    pub(crate) fn new(op: &'static str, arg: &'static str, like: &CubeTensor) -> Self {
        check_float(op, arg, like);
        Self { op, like: arg, dtype: like.dtype, device: like.device.clone() }
    }

    /// `x` in row-major order: `rows` rows of `width` entries, whatever its axes are called, of the operator's type, on
    /// its device.
    #[track_caller]
    pub(crate) fn rows(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        self.rows_of(arg, x, rows, width, &[self.dtype])
    }

    /// [`rows`](Self::rows) of one of these types.
    #[track_caller]
    pub(crate) fn rows_of(
        &self,
        arg: &str,
        x: CubeTensor,
        rows: usize,
        width: usize,
        dtypes: &[DType],
    ) -> CubeTensor {
        let op = self.op;
        let shape = x.meta.shape();
        let fits =
            shape.first() == Some(&rows) && rows.checked_mul(width) == Some(x.meta.num_elements());
        assert!(
            fits,
            "{op}: `{arg}` must have {rows} rows of {width} entries, got shape {:?}",
            &shape[..]
        );
        assert!(
            dtypes.contains(&x.dtype),
            "{op}: `{arg}` must have element type {dtypes:?}, got {:?}",
            x.dtype
        );
        self.on_device(arg, &x);
        // Before the copy, which reads what the strides say.
        self.held(arg, &x);
        into_contiguous(x)
    }

    /// [`rows`](Self::rows) of any float type.
    #[track_caller]
    pub(crate) fn floats(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        check_float(self.op, arg, &x);
        let dtype = x.dtype;
        self.rows_of(arg, x, rows, width, &[dtype])
    }

    /// Ids of edges as a kernel has written them.
    #[track_caller]
    pub(crate) fn ids(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        self.rows_of(arg, x, rows, width, &[DType::I32, DType::U32])
    }

    /// An array of `entries` 32-bit numbers or more, on the operator's device.
    #[track_caller]
    pub(crate) fn array(&self, arg: &str, x: &CubeTensor, found: usize, entries: usize) {
        assert!(found >= entries, "{}: `{arg}` must have {entries} entries, got {found}", self.op);
        self.on_device(arg, x);
    }

    #[track_caller]
    fn on_device(&self, arg: &str, x: &CubeTensor) {
        let Self { op, like, device, .. } = self;
        assert!(
            x.device == *device,
            "{op}: `{arg}` must be on the device of `{like}`, {device:?}, got {:?}",
            x.device
        );
    }

    /// An operand that the operator looks at.
    #[track_caller]
    pub(crate) fn given(&self, arg: &str, x: Option<CubeTensor>) -> CubeTensor {
        given(self.op, arg, x)
    }

    /// The two axes of a table.
    #[track_caller]
    pub(crate) fn table(&self, arg: &str, x: &CubeTensor) -> [usize; 2] {
        match x.meta.shape()[..] {
            [rows, width] => [rows, width],
            ref other => panic!("{}: `{arg}` must have two axes, got shape {other:?}", self.op),
        }
    }

    /// No entry of a tensor lies behind the end of its buffer: anybody can put one together.
    #[track_caller]
    fn held(&self, arg: &str, x: &CubeTensor) {
        let (bytes, found) = bytes_held(x);
        let shape = &x.meta.shape()[..];
        assert!(
            bytes <= found,
            "{}: `{arg}` has a buffer of {found} bytes, its shape {shape:?} needs {bytes}",
            self.op
        );
    }
}
