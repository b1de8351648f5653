//! Tests with valid and invalid arrays.

use super::*;

/// The bytes of an array with this header dictionary.
pub(crate) fn npy_bytes(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    raw_npy(
        &format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"),
        data,
    )
}

fn raw_npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

fn read(bytes: &[u8]) -> Result<NpyArray, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    std::fs::write(&path, bytes).unwrap();
    NpyArray::read(&path)
}

fn refused(bytes: &[u8], part: &str) {
    let e = read(bytes).unwrap_err();
    let text = e.to_string();
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with("a.npy")), "{text}");
    assert!(text.contains("a.npy") && text.contains(part), "expected {part:?} in {text}");
}

const TWO: [u8; 8] = [1, 0, 0, 0, 255, 255, 255, 255];

#[test]
fn the_other_types() {
    let values = |descr: &str, shape: &str, data: &[u8]| {
        read(&npy_bytes(descr, false, shape, data)).unwrap().values
    };
    assert_eq!(values("|b1", "(2,)", &[1, 0]), NpyValues::Bool(vec![true, false]));
    assert_eq!(values("|u1", "(2,)", &[1, 255]), NpyValues::U8(vec![1, 255]));
    assert_eq!(
        values("<f2", "(1,)", &f16::from_f32(1.5).to_le_bytes()),
        NpyValues::F16(vec![f16::from_f32(1.5)])
    );
    assert_eq!(values("<f8", "(1,)", &1.5f64.to_le_bytes()), NpyValues::F64(vec![1.5]));
    assert_eq!(values("|S3", "(2,)", b"cscb\0\0"), NpyValues::Text(vec!["csc".into(), "b".into()]));
    assert_eq!(
        values("<U2", "()", &[b'z', 0, 0, 0, 0xe4, 0, 0, 0]),
        NpyValues::Text(vec!["zä".into()])
    );
    let floats = |descr: &str, data: &[u8]| {
        read(&npy_bytes(descr, false, "(2,)", data)).unwrap().into_floats()
    };
    assert_eq!(floats("|b1", &[1, 0]).unwrap(), [1.0, 0.0]);
    assert_eq!(floats("<i4", &TWO).unwrap(), [1.0, -1.0]);
    for (descr, data, found) in [
        (
            "<f8",
            [1.0f64.to_le_bytes(), 1e300f64.to_le_bytes()],
            "entry 1: expected a number that f32 can represent, found 1e300",
        ),
        (
            "<f8",
            [1e-60f64.to_le_bytes(), [0; 8]],
            "entry 0: expected a number that f32 can represent, found 1e-60",
        ),
        ("<i8", [1i64.to_le_bytes(), 16_777_217i64.to_le_bytes()], "found 16777217"),
    ] {
        let e = floats(descr, &data.concat()).unwrap_err().to_string();
        assert!(e.contains(found), "{e}");
    }
    assert!(
        floats("|S1", b"ab").unwrap_err().to_string().contains("expected numbers, found texts")
    );
}

#[test]
fn columns_keep_their_type() {
    for device in burn_gnn_testutil::devices() {
        let column = |descr: &str, shape: &str, data: &[u8]| {
            read(&npy_bytes(descr, false, shape, data)).unwrap().into_column(&device)
        };
        let c = column("<f4", "(2, 1)", bytemuck::cast_slice(&[0.5f32, 2.0])).unwrap();
        assert_eq!(
            (c.shape().as_slice(), c.to_data().try_to_vec::<f32>().unwrap()),
            (&[2, 1][..], vec![0.5, 2.0])
        );
        let c = column("<i8", "(1,)", &(-5i64).to_le_bytes()).unwrap();
        assert_eq!(
            (c.kind(), c.to_data().try_to_vec::<i64>().unwrap()),
            (burn_gnn_graph::ColumnKind::Int, vec![-5])
        );
        let c = column("|b1", "(2,)", &[1, 0]).unwrap();
        assert_eq!(
            (c.kind(), c.to_data().iter::<bool>().collect::<Vec<_>>()),
            (burn_gnn_graph::ColumnKind::Bool, vec![true, false])
        );
        assert!(
            column("<f4", "()", &[0; 4])
                .unwrap_err()
                .to_string()
                .contains("expected 1 to 5 axes, found shape []")
        );
    }
}

#[test]
fn the_four_types_and_three_versions() {
    let a = read(&npy_bytes("<i4", false, "(2, 1)", &TWO)).unwrap();
    assert_eq!(
        (a.shape.clone(), a.values.clone(), a.dtype()),
        (vec![2, 1], NpyValues::I32(vec![1, -1]), "int32")
    );
    assert_eq!(a.into_i64().unwrap(), [1, -1]);
    let a = read(&npy_bytes("<i8", false, "(1,)", &(-5i64).to_le_bytes())).unwrap();
    assert_eq!(a.into_i64().unwrap(), [-5]);
    let a = read(&npy_bytes("|i1", false, "(2,)", &[3, 255])).unwrap();
    assert_eq!((a.dtype(), a.values), ("int8", NpyValues::I8(vec![3, -1])));
    let a = read(&npy_bytes("<f4", false, "()", &1.5f32.to_le_bytes())).unwrap();
    assert_eq!((a.shape.len(), a.into_f32().unwrap()), (0, vec![1.5]));
    let mut v2 = b"\x93NUMPY\x02\x00".to_vec();
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
    v2.extend((header.len() as u32).to_le_bytes());
    v2.extend(header.as_bytes());
    v2.extend(TWO);
    assert_eq!(read(&v2).unwrap().into_i64().unwrap(), [1, -1]);
    v2[6] = 3;
    assert_eq!(read(&v2).unwrap().shape, [2]);
    assert_eq!(read(&npy_bytes("<i8", false, "(2, 0)", &[])).unwrap().shape, [2, 0]);
}

#[test]
fn every_type_of_numbers_in_either_byte_order() {
    // numpy.array([1, -2], '>i2').tobytes() and so on.
    let read = |descr: &str, data: &[u8]| {
        let array = read(&npy_bytes(descr, false, "(2,)", data)).unwrap();
        (array.values.clone(), array.into_i64())
    };
    let whole = |descr: &str, data: &[u8], numbers: [i64; 2], values: NpyValues| {
        let (found, ints) = read(descr, data);
        assert_eq!((found, ints.unwrap()), (values, numbers.to_vec()), "{descr}");
    };
    whole("|i1", &[1, 254], [1, -2], NpyValues::I8(vec![1, -2]));
    whole("|u1", &[1, 254], [1, 254], NpyValues::U8(vec![1, 254]));
    whole("<i2", &[1, 0, 254, 255], [1, -2], NpyValues::I16(vec![1, -2]));
    whole(">i2", &[0, 1, 255, 254], [1, -2], NpyValues::I16(vec![1, -2]));
    whole("<u2", &[1, 0, 254, 255], [1, 65_534], NpyValues::U16(vec![1, 65_534]));
    whole(">u2", &[0, 1, 255, 254], [1, 65_534], NpyValues::U16(vec![1, 65_534]));
    whole(">i4", &[0, 0, 0, 1, 255, 255, 255, 254], [1, -2], NpyValues::I32(vec![1, -2]));
    let far = 4_294_967_294;
    whole(
        "<u4",
        &[1, 0, 0, 0, 254, 255, 255, 255],
        [1, i64::from(far)],
        NpyValues::U32(vec![1, far]),
    );
    whole(
        ">u4",
        &[0, 0, 0, 1, 255, 255, 255, 254],
        [1, i64::from(far)],
        NpyValues::U32(vec![1, far]),
    );
    let eight = |a: i64, b: i64| [a.to_be_bytes(), b.to_be_bytes()].concat();
    whole(">i8", &eight(1, -2), [1, -2], NpyValues::I64(vec![1, -2]));
    whole(">u8", &eight(1, i64::MAX), [1, i64::MAX], NpyValues::U64(vec![1, i64::MAX as u64]));
    let (values, ints) = read("<u8", &[[0; 8], [255; 8]].concat());
    assert_eq!(values, NpyValues::U64(vec![0, u64::MAX]));
    let e = ints.unwrap_err().to_string();
    assert!(e.contains("entry 1: expected a number below 2^63, found 18446744073709551615"), "{e}");
    assert_eq!(read(">f4", &[63, 192, 0, 0, 192, 0, 0, 0]).0, NpyValues::F32(vec![1.5, -2.0]));
    let f8 = [1.5f64.to_be_bytes(), (-2f64).to_be_bytes()].concat();
    assert_eq!(read(">f8", &f8).0, NpyValues::F64(vec![1.5, -2.0]));
    assert_eq!(
        read(">f2", &[0x3e, 0, 0xc0, 0]).0,
        NpyValues::F16(vec![f16::from_f32(1.5), f16::from_f32(-2.0)])
    );
    assert_eq!(
        read(">U1", &[0, 0, 0, b'z', 0, 0, 0, 0xe4]).0,
        NpyValues::Text(vec!["z".into(), "ä".into()])
    );
}

#[test]
fn fortran_order() {
    // numpy.asfortranarray(numpy.arange(6, dtype='<i2').reshape(2, 3)), as `edge_index.T` of [3, 2] is saved.
    let i2 = |v: &[i16]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let a = read(&npy_bytes("<i2", true, "(2, 3)", &i2(&[0, 3, 1, 4, 2, 5]))).unwrap();
    assert_eq!((a.shape.clone(), a.into_i64().unwrap()), (vec![2, 3], vec![0, 1, 2, 3, 4, 5]));
    // Three axes: numpy.asfortranarray(numpy.arange(12).reshape(2, 3, 2)).
    let stored = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
    let a = read(&npy_bytes("<i2", true, "(2, 3, 2)", &i2(&stored))).unwrap();
    assert_eq!(a.into_i64().unwrap(), (0..12).collect::<Vec<_>>());
    let a = read(&npy_bytes(">i2", true, "(2, 2)", &[0, 1, 0, 2, 0, 3, 0, 4])).unwrap();
    assert_eq!(a.into_i64().unwrap(), [1, 3, 2, 4]);
    let a = read(&npy_bytes("|b1", true, "(2, 2)", &[1, 0, 0, 0])).unwrap();
    assert_eq!(a.values, NpyValues::Bool(vec![true, false, false, false]));
    let a = read(&npy_bytes("|S1", true, "(2, 2)", b"abcd")).unwrap();
    assert_eq!(a.values, NpyValues::Text(["a", "c", "b", "d"].map(String::from).to_vec()));
    assert_eq!(read(&npy_bytes("<i2", true, "(3, 0)", &[])).unwrap().shape, [3, 0]);
    for shape in ["(2,)", "(2, 1)", "()"] {
        let data: &[u8] = if shape == "()" { &TWO[..4] } else { &TWO };
        let a = read(&npy_bytes("<i4", true, shape, data)).unwrap();
        assert_eq!(a.into_i64().unwrap(), [1, -1][..data.len() / 4]);
    }
}

#[test]
fn other_lengths_are_errors() {
    refused(&npy_bytes("<i4", false, "(3,)", &TWO), "expected 12 bytes of data, found 8");
    refused(&npy_bytes("<i4", false, "(1,)", &TWO), "expected 4 bytes of data, found 8");
    let whole = npy_bytes("<i4", false, "(2,)", &TWO);
    // A file cut anywhere is refused, whether the cut is in the magic, the header or the data.
    for n in 0..whole.len() {
        assert!(matches!(read(&whole[..n]), Err(DataError::Format { .. })), "cut at {n}");
    }
}

#[test]
fn unsupported_dtypes_are_errors() {
    refused(
        &npy_bytes("<c8", false, "(1,)", &TWO),
        "uint8 to uint64, float16, float32, float64 or text, found '<c8'",
    );
    refused(&npy_bytes("<i3", false, "(2,)", &TWO), "found '<i3'");
    refused(&npy_bytes("<f16", false, "(1,)", &[0; 16]), "found '<f16'");
    refused(&npy_bytes("|S0", false, "(9,)", &[]), "found '|S0'");
    refused(
        &npy_bytes("|b1", false, "(2,)", &[1, 2]),
        "entry 1: expected 0 or 1 of a bool, found 2",
    );
    refused(&npy_bytes("<U1", false, "(1,)", &[0, 0xd8, 0, 0]), "entry 0: expected a text");
    refused(&npy_bytes("|S1", false, "(1,)", &[0xff]), "entry 0: expected a text");
    refused(&npy_bytes("|O", false, "(1,)", &TWO), "found '|O'");
    refused(
        &raw_npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }", &TWO),
        "found records; save each field",
    );
    let floats = read(&npy_bytes("<f4", false, "(2,)", &TWO)).unwrap();
    assert!(
        floats
            .clone()
            .into_i64()
            .unwrap_err()
            .to_string()
            .contains("expected dtype int8 to int64 or uint8 to uint64, found float32")
    );
    let ints = read(&npy_bytes("<i4", false, "(2,)", &TWO)).unwrap();
    assert!(
        ints.into_f32().unwrap_err().to_string().contains("expected dtype float32, found int32")
    );
    let e = floats.expect_shape(&[Some(2), None]).unwrap_err().to_string();
    assert!(e.contains("expected shape [2, any], found [2]"), "{e}");
}

#[test]
fn hostile_headers() {
    refused(b"not an array at all", "expected the .npy magic");
    refused(b"\x93NUMPY\x09\x00\x10\x00", "found 9.0");
    refused(
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        "expected a header of at most 10000 bytes, found 4294967295",
    );
    // Overflows u64 in the product, in one number, in a partial product after a zero, and in bytes.
    refused(&npy_bytes("<i4", false, "(4294967296, 4294967296)", &TWO), "not fit in 64 bits");
    refused(&npy_bytes("<i4", false, "(99999999999999999999999,)", &TWO), "not fit in 64 bits");
    refused(&npy_bytes("<i4", false, "(0, 9223372036854775807, 8)", &TWO), "not fit in 64 bits");
    refused(&npy_bytes("<i8", false, "(9223372036854775807,)", &TWO), "larger than any file");
    // Terabytes that the file does not have.
    refused(
        &npy_bytes("<i8", false, "(1000000000000,)", &TWO),
        "expected 8000000000000 bytes of data, found 8",
    );
    refused(&npy_bytes("<i4", false, "(0xffffffffffffffff, 0xff)", &TWO), "decimal whole number");
    refused(&npy_bytes("<i4", false, "(1_0,)", &TWO), "decimal whole number");
    refused(&npy_bytes("<i4", false, "(2.0,)", &TWO), "decimal whole number");
    refused(&npy_bytes("<i4", false, "(-2,)", &TWO), "decimal whole number");
    refused(&npy_bytes("<i4", false, &"(".repeat(5000), &TWO), "decimal whole number");
    refused(&npy_bytes("<i4\\'", false, "(2,)", &TWO), "a text with an escape");
    refused(&raw_npy("{'descr': '<i4', 'shape': (2,), }", &TWO), "header: expected a plain array");
    refused(
        &raw_npy("nonsense", &TWO),
        "header: expected a plain array, found \"nonsense\" instead of `{`",
    );
    refused(
        &raw_npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}", &TWO),
        "found an entry \"x\"",
    );
    refused(
        &raw_npy("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}", &TWO),
        "two entries \"descr\"",
    );
    refused(
        &raw_npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,)} 1", &TWO),
        "found \"1\"",
    );
    refused(&raw_npy("{'descr': '<i4', 'fortran_order': 0, 'shape': (2,)}", &TWO), "True or False");
    refused(
        &raw_npy("{'descr': 4, 'fortran_order': False, 'shape': (2,)}", &TWO),
        "instead of a text",
    );
    refused(&raw_npy("{'descr': '<i4", &TWO), "a text without an end");
    refused(
        &raw_npy("{'descr': '<i4', 'fortran_order': False, 'shape': 2, }", &TWO),
        "header: expected a plain array",
    );
}
